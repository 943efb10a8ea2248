//! What follows from the state without asking anybody: runs to open, suspects, verdicts, ends.

use yard_common::landing::AttemptId;
use yard_common::limits::NEEDS_AUTHOR_MS_MAX;
use yard_common::stage::Verdict;
use yard_common::{ChangeId, Millis, ObjectId, RunId, TrainNo, Version};

use crate::fact::{AttemptKind, Candidate, Check, LaneFact, Purpose};
use crate::judge::{Need, Outcome, Together, is_red};
use crate::limits::MAIN_RETRY_MS;
use crate::state::{Attempt, Entry, Lane, Status, World};

impl Lane {
    /// The next facts that follow; empty when all is settled. Apply them, ask again.
    #[must_use]
    pub fn settle(&self, world: &World, now: Millis) -> Vec<LaneFact> {
        let mut facts = self.expired_leases(now);
        if let Some(bad) = &self.bad_main
            && now.since(bad.at) >= MAIN_RETRY_MS
        {
            facts.push(LaneFact::MainAgain { head: bad.head });
        }
        for attempt in self.attempts.values() {
            if !facts.is_empty() {
                break;
            }
            facts = match (&attempt.kind, &attempt.candidate) {
                (AttemptKind::Train, Some(candidate)) => self.settle_train(attempt, candidate, now),
                (AttemptKind::Probe { change, version, on_main }, Some(candidate)) => {
                    self.settle_probe(attempt, candidate, (change, *version, *on_main), now)
                }
                (AttemptKind::Confirm { commit, tree, check }, _) => {
                    self.settle_confirm(attempt, (*commit, *tree), check, world, now)
                }
                (AttemptKind::Without { .. }, Some(candidate)) => {
                    self.settle_without(attempt, candidate, now).into_iter().collect()
                }
                (AttemptKind::Train | AttemptKind::Probe { .. } | AttemptKind::Without { .. }, None) => {
                    self.settle_unbuilt(attempt, world)
                }
            };
        }
        if facts.is_empty() {
            facts.extend(self.confirm(world, now));
            facts.extend(self.settle_replays(world, now));
            facts.extend(self.expiring(now));
        }
        facts
    }

    /// When settling may bring something new although nothing happens.
    #[must_use]
    pub fn settles_at(&self) -> Option<Millis> {
        let leases = self.attempts.values().flat_map(|attempt| &attempt.runs);
        let leases = leases.filter_map(|run| run.lease.as_ref().map(|lease| lease.until));
        let main = self.bad_main.as_ref().map(|bad| bad.at.plus(MAIN_RETRY_MS));
        leases.chain(main).chain(self.replays_due()).min()
    }

    fn expired_leases(&self, now: Millis) -> Vec<LaneFact> {
        let runs = self.attempts.values().flat_map(|attempt| &attempt.runs);
        runs.filter(|run| run.ended.is_none())
            .filter_map(|run| Some((run, run.lease.as_ref()?)))
            .filter(|(_, lease)| lease.until <= now)
            .map(|(run, lease)| LaneFact::LeaseLost { run: run.id.clone(), lease: lease.no })
            .collect()
    }

    fn expiring(&self, now: Millis) -> impl Iterator<Item = LaneFact> {
        let old = self.entries.iter().filter(move |(_, entry)| match entry.status {
            Status::SentBack { at, .. } => now.since(at) >= NEEDS_AUTHOR_MS_MAX,
            _ => false,
        });
        old.map(|(change, _)| LaneFact::Expiring { change: change.clone() })
    }

    /// An attempt that nobody assembles any more: the process that did has ended.
    fn settle_unbuilt(&self, attempt: &Attempt, world: &World) -> Vec<LaneFact> {
        if world.assembling.as_ref() == Some(&attempt.id) {
            return Vec::new();
        }
        vec![LaneFact::Ended { attempt: attempt.id.clone(), why: "its assembly was interrupted".into() }]
    }

