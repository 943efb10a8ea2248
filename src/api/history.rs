//! The whole story of a change, in time order: what the repository's log and its lane say.

use yard_common::fact::{Fact, Terminal};
use yard_common::{ChangeId, FactNo, Millis};
use yard_wire::lane::Step;

/// The steps of one change from the log's facts and from its lane, oldest first.
#[must_use]
pub fn merged(facts: &[(FactNo, Millis, Fact)], lane: Vec<Step>, change: &ChangeId) -> Vec<Step> {
    let mut steps: Vec<Step> = facts
        .iter()
        .filter_map(|(number, at, fact)| {
            let (kind, text) = told(fact, change)?;
            let fact = Some(*number);
            Some(Step { at: *at, kind: kind.into(), text, attempt: None, run: None, fact })
        })
        .chain(lane)
        .collect();
    steps.sort_by_key(|step| step.at);
    steps
}

/// Why it ended, as its last closing says: more than the stage alone.
#[must_use]
pub fn closing_reason(facts: &[(FactNo, Millis, Fact)]) -> Option<String> {
    facts.iter().rev().find_map(|(_, _, fact)| match fact {
        Fact::Closed { stage: Terminal::Withdrawn, by, reason, .. } => Some(closed("taken back", by, reason)),
        _ => None,
    })
}

fn closed(how: &str, by: &str, reason: &str) -> String {
    let by = if by.is_empty() { String::new() } else { format!(" by {by}") };
    if reason.is_empty() { format!("{how}{by}") } else { format!("{how}{by}: {reason}") }
}

/// How a change ended, in the past tense.
fn ended(stage: Terminal) -> &'static str {
    match stage {
        Terminal::Landed => "landed",
        Terminal::Withdrawn => "taken back",
        Terminal::AlreadyOnMain => "found on main already",
        Terminal::Expired => "given up after waiting for its author too long",
    }
}

fn told(fact: &Fact, change: &ChangeId) -> Option<(&'static str, String)> {
    Some(match fact {
        Fact::Submitted { row, .. } => {
            let paths = match row.list.as_ref().map_or(row.edits.len() as u64, |list| list.count) {
                1 => "1 path".to_owned(),
                many => format!("{many} paths"),
            };
            let waits: Vec<&str> = row.waits_for.iter().map(ChangeId::as_str).collect();
            let waits =
                if waits.is_empty() { String::new() } else { format!(", on top of {}", waits.join(", ")) };
            ("version", format!("version {} accepted: {paths}, lane {}{waits}", row.version, row.lane))
        }
        Fact::Landed { request, .. } => {
            let landed = request.changes.iter().find(|item| item.change == *change)?;
            ("landed", format!("version {} landed as {} in {}", landed.version, landed.commit, request.key))
        }
        Fact::Closed { stage, by, reason, .. } => ("closed", closed(ended(*stage), by, reason)),
        Fact::HoldSet { reason: Some(reason), by, .. } => ("held", closed("held", by, reason)),
        Fact::HoldSet { reason: None, by, .. } => ("released", closed("released", by, "")),
        Fact::Requeued { by, .. } => ("requeued", closed("offered again", by, "")),
        Fact::Approved { version, by, .. } => {
            ("approved", closed(&format!("version {version} approved"), by, ""))
        }
        Fact::OwnerSet { lane, .. } => ("owner", format!("handed over to lane {lane}")),
        Fact::DirectPush { rewritten, restored, reason, new, .. } => {
            let how = if rewritten.contains(change) {
                format!("sent back: main was rewritten to {new}")
            } else if restored.contains(change) {
                format!("its commit is on main again, by a push of {new}")
            } else {
                return None;
            };
            ("rewritten", closed(&how, "", reason))
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use yard_common::Version;

    #[test]
    fn the_log_and_the_lane_are_one_story_in_time_order() {
        let change = ChangeId::new("Iabcdefgh").unwrap();
        let closed = Fact::Closed {
            change: change.clone(),
            version: Version(1),
            stage: Terminal::Withdrawn,
            by: "ann".into(),
            reason: "no longer needed".into(),
            at: Millis(9),
        };
        let held = Fact::HoldSet { change: change.clone(), reason: Some("legal".into()), by: String::new() };
        let facts = [(FactNo(1), Millis(3), held), (FactNo(2), Millis(9), closed)];
        let red = Step {
            at: Millis(5),
            kind: "red".into(),
            text: "run main-1-1 (it alone): red".into(),
            attempt: None,
            run: None,
            fact: None,
        };
        let texts: Vec<String> =
            merged(&facts, vec![red], &change).into_iter().map(|step| step.text).collect();
        let last = "taken back by ann: no longer needed";
        assert_eq!(texts, ["held: legal", "run main-1-1 (it alone): red", last]);
        assert_eq!(closing_reason(&facts).as_deref(), Some(last));
    }
}
