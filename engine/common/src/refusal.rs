//! Every reason to say no, and whether trying again can help.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::id::{ChangeId, ForkName, LaneName, ObjectId};
use crate::path::RepoPath;
use crate::time::Millis;

/// Why a request was refused. Nothing changed but that the refusal itself is remembered.
///
/// The HTTP form is made in one place, `wire::problem`. The text is the public sentence: it says
/// what is wrong and what to do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "refusal", rename_all = "kebab-case")]
pub enum Refusal {
    // ---- landing requests ------------------------------------------------------------------
    /// Main (head or epoch) is not where the lane thinks; it assembles anew.
    Moved {
        /// Main now.
        head: ObjectId,
        /// Paths that landed since the lane's head, at most 100; empty when unknown.
        paths: Vec<RepoPath>,
    },
    /// Another lane holds the landing turn; the same candidate comes again under a new attempt.
    Turn {
        /// The lane that holds it.
        lane: LaneName,
        /// When its lease ends.
        until: Millis,
    },
    /// Landing is frozen; the same candidate comes again under a new attempt.
    Frozen {
        /// Who froze it and why.
        reason: String,
    },
    /// The lane's owner epoch is not the one in force: the lane was retired or handed over.
    NotOwner {
        /// The change, where one change only is concerned.
        change: Option<ChangeId>,
    },
    /// These versions are not the newest accepted ones any more.
    Superseded {
        /// The changes.
        changes: Vec<ChangeId>,
    },
    /// These changes were withdrawn.
    Withdrawn {
        /// The changes.
        changes: Vec<ChangeId>,
    },
    /// These changes are held.
    Held {
        /// The changes.
        changes: Vec<ChangeId>,
    },
    /// These changes have landed already: a change lands once.
    AlreadyLanded {
        /// The changes.
        changes: Vec<ChangeId>,
    },
    /// The change waits for one that is neither landed nor earlier in the request.
    ParentOpen {
        /// The change.
        change: ChangeId,
        /// What it waits for.
        waits_for: ChangeId,
    },
    /// A live claim of another fork has a higher fence number on this path.
    Fence {
        /// The change.
        change: ChangeId,
        /// The path.
        path: RepoPath,
        /// Who holds the claim.
        holder: Option<ForkName>,
        /// When the claim ends.
        until: Millis,
    },
    /// A path of the change is protected from this author.
    Protected {
        /// The change.
        change: ChangeId,
        /// The path.
        path: RepoPath,
        /// What may change it.
        rule: String,
    },
    /// The edits are not the ones of the accepted version, or do not follow the rules of their kind.
    Unbound {
        /// The change.
        change: ChangeId,
        /// What does not match.
        why: String,
    },
    /// An edit's `ours` is not what stands there: landing it would take something back.
    GoesBack {
        /// The change.
        change: ChangeId,
        /// The path.
        path: RepoPath,
    },
    /// The commit's tree is not the fold of its edits.
    OtherTree {
        /// The change.
        change: ChangeId,
        /// The tree that the edits make.
        expected: ObjectId,
        /// The tree that the commit has.
        found: ObjectId,
    },
    /// Parents, notes or objects of the candidate are not what the request says.
    Malformed {
        /// What is wrong.
        why: String,
    },
    /// The runs do not prove this tree green under today's suite.
    Unproven {
        /// What is missing.
        why: String,
    },

