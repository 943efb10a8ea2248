//! Which ref updates a push may ask for.

use std::collections::BTreeSet;

use yard_git::Kind;

use super::report::RefStatus;
use super::{Command, Push, doubled};
use crate::refs::RefView;

/// What is pushed to: the rules for refs that the server writes differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// The repository itself.
    Repository,
    /// A fork of it; its notes are its agent's own.
    Fork,
}

/// Checks every command against the rules that need no objects; one status for each, in order.
///
/// Checked: the name, doubled names, refs that only the server writes, `refs/for/*` alone in its push,
/// the branch that HEAD names, the place where the client believes the ref to be, names that are a
/// directory of another. The host adds [`kind_fault`], its own policy and at last [`make_atomic`].
#[must_use]
pub fn check(push: &Push, refs: &RefView, place: Place) -> Vec<RefStatus> {
    let doubled = doubled(&push.commands);
    let names = Names::new(push, refs);
    let submits = push.commands.iter().any(|command| command.sent_name.starts_with("refs/for/"));
    let fault = |command: &Command| {
        name_fault(command, &doubled)
            .or_else(|| server_ref_fault(command, place))
            .or_else(|| submit_fault(command, submits && push.commands.len() > 1))
            .or_else(|| head_fault(command, refs))
            .or_else(|| stale_fault(command, refs))
            .or_else(|| names.fault(command))
    };
    push.commands
        .iter()
        .map(|command| RefStatus { fault: fault(command), ..RefStatus::ok(&command.sent_name) })
        .collect()
}

fn name_fault(command: &Command, doubled: &BTreeSet<&str>) -> Option<String> {
    let name = command.sent_name.as_str();
    if command.name.is_none() || !name.starts_with("refs/") {
        return Some("funny refname: a ref is refs/... by the rules of git check-ref-format".to_owned());
    }
    if doubled.contains(name) {
        return Some("multiple updates for this ref in one push: name it once".to_owned());
    }
    (command.old.is_zero() && command.new.is_zero()).then(|| "nothing to delete: no such ref".to_owned())
}

fn server_ref_fault(command: &Command, place: Place) -> Option<String> {
    let name = command.sent_name.as_str();
    if name == "refs/notes/intent" && place == Place::Repository {
        return Some("only the server writes refs/notes/intent: push notes to your fork".to_owned());
    }
    if name.starts_with("refs/changes/") {
        return Some("read-only: push a new version to refs/for/main instead".to_owned());
    }
    if name.starts_with("refs/candidates/") {
        return Some("read-only: candidates are written by their lane alone".to_owned());
    }
    None
}

fn submit_fault(command: &Command, in_company: bool) -> Option<String> {
    if in_company {
        return Some("push refs/for/* alone: one push submits one change".to_owned());
    }
    let name = command.sent_name.as_str();
    (name.starts_with("refs/for/") && command.is_delete())
        .then(|| "refs/for/* cannot be deleted: withdraw the change instead".to_owned())
}

fn head_fault(command: &Command, refs: &RefView) -> Option<String> {
    (command.is_delete() && command.sent_name == refs.head().as_str())
        .then(|| "refusing to delete the branch that HEAD names: point HEAD elsewhere first".to_owned())
}

fn stale_fault(command: &Command, refs: &RefView) -> Option<String> {
    let name = command.sent_name.as_str();
    if name.starts_with("refs/for/") {
        return None;
    }
    let current = refs.get(name).map(|tip| tip.id);
    match current {
        Some(id) if command.old.is_zero() => Some(format!("reference already exists at {id}: fetch first")),
        Some(id) if id != command.old => Some(format!("is at {id} now: fetch first")),
        None if command.is_delete() => Some("no such ref".to_owned()),
        None if !command.old.is_zero() => Some("was deleted meanwhile: fetch first".to_owned()),
        _ => None,
    }
}

/// The ref names that stand after the push, to find a name that is a directory of another.
struct Names<'a> {
    refs: &'a RefView,
    deleted: BTreeSet<&'a str>,
    made: BTreeSet<&'a str>,
}

impl<'a> Names<'a> {
    fn new(push: &'a Push, refs: &'a RefView) -> Self {
        let pick = |deletes: bool| {
            push.commands
                .iter()
                .filter(|command| {
                    command.is_delete() == deletes && !command.sent_name.starts_with("refs/for/")
                })
                .map(|command| command.sent_name.as_str())
                .collect()
        };
        Self { refs, deleted: pick(true), made: pick(false) }
    }

    fn fault(&self, command: &Command) -> Option<String> {
        let name = command.sent_name.as_str();
        if command.is_delete() || name.starts_with("refs/for/") {
            return None;
        }
        let other = self.file_above(name).or_else(|| self.files_below(name))?;
        Some(format!("'{other}' exists; cannot create '{name}'"))
    }

    fn stands(&self, name: &str) -> bool {
        self.made.contains(name) || (self.refs.get(name).is_some() && !self.deleted.contains(name))
    }

    fn file_above(&self, name: &str) -> Option<String> {
        name.match_indices('/')
            .filter_map(|(at, _)| name.get(..at))
            .find(|above| self.stands(above))
            .map(str::to_owned)
    }

    fn files_below(&self, name: &str) -> Option<String> {
        let folder = format!("{name}/");
        let made = self.made.range(folder.as_str()..).next().filter(|made| made.starts_with(&folder));
        if let Some(made) = made {
            return Some((*made).to_owned());
        }
        let found = self.refs.below(&folder).find(|tip| !self.deleted.contains(tip.name.as_str()));
        found.map(|tip| tip.name.to_string())
    }
}

/// Why a ref of this name cannot point at an object of this kind, if it cannot.
#[must_use]
pub fn kind_fault(name: &str, kind: Kind) -> Option<String> {
    let commits_only =
        ["refs/heads/", "refs/for/", "refs/notes/"].iter().any(|prefix| name.starts_with(prefix));
    (commits_only && kind != Kind::Commit).then(|| {
        let hint = if kind == Kind::Tag { ": push TAG^{commit} instead" } else { "" };
        format!("a {} cannot be written to '{name}', which takes commits only{hint}", kind.as_str())
    })
}

/// In an atomic push, one fault is everybody's: marks the others as failed with it.
///
/// Returns whether anything may be applied at all.
pub fn make_atomic(atomic: bool, statuses: &mut [RefStatus]) -> bool {
    let faulty = statuses.iter().filter(|status| status.fault.is_some()).count();
    if atomic && faulty > 0 {
        for status in statuses.iter_mut().filter(|status| status.fault.is_none()) {
            status.fault = Some("atomic transaction failed".to_owned());
        }
        return false;
    }
    faulty < statuses.len()
}
