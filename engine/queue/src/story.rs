//! What a lane did with one change, told from its facts: every attempt, run, verdict and sending back.

use std::collections::BTreeMap;

use yard_common::landing::{AttemptId, RunResult};
use yard_common::replay::ReplayEnd;
use yard_common::stage::Verdict;
use yard_common::{ChangeId, RunId, TrainNo};

use crate::fact::{Aside, AttemptKind, Candidate, LaneFact, Purpose};
use crate::stage::{REBASE, sent_back};
use crate::state::Why;
use crate::without::Without;

/// One thing that happened to the change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Told {
    /// `attempt`, `run` (green), `red` (a run that is not green), `verdict`, `back` (sent back), `replay`,
    /// `closing`.
    pub kind: &'static str,
    /// One sentence.
    pub text: String,
    /// The attempt, where there is one.
    pub attempt: Option<AttemptId>,
    /// The run, where there is one.
    pub run: Option<RunId>,
}

impl Told {
    fn of(kind: &'static str, text: String) -> Self {
        Self { kind, text, attempt: None, run: None }
    }
}

/// A run that the change has to do with.
#[derive(Debug)]
struct Known {
    train: TrainNo,
    purpose: Purpose,
}

/// Follows one change through the facts of its lane, which are given in their order.
#[derive(Debug)]
pub struct Story {
    change: ChangeId,
    /// The attempts it was aboard, with its place.
    trains: BTreeMap<TrainNo, (AttemptId, usize)>,
    runs: BTreeMap<RunId, Known>,
}

impl Story {
    /// Of a change, from the first fact on.
    #[must_use]
    pub fn new(change: ChangeId) -> Self {
        Self { change, trains: BTreeMap::new(), runs: BTreeMap::new() }
    }

    /// What the fact says of the change, if it says anything.
    pub fn tell(&mut self, fact: &LaneFact) -> Option<Told> {
        match fact {
            LaneFact::Began { attempt, kind: AttemptKind::Probe { change, on_main, .. }, .. } => {
                let own = *change == self.change;
                own.then(|| self.probed(attempt, *on_main))
            }
            LaneFact::Began { attempt, kind: AttemptKind::Without { change, .. }, .. } => {
                if *change == self.change {
                    self.trains.insert(attempt.train, (attempt.clone(), 0));
                }
                None
            }
            LaneFact::TriedWithout { attempt, without, .. } => self.tried_without(attempt, without),
            LaneFact::Assembled { attempt, candidate, aside, .. } => {
                let own = aside.iter().find(|(change, ..)| *change == self.change);
                match own {
                    Some((_, _, aside)) => Some(put_aside(attempt, aside)),
                    None => self.boarded(attempt, candidate.as_deref()?),
                }
            }
            LaneFact::Ended { attempt, why } => self.trains.contains_key(&attempt.train).then(|| Told {
                attempt: Some(attempt.clone()),
                ..Told::of("attempt", format!("attempt {attempt} ended: {why}"))
            }),
            LaneFact::Answered { attempt, answer: Err(refusal), .. } => {
                self.trains.contains_key(&attempt.train).then(|| Told {
                    attempt: Some(attempt.clone()),
                    ..Told::of("attempt", format!("attempt {attempt} did not land: {refusal}"))
                })
            }
            LaneFact::RunOpened { .. } | LaneFact::Reported { .. } | LaneFact::LeaseLost { .. } => {
                self.ran(fact)
            }
            LaneFact::ReplayBegan { .. }
            | LaneFact::ReplayLost { .. }
            | LaneFact::ReplayEnded { .. }
            | LaneFact::NotReplayed { .. } => self.replayed(fact),
            other => self.judged(other),
        }
    }

    fn tried_without(&self, attempt: &AttemptId, without: &Without) -> Option<Told> {
        self.trains.get(&attempt.train)?;
        Some(Told { attempt: Some(attempt.clone()), ..Told::of("replay", without.sentence()) })
    }

