//! How one stored fact changes the state.

use std::collections::BTreeSet;

use yard_common::fact::Terminal;
use yard_common::landing::SignedRun;
use yard_common::{ChangeId, LeaseNo, RunId};

use crate::fact::LaneFact;
use crate::limits::{FLAKY_TESTS_MAX, GREEN_TREES_MAX, RUNS_KEPT};
use crate::state::{BadMain, Ended, Green, Landing, Lane, Lease, PastRun, Run, Status};

impl Lane {
    /// Applies one fact. Every fact that was stored applies, whatever the state.
    pub fn apply(&mut self, fact: &LaneFact) {
        if !matches!(fact, LaneFact::Leased { .. } | LaneFact::Renewed { .. } | LaneFact::Late { .. }) {
            self.state = self.state.next();
        }
        match fact {
            LaneFact::Read { upto, facts, at } => {
                for (_, fact) in facts {
                    self.fold(fact, *at);
                }
                self.cursor = self.cursor.max(*upto);
            }
            LaneFact::Known { rows, at } => {
                for (change, row) in rows {
                    self.known(change, row.as_ref(), *at);
                }
            }
            LaneFact::Began { attempt, kind, at } => self.began(attempt, kind, *at),
            LaneFact::Assembled { attempt, candidate, aside, at } => {
                self.assembled(attempt, candidate.as_deref(), aside, *at);
            }
            LaneFact::Ended { attempt, why } => self.ended(attempt, why),
            LaneFact::Suspected { train, index, runs, .. } => self.suspected(*train, *index, runs),
            LaneFact::Judged { change, version, verdict, runs, detail, at } => {
                self.judged(change, *version, verdict, runs, detail, *at);
            }
            LaneFact::Answered { attempt, answer, at } => self.answered(attempt, answer, *at),
            LaneFact::MainAgain { .. } => self.bad_main = None,
            LaneFact::Late { .. } => {}
            LaneFact::TriedWithout { attempt, without, .. } => self.tried_without(attempt, without),
            LaneFact::ReplayBegan { .. }
            | LaneFact::ReplaysAsked { .. }
            | LaneFact::ReplayTaken { .. }
            | LaneFact::ReplayLost { .. }
            | LaneFact::ReplayEnded { .. }
            | LaneFact::NotReplayed { .. } => self.apply_to_replay(fact),
            LaneFact::RunOpened { .. }
            | LaneFact::Leased { .. }
            | LaneFact::Renewed { .. }
            | LaneFact::LeaseLost { .. }
            | LaneFact::Reported { .. } => self.apply_to_run(fact),
            LaneFact::Cleared { .. }
            | LaneFact::OnMain { .. }
            | LaneFact::Expiring { .. }
            | LaneFact::CloseRefused { .. }
            | LaneFact::MainBad { .. }
            | LaneFact::Noted { .. } => self.apply_to_entry(fact),
        }
    }

    fn apply_to_run(&mut self, fact: &LaneFact) {
        match fact {
            LaneFact::RunOpened { run, train, purpose, commit, tree, count, check } => {
                if let Some(attempt) = self.attempts.get_mut(train) {
                    let opened = Run::open(run.clone(), *purpose, (*commit, *tree), *count, check.clone());
                    attempt.runs.push(opened);
                }
            }
            LaneFact::Leased { run, lease, runner, environment, until, token } => {
                self.environment = Some(environment.clone());
                if let Some((_, run)) = self.run_mut(run) {
                    run.last_lease = *lease;
                    run.lease = Some(Lease {
                        no: *lease,
                        runner: runner.clone(),
                        environment: environment.clone(),
                        until: *until,
                        token: token.clone(),
                    });
                }
            }
            LaneFact::Renewed { run, lease, until } => {
                if let Some(held) = self.run_mut(run).and_then(|(_, run)| run.lease.as_mut())
                    && held.no == *lease
                {
                    held.until = *until;
                }
            }
            LaneFact::LeaseLost { run, lease } => self.lease_lost(run, *lease),
            LaneFact::Reported { signed, fault, .. } => self.reported(signed, fault.as_ref()),
            _ => {}
        }
    }

