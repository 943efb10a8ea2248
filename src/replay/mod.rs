//! The queue's consumer: a pointer becomes a question to a model, its answer the next version of the change.
//!
//! All that is decided is decided in `engine/replay`; here things are fetched and carried. What is late, wrong or
//! too dear ends as a sentence that the lane keeps; nothing here loses a change, for the lane asks again.

mod ask;
mod gather;
mod kept;
mod plan;
mod propose;

use yard_common::replay::{Cost, ReplayEnd as End};
use yard_common::{IdempotencyKey, Refusal};
use yard_objects::Calls as _;
use yard_replay::answer::Replayed;
use yard_replay::provider::{Input, Request};
use yard_replay::settings::Settings;
use yard_replay::{prompt, proof};
use yard_wire::lane::{AskReplay, EndReplay, ReplayJob, ReplayPointer};
use yard_wire::names;

use crate::api::{Event, Platform};
use crate::hand::Room;

/// A message is delivered again after this, in seconds, when the platform itself failed.
const PLATFORM_AGAIN_SECONDS: u32 = 10;
/// How often a submission is made anew when the repository moved meanwhile.
const TRIES: usize = 4;

/// A reply by HTTP, read.
pub struct Raw {
    /// The status.
    pub status: u16,
    /// The header `Retry-After`.
    pub retry_after: Option<String>,
    /// The body, cut one byte after the limit.
    pub body: Vec<u8>,
}

/// Why a call brought no reply.
pub enum Failure {
    /// It took too long.
    TimedOut,
    /// The host's word for what happened.
    Unreachable(String),
}

/// What calls models: workerd, or a test.
pub trait Models {
    /// Sends a request; the host puts the key in.
    async fn post(&self, request: &Request, timeout_ms: u64) -> Result<Raw, Failure>;
    /// Runs a model by the binding.
    async fn run(&self, model: &str, input: &Input, timeout_ms: u64) -> Result<serde_json::Value, Failure>;
    /// Lets time pass.
    async fn pause(&self, ms: u64);
}

/// What becomes of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Delivery {
    /// It is done with.
    Ack,
    /// It comes again after so many seconds.
    Again(u32),
}

/// Why a replay did not come to its end here.
enum Stop {
    /// It failed, with the sentence for the record.
    Failed(String),
    /// It is tried again later.
    Again(u32),
}

impl From<Refusal> for Stop {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::Internal { .. } => Self::Again(PLATFORM_AGAIN_SECONDS),
            Refusal::Overloaded { retry_after } => Self::Again(retry_after.max(1)),
            refusal => Self::Failed(refusal.to_string()),
        }
    }
}

/// The settings as the environment has them, or what is wrong with them.
pub type Configured = Result<Option<Settings>, String>;

/// How long a replay may take: three rounds of the model with what is read and written around them.
fn needs_ms(configured: &Configured) -> u64 {
    let round = match configured {
        Ok(Some(settings)) => settings.timeout_ms,
        Ok(None) | Err(_) => 0,
    };
    round.saturating_mul(3).saturating_add(15_000)
}

/// What all replays of a batch have in common.
pub struct Batch<'a, P, M> {
    /// The event.
    pub event: &'a Event<P>,
    /// What calls the model.
    pub models: &'a M,
    /// The platform's settings.
    pub configured: &'a Configured,
    /// What their objects take together.
    pub room: Room,
}

/// Makes one replay; `age` is how long ago its message was sent, in milliseconds.
pub async fn one<P: Platform, M: Models>(
    batch: &Batch<'_, P, M>,
    pointer: &ReplayPointer,
    age: u64,
) -> Delivery {
    let Batch { event, models, configured, ref room } = *batch;
    let lane = names::lane(&pointer.repo, &pointer.lane);
    let ReplayPointer { repo, lane: name, change, version, replay } = pointer.clone();
    let for_ms = needs_ms(configured);
    let ask = AskReplay { repo, lane: name, change, version, replay, for_ms };
    let job = match event.calls().call(&lane, &ask).await {
        Ok(Some(job)) => job,
        // Answered, given up, or withdrawn meanwhile.
        Ok(None) => return Delivery::Ack,
        Err(_) => return Delivery::Again(PLATFORM_AGAIN_SECONDS),
    };
    let mut cost = Cost::default();
    let under_way = Replay { event, models, pointer, job: &job, room, age };
    let end = match under_way.make(configured, &mut cost).await {
        Ok(end) => end,
        Err(Stop::Failed(why)) => End::Failed { why },
        Err(Stop::Again(seconds)) => return Delivery::Again(seconds),
    };
    let ReplayPointer { repo, lane: name, change, version, replay } = pointer.clone();
    let ended = EndReplay { repo, lane: name, change, version, replay, end, cost };
    match event.calls().call(&lane, &ended).await {
        Ok(()) => Delivery::Ack,
        Err(_) => Delivery::Again(PLATFORM_AGAIN_SECONDS),
    }
}

/// One replay under way.
struct Replay<'a, P, M> {
    event: &'a Event<P>,
    models: &'a M,
    pointer: &'a ReplayPointer,
    job: &'a ReplayJob,
    room: &'a Room,
    age: u64,
}

impl<P: Platform, M: Models> Replay<'_, P, M> {
    async fn make(&self, configured: &Configured, cost: &mut Cost) -> Result<End, Stop> {
        let settings = match configured {
            Ok(Some(settings)) => settings,
            Ok(None) => {
                return Err(Stop::Failed(
                    "no model is configured on this platform (SWITCHYARD_MODEL)".into(),
                ));
            }
            Err(why) => return Err(Stop::Failed(format!("the platform's model is misconfigured: {why}"))),
        };
        let mut gathered = gather::gather(self.event, self.room, &self.pointer.repo, self.job).await?;
        let prompt = prompt::build(&gathered.brief, settings.tokens_in_max)
            .map_err(|why| Stop::Failed(why.to_string()))?;
        let asked = self.ask(settings, (&gathered.brief, gathered.spent), prompt, cost).await?;
        let Replayed::Files(files) = &asked.replayed else {
            let why = "the model says that main has all of it already: look at main, and cancel the change or push \
                       a new version";
            return Err(Stop::Failed(why.into()));
        };
        if self.job.early {
            return Ok(End::Prepared);
        }
        let proof = proof::of(&gathered.brief.files, files);
        let key = format!("replay-{}-{}-{}", self.pointer.lane, self.pointer.change, self.pointer.replay.0);
        let key = IdempotencyKey::new(key).map_err(|bad| Stop::Failed(bad.to_string()))?;
        // The record says what the version cost, whenever that was paid; the lane counts each payment once.
        let whole = ask::both(cost, &asked.before);
        let origin = gathered.origin(self.pointer, self.job, &proof, &asked.hash, &whole);
        for left in (0..TRIES).rev() {
            match propose::propose(self, &mut gathered, files, &key, &origin).await {
                Err(Refusal::Raced) if left > 0 => {}
                Ok(accepted) => return Ok(End::Proposed { version: accepted.version }),
                Err(refusal) => return Err(refusal.into()),
            }
        }
        Err(Stop::Again(PLATFORM_AGAIN_SECONDS))
    }
}

#[cfg(test)]
mod tests;
