//! Facts as their rows keep them, read no further than is needed.
//!
//! Serde holds a tagged value in memory whole before it knows which kind it is, which for the two heavy
//! kinds costs more than all else that is done with them. A fact's text begins with its kind (that is how it
//! was written), so these two are read straight into what they are.

use serde::Deserialize;
use yard_common::intent::Intent;
use yard_common::landing::{AttemptId, LandRequest};
use yard_common::submission::Submission;
use yard_common::{ChangeId, Fact, LaneName, Millis, ObjectId};

use crate::sql::SqlFault;

/// The name of a fact's kind, as its JSON has it.
pub(super) fn kind_of(json: &str) -> &str {
    let rest = json.strip_prefix("{\"fact\":\"").unwrap_or_default();
    rest.split('"').next().unwrap_or_default()
}

fn read<'de, T: Deserialize<'de>>(json: &'de str) -> Result<T, SqlFault> {
    serde_json::from_str(json).map_err(|fault| SqlFault(format!("a fact: {fault}")))
}

/// The row of a submission's fact.
///
/// # Errors
/// [`SqlFault`] for another kind of fact.
pub(super) fn submission(json: &str) -> Result<Submission, SqlFault> {
    #[derive(Deserialize)]
    struct Whole {
        row: Submission,
    }
    match kind_of(json) {
        "submitted" => read::<Whole>(json).map(|whole| whole.row),
        _ => Err(SqlFault("a submission's fact is another one".into())),
    }
}

/// A fact, whole.
///
/// # Errors
/// [`SqlFault`] when it cannot be read.
pub(super) fn whole(json: &str) -> Result<Fact, SqlFault> {
    #[derive(Deserialize)]
    struct Submitted {
        row: Box<Submission>,
        #[serde(default)]
        nodes: Vec<yard_common::submission::CommitNode>,
    }
    #[derive(Deserialize)]
    struct Landed {
        request: Box<LandRequest>,
        untested: Option<yard_common::fact::Untested>,
        #[serde(default)]
        trees: Vec<ObjectId>,
        #[serde(default)]
        policy: Option<Box<yard_common::policy::Policy>>,
        #[serde(default)]
        turns: yard_common::fact::Turns,
        at: Millis,
    }
    match kind_of(json) {
        "submitted" => {
            let Submitted { row, nodes } = read(json)?;
            Ok(Fact::Submitted { row, nodes })
        }
        "landed" => {
            let Landed { request, untested, trees, policy, turns, at } = read(json)?;
            Ok(Fact::Landed { request, untested, trees, policy, turns, at })
        }
        _ => read(json),
    }
}

/// A fact for a lane: a landing comes without its edits.
///
/// # Errors
/// [`SqlFault`] when it cannot be read.
pub(super) fn without_edits(json: &str) -> Result<Fact, SqlFault> {
    let mut fact = whole(json)?;
    if let Fact::Landed { request, .. } = &mut fact {
        request.changes.iter_mut().for_each(|listed| listed.edits.clear());
    }
    Ok(fact)
}

/// What those who look on are told of a landing.
#[derive(Debug, Deserialize)]
pub(super) struct LandedGlance {
    pub request: RequestGlance,
}

#[derive(Debug, Deserialize)]
pub(super) struct RequestGlance {
    pub key: AttemptId,
    pub changes: Vec<ListedGlance>,
}

#[derive(Debug, Deserialize)]
pub(super) struct ListedGlance {
    pub change: ChangeId,
    pub commit: ObjectId,
}

/// What those who look on are told of a submission.
#[derive(Debug, Deserialize)]
pub(super) struct SubmittedGlance {
    pub row: RowGlance,
}

#[derive(Debug, Deserialize)]
pub(super) struct RowGlance {
    pub change: ChangeId,
    pub lane: LaneName,
    pub intent: Intent,
}

/// One glance at a fact.
pub(super) enum Glance {
    Submitted(Box<SubmittedGlance>),
    Landed(LandedGlance),
    Other(Box<Fact>),
}

/// Looks at a fact.
///
/// # Errors
/// [`SqlFault`] when it cannot be read.
pub(super) fn glance(json: &str) -> Result<Glance, SqlFault> {
    Ok(match kind_of(json) {
        "submitted" => Glance::Submitted(Box::new(read(json)?)),
        "landed" => Glance::Landed(read(json)?),
        _ => Glance::Other(Box::new(read(json)?)),
    })
}

#[cfg(test)]
mod tests;
