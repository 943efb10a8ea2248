//! What comes into a lane, and what it decides on it.

use yard_common::bytes::Base64;
use yard_common::fact::Terminal;
use yard_common::landing::{AttemptId, PackRef, SignedRun};
use yard_common::replay::{Cost, ReplayEnd};
use yard_common::submission::CommitNode;
use yard_common::{
    ChangeId, Fact, FactNo, LeaseNo, Millis, ObjectId, RefName, Refusal, ReplayNo, RunId, RunnerId, SuiteId,
    TokenId, Version,
};

use crate::fact::{Aside, AttemptKind, Candidate, Check, KnownRow, LandAnswer, LaneFact};
use crate::limits::{FIRST_LEASE_MS, LEASE_MS, LEASE_STEP_MS, REPLAY_MS};
use crate::state::{Attempt, Lane, Lease, Run, World};

/// One thing that comes in.
#[derive(Debug, Clone, PartialEq)]
pub enum Input {
    /// Facts of the repository, and how far the log is read with them.
    Pulled {
        /// The facts.
        facts: Vec<(FactNo, Fact)>,
        /// Read up to here.
        upto: FactNo,
    },
    /// Rows that were asked for.
    Known(Vec<(ChangeId, Option<KnownRow>)>),
    /// The host begins to assemble.
    Begin {
        /// The attempt, as [`crate::Step::Assemble`] numbered it.
        attempt: AttemptId,
        /// What it is.
        kind: AttemptKind,
    },
    /// An attempt is assembled, staged and put.
    Assembled {
        /// The attempt.
        attempt: AttemptId,
        /// What was built; `None` when no change could board.
        candidate: Option<Box<Candidate>>,
        /// Changes that did not board.
        aside: Vec<(ChangeId, Version, Aside)>,
    },
    /// Assembly failed for a reason that lies in no change.
    AssemblyFailed {
        /// The attempt.
        attempt: AttemptId,
        /// Why.
        why: String,
    },
    /// A runner asks for work.
    LeaseAsked {
        /// The runner.
        runner: RunnerId,
        /// Hash of its environment.
        environment: String,
        /// The token that it asks with.
        token: Option<TokenId>,
    },
    /// A runner is still at it.
    Renewed {
        /// The run.
        run: RunId,
        /// The lease.
        lease: LeaseNo,
        /// The token that it comes with.
        token: Option<TokenId>,
    },
    /// A runner's result.
    Reported {
        /// What it signed.
        signed: Box<SignedRun>,
        /// The runner.
        runner: RunnerId,
        /// Why it is not complete, where it is not.
        fault: Option<String>,
        /// The token that it comes with.
        token: Option<TokenId>,
    },
    /// The notes of a train are written and put.
    Noted {
        /// The attempt.
        attempt: AttemptId,
        /// How many changes land.
        count: usize,
        /// The notes ref before.
        notes_head: Option<ObjectId>,
        /// The commit that adds the notes.
        commit: CommitNode,
        /// Its committer's time, seconds since the Unix epoch.
        seconds: u64,
        /// The pack.
        pack: PackRef,
        /// Its index.
        index: Base64,
    },
    /// The Repository's answer to a landing.
    LandAnswered {
        /// The attempt.
        attempt: AttemptId,
        /// The answer.
        answer: LandAnswer,
    },
    /// The Repository did not close a change.
    CloseRefused {
        /// The change.
        change: ChangeId,
        /// The stage that was asked for.
        stage: Terminal,
        /// Why.
        refusal: Refusal,
    },
    /// Replays are in the queue.
    ReplaysAsked(Vec<ReplayNo>),
    /// A replay is taken up.
    ReplayTaken {
        /// The change.
        change: ChangeId,
        /// The version.
        version: Version,
        /// The replay.
        replay: ReplayNo,
        /// How long it may take, in milliseconds; at most [`crate::limits::REPLAY_MS`].
        for_ms: u64,
    },
    /// A replay ended.
    ReplayEnded {
        /// The change.
        change: ChangeId,
        /// The version that was replayed.
        version: Version,
        /// The replay.
        replay: ReplayNo,
        /// How.
        end: ReplayEnd,
        /// What it cost.
        cost: Cost,
    },
    /// Time has passed.
    Tick,
}