    fn replayed(&self, fact: &LaneFact) -> Option<Told> {
        let own = |change: &ChangeId| *change == self.change;
        let text = match fact {
            LaneFact::ReplayBegan { change, replay, early, .. } if own(change) => match early {
                Some(train) => format!("replay {replay} is prepared on what train {train} makes of main"),
                None => format!("replay {replay}: a model is asked to redo it on newest main"),
            },
            LaneFact::ReplayLost { change, replay, .. } if own(change) => {
                format!("replay {replay} has no answer in time: asked again")
            }
            LaneFact::ReplayEnded { change, replay, end, cost, .. } if own(change) => {
                let cost = match cost.calls {
                    0 => "no call of a model".to_owned(),
                    _ => format!("{}, {} + {} tokens", cost.model, cost.tokens_in, cost.tokens_out),
                };
                match end {
                    ReplayEnd::Proposed { version } => {
                        format!("replay {replay} is offered as version {version} ({cost})")
                    }
                    ReplayEnd::Prepared => format!("replay {replay} is prepared ({cost})"),
                    ReplayEnd::Failed { why } => format!("replay {replay} failed ({cost}): {why}"),
                }
            }
            LaneFact::NotReplayed { change, why, .. } if own(change) => {
                return Some(Told::of("back", format!("sent back, not replayed: {why}")));
            }
            _ => return None,
        };
        Some(Told::of("replay", text))
    }

    fn probed(&mut self, attempt: &AttemptId, on_main: bool) -> Told {
        self.trains.insert(attempt.train, (attempt.clone(), 0));
        let place = if on_main { "on main" } else { "on its own base" };
        Told {
            attempt: Some(attempt.clone()),
            ..Told::of("attempt", format!("attempt {attempt}: tried alone {place}"))
        }
    }

    fn boarded(&mut self, attempt: &AttemptId, candidate: &Candidate) -> Option<Told> {
        let place = candidate.members.iter().position(|member| member.change == self.change)?;
        if self.trains.insert(attempt.train, (attempt.clone(), place)).is_some_and(|was| was.0 == *attempt) {
            // A probe was told when it began.
            return None;
        }
        let text = match candidate.members.len() {
            1 => format!("attempt {attempt}: aboard a train of its own"),
            many => format!("attempt {attempt}: aboard, {} of {many}", place + 1),
        };
        Some(Told { attempt: Some(attempt.clone()), ..Told::of("attempt", text) })
    }

    fn ran(&mut self, fact: &LaneFact) -> Option<Told> {
        match fact {
            LaneFact::RunOpened { run, train, purpose, count, .. } => {
                let (_, place) = self.trains.get(train)?;
                if place < count || *purpose == Purpose::Base {
                    self.runs.insert(run.clone(), Known { train: *train, purpose: *purpose });
                }
                None
            }
            LaneFact::Reported { signed, fault, .. } => {
                let green = signed.result.proves_green();
                self.ended(&signed.run, green, &result(&signed.result, fault.as_deref()))
            }
            LaneFact::LeaseLost { run, .. } => self.ended(run, false, "its runner was lost"),
            _ => None,
        }
    }

    fn ended(&self, run: &RunId, green: bool, text: &str) -> Option<Told> {
        let known = self.runs.get(run)?;
        let what = match known.purpose {
            Purpose::Train => "the train",
            Purpose::Alone => "it alone",
            Purpose::Base => "its base without it",
            Purpose::Again => "the same tree again",
            Purpose::Prefix => "the first changes of the train",
            Purpose::Confirm => "main",
            Purpose::Without => "its own tests without it",
        };
        Some(Told {
            attempt: self.trains.get(&known.train).map(|(attempt, _)| attempt.clone()),
            run: Some(run.clone()),
            ..Told::of(if green { "run" } else { "red" }, format!("run {run} ({what}): {text}"))
        })
    }