    // ---- submissions -----------------------------------------------------------------------
    /// The change has landed: a follow-up is a new change.
    Landed {
        /// The change.
        change: ChangeId,
        /// Its commit on main.
        commit: ObjectId,
    },
    /// The change was withdrawn.
    ChangeWithdrawn {
        /// The change.
        change: ChangeId,
    },
    /// No known commit is an ancestor of the head.
    NoBase,
    /// The repository is empty: there is nothing that a change could be measured from.
    NoMain,
    /// The head stands on several known commits whose trees do not merge cleanly.
    RebaseNeeded {
        /// The known commits.
        commits: Vec<ObjectId>,
        /// Paths that collide, at most 100.
        paths: Vec<RepoPath>,
    },
    /// The change would wait for itself.
    WaitingCycle {
        /// The changes of the cycle, first one repeated at the end.
        cycle: Vec<ChangeId>,
    },
    /// The head is built on a commit of a withdrawn version.
    BuiltOnWithdrawn {
        /// The withdrawn change.
        change: ChangeId,
        /// Its commit.
        commit: ObjectId,
    },
    /// The head lies inside the newest head of another open change of the same fork.
    ContainedIn {
        /// That change.
        change: ChangeId,
    },
    /// A push without id overlaps with an open change of the same fork.
    WhichChange {
        /// The open change.
        open: ChangeId,
        /// A path that both touch.
        path: RepoPath,
    },
    /// The tree looks like an older main: it would take these paths back.
    StaleTree {
        /// How many landings before the base the nearer main lies.
        landings: usize,
        /// The paths it would take back, at most 100.
        paths: Vec<RepoPath>,
    },
    /// The change changes nothing against its base.
    NoEdits,
    /// An edit's stated base is not what stands in the base commit.
    BaseMismatch {
        /// The path.
        path: RepoPath,
        /// What stands there.
        found: Option<ObjectId>,
    },
    /// The version that a replay was made from is not the newest any more.
    LateReplay {
        /// The change.
        change: ChangeId,
    },
    /// A replay touches a path that was not reviewed.
    OutsideReview {
        /// The change.
        change: ChangeId,
        /// The path.
        path: RepoPath,
    },
    /// The state that the decision was prepared on has moved meanwhile; prepare it anew.
    Raced,

    // ---- everything else -------------------------------------------------------------------
    /// A text, a number or a body breaks a rule.
    Invalid {
        /// What is wrong and what is expected.
        why: String,
    },
    /// Something is larger than its limit.
    TooLarge {
        /// The thing.
        what: String,
        /// Its size.
        size: u64,
        /// The limit.
        limit: u64,
    },
    /// There is no such thing.
    NotFound {
        /// The kind, as a noun.
        kind: String,
        /// Its name.
        name: String,
    },
    /// There is one already.
    Exists {
        /// The kind, as a noun.
        kind: String,
        /// Its name.
        name: String,
    },
    /// The same idempotency key came with another request.
    KeyReused {
        /// The key.
        key: String,
    },
    /// No token, an expired, revoked or forged one.
    Unauthenticated {
        /// What is wrong with it.
        why: String,
    },
    /// The token does not allow this.
    Forbidden {
        /// The scope that is needed.
        needs: String,
    },
    /// A ref update lost a race or is not allowed.
    RefRejected {
        /// The ref.
        name: String,
        /// Why, in git's words where git has some.
        why: String,
    },
    /// Too late: the change has landed, revert it instead.
    TooLate {
        /// The change.
        change: ChangeId,
    },
    /// A claim by somebody else covers this.
    Claimed {
        /// The path or task.
        what: String,
        /// Who holds it.
        holder: String,
        /// When it ends.
        until: Millis,
    },
    /// The answer belongs to an older lease, attempt or version; it is kept as evidence only.
    Stale {
        /// What came late.
        what: String,
    },
    /// Too much at once.
    Overloaded {
        /// Seconds after which to try again.
        retry_after: u32,
    },
    /// A fault of the platform, not of the request.
    Internal {
        /// What was being done; the detail stays in the log.
        during: String,
    },
}