/// A leased run: what to test.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Work {
    /// The run.
    pub run: RunId,
    /// The lease.
    pub lease: LeaseNo,
    /// When it ends, unless renewed.
    pub until: Millis,
    /// The attempt whose candidate is tested.
    pub attempt: AttemptId,
    /// The ref to fetch.
    pub reference: RefName,
    /// The commit to check out, and its tree.
    pub commit: (ObjectId, ObjectId),
    /// Command, configuration and environment, hashed.
    pub suite: SuiteId,
    /// The check.
    pub check: Check,
}

/// What the caller of an input gets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// It is done.
    Done,
    /// Work, where there is some.
    Work(Option<Box<Work>>),
    /// The lease goes on until then.
    Until(Millis),
}

/// What came of an input: the facts are stored before the answer is spoken.
#[derive(Debug, Clone, PartialEq)]
pub struct Fed {
    /// Facts, already applied to the state in memory; one row.
    pub facts: Vec<LaneFact>,
    /// The answer.
    pub answer: Result<Answer, Refusal>,
}

/// The hidden ref under which an attempt's candidate is served.
///
/// # Errors
/// Never for a checked lane name; [`Refusal::Invalid`] otherwise.
pub fn candidate_ref(attempt: &AttemptId) -> Result<RefName, Refusal> {
    Ok(RefName::new(format!("refs/candidates/{}/{}/{}", attempt.lane, attempt.train, attempt.attempt))?)
}

impl Lane {
    /// Decides on an input, applies what follows, and returns the facts to be stored.
    ///
    /// When they cannot be stored, this state must be thrown away and read anew. What is being
    /// assembled is noted in `world`, so that an attempt begun before a restart is known as abandoned.
    pub fn feed(&mut self, input: Input, world: &mut World, now: Millis) -> Fed {
        let mut facts = Vec::new();
        self.settle_all(world, now, &mut facts);
        let begins = match &input {
            Input::Begin { attempt, .. } => Some(attempt.clone()),
            _ => None,
        };
        match &input {
            Input::Assembled { attempt, .. } | Input::AssemblyFailed { attempt, .. }
                if world.assembling.as_ref() == Some(attempt) =>
            {
                world.assembling = None;
            }
            Input::LandAnswered { .. } | Input::CloseRefused { .. } => world.stale = true,
            _ => {}
        }
        let (decided, answer) = match self.decide(input, now) {
            Ok((decided, answer)) => (decided, Ok(answer)),
            Err((decided, refusal)) => (decided, Err(refusal)),
        };
        // What was refused is not under way: nothing would ever end it.
        if begins.is_some() && answer.is_ok() {
            world.assembling = begins;
        }
        for fact in decided {
            self.apply(&fact);
            facts.push(fact);
        }
        self.settle_all(world, now, &mut facts);
        Fed { facts, answer }
    }

    fn settle_all(&mut self, world: &World, now: Millis, facts: &mut Vec<LaneFact>) {
        // A settled lane answers nothing; the bound keeps a fault from becoming an endless loop.
        for _ in 0..10_000 {
            let more = self.settle(world, now);
            if more.is_empty() {
                return;
            }
            for fact in more {
                self.apply(&fact);
                facts.push(fact);
            }
        }
    }

