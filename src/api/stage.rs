//! A change's stage, from the repository's log and its lane's entry: the one place that derives it.

use yard_common::fact::Terminal;
use yard_wire::api::ChangeStatus;
use yard_wire::lane::{EntryView, Stage};
use yard_wire::repository::ChangeView;

/// What the platform says of a change: its stage, and one true sentence.
///
/// The log decides what it has decided; the lane says the rest of a version that it has taken.
#[must_use]
pub fn status(view: &ChangeView, entry: Option<&EntryView>) -> ChangeStatus {
    let row = &view.row;
    let entry = entry.filter(|entry| entry.change == row.change && entry.version == row.version);
    let (stage, reason) = decided(view).unwrap_or_else(|| match entry {
        Some(entry) => (entry.stage, entry.reason.clone()),
        None => (Stage::Submitted, format!("lane {} has not taken it yet", row.lane)),
    });
    ChangeStatus {
        change: row.change.clone(),
        version: row.version,
        fork: row.fork.clone(),
        title: row.intent.title.clone(),
        stage,
        reason,
        verdict: entry.and_then(|entry| entry.verdict.clone()),
        commit: view.landed,
        at: row.at,
        replay_of: row.replay.as_ref().map(|origin| origin.of),
    }
}

fn decided(view: &ChangeView) -> Option<(Stage, String)> {
    if let (Some(commit), false) = (view.landed, view.rewritten) {
        return Some((Stage::Landed, format!("landed as {commit}")));
    }
    if let Some(stage) = view.closed {
        return Some(match stage {
            Terminal::Landed => (Stage::Landed, "landed".into()),
            Terminal::Withdrawn => (Stage::Withdrawn, "taken back".into()),
            Terminal::AlreadyOnMain => (Stage::AlreadyOnMain, "main has all that it wants".into()),
            Terminal::Expired => (Stage::Expired, "waited for its author too long".into()),
        });
    }
    if view.rewritten {
        let reason = "main was rewritten: push a new version, or requeue it as it is";
        return Some((Stage::NeedsAuthor, reason.into()));
    }
    let held = view.held.as_ref()?;
    Some((Stage::Held, format!("held: {held}")))
}