    fn settle_train(&self, attempt: &Attempt, candidate: &Candidate, now: Millis) -> Vec<LaneFact> {
        if attempt.landing.is_some() || attempt.limit == 0 {
            return Vec::new();
        }
        let verdict =
            match self.together(attempt, candidate.prefix(attempt.limit).1, attempt.limit, &candidate.checks)
            {
                Together::Green(_) => return Vec::new(),
                Together::Open(need) => {
                    let whole = attempt.limit == candidate.members.len();
                    let purpose = if whole { Purpose::Train } else { Purpose::Prefix };
                    return self.open(attempt, candidate, need, purpose).into_iter().collect();
                }
                Together::Bad(outcome) => outcome,
            };
        // A candidate that is not green blames nobody before main itself is known to be.
        match self.together(attempt, candidate.head_tree, 0, candidate.checks.get(..1).unwrap_or_default()) {
            Together::Open(need) => self.open(attempt, candidate, need, Purpose::Base).into_iter().collect(),
            Together::Bad(outcome) => bad_main(attempt, candidate.head, &outcome, now),
            Together::Green(_) => self.bisect(attempt, candidate, &verdict, now),
        }
    }

    /// Looks for the longest green prefix between one that is green and one that is not.
    fn bisect(
        &self,
        attempt: &Attempt,
        candidate: &Candidate,
        whole: &Outcome,
        now: Millis,
    ) -> Vec<LaneFact> {
        let (mut green, mut bad, mut bad_outcome) = (0, attempt.limit, whole.clone());
        while bad - green > 1 {
            let middle = green + (bad - green) / 2;
            match self.together(attempt, candidate.prefix(middle).1, middle, &candidate.checks) {
                Together::Green(_) => green = middle,
                Together::Bad(outcome) => (bad, bad_outcome) = (middle, outcome),
                Together::Open(need) => {
                    return self.open(attempt, candidate, need, Purpose::Prefix).into_iter().collect();
                }
            }
        }
        let (runs, detail) = proof(&bad_outcome);
        let mut facts =
            vec![LaneFact::Suspected { train: attempt.id.train, index: green, runs: runs.clone(), at: now }];
        // Alone on its own base, and that is what was tested just now: the runs prove it already.
        if let Some(entry) = self.first_alone_on_base(candidate, green) {
            let verdict = match bad_outcome {
                Outcome::Infra { .. } => Verdict::Infra,
                _ => Verdict::BrokenAlone,
            };
            facts.push(judged(entry, verdict, runs, detail, now));
        }
        facts
    }

    fn first_alone_on_base(&self, candidate: &Candidate, index: usize) -> Option<&Entry> {
        let member = candidate.members.first().filter(|_| index == 0)?;
        let entry = self.entries.get(&member.change)?;
        (entry.row.version == member.version && entry.row.base.tree == candidate.head_tree).then_some(entry)
    }

    fn settle_probe(
        &self,
        attempt: &Attempt,
        candidate: &Candidate,
        probe: (&ChangeId, Version, bool),
        now: Millis,
    ) -> Vec<LaneFact> {
        let (change, version, on_main) = probe;
        let Some(entry) = self.entries.get(change).filter(|entry| entry.row.version == version) else {
            return vec![LaneFact::Ended { attempt: attempt.id.clone(), why: "its change is gone".into() }];
        };
        let Status::Suspect { with, .. } = &entry.status else {
            return vec![LaneFact::Ended {
                attempt: attempt.id.clone(),
                why: "its change is no suspect".into(),
            }];
        };
        let base_checks = candidate.checks.get(..1).unwrap_or_default();
        match self.together(attempt, candidate.head_tree, 0, base_checks) {
            Together::Open(need) => {
                return self.open(attempt, candidate, need, Purpose::Base).into_iter().collect();
            }
            Together::Bad(outcome) if on_main => {
                return bad_main(attempt, candidate.head, &outcome, now);
            }
            Together::Bad(_) => {
                return vec![LaneFact::OnMain {
                    change: change.clone(),
                    version,
                    why: "its own base is not green: it is tried on main".into(),
                }];
            }
            Together::Green(_) => {}
        }
        match self.together(attempt, candidate.tip().1, 1, &candidate.checks) {
            Together::Open(need) => self.open(attempt, candidate, need, Purpose::Alone).into_iter().collect(),
            Together::Bad(outcome) => {
                let (runs, detail) = proof(&outcome);
                let verdict = match outcome {
                    Outcome::Infra { .. } => Verdict::Infra,
                    _ => Verdict::BrokenAlone,
                };
                vec![judged(entry, verdict, runs, detail, now)]
            }
            Together::Green(greens) => {
                let green: Vec<RunId> = greens.into_iter().map(|signed| signed.run).collect();
                self.green_alone(entry, with, on_main, green, now).into_iter().collect()
            }
        }
    }

