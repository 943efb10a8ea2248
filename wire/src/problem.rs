//! Refusals as HTTP: one exhaustive match, RFC 9457 `application/problem+json`.

use serde::{Deserialize, Serialize};
use yard_common::Refusal;

/// A problem document. `refusal` carries the typed form, for clients that decide by it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Problem {
    /// A name of the kind of problem: `/problems/NAME` on this platform.
    #[serde(rename = "type")]
    pub kind: String,
    /// The kind in a few words.
    pub title: String,
    /// The HTTP status.
    pub status: u16,
    /// What is wrong and what to do.
    pub detail: String,
    /// Can the same request succeed later?
    pub retryable: bool,
    /// Seconds to wait, where waiting helps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after: Option<u32>,
    /// The typed refusal.
    pub reason: Refusal,
}

/// The content type of a problem document.
pub const CONTENT_TYPE: &str = "application/problem+json";

/// Status, title, and whether the same request can succeed later.
#[must_use]
pub fn class(refusal: &Refusal) -> (u16, &'static str, bool) {
    match refusal {
        Refusal::Moved { .. } => (409, "main moved", false),
        Refusal::Turn { .. } => (409, "another lane's turn", true),
        Refusal::Frozen { .. } => (409, "frozen", true),
        Refusal::NotOwner { .. } => (409, "not the owner", false),
        Refusal::Superseded { .. } => (409, "superseded", false),
        Refusal::Withdrawn { .. } => (409, "withdrawn", false),
        Refusal::Held { .. } => (409, "held", true),
        Refusal::AlreadyLanded { .. } => (409, "already landed", false),
        Refusal::ParentOpen { .. } => (409, "waits for another change", true),
        Refusal::Fence { .. } => (409, "claimed by another fork", true),
        Refusal::Protected { .. } => (403, "protected path", false),
        Refusal::Unbound { .. } => (422, "not the accepted change", false),
        Refusal::GoesBack { .. } => (409, "would take something back", false),
        Refusal::OtherTree { .. } => (422, "another tree", false),
        Refusal::Malformed { .. } => (422, "malformed candidate", false),
        Refusal::Unproven { .. } => (422, "not proven green", false),
        Refusal::Landed { .. } => (409, "landed", false),
        Refusal::ChangeWithdrawn { .. } => (409, "withdrawn", false),
        Refusal::NoBase => (422, "no base", false),
        Refusal::RebaseNeeded { .. } => (409, "rebase needed", false),
        Refusal::WaitingCycle { .. } => (409, "waiting cycle", false),
        Refusal::BuiltOnWithdrawn { .. } => (409, "built on withdrawn work", false),
        Refusal::ContainedIn { .. } => (409, "part of another change", false),
        Refusal::WhichChange { .. } => (409, "which change is meant", false),
        Refusal::StaleTree { .. } => (409, "stale tree", false),
        Refusal::NoEdits => (422, "no edits", false),
        Refusal::BaseMismatch { .. } => (409, "base does not match", false),
        Refusal::LateReplay { .. } => (409, "late replay", false),
        Refusal::OutsideReview { .. } => (422, "outside the review", false),
        Refusal::Raced => (409, "raced", true),
        Refusal::Invalid { .. } => (400, "invalid request", false),
        Refusal::TooLarge { .. } => (413, "too large", false),
        Refusal::NotFound { .. } => (404, "not found", false),
        Refusal::Exists { .. } => (409, "exists already", false),
        Refusal::KeyReused { .. } => (422, "idempotency key reused", false),
        Refusal::Unauthenticated { .. } => (401, "not authenticated", false),
        Refusal::Forbidden { .. } => (403, "not allowed", false),
        Refusal::RefRejected { .. } => (409, "ref rejected", false),
        Refusal::TooLate { .. } => (409, "too late", false),
        Refusal::Claimed { .. } => (409, "claimed", true),
        Refusal::Stale { .. } => (409, "late answer", false),
        Refusal::Overloaded { .. } => (503, "overloaded", true),
        Refusal::Internal { .. } => (500, "internal error", true),
    }
}

impl From<Refusal> for Problem {
    fn from(reason: Refusal) -> Self {
        let (status, title, retryable) = class(&reason);
        let retry_after = match &reason {
            Refusal::Overloaded { retry_after } => Some(*retry_after),
            _ => None,
        };
        Self {
            kind: format!("/problems/{}", title.replace(['\'', ','], "").replace(' ', "-")),
            title: title.to_owned(),
            status,
            detail: reason.to_string(),
            retryable,
            retry_after,
            reason,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_problem_keeps_the_typed_refusal_through_json() {
        let problem = Problem::from(Refusal::Overloaded { retry_after: 7 });
        let text = serde_json::to_string(&problem).unwrap();
        assert_eq!(serde_json::from_str::<Problem>(&text).unwrap(), problem);
        assert!(text.contains("\"type\":\"/problems/overloaded\""), "{text}");
        assert_eq!((problem.status, problem.retry_after), (503, Some(7)));
    }
}