fn list<T: fmt::Display>(items: &[T]) -> String {
    let shown: Vec<String> = items.iter().take(10).map(ToString::to_string).collect();
    let more = items.len().saturating_sub(10);
    if more == 0 { shown.join(", ") } else { format!("{} and {more} more", shown.join(", ")) }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Moved { head, paths } if paths.is_empty() => {
                write!(f, "main moved to {head}: assemble anew")
            }
            Self::Moved { head, paths } => {
                write!(f, "main moved to {head} ({}): assemble anew", list(paths))
            }
            Self::Turn { lane, until } => {
                write!(f, "lane {lane} has the landing turn until {}: ask again", until.clock())
            }
            Self::Frozen { reason } => write!(f, "landing is frozen ({reason}): ask again after the thaw"),
            Self::NotOwner { change: Some(change) } => {
                write!(f, "change {change} belongs to another lane")
            }
            Self::NotOwner { change: None } => f.write_str("this lane was retired: read the log anew"),
            Self::Superseded { changes } => write!(f, "a newer version was accepted of {}", list(changes)),
            Self::Withdrawn { changes } => write!(f, "withdrawn: {}", list(changes)),
            Self::Held { changes } => write!(f, "held: {}", list(changes)),
            Self::AlreadyLanded { changes } => write!(f, "already landed: {}", list(changes)),
            Self::ParentOpen { change, waits_for } => {
                write!(f, "change {change} waits for {waits_for}, which has not landed")
            }
            Self::Fence { change, path, holder, until } => {
                let holder = holder.as_ref().map_or("the parent repository", ForkName::as_str);
                write!(
                    f,
                    "change {change}: {path} is claimed by {holder} until {}: wait for its end or ask for it",
                    until.clock()
                )
            }
            Self::Protected { change, path, rule } => {
                write!(f, "change {change}: {path} is protected: {rule}")
            }
            Self::Unbound { change, why } => write!(f, "change {change} is not the accepted one: {why}"),
            Self::GoesBack { change, path } => {
                write!(
                    f,
                    "change {change} was merged onto another {path} than the one on main: assemble anew"
                )
            }
            Self::OtherTree { change, expected, found } => {
                write!(f, "change {change}: its edits make tree {expected}, its commit has {found}")
            }
            Self::Malformed { why } => write!(f, "malformed candidate: {why}"),
            Self::Unproven { why } => write!(f, "not proven green: {why}"),
            other => other.fmt_submission(f),
        }
    }
}

/// The sentences by kind of request; each falls through to the next, the test below holds that none is left out.
impl Refusal {
    fn fmt_submission(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Landed { change, commit } => {
                write!(f, "change {change} has landed as {commit}: make a new change on top")
            }
            Self::ChangeWithdrawn { change } => {
                write!(f, "change {change} was withdrawn: push the work under a new Change-Id")
            }
            Self::NoBase => f.write_str(
                "no commit of this repository is an ancestor of the pushed head: fetch main and rebase onto it",
            ),
            Self::NoMain => f.write_str(
                "the repository is empty, so there is nothing to land a change on: an admin first pushes its main \
                 (git push URL HEAD:refs/heads/main); then offer the change on top of it",
            ),
            Self::RebaseNeeded { commits, paths } => write!(
                f,
                "the head stands on {}, which do not merge cleanly ({}): run git rebase main",
                list(commits),
                list(paths)
            ),
            Self::WaitingCycle { cycle } => {
                write!(f, "these changes would wait for each other: {}: rebase one of them onto main", list(cycle))
            }
            Self::BuiltOnWithdrawn { change, commit } => write!(
                f,
                "the head is built on {commit} of withdrawn change {change}: run git rebase --onto main {commit}"
            ),
            Self::ContainedIn { change } => write!(
                f,
                "this commit is part of your open change {change}: push that change's next version instead"
            ),
            Self::WhichChange { open, path } => write!(
                f,
                "your open change {open} also touches {path}: say which is meant. New version: git commit \
                 --amend --trailer 'Change-Id: {open}'; another change: git push -o new-change ..."
            ),
            Self::StaleTree { landings, paths } => write!(
                f,
                "this tree looks like main {landings} landings before its base and would take back {}: rebase the \
                 work onto main, or declare a revert, one trailer 'Reverts: CHANGE' for each change that brought them",
                list(paths)
            ),
            Self::NoEdits => f.write_str("the change changes nothing against its base"),
            Self::BaseMismatch { path, found } => {
                let found = found.map_or_else(|| "nothing".to_owned(), |id| id.to_string());
                write!(f, "{path}: in the base commit stands {found}: read the file anew and send its id as base")
            }
            Self::LateReplay { change } => write!(f, "change {change} has a newer version: the replay is late"),
            Self::OutsideReview { change, path } => {
                write!(f, "the replay of change {change} touches {path}, which was not reviewed")
            }
            Self::Raced => f.write_str("the repository moved while this was prepared: send it again"),
            other => other.fmt_rest(f),
        }
    }

    fn fmt_rest(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Invalid { why } => f.write_str(why),
            Self::TooLarge { what, size, limit } => {
                write!(f, "{what} has {size} bytes, at most {limit} are taken")
            }
            Self::NotFound { kind, name } => write!(f, "there is no {kind} {name:?}"),
            Self::Exists { kind, name } => {
                let mend = match kind.as_str() {
                    "version" => "change something before it is offered again",
                    _ => "choose another name, or have an admin make a token for it (yard token)",
                };
                write!(f, "there is a {kind} {name:?} already: {mend}")
            }
            Self::KeyReused { key } => {
                write!(f, "idempotency key {key:?} came with another request: use a new key")
            }
            Self::Unauthenticated { why } => f.write_str(why),
            Self::Forbidden { needs } => {
                write!(f, "this token lacks the scope {needs}: ask an admin for one")
            }
            Self::RefRejected { name, why } => write!(f, "{name}: {why}"),
            Self::TooLate { change } => write!(f, "too late: change {change} has landed: revert it instead"),
            Self::Claimed { what, holder, until } => {
                write!(f, "{what} is claimed by {holder} until {}: wait for its end or ask for it", until.clock())
            }
            Self::Stale { what } => write!(f, "{what} comes too late and has no effect"),
            Self::Overloaded { retry_after } => write!(f, "too much at once: try again in {retry_after} s"),
            Self::Internal { during } => write!(f, "the platform failed during {during}: try again"),
            _ => f.write_str("refused"),
        }
    }
}