    /// Green alone, red with others: an interaction with those of them that have landed.
    fn green_alone(
        &self,
        entry: &Entry,
        with: &[ChangeId],
        on_main: bool,
        green: Vec<RunId>,
        now: Millis,
    ) -> Option<LaneFact> {
        let undecided = with.iter().any(|other| {
            matches!(self.entries.get(other).map(|entry| &entry.status), Some(Status::Aboard { .. }))
        });
        if undecided && !on_main {
            return None;
        }
        let mut landed: Vec<ChangeId> =
            with.iter().filter(|other| self.landings.iter().any(|(at, _)| at == *other)).cloned().collect();
        if with.is_empty() {
            landed = self.landed_since(&entry.row.base.commits);
        }
        if on_main || (landed.is_empty() && !with.is_empty()) {
            return Some(LaneFact::Cleared {
                change: entry.row.change.clone(),
                version: entry.row.version,
                why: "it was red in a train and is green alone: it is tried again".into(),
            });
        }
        let mut runs = match &entry.status {
            Status::Suspect { runs, .. } => runs.clone(),
            _ => Vec::new(),
        };
        // Runs that never came to their end prove nothing against those that it was tested with.
        if !runs.is_empty() && runs.iter().all(|run| self.ended_without_result(run)) {
            let detail = "green alone; with what main has now no run came to its end".to_owned();
            return Some(judged(entry, Verdict::Infra, runs, detail, now));
        }
        let detail = runs.first().map(|run| self.what_failed(run)).unwrap_or_default();
        runs.extend(green);
        Some(judged(entry, Verdict::Interaction { with: landed }, runs, detail, now))
    }

    fn ended_without_result(&self, run: &RunId) -> bool {
        let past = self.past_runs.iter().find(|past| past.run == *run);
        past.is_some_and(|past| !past.result.as_ref().is_some_and(is_red))
    }

    fn what_failed(&self, run: &RunId) -> String {
        let past = self.past_runs.iter().find(|past| past.run == *run).and_then(|past| past.result.as_ref());
        past.map(|result| result.failed.iter().take(3).cloned().collect::<Vec<_>>().join(", "))
            .unwrap_or_default()
    }

    /// Changes that landed after a base, newest last; the last ten where the base is too old to be known.
    pub(crate) fn landed_since(&self, base: &[ObjectId]) -> Vec<ChangeId> {
        let known = self.landings.iter().rposition(|(_, commit)| base.contains(commit));
        let after = known.map_or(self.landings.len().saturating_sub(10), |at| at + 1);
        self.landings.iter().skip(after).map(|(change, _)| change.clone()).collect()
    }

    fn settle_confirm(
        &self,
        attempt: &Attempt,
        main: (ObjectId, ObjectId),
        check: &Check,
        world: &World,
        now: Millis,
    ) -> Vec<LaneFact> {
        let end = |why: &str| vec![LaneFact::Ended { attempt: attempt.id.clone(), why: why.to_owned() }];
        if let Some(view) = &world.view
            && (view.head != Some(main) || view.check.as_ref() != Ok(check))
        {
            return end("main moved");
        }
        match self.outcome(attempt, main.1, check) {
            Outcome::Running => Vec::new(),
            Outcome::Green(_) => end("main is green"),
            Outcome::Needs(before) => vec![run_opened(
                attempt,
                main,
                Need::Run { count: 0, check: check.clone(), before },
                Purpose::Confirm,
            )]
            .into_iter()
            .flatten()
            .collect(),
            outcome @ (Outcome::Red { .. } | Outcome::Infra { .. }) => {
                bad_main(attempt, main.0, &outcome, now)
            }
        }
    }

