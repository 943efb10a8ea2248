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
        Refusal::NoMain => (409, "empty repository", false),
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

/// What is wrong and what to do, in the API's own terms where the refusal's sentence names git commands.
fn detail(refusal: &Refusal) -> String {
    match refusal {
        Refusal::NoBase => {
            "the base is no commit of this repository: send as base a commit of main, or the head of \
             an open change, or none for main as it is"
                .into()
        }
        Refusal::RebaseNeeded { commits, .. } => format!(
            "the base stands on {} commits that do not merge cleanly: read the files of main anew, make the \
             edits there, and send main's commit as base",
            commits.len()
        ),
        Refusal::WaitingCycle { cycle } => {
            let cycle: Vec<String> = cycle.iter().map(ToString::to_string).collect();
            format!("these changes would wait for each other: {}: base one of them on main", cycle.join(", "))
        }
        Refusal::BuiltOnWithdrawn { change, commit } => {
            format!("base {commit} belongs to the withdrawn change {change}: make the edits on main's commit")
        }
        Refusal::ContainedIn { change } => {
            format!(
                "this is part of your open change {change}: send it as that change's next version: \"change\": \
                 \"{change}\""
            )
        }
        Refusal::WhichChange { open, path } => format!(
            "your open change {open} also touches {path}: say which is meant. New version of it: \"change\": \
             \"{open}\"; another change: \"new_change\": true, best with that change's head as \"base\""
        ),
        Refusal::StaleTree { landings, paths } => {
            let shown: Vec<String> = paths.iter().take(10).map(ToString::to_string).collect();
            format!(
                "these edits look like main {landings} landings before the base and would take back {}: read the \
                 files of the base anew, or declare the changes that are to be reverted in \"reverts\"",
                shown.join(", ")
            )
        }
        Refusal::ChangeWithdrawn { change } => {
            format!("change {change} was withdrawn: send the work without \"change\", or under a new one")
        }
        Refusal::Landed { change, commit } => format!(
            "change {change} has landed as {commit}: make a new change on top: no \"change\", that commit as \"base\""
        ),
        other => other.to_string(),
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
            detail: detail(&reason),
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
    fn an_api_caller_is_told_fields_and_no_git_commands() {
        let change = yard_common::ChangeId::new("Iabcdefgh").unwrap();
        let path = yard_common::RepoPath::new("a").unwrap();
        let commit = yard_common::ObjectId::ZERO;
        let all = [
            Refusal::NoBase,
            Refusal::RebaseNeeded { commits: vec![commit], paths: vec![path.clone()] },
            Refusal::WaitingCycle { cycle: vec![change.clone()] },
            Refusal::BuiltOnWithdrawn { change: change.clone(), commit },
            Refusal::ContainedIn { change: change.clone() },
            Refusal::WhichChange { open: change.clone(), path: path.clone() },
            Refusal::StaleTree { landings: 2, paths: vec![path] },
            Refusal::ChangeWithdrawn { change: change.clone() },
            Refusal::Landed { change, commit },
        ];
        for refusal in all {
            let detail = Problem::from(refusal).detail;
            let git =
                ["git ", "push", "amend", "rebase", "trailer"].iter().find(|word| detail.contains(**word));
            assert!(git.is_none(), "{git:?} in {detail}");
        }
    }

    #[test]
    fn a_problem_keeps_the_typed_refusal_through_json() {
        let problem = Problem::from(Refusal::Overloaded { retry_after: 7 });
        let text = serde_json::to_string(&problem).unwrap();
        assert_eq!(serde_json::from_str::<Problem>(&text).unwrap(), problem);
        assert!(text.contains("\"type\":\"/problems/overloaded\""), "{text}");
        assert_eq!((problem.status, problem.retry_after), (503, Some(7)));
    }
}
