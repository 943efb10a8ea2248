//! The Lane host: one merge queue of a repository.
//!
//! Inputs (hints, leases, reports) are decided and stored at once. All that needs other objects or the
//! bucket is done by the alarm, one step at a time, each derived from the stored state: a kill
//! between any two lines costs time only. A step's result is fed back under the attempt that it
//! belongs to; when that attempt has ended meanwhile, the result has no effect.

mod drive;
mod events;
mod log;
mod objects;
mod project;
mod replays;
mod status;
mod store;

use std::cell::{Cell, RefCell};

use yard_common::{LaneName, Millis, Refusal, RepoName};
use yard_queue::{Answer, Input, Lane as Brain, World};
use yard_wire::lane as wire;

use crate::call::{LocalFuture, Object, no_method, reply, request};
use crate::pack_set::{Budget, PackSet};
use crate::repository::Platform;
use objects::MainConfig;
use store::Stored;
use yard_git::CachedObjects;

/// How long events are gathered before they go to the board, in milliseconds.
const GATHER_MS: u64 = 250;
/// When a failed step is tried again, in milliseconds; doubled with each failure in a row.
const RETRY_MS: u64 = 1_000;
/// The longest such wait: `RETRY_MS` x 64.
const RETRY_DOUBLINGS_MAX: u32 = 6;
/// When a lane looks again whose repository does not exist, in milliseconds; a hint comes first.
const LOST_MS: u64 = 3_600_000;
/// Length of the hash of a runner's environment, in bytes.
const ENVIRONMENT_BYTES_MAX: usize = 100;
/// How often an idle lane that has open changes looks at the repository, in milliseconds: lost hints
/// cost no more than this.
const SWEEP_MS: u64 = 30_000;
/// A step that takes longer than this, in milliseconds, is held for dead: its event was cut off without
/// its future being dropped. What it still does comes too late and has no effect.
const STEP_MS_MAX: u64 = 120_000;
/// Trees and blobs that the lane made itself, in bytes: of the isolate's 128 MB, with 12 MiB of the
/// pack set below, and at most 48 MiB of one assembly.
const MADE_BYTES_MAX: usize = 12 * 1024 * 1024;

/// What is in memory, all of it read from the tables.
struct Loaded {
    repo: Option<RepoName>,
    brain: Brain,
    world: World,
    stored: Stored,
}

/// One merge queue of a repository.
pub struct Lane<P: Platform> {
    sql: P::Sql,
    blobs: P::Blobs,
    index: P::Index,
    calls: P::Calls,
    loaded: RefCell<Option<Loaded>>,
    packs: PackSet,
    made: RefCell<CachedObjects>,
    config: RefCell<Option<MainConfig>>,
    driving: Cell<Option<Millis>>,
    retry_at: Cell<Option<Millis>>,
    failures: Cell<u32>,
    pulled_at: Cell<Millis>,
    /// Logs of runs may have to be looked at, not before this time.
    logs_at: Cell<Option<Millis>>,
    logs_failed: Cell<bool>,
    /// Rebuilds of the index that were begun: what was being sent then does not move its cursor.
    rebuilds: Cell<u64>,
}

/// Is set while the alarm works; falls when its future is dropped.
struct Driving<'a>(&'a Cell<Option<Millis>>);

impl Drop for Driving<'_> {
    fn drop(&mut self) {
        self.0.set(None);
    }
}

impl<P: Platform> Lane<P> {
    /// The host over its tables; reads nothing yet.
    pub fn new(sql: P::Sql, blobs: P::Blobs, index: P::Index, calls: P::Calls) -> Self {
        let budget = Budget { objects: 6 << 20, indexes: 4 << 20, windows: 2 << 20 };
        Self {
            sql,
            blobs,
            index,
            calls,
            loaded: RefCell::default(),
            packs: PackSet::new(budget),
            made: RefCell::new(CachedObjects::new(MADE_BYTES_MAX)),
            config: RefCell::default(),
            driving: Cell::new(None),
            retry_at: Cell::new(None),
            failures: Cell::new(0),
            pulled_at: Cell::new(Millis(0)),
            logs_at: Cell::new(Some(Millis(0))),
            logs_failed: Cell::new(false),
            rebuilds: Cell::new(0),
        }
    }