    /// Main's tip came in untested: it gets a confirming run.
    fn confirm(&self, world: &World, now: Millis) -> Option<LaneFact> {
        let view = world.view.as_ref().filter(|view| !view.tip_tested && !world.stale)?;
        let (commit, tree) = view.head?;
        let check = view.check.as_ref().ok()?;
        let open = self.attempts.values().any(|attempt| matches!(attempt.kind, AttemptKind::Confirm { .. }));
        if open || self.bad_main.is_some() || self.is_green(tree, check) {
            return None;
        }
        let kind = AttemptKind::Confirm { commit, tree, check: check.clone() };
        Some(LaneFact::Began { attempt: self.new_attempt(), kind, at: now })
    }

    /// Is the tree green under this check in whatever environment?
    #[must_use]
    pub fn is_green(&self, tree: ObjectId, check: &Check) -> bool {
        self.greens.iter().any(|green| {
            green.tree == tree && green.signed.command == check.command && green.signed.config == check.config
        })
    }

    /// The number of the next attempt.
    #[must_use]
    pub fn new_attempt(&self) -> AttemptId {
        AttemptId {
            lane: self.name.clone(),
            train: TrainNo(self.last_train.0 + 1),
            attempt: yard_common::AttemptNo(1),
        }
    }

    fn open(
        &self,
        attempt: &Attempt,
        candidate: &Candidate,
        need: Need,
        purpose: Purpose,
    ) -> Option<LaneFact> {
        let count = match &need {
            Need::Run { count, .. } => *count,
            Need::Wait => return None,
        };
        run_opened(attempt, candidate.prefix(count), need, purpose)
    }
}

pub(crate) fn run_opened(
    attempt: &Attempt,
    at: (ObjectId, ObjectId),
    need: Need,
    purpose: Purpose,
) -> Option<LaneFact> {
    let Need::Run { count, check, before } = need else { return None };
    let id = &attempt.id;
    let run = RunId::new(format!("{}-{}-{}", id.lane, id.train, attempt.runs.len() + 1)).ok()?;
    let again = before > 0 && purpose == Purpose::Train;
    Some(LaneFact::RunOpened {
        run,
        train: id.train,
        purpose: if again { Purpose::Again } else { purpose },
        commit: at.0,
        tree: at.1,
        count,
        check,
    })
}

fn proof(outcome: &Outcome) -> (Vec<RunId>, String) {
    match outcome {
        Outcome::Red { runs, detail } | Outcome::Infra { runs, detail } => (runs.clone(), detail.clone()),
        Outcome::Green(signed) => (vec![signed.run.clone()], String::new()),
        Outcome::Running | Outcome::Needs(_) => (Vec::new(), String::new()),
    }
}

fn bad_main(attempt: &Attempt, head: ObjectId, outcome: &Outcome, now: Millis) -> Vec<LaneFact> {
    let (runs, detail) = proof(outcome);
    let verdict = match outcome {
        Outcome::Infra { .. } => Verdict::Infra,
        _ => Verdict::MainRed,
    };
    vec![
        LaneFact::MainBad { head, verdict, runs, detail, at: now },
        LaneFact::Ended { attempt: attempt.id.clone(), why: "main itself is not green".into() },
    ]
}

fn judged(entry: &Entry, verdict: Verdict, runs: Vec<RunId>, detail: String, now: Millis) -> LaneFact {
    LaneFact::Judged {
        change: entry.row.change.clone(),
        version: entry.row.version,
        verdict,
        runs,
        detail,
        at: now,
    }
}
