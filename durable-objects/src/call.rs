//! Typed calls between objects: `POST /{method}` with JSON, by the object's name.

use std::future::Future;
use std::pin::{Pin, pin};

use futures_util::future::{Either, select};
use yard_common::{Millis, Refusal};
use yard_wire::Method;

/// A future of an isolate: one thread, so never `Send`.
pub type LocalFuture<'a, T> = Pin<Box<dyn Future<Output = T> + 'a>>;

/// An object that answers methods: the hosts, whatever carries the bytes.
pub trait Object {
    /// Answers the method `name` (without a slash) with the reply's JSON.
    ///
    /// `now` is the time of the event, read once.
    fn handle<'a>(
        &'a self,
        name: &'a str,
        body: &'a [u8],
        now: Millis,
    ) -> LocalFuture<'a, Result<Vec<u8>, Refusal>>;
}

/// Calls to other objects.
pub trait Calls {
    /// Calls the object of this name ([`yard_wire::names`]).
    ///
    /// # Errors
    /// The object's refusal; [`Refusal::Internal`] or [`Refusal::Overloaded`] when it cannot be
    /// reached: it may have done what was asked.
    async fn call<M: Method>(&self, name: &str, request: &M) -> Result<M::Reply, Refusal>;

    /// Puts messages into the queue of this binding, all or none; each may come more than once.
    ///
    /// # Errors
    /// [`Refusal::Internal`] when the queue cannot be reached: they may be in it.
    async fn enqueue(&self, queue: &str, messages: Vec<String>) -> Result<(), Refusal>;
}

/// What another object, the bucket, a queue or the index has not answered after this, in milliseconds, counts as
/// lost: twice the longest that a runner's call waits for work.
pub const ANSWER_MS_MAX: u64 = 45_000;

/// The outcome of `work`; `None` when `time` is over first. A lost answer ends the step that waits for it with an
/// error, which is tried again, instead of keeping an object from its alarm for ever.
pub async fn within<T>(work: impl Future<Output = T>, time: impl Future<Output = ()>) -> Option<T> {
    match select(pin!(work), pin!(time)).await {
        Either::Left((done, _)) => Some(done),
        Either::Right(((), _)) => None,
    }
}

/// The binding of the queue of model replays.
pub const REPLAY_QUEUE: &str = "REPLAY";

impl<T: Calls + ?Sized> Calls for std::rc::Rc<T> {
    async fn call<M: Method>(&self, name: &str, request: &M) -> Result<M::Reply, Refusal> {
        (**self).call(name, request).await
    }

    async fn enqueue(&self, queue: &str, messages: Vec<String>) -> Result<(), Refusal> {
        (**self).enqueue(queue, messages).await
    }
}

/// The binding of the class that an object's name belongs to.
#[must_use]
pub fn binding_of(name: &str) -> &'static str {
    match name.split(':').next() {
        Some("repo") => "REPOSITORY",
        Some("lane") => "LANE",
        Some("board") => "BOARD",
        _ => "REGISTRY",
    }
}

/// Reads a method's request.
///
/// # Errors
/// [`Refusal::Invalid`] that says what does not fit.
pub fn request<M: Method>(body: &[u8]) -> Result<M, Refusal> {
    serde_json::from_slice(body).map_err(|fault| Refusal::Invalid {
        why: format!("the body of {:?} cannot be read: {fault}", M::NAME),
    })
}

/// Writes a method's reply.
///
/// # Errors
/// [`Refusal::Internal`]; no type of ours refuses to be written.
pub fn reply<M: Method>(reply: &M::Reply) -> Result<Vec<u8>, Refusal> {
    serde_json::to_vec(reply)
        .map_err(|_| Refusal::Internal { during: format!("writing the reply of {}", M::NAME) })
}

/// The refusal of a method that an object does not have.
#[must_use]
pub fn no_method(name: &str) -> Refusal {
    Refusal::NotFound { kind: "method".into(), name: name.chars().take(100).collect() }
}

#[cfg(test)]
mod tests;