    #[allow(clippy::type_complexity, reason = "facts come with a refusal too: a late report is evidence")]
    fn decide(&self, input: Input, now: Millis) -> Result<(Vec<LaneFact>, Answer), (Vec<LaneFact>, Refusal)> {
        match input {
            Input::Pulled { facts, upto } => {
                let facts: Vec<_> = facts.into_iter().filter(|(no, _)| *no > self.cursor).collect();
                if upto <= self.cursor {
                    return Ok((Vec::new(), Answer::Done));
                }
                Ok((vec![LaneFact::Read { upto, facts, at: now }], Answer::Done))
            }
            Input::Known(rows) => Ok((vec![LaneFact::Known { rows, at: now }], Answer::Done)),
            Input::Begin { attempt, kind } => {
                if attempt != self.new_attempt() || (kind == AttemptKind::Train && self.train().is_some()) {
                    return Err(stale(format!("attempt {attempt}")));
                }
                Ok((vec![LaneFact::Began { attempt, kind, at: now }], Answer::Done))
            }
            Input::Assembled { attempt, candidate, aside } => {
                let open = self.unbuilt(&attempt)?;
                if let (AttemptKind::Probe { change, version, on_main: false }, None) =
                    (&open.kind, &candidate)
                {
                    let why = "it cannot be put on its own base: it is tried on main".into();
                    let fact = LaneFact::OnMain { change: change.clone(), version: *version, why };
                    return Ok((vec![fact], Answer::Done));
                }
                Ok((vec![LaneFact::Assembled { attempt, candidate, aside, at: now }], Answer::Done))
            }
            Input::AssemblyFailed { attempt, why } => {
                self.unbuilt(&attempt)?;
                Ok((vec![LaneFact::Ended { attempt, why }], Answer::Done))
            }
            Input::LeaseAsked { runner, environment, token } => {
                Ok(self.lease(&runner, environment, token, now))
            }
            Input::Renewed { run, lease, token } => self.renew(run, lease, token.as_ref(), now),
            Input::Reported { signed, runner, fault, token } => {
                self.report(signed, runner, fault, token.as_ref(), now)
            }
            Input::Noted { attempt, count, notes_head, commit, seconds, pack, index } => {
                let open = self
                    .attempts
                    .get(&attempt.train)
                    .filter(|open| open.id == attempt && open.limit == count);
                if open.is_none() {
                    return Err(stale(format!("attempt {attempt}")));
                }
                let fact = LaneFact::Noted { attempt, count, notes_head, commit, seconds, pack, index };
                Ok((vec![fact], Answer::Done))
            }
            Input::LandAnswered { attempt, answer } => {
                Ok((vec![LaneFact::Answered { attempt, answer, at: now }], Answer::Done))
            }
            Input::CloseRefused { change, stage, refusal } => {
                Ok((vec![LaneFact::CloseRefused { change, stage, refusal, at: now }], Answer::Done))
            }
            Input::ReplaysAsked(replays) => {
                Ok((vec![LaneFact::ReplaysAsked { replays, at: now }], Answer::Done))
            }
            Input::ReplayTaken { change, version, replay, for_ms } => {
                let until = now.plus(for_ms.min(REPLAY_MS));
                Ok((vec![LaneFact::ReplayTaken { change, version, replay, until }], Answer::Done))
            }
            Input::ReplayEnded { change, version, replay, end, cost } => {
                Ok((self.replay_ended(change, version, replay, end, cost, now), Answer::Done))
            }
            Input::Tick => Ok((Vec::new(), Answer::Done)),
        }
    }

    fn unbuilt(&self, attempt: &AttemptId) -> Result<&Attempt, (Vec<LaneFact>, Refusal)> {
        self.attempts
            .get(&attempt.train)
            .filter(|open| open.id == *attempt && open.candidate.is_none())
            .ok_or_else(|| stale(format!("attempt {attempt}")))
    }

    /// The run, where this lease on it is live and was given to this token.
    fn leased(
        &self,
        run: &RunId,
        lease: LeaseNo,
        token: Option<&TokenId>,
    ) -> Result<&Run, (Vec<LaneFact>, Refusal)> {
        let old = || stale(format!("lease {lease} of run {run}"));
        let open = self.run(run).map(|(_, run)| run).filter(|run| run.ended.is_none()).ok_or_else(old)?;
        let held = open.lease.as_ref().filter(|held| held.no == lease).ok_or_else(old)?;
        if !held.is_of(token) {
            let needs = format!("the token that lease {lease} of run {run} was given to");
            return Err((Vec::new(), Refusal::Forbidden { needs }));
        }
        Ok(open)
    }

    /// A lease goes on; a renewal that would hardly lengthen it is not stored.
    fn renew(
        &self,
        run: RunId,
        lease: LeaseNo,
        token: Option<&TokenId>,
        now: Millis,
    ) -> Result<(Vec<LaneFact>, Answer), (Vec<LaneFact>, Refusal)> {
        let held = self.leased(&run, lease, token)?.lease.as_ref().map_or(now, |held| held.until);
        let until = now.plus(LEASE_MS);
        if until.since(held) < LEASE_STEP_MS {
            return Ok((Vec::new(), Answer::Until(held)));
        }
        Ok((vec![LaneFact::Renewed { run, lease, until }], Answer::Until(until)))
    }