impl std::error::Error for Refusal {}

impl From<crate::id::BadId> for Refusal {
    fn from(bad: crate::id::BadId) -> Self {
        Self::Invalid { why: bad.to_string() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_refusal_has_a_sentence_of_its_own() {
        let change = ChangeId::new("Iabcdefgh").unwrap();
        let path = RepoPath::new("a").unwrap();
        let lane = LaneName::new("main").unwrap();
        let (id, until, changes) = (ObjectId::ZERO, Millis(0), vec![change.clone()]);
        let (text, name) = (String::from("w"), String::from("n"));
        let all = [
            Refusal::Moved { head: id, paths: vec![] },
            Refusal::Turn { lane, until },
            Refusal::Frozen { reason: text.clone() },
            Refusal::NotOwner { change: None },
            Refusal::Superseded { changes: changes.clone() },
            Refusal::Withdrawn { changes: changes.clone() },
            Refusal::Held { changes: changes.clone() },
            Refusal::AlreadyLanded { changes: changes.clone() },
            Refusal::ParentOpen { change: change.clone(), waits_for: change.clone() },
            Refusal::Fence { change: change.clone(), path: path.clone(), holder: None, until },
            Refusal::Protected { change: change.clone(), path: path.clone(), rule: text.clone() },
            Refusal::Unbound { change: change.clone(), why: text.clone() },
            Refusal::GoesBack { change: change.clone(), path: path.clone() },
            Refusal::OtherTree { change: change.clone(), expected: id, found: id },
            Refusal::Malformed { why: text.clone() },
            Refusal::Unproven { why: text.clone() },
            Refusal::Landed { change: change.clone(), commit: id },
            Refusal::ChangeWithdrawn { change: change.clone() },
            Refusal::NoBase,
            Refusal::NoMain,
            Refusal::RebaseNeeded { commits: vec![id], paths: vec![path.clone()] },
            Refusal::WaitingCycle { cycle: changes },
            Refusal::BuiltOnWithdrawn { change: change.clone(), commit: id },
            Refusal::ContainedIn { change: change.clone() },
            Refusal::WhichChange { open: change.clone(), path: path.clone() },
            Refusal::StaleTree { landings: 2, paths: vec![path.clone()] },
            Refusal::NoEdits,
            Refusal::BaseMismatch { path, found: None },
            Refusal::LateReplay { change: change.clone() },
            Refusal::Raced,
            Refusal::Invalid { why: text.clone() },
            Refusal::TooLarge { what: text.clone(), size: 2, limit: 1 },
            Refusal::NotFound { kind: text.clone(), name: name.clone() },
            Refusal::Exists { kind: text.clone(), name: name.clone() },
            Refusal::KeyReused { key: text.clone() },
            Refusal::Unauthenticated { why: "a".into() },
            Refusal::Forbidden { needs: text.clone() },
            Refusal::RefRejected { name: name.clone(), why: text.clone() },
            Refusal::TooLate { change },
            Refusal::Claimed { what: text.clone(), holder: name, until },
            Refusal::Stale { what: text.clone() },
            Refusal::Overloaded { retry_after: 1 },
            Refusal::Internal { during: text },
        ];
        let sentences: std::collections::BTreeSet<String> = all.iter().map(ToString::to_string).collect();
        assert_eq!(sentences.len(), all.len());
        assert!(!sentences.contains("refused"));
    }
}