    /// Runs `look` over the state, reading it from the tables first where it is not in memory.
    fn with<T>(&self, look: impl FnOnce(&mut Loaded) -> T) -> Result<T, Refusal> {
        let mut loaded = self.loaded.borrow_mut();
        if let Some(loaded) = loaded.as_mut() {
            return Ok(look(loaded));
        }
        let (repo, brain, stored) = store::load(&self.sql)?;
        let world = World { stale: true, ..World::default() };
        Ok(look(loaded.insert(Loaded { repo, brain, world, stored })))
    }

    /// Decides on an input, stores the facts with their events in one row, then answers.
    ///
    /// A state whose facts could not be stored is thrown away: the next look reads the tables.
    fn feed(&self, input: Input, now: Millis) -> Result<Answer, Refusal> {
        let stored = self.with(|loaded| {
            let before = events::Before::of(&loaded.brain);
            let fed = loaded.brain.feed(input, &mut loaded.world, now);
            if fed.facts.is_empty() {
                return Ok(fed.answer);
            }
            let events = events::of(&before, loaded, &fed.facts, now);
            crate::point("lane.before-save");
            store::save(&self.sql, loaded, &fed.facts, &events, now)?;
            crate::point("lane.saved");
            Ok(fed.answer)
        })?;
        match stored {
            Ok(answer) => answer,
            Err(refusal) => {
                *self.loaded.borrow_mut() = None;
                Err(refusal)
            }
        }
    }

    /// Learns who it is, once.
    fn introduce(&self, repo: &RepoName, lane: &LaneName) -> Result<(), Refusal> {
        let known = self.with(|loaded| (loaded.repo.clone(), loaded.brain.name.clone()))?;
        match known {
            (Some(known), name) if known == *repo && name == *lane => Ok(()),
            (Some(_), _) => Err(Refusal::NotFound { kind: "lane".into(), name: format!("{repo}/{lane}") }),
            (None, _) => {
                store::introduce(&self.sql, repo, lane)?;
                *self.loaded.borrow_mut() = None;
                Ok(())
            }
        }
    }

    fn hint(&self, asked: &wire::Hint) -> Result<(), Refusal> {
        self.introduce(&asked.repo, &asked.lane)?;
        self.retry_at.set(None);
        self.with(|loaded| loaded.world.stale = true)
    }

    fn lease(&self, asked: &wire::Lease, now: Millis) -> Result<Option<wire::Work>, Refusal> {
        self.introduce(&asked.repo, &asked.lane)?;
        let plain = asked.environment.bytes().all(|byte| byte.is_ascii_graphic());
        if !plain || asked.environment.is_empty() || asked.environment.len() > ENVIRONMENT_BYTES_MAX {
            let rule = "printable ASCII characters without spaces";
            let why = format!("environment: 1 to {ENVIRONMENT_BYTES_MAX} {rule}");
            return Err(Refusal::Invalid { why });
        }
        let input = Input::LeaseAsked {
            runner: asked.runner.clone(),
            environment: asked.environment.clone(),
            token: asked.token.clone(),
        };
        match self.feed(input, now)? {
            Answer::Work(work) => Ok(work.map(|work| status::work(*work))),
            Answer::Done | Answer::Until(_) => Ok(None),
        }
    }

    /// A sign of life, with what was printed meanwhile: that of a lease which is not live is refused.
    fn renew(&self, asked: wire::Renew, now: Millis) -> Result<Millis, Refusal> {
        asked.log.iter().try_for_each(log::check)?;
        let (run, lease, token) = (asked.run.clone(), asked.lease, asked.token);
        let until = match self.feed(Input::Renewed { run, lease, token }, now)? {
            Answer::Until(until) => until,
            Answer::Done | Answer::Work(_) => now,
        };
        self.write_log(&asked.run, lease, asked.log.into_iter().collect(), now)?;
        Ok(until)
    }

