//! Replays: their pointers go into the queue, the consumer asks for the job and tells how it ended.

use yard_common::Millis;
use yard_common::Refusal;
use yard_queue::Input;
use yard_queue::replay::Pointer;
use yard_wire::lane as wire;

use super::Lane;
use crate::call::{Calls as _, REPLAY_QUEUE};
use crate::point;
use crate::repository::Platform;

impl<P: Platform> Lane<P> {
    /// Puts pointers into the queue, then keeps that they are there; a lost answer puts them there again.
    pub(super) async fn ask_replays(
        &self,
        pointers: Vec<Pointer>,
        clock: &dyn Fn() -> Millis,
    ) -> Result<(), Refusal> {
        let repo = self.repo()?;
        let lane = self.with(|loaded| loaded.brain.name.clone())?;
        let failed = |_| Refusal::Internal { during: "writing a message".into() };
        let numbers = pointers.iter().map(|pointer| pointer.no).collect();
        let messages = pointers
            .into_iter()
            .map(|pointer| {
                serde_json::to_string(&wire::ReplayPointer {
                    repo: repo.clone(),
                    lane: lane.clone(),
                    change: pointer.change,
                    version: pointer.version,
                    replay: pointer.no,
                })
            })
            .collect::<Result<Vec<_>, _>>()
            .map_err(failed)?;
        point("lane.replay.before");
        self.calls.enqueue(REPLAY_QUEUE, messages).await?;
        point("lane.replay.after");
        self.feed(Input::ReplaysAsked(numbers), clock()).map(|_| ())
    }

    /// What is to be done for a replay; `None` when it is not open any more, or main is not known yet.
    pub(super) fn ask_replay(
        &self,
        asked: &wire::AskReplay,
        now: Millis,
    ) -> Result<Option<wire::ReplayJob>, Refusal> {
        self.introduce(&asked.repo, &asked.lane)?;
        let job = self.replay_job(asked)?;
        if job.is_some() {
            let (change, version, replay) = (asked.change.clone(), asked.version, asked.replay);
            self.feed(Input::ReplayTaken { change, version, replay, for_ms: asked.for_ms }, now)?;
        }
        Ok(job)
    }

    fn replay_job(&self, asked: &wire::AskReplay) -> Result<Option<wire::ReplayJob>, Refusal> {
        self.with(|loaded| {
            let view = loaded.world.view.as_ref();
            let open = loaded.brain.replay_job(&asked.change, asked.version, asked.replay, view);
            // After a restart main is read first: the message comes again.
            let waits = open.is_none() && view.is_none();
            let job = open.zip(view).map(|(job, view)| wire::ReplayJob {
                row: job.row,
                cause: job.cause,
                commit: job.onto.0,
                tree: job.onto.1,
                rivals: job.rivals,
                early: job.early,
                policy: view.replay.clone(),
                budget_left: view.replay.micro_usd_per_day.saturating_sub(loaded.brain.spent.micro_usd),
            });
            if waits { Err(Refusal::Overloaded { retry_after: 1 }) } else { Ok(job) }
        })?
    }

    /// Keeps how a replay ended; the version that it proposed comes with the next pull.
    pub(super) fn end_replay(&self, asked: wire::EndReplay, now: Millis) -> Result<(), Refusal> {
        self.introduce(&asked.repo, &asked.lane)?;
        let input = Input::ReplayEnded {
            change: asked.change,
            version: asked.version,
            replay: asked.replay,
            end: asked.end,
            cost: asked.cost,
        };
        self.feed(input, now)?;
        self.retry_at.set(None);
        self.with(|loaded| loaded.world.stale = true)
    }
}
