//! The methods of a Board object: a sink of events, with cursors.

use serde::{Deserialize, Serialize};
use yard_common::{ChangeId, LaneName, Millis};

use crate::method;

/// The protocol of the event socket. A browser, which can send no header of its own with a socket, offers it and
/// `switchyard.token.TOKEN`: a token in the address would stand in logs.
pub const EVENTS_PROTOCOL: &str = "switchyard.events";
/// What a token is offered after.
pub const TOKEN_PROTOCOL: &str = "switchyard.token.";

/// One thing that people and agents may want to see at once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// The object that says so, and its number there: a repeat is known by them.
    pub source: String,
    /// The number in the source.
    pub number: u64,
    /// When.
    pub at: Millis,
    /// What: `submitted`, `queued`, `testing`, `landed`, `needs-author`, `held`, `work` (a runner
    /// may lease), `main`, ...
    pub kind: String,
    /// The change, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub change: Option<ChangeId>,
    /// The lane, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lane: Option<LaneName>,
    /// One sentence.
    pub text: String,
}

/// Adds events; repeats are dropped.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Publish {
    /// The events, in the order of their source.
    pub events: Vec<Event>,
}
method!(Publish, "publish", ());

/// Events after a cursor, at most 1,000.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Events {
    /// The cursor; 0 at first.
    pub after: u64,
    /// Only so many of the newest.
    #[serde(default)]
    pub last: Option<u64>,
}
/// Events and the next cursor.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EventsReply {
    /// Each with its cursor.
    pub events: Vec<(u64, Event)>,
    /// The cursor of the last.
    pub next: u64,
}
method!(Events, "events", EventsReply);