    /// Trains before all else, then in order of opening. A runner that asks again gets its run again.
    fn lease(
        &self,
        runner: &RunnerId,
        environment: String,
        token: Option<TokenId>,
        now: Millis,
    ) -> (Vec<LaneFact>, Answer) {
        let mut open: Vec<(&Attempt, &Run)> = self
            .attempts
            .values()
            .flat_map(|attempt| attempt.runs.iter().map(move |run| (attempt, run)))
            .filter(|(_, run)| run.ended.is_none())
            .collect();
        // The proof of a replay is on its note only where it is known before the landing.
        open.sort_by_key(|(attempt, _)| (!attempt.is_without(), attempt.kind != AttemptKind::Train));
        let held = |lease: &Lease| lease.runner == *runner && lease.is_of(token.as_ref());
        let mine = open.iter().find(|(_, run)| run.lease.as_ref().is_some_and(held));
        let free = open.iter().find(|(_, run)| run.lease.is_none());
        let Some((attempt, run)) = mine.or(free) else { return (Vec::new(), Answer::Work(None)) };
        let (Some(suite), Ok(reference)) = (run.check.suite(&environment), reference(attempt)) else {
            return (Vec::new(), Answer::Work(None));
        };
        let (lease, until) = match &run.lease {
            Some(held) if held.environment == environment => (held.no, held.until),
            _ => (run.last_lease.next(), now.plus(FIRST_LEASE_MS)),
        };
        let work = Work {
            run: run.id.clone(),
            lease,
            until,
            attempt: attempt.id.clone(),
            reference,
            commit: (run.commit, run.tree),
            suite,
            check: run.check.clone(),
        };
        let again = run.lease.as_ref().is_some_and(|held| held.no == lease);
        let facts = if again {
            Vec::new()
        } else {
            let (run, runner) = (run.id.clone(), runner.clone());
            vec![LaneFact::Leased { run, lease, runner, environment, until, token }]
        };
        (facts, Answer::Work(Some(Box::new(work))))
    }

    /// A result counts under the lease it was given for, and for exactly what was leased.
    fn report(
        &self,
        signed: Box<SignedRun>,
        runner: RunnerId,
        fault: Option<String>,
        token: Option<&TokenId>,
        now: Millis,
    ) -> Result<(Vec<LaneFact>, Answer), (Vec<LaneFact>, Refusal)> {
        let late = || LaneFact::Late {
            run: signed.run.clone(),
            lease: signed.lease,
            runner: runner.clone(),
            said: format!("{:?}", signed.result).chars().take(300).collect(),
            at: now,
        };
        // The answer to a report may be lost: the same one again is answered again.
        let told = self.past_runs.iter().any(|past| {
            past.run == signed.run
                && past.runner.as_ref() == Some(&runner)
                && past.result.as_ref() == Some(&signed.result)
        });
        if told {
            return Ok((Vec::new(), Answer::Done));
        }
        let leased = self.leased(&signed.run, signed.lease, token);
        let run = leased.map_err(|(_, refusal)| (vec![late()], refusal))?;
        let suite = run.lease.as_ref().and_then(|lease| run.check.suite(&lease.environment));
        let same = signed.tree == run.tree
            && Some(&signed.suite) == suite.as_ref()
            && signed.command == run.check.command
            && signed.config == run.check.config
            && run.lease.as_ref().is_some_and(|lease| lease.runner == runner);
        if !same {
            let why = format!("the report is not of run {} as it was leased", signed.run);
            return Err((vec![late()], Refusal::Invalid { why }));
        }
        Ok((vec![LaneFact::Reported { signed, fault, at: now }], Answer::Done))
    }
}

fn reference(attempt: &Attempt) -> Result<RefName, Refusal> {
    match attempt.kind {
        AttemptKind::Confirm { .. } => Ok(RefName::new("HEAD")?),
        AttemptKind::Train | AttemptKind::Probe { .. } | AttemptKind::Without { .. } => {
            candidate_ref(&attempt.staged)
        }
    }
}

fn stale(what: String) -> (Vec<LaneFact>, Refusal) {
    (Vec::new(), Refusal::Stale { what })
}