    /// Takes a result with the rest of its log.
    async fn report(&self, asked: wire::Report, now: Millis) -> Result<(), Refusal> {
        asked.log.iter().try_for_each(log::check)?;
        let (run, lease) = (asked.run.run.clone(), asked.run.lease);
        let input = Input::Reported {
            signed: Box::new(asked.run),
            runner: asked.runner,
            fault: asked.fault,
            token: asked.token,
        };
        self.feed(input, now)?;
        self.write_log(&run, lease, asked.log, now)?;
        self.settle_logs(now).await;
        Ok(())
    }

    /// Does a run wait for a runner? Cheap: asked often while runners wait.
    pub fn has_work(&self) -> bool {
        let free = |loaded: &mut Loaded| {
            let mut runs = loaded.brain.attempts.values().flat_map(|attempt| &attempt.runs);
            runs.any(|run| run.ended.is_none() && run.lease.is_none())
        };
        self.with(free).unwrap_or(false)
    }

    /// Is the alarm at work? It finds by itself what comes in meanwhile.
    pub fn is_driving(&self) -> bool {
        self.driving.get().is_some()
    }

    /// When the object wants to be woken; `None`: an input will come.
    ///
    /// # Errors
    /// [`Refusal::Internal`] when the tables fail.
    pub fn due(&self, now: Millis) -> Result<Option<Millis>, Refusal> {
        if self.with(|loaded| loaded.repo.is_none())? {
            return Ok(None);
        }
        let step = self.with(|loaded| loaded.brain.next(&loaded.world, now))?;
        let work = match step {
            yard_queue::Step::Rest { until } => until,
            _ => Some(self.retry_at.get().unwrap_or(now).max(now)),
        };
        let open =
            self.with(|loaded| !loaded.brain.entries.is_empty() || !loaded.brain.attempts.is_empty())?;
        let sweep = open.then(|| self.pulled_at.get().plus(SWEEP_MS).max(now));
        let events = self.with(|loaded| loaded.stored.gathers_since.map(|since| since.plus(GATHER_MS)))?;
        let index = self.with(|loaded| loaded.stored.index_due)?.map(|due| due.max(now));
        Ok([work, sweep, events, index, self.logs_due()].into_iter().flatten().min())
    }

    async fn dispatch(&self, name: &str, body: &[u8], now: Millis) -> Result<Vec<u8>, Refusal> {
        match name {
            "hint" => reply::<wire::Hint>(&self.hint(&request(body)?)?),
            "lease" => reply::<wire::Lease>(&self.lease(&request(body)?, now)?),
            "renew" => reply::<wire::Renew>(&self.renew(request(body)?, now)?),
            "report" => reply::<wire::Report>(&self.report(request(body)?, now).await?),
            "ask-replay" => reply::<wire::AskReplay>(&self.ask_replay(&request(body)?, now)?),
            "end-replay" => reply::<wire::EndReplay>(&self.end_replay(request(body)?, now)?),
            "log" => reply::<wire::Log>(&self.read_log(&request(body)?)?),
            "status" => reply::<wire::Status>(&self.status(&request(body)?, now)?),
            "history" => reply::<wire::History>(&self.history(&request(body)?)?),
            "reindex" => {
                reply::<yard_wire::repository::Reindex>(&self.reindex(&request(body)?, now)?)
            }
            other => Err(no_method(other)),
        }
    }
}

impl<P: Platform> Object for Lane<P> {
    fn handle<'a>(
        &'a self,
        name: &'a str,
        body: &'a [u8],
        now: Millis,
    ) -> LocalFuture<'a, Result<Vec<u8>, Refusal>> {
        Box::pin(self.dispatch(name, body, now))
    }
}

#[cfg(test)]
mod tests;
