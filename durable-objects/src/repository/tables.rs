//! The tables of a Repository object. All but `facts`, `packs`, `commits`, `contents`, `heads`,
//! `answers`, `candidates` and `revoked` are folds of facts.

use serde::{Deserialize, Serialize};
use yard_common::fact::{Standing, Turns};
use yard_common::policy::Policy;
use yard_common::{
    ChangeId, Epoch, FactNo, Fence, ForkName, IdempotencyKey, LaneName, ObjectId, OwnerEpoch, RefName,
    RepoName, Version,
};
use yard_landing::{ChangeState, Closed};

use crate::sql::{Sql, SqlFault, migrate};

const FIRST: &[&str] = &[
    "CREATE TABLE IF NOT EXISTS meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID",
    "CREATE TABLE IF NOT EXISTS facts (no INTEGER PRIMARY KEY, at INTEGER NOT NULL, kind TEXT NOT NULL,
        json TEXT NOT NULL)",
    "CREATE TABLE IF NOT EXISTS fact_changes (change TEXT NOT NULL, no INTEGER NOT NULL,
        PRIMARY KEY (change, no)) WITHOUT ROWID",
    "CREATE TABLE IF NOT EXISTS refs (name TEXT PRIMARY KEY, target TEXT NOT NULL, peeled TEXT)
        WITHOUT ROWID",
    "CREATE TABLE IF NOT EXISTS packs (key TEXT PRIMARY KEY, place INTEGER, bytes INTEGER NOT NULL,
        objects INTEGER NOT NULL, idx BLOB, state TEXT NOT NULL, attempt TEXT, lane TEXT, train INTEGER,
        at INTEGER NOT NULL)",
    "CREATE INDEX IF NOT EXISTS packs_place ON packs (place) WHERE place IS NOT NULL",
    "CREATE INDEX IF NOT EXISTS packs_state ON packs (state, at) WHERE state <> 'live'",
    "CREATE TABLE IF NOT EXISTS commits (no INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE,
        tree TEXT NOT NULL, parents TEXT NOT NULL, seconds INTEGER NOT NULL,
        generation INTEGER NOT NULL, ever INTEGER NOT NULL DEFAULT 0)",
    "CREATE TABLE IF NOT EXISTS submissions (seq INTEGER PRIMARY KEY, change TEXT NOT NULL,
        version INTEGER NOT NULL, fact INTEGER NOT NULL, UNIQUE (change, version))",
    "CREATE TABLE IF NOT EXISTS version_commits (id TEXT NOT NULL, change TEXT NOT NULL,
        version INTEGER NOT NULL, PRIMARY KEY (id, change, version)) WITHOUT ROWID",
    "CREATE TABLE IF NOT EXISTS paths (fork TEXT NOT NULL, path TEXT NOT NULL, change TEXT NOT NULL,
        PRIMARY KEY (fork, path, change)) WITHOUT ROWID",
    "CREATE INDEX IF NOT EXISTS paths_change ON paths (change)",
    "CREATE TABLE IF NOT EXISTS changes (change TEXT PRIMARY KEY, state TEXT NOT NULL,
        upto INTEGER NOT NULL) WITHOUT ROWID",
    "CREATE TABLE IF NOT EXISTS landings (id TEXT PRIMARY KEY, change TEXT NOT NULL,
        version INTEGER NOT NULL) WITHOUT ROWID",
    "CREATE TABLE IF NOT EXISTS steps (tip TEXT PRIMARY KEY, json TEXT NOT NULL) WITHOUT ROWID",
    "CREATE TABLE IF NOT EXISTS claims (fence INTEGER PRIMARY KEY, until INTEGER NOT NULL,
        ended INTEGER NOT NULL, json TEXT NOT NULL)",
    "CREATE INDEX IF NOT EXISTS claims_until ON claims (until) WHERE ended = 0",
    "CREATE TABLE IF NOT EXISTS lanes (lane TEXT PRIMARY KEY, epoch INTEGER NOT NULL) WITHOUT ROWID",
    "CREATE TABLE IF NOT EXISTS answers (kind TEXT NOT NULL, key TEXT NOT NULL, json TEXT NOT NULL,
        PRIMARY KEY (kind, key)) WITHOUT ROWID",
    "CREATE TABLE IF NOT EXISTS contents (id TEXT NOT NULL, bytes BLOB NOT NULL, change TEXT NOT NULL,
        PRIMARY KEY (id, change)) WITHOUT ROWID",
    "CREATE INDEX IF NOT EXISTS contents_change ON contents (change)",
    "CREATE TABLE IF NOT EXISTS candidates (attempt TEXT PRIMARY KEY, tip TEXT NOT NULL,
        commits TEXT NOT NULL, at INTEGER NOT NULL) WITHOUT ROWID",
    "CREATE TABLE IF NOT EXISTS revoked (token TEXT PRIMARY KEY) WITHOUT ROWID",
];

