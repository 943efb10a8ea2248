//! Which changes may board the next train, and in which order.

use std::collections::BTreeSet;

use yard_common::policy::CONFIG_PATH;
use yard_common::submission::Submission;
use yard_common::{ChangeId, Fence, ForkName, Millis, RepoPath};

use crate::limits::CHURN_WAIT_MS;
use crate::state::{Claim, Entry, Lane, Status, View};

/// A claim that keeps a change off the train.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Blocked {
    /// The path.
    pub path: RepoPath,
    /// Who holds the claim.
    pub holder: Option<ForkName>,
    /// When it ends.
    pub until: Millis,
}

/// The first live claim of another fork with a higher number than the row's.
#[must_use]
pub fn blocked_by(row: &Submission, claims: &[Claim], now: Millis) -> Option<Blocked> {
    let live = claims.iter().filter(|claim| claim.until > now && claim.fork != row.fork);
    for claim in live {
        for edit in &row.edits {
            let covered = claim.paths.iter().any(|path| *path == edit.path || edit.path.is_below(path));
            let held = row.fences.get(&edit.path).copied().unwrap_or(Fence(0));
            if covered && claim.fence > held {
                return Some(Blocked {
                    path: edit.path.clone(),
                    holder: claim.fork.clone(),
                    until: claim.until,
                });
            }
        }
    }
    None
}

/// Does the row change the configuration?
#[must_use]
pub fn changes_config(row: &Submission) -> bool {
    row.edits.iter().any(|edit| edit.path.as_bytes() == CONFIG_PATH.as_bytes())
}

impl Lane {
    /// Why nothing can be assembled at all now, if so.
    #[must_use]
    pub fn waits(&self, view: Option<&View>) -> Option<String> {
        if let Some(reason) = &self.frozen {
            return Some(format!("landing is frozen: {reason}"));
        }
        let view = view?;
        if view.head.is_none() {
            return Some("main does not exist yet: push it".into());
        }
        if let Err(why) = &view.check {
            return Some(why.clone());
        }
        let bad = self.bad_main.as_ref()?;
        let runs = bad.runs.iter().map(yard_common::RunId::as_str).collect::<Vec<_>>().join(", ");
        Some(match bad.verdict {
            yard_common::stage::Verdict::Infra => {
                format!("no complete test run of main ({runs}): {}", bad.detail)
            }
            _ => {
                format!("main itself is red ({runs}): {}: nobody is blamed, main is to be mended", bad.detail)
            }
        })
    }

    /// The changes of the next train, in order, at most `max`.
    ///
    /// By age; a stacked change after what it waits for; a change of the configuration rides alone;
    /// one that was replaced while it was aboard lets the others go first for a while.
    #[must_use]
    pub fn choose(&self, view: &View, now: Millis) -> Vec<ChangeId> {
        let max = self.narrow.unwrap_or(usize::MAX).min(view.train_max.max(1));
        let mut queue: Vec<&Entry> = self
            .entries
            .values()
            .filter(|entry| may_ever_board(entry, view, now) && !self.is_behind(entry))
            .filter(|entry| self.reserved_by(entry, now).is_none())
            .collect();
        queue.sort_by_key(|entry| entry.place);
        let calm: Vec<&Entry> = queue.iter().copied().filter(|entry| !is_churned(entry, now)).collect();
        let chosen = board(&calm, max);
        let chosen = if chosen.is_empty() { board(&queue, 1) } else { chosen };
        chosen.into_iter().map(|entry| entry.row.change.clone()).collect()
    }
}

impl Lane {
    /// Does it collide with a change ahead of it whose train is still open?
    #[must_use]
    pub fn is_behind(&self, entry: &Entry) -> bool {
        entry.behind.as_ref().is_some_and(|behind| self.attempts.contains_key(&behind.train))
    }

    /// The change for which a path of this one is reserved, and the path.
    #[must_use]
    pub fn reserved_by<'a>(&'a self, entry: &'a Entry, now: Millis) -> Option<(&'a Entry, &'a RepoPath)> {
        let holds = |other: &Entry| {
            other.reserved.is_some_and(|until| until > now)
                && other.held.is_none()
                && matches!(other.status, Status::Waiting | Status::Aboard { .. } | Status::Replaying { .. })
        };
        let first = |other: &Entry| !holds(entry) || other.place < entry.place;
        let mut others =
            self.entries.values().filter(|other| other.row.change != entry.row.change && holds(other));
        others.find_map(|other| {
            let paths: BTreeSet<&RepoPath> = other.row.edits.iter().map(|edit| &edit.path).collect();
            let shared = entry.row.edits.iter().map(|edit| &edit.path).find(|path| paths.contains(path));
            shared.filter(|_| first(other)).map(|path| (other, path))
        })
    }
}

fn is_churned(entry: &Entry, now: Millis) -> bool {
    entry.churned.is_some_and(|at| now.since(at) < CHURN_WAIT_MS)
}

fn may_ever_board(entry: &Entry, view: &View, now: Millis) -> bool {
    entry.status == Status::Waiting
        && entry.held.is_none()
        && blocked_by(&entry.row, &view.claims, now).is_none()
}

/// Entries in order, as many as fit; repeated until no child finds its parent aboard any more.
fn board<'a>(queue: &[&'a Entry], max: usize) -> Vec<&'a Entry> {
    let mut chosen: Vec<&'a Entry> = Vec::new();
    let mut aboard: BTreeSet<&ChangeId> = BTreeSet::new();
    let mut rest: Vec<&'a Entry> = queue.to_vec();
    loop {
        let before = chosen.len();
        let mut left = Vec::new();
        for entry in rest {
            let config = changes_config(&entry.row);
            let alone = config && !chosen.is_empty();
            let ready = entry.waits_for.iter().all(|parent| aboard.contains(parent));
            if chosen.len() >= max || alone || !ready {
                left.push(entry);
                continue;
            }
            aboard.insert(&entry.row.change);
            chosen.push(entry);
            if config {
                return chosen;
            }
        }
        if chosen.len() == before || chosen.len() >= max {
            return chosen;
        }
        rest = left;
    }
}