    fn judged(&self, fact: &LaneFact) -> Option<Told> {
        let own = |change: &ChangeId| *change == self.change;
        Some(match fact {
            LaneFact::Suspected { train, index, runs, .. } => {
                let (attempt, _) = self.trains.get(train).filter(|(_, place)| place == index)?;
                let red = runs.iter().map(RunId::as_str).collect::<Vec<_>>().join(", ");
                let text =
                    format!("the train is red with it ({red}) and green without it: to be tried alone");
                Told { attempt: Some(attempt.clone()), ..Told::of("verdict", text) }
            }
            LaneFact::Judged { change, verdict, runs, detail, .. } if own(change) => {
                let why =
                    Why::Judged { verdict: verdict.clone(), runs: runs.clone(), detail: detail.clone() };
                verdict_told(verdict, &why, detail)
            }
            LaneFact::Cleared { change, why, .. } if own(change) => {
                Told::of("verdict", format!("cleared, back at its place: {why}"))
            }
            LaneFact::OnMain { change, why, .. } if own(change) => {
                Told::of("verdict", format!("its own base proves nothing: {why}: to be tried on main"))
            }
            LaneFact::Expiring { change } if own(change) => {
                Told::of("closing", "it waited for its author too long".into())
            }
            LaneFact::CloseRefused { change, refusal, .. } if own(change) => {
                Told::of("closing", format!("it was not closed: {refusal}"))
            }
            _ => return None,
        })
    }
}

/// What was told as a sending back, where a replay follows: nobody has to act yet.
#[must_use]
pub fn not_sent_back(text: &str) -> Option<&str> {
    let text = text.strip_prefix("sent back: ")?;
    Some(text.strip_suffix(REBASE).unwrap_or(text))
}

fn put_aside(attempt: &AttemptId, aside: &Aside) -> Told {
    let (kind, text) = match aside {
        Aside::Collided { paths } => ("back", sent_back(&Why::Collided { paths: paths.clone() }).reason),
        Aside::BadConfig { why } => ("back", sent_back(&Why::BadConfig { why: why.clone() }).reason),
        Aside::Behind { paths } => {
            let places: Vec<String> = paths.iter().map(|(path, why)| format!("{path} ({why})")).collect();
            let text = format!("it collides with changes ahead of it at {}", places.join(", "));
            ("attempt", format!("attempt {attempt}: not aboard: {text}"))
        }
        Aside::AlreadyOnMain => ("closing", "main has all that it wants".to_owned()),
        Aside::Nothing => ("back", "merged with main it changes nothing".into()),
        Aside::Broken { why } => ("back", format!("it cannot be put into a train: {why}")),
    };
    let text = if kind == "back" { format!("sent back: {text}") } else { text };
    Told { attempt: Some(attempt.clone()), ..Told::of(kind, text) }
}

fn verdict_told(verdict: &Verdict, why: &Why, detail: &str) -> Told {
    match verdict {
        Verdict::BrokenAlone | Verdict::Interaction { .. } => {
            Told::of("back", format!("sent back: {}", sent_back(why).reason))
        }
        Verdict::StaleBase { needs } => {
            Told::of("verdict", format!("red alone, green together with {needs}: waits for it"))
        }
        Verdict::Victim { of } => Told::of("verdict", format!("red only because of {of}")),
        Verdict::Flaky { tests } => {
            Told::of("verdict", format!("red, then green on the same tree: {}", tests.join(", ")))
        }
        Verdict::Infra => Told::of("verdict", format!("no complete result: {detail}: held")),
        Verdict::MainRed => Told::of("verdict", format!("main itself is red: {detail}")),
    }
}

fn result(result: &RunResult, fault: Option<&str>) -> String {
    if let Some(fault) = fault {
        return format!("no complete result: {fault}");
    }
    let tests = if result.ran == 1 { "test" } else { "tests" };
    if result.proves_green() {
        return format!("green, {} {tests}", result.ran);
    }
    let failed: Vec<&str> = result.failed.iter().take(5).map(String::as_str).collect();
    let more = result.failed.len().saturating_sub(failed.len());
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    match failed.is_empty() {
        true => format!("not green, {} {tests} ran", result.ran),
        false => {
            format!("red, {} of {} {tests}: {}{more}", result.failed.len(), result.ran, failed.join(", "))
        }
    }
}