const HEADS: &[&str] = &[
    "CREATE TABLE IF NOT EXISTS heads (no INTEGER PRIMARY KEY, change TEXT NOT NULL, version INTEGER NOT NULL,
        id TEXT NOT NULL, bytes BLOB NOT NULL, ended INTEGER)",
    // Listing the refs reads this index alone, not the commits.
    "CREATE UNIQUE INDEX IF NOT EXISTS heads_name ON heads (change, version)",
    "CREATE INDEX IF NOT EXISTS heads_id ON heads (id, change, version)",
    "CREATE INDEX IF NOT EXISTS heads_ended ON heads (ended) WHERE ended IS NOT NULL",
];

/// Makes or completes the tables.
///
/// # Errors
/// [`SqlFault`].
pub(crate) fn prepare(sql: &impl Sql) -> Result<(), SqlFault> {
    migrate(sql, "repository", &[FIRST, HEADS])
}

/// Everything of which there is one: a single row of `meta`, written last in every block.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Scalars {
    pub repo: Option<RepoName>,
    pub fork: Option<ForkName>,
    /// The key that it was made under.
    pub made_by: Option<IdempotencyKey>,
    pub default_branch: Option<RefName>,
    pub main: Option<ObjectId>,
    pub epoch: Epoch,
    pub notes: Option<ObjectId>,
    pub policy: Policy,
    pub frozen: Option<String>,
    pub protected: bool,
    pub turns: Turns,
    /// Rows of the submissions log.
    pub rows: u64,
    /// The largest fencing number given.
    pub fence: Fence,
    /// The last fact that the tables contain.
    pub folded: FactNo,
    /// Moves when a pack leaves the catalogue.
    pub generation: u64,
    /// The last place given in the catalogue.
    pub place: u64,
    pub tip_tested: bool,
}

impl Scalars {
    /// Reads the row; the default in an object that was never made.
    pub(crate) fn read(sql: &impl Sql) -> Result<Self, SqlFault> {
        let rows = sql.run("SELECT value FROM meta WHERE key = 'scalars'", &[])?;
        rows.first().map_or_else(|| Ok(Self::default()), |row| row.json(0))
    }

    pub(crate) fn write(&self, sql: &impl Sql) -> Result<(), SqlFault> {
        let json = serde_json::to_string(self).map_err(|fault| SqlFault(fault.to_string()))?;
        sql.run(
            "INSERT INTO meta (key, value) VALUES ('scalars', ?1)
             ON CONFLICT (key) DO UPDATE SET value = excluded.value",
            &[json.into()],
        )?;
        Ok(())
    }
}

/// A change's state as its row keeps it.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct StateRow {
    landed: Option<Standing>,
    rewritten: Option<Standing>,
    closed: Option<(yard_common::fact::Terminal, Version)>,
    hold: Option<String>,
    approved: Option<Version>,
    owner: Option<(LaneName, OwnerEpoch)>,
}

impl From<&ChangeState> for StateRow {
    fn from(state: &ChangeState) -> Self {
        Self {
            landed: state.landed.clone(),
            rewritten: state.rewritten.clone(),
            closed: state.closed.as_ref().map(|closed| (closed.stage, closed.version)),
            hold: state.hold.clone(),
            approved: state.approved,
            owner: state.owner.clone(),
        }
    }
}

impl From<StateRow> for ChangeState {
    fn from(row: StateRow) -> Self {
        Self {
            landed: row.landed,
            rewritten: row.rewritten,
            closed: row.closed.map(|(stage, version)| Closed { stage, version }),
            hold: row.hold,
            approved: row.approved,
            owner: row.owner,
        }
    }
}

/// The changes that a fact is about, for [`yard_wire::repository::Facts`] of one change.
pub(crate) fn changes_of(fact: &yard_common::Fact) -> Vec<ChangeId> {
    use yard_common::Fact;
    match fact {
        Fact::Submitted { row, .. } => vec![row.change.clone()],
        Fact::Landed { request, .. } => request.changes.iter().map(|listed| listed.change.clone()).collect(),
        Fact::DirectPush { rewritten, restored, .. } => rewritten.iter().chain(restored).cloned().collect(),
        Fact::Closed { change, .. }
        | Fact::HoldSet { change, .. }
        | Fact::Requeued { change, .. }
        | Fact::Approved { change, .. }
        | Fact::OwnerSet { change, .. } => vec![change.clone()],
        _ => Vec::new(),
    }
}