    fn apply_to_entry(&mut self, fact: &LaneFact) {
        match fact {
            LaneFact::Cleared { change, version, why } => {
                self.end_probe(change);
                if let Some(entry) = self.entry_at(change, *version) {
                    entry.status = Status::Waiting;
                }
                self.fail(std::slice::from_ref(change), why);
            }
            LaneFact::OnMain { change, version, why } => {
                self.end_probe(change);
                if let Some(entry) = self.entry_at(change, *version)
                    && let Status::Suspect { on_main, probe, .. } = &mut entry.status
                {
                    (*on_main, *probe) = (true, None);
                    entry.told = Some(why.clone());
                }
            }
            LaneFact::Expiring { change } => {
                if let Some(entry) = self.entries.get_mut(change) {
                    entry.status = Status::Closing { stage: Terminal::Expired };
                }
            }
            LaneFact::CloseRefused { change, refusal, .. } => {
                if let Some(entry) = self.entries.get_mut(change)
                    && matches!(entry.status, Status::Closing { .. })
                {
                    entry.status = Status::Waiting;
                    self.fail(std::slice::from_ref(change), &refusal.to_string());
                }
            }
            LaneFact::MainBad { head, verdict, runs, detail, at } => {
                self.bad_main = Some(BadMain {
                    head: *head,
                    verdict: verdict.clone(),
                    runs: runs.clone(),
                    detail: detail.clone(),
                    at: *at,
                });
            }
            LaneFact::Noted { attempt, count, notes_head, commit, seconds, pack, index } => {
                if let Some(open) = self.attempts.get_mut(&attempt.train)
                    && open.id == *attempt
                {
                    open.landing = Some(Landing {
                        count: *count,
                        notes_head: *notes_head,
                        commit: commit.clone(),
                        seconds: *seconds,
                        pack: pack.clone(),
                        index: index.clone(),
                    });
                }
            }
            _ => {}
        }
    }

    /// Remembers a run that ended, where it is not remembered yet.
    pub(crate) fn remember(&mut self, past: PastRun) {
        if self.past_runs.iter().any(|known| known.run == past.run) {
            return;
        }
        self.past_runs.push_front(past);
        self.past_runs.truncate(RUNS_KEPT);
    }

    fn lease_lost(&mut self, run: &RunId, lease: LeaseNo) {
        if let Some((_, run)) = self.run_mut(run)
            && run.lease.as_ref().is_some_and(|held| held.no == lease)
        {
            run.lease = None;
            run.lost += 1;
            if run.lost >= crate::limits::LOST_LEASES_MAX {
                let fault = format!("{} runners were lost with it", run.lost);
                run.ended = Some(Ended { signed: None, fault: Some(fault) });
            }
        }
    }

    fn reported(&mut self, signed: &SignedRun, fault: Option<&String>) {
        let Some((train, run)) = self.run_mut(&signed.run) else { return };
        let runner = run.lease.take().map(|lease| lease.runner);
        let (count, purpose, tree) = (run.count, run.purpose, run.tree);
        let check = run.check.clone();
        run.ended = Some(Ended { signed: Some(Box::new(signed.clone())), fault: fault.cloned() });
        let Some(attempt) = self.attempts.get(&train) else { return };
        let red_before: BTreeSet<String> = attempt
            .runs
            .iter()
            .filter(|other| other.tree == tree && other.check == check && other.id != signed.run)
            .filter_map(|other| other.result().filter(|result| result.complete))
            .flat_map(|result| result.failed.iter().cloned())
            .collect();
        let past = PastRun {
            run: signed.run.clone(),
            purpose,
            attempt: attempt.id.clone(),
            tree,
            changes: attempt.aboard(count),
            runner,
            result: Some(signed.result.clone()),
        };
        self.remember(past);
        if signed.result.proves_green() {
            self.note_flaky(red_before);
            self.greens.retain(|green| (green.tree, &green.suite) != (tree, &signed.suite));
            self.greens.push_back(Green {
                tree,
                suite: signed.suite.clone(),
                signed: Box::new(signed.clone()),
            });
            while self.greens.len() > GREEN_TREES_MAX {
                self.greens.pop_front();
            }
        }
    }

    fn note_flaky(&mut self, tests: BTreeSet<String>) {
        for test in tests {
            if self.flaky.len() < FLAKY_TESTS_MAX || self.flaky.contains_key(&test) {
                *self.flaky.entry(test).or_default() += 1;
            }
        }
    }

    /// Ends the probe of a suspect.
    pub(crate) fn end_probe(&mut self, change: &ChangeId) {
        if let Some(Status::Suspect { probe: Some(train), .. }) =
            self.entries.get(change).map(|entry| &entry.status)
        {
            let train = *train;
            self.attempts.remove(&train);
        }
    }
}
