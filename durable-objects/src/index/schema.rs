//! The tables of the index, in one place.
//!
//! All of it can be made anew from the objects. A table whose columns change gets a new name, the old
//! one goes into [`GONE`], and [`GENERATION`] rises: each object then sends its rows again by itself.

use super::{Index, IndexFault};

/// Tables of older forms.
const GONE: &[&str] = &["DROP TABLE IF EXISTS records"];

/// The form of the tables. Objects keep how far they have sent under this number.
pub(crate) const GENERATION: u64 = 2;

/// A table: its columns besides `repo`, and which of them are its key.
#[derive(Debug)]
pub struct Table {
    /// Its name.
    pub name: &'static str,
    key: &'static [&'static str],
    columns: &'static [(&'static str, &'static str)],
}

/// One accepted version of a change, with its intent.
pub(super) const VERSIONS: Table = Table {
    name: "versions",
    key: &["change", "version"],
    columns: &[
        ("change", "TEXT NOT NULL"),
        ("version", "INTEGER NOT NULL"),
        ("seq", "INTEGER NOT NULL"),
        ("at", "INTEGER NOT NULL"),
        ("fork", "TEXT"),
        ("agent", "TEXT NOT NULL"),
        ("model", "TEXT NOT NULL"),
        ("title", "TEXT NOT NULL"),
        ("task", "TEXT NOT NULL"),
        ("intent", "TEXT NOT NULL"),
        ("lane", "TEXT NOT NULL"),
        ("via", "TEXT NOT NULL"),
        ("head", "TEXT NOT NULL"),
        ("paths", "TEXT NOT NULL"),
        ("replay_of", "INTEGER"),
    ],
};

/// One landed change, with the summary of its proof.
pub(super) const RECORDS: Table = Table {
    name: "landed",
    key: &["change"],
    columns: &[
        ("change", "TEXT NOT NULL"),
        ("version", "INTEGER NOT NULL"),
        ("commit_id", "TEXT NOT NULL"),
        ("fork", "TEXT"),
        ("agent", "TEXT NOT NULL"),
        ("model", "TEXT NOT NULL"),
        ("title", "TEXT NOT NULL"),
        ("task", "TEXT NOT NULL"),
        ("intent", "TEXT NOT NULL"),
        ("lane", "TEXT NOT NULL"),
        ("attempt", "TEXT NOT NULL"),
        ("paths", "TEXT NOT NULL"),
        ("proof", "TEXT NOT NULL"),
        ("replay", "TEXT"),
        ("seq", "INTEGER NOT NULL"),
        ("place", "INTEGER NOT NULL"),
        ("at", "INTEGER NOT NULL"),
    ],
};

/// One run of a test command.
pub(super) const RUNS: Table = Table {
    name: "runs",
    key: &["lane", "run"],
    columns: &[
        ("lane", "TEXT NOT NULL"),
        ("run", "TEXT NOT NULL"),
        ("seq", "INTEGER NOT NULL"),
        ("at", "INTEGER NOT NULL"),
        ("ended", "INTEGER"),
        ("train", "INTEGER NOT NULL"),
        ("purpose", "TEXT NOT NULL"),
        ("commit_id", "TEXT NOT NULL"),
        ("tree", "TEXT NOT NULL"),
        ("changes", "TEXT NOT NULL"),
        ("runner", "TEXT"),
        ("result", "TEXT NOT NULL"),
        ("ran", "INTEGER NOT NULL"),
        ("skipped", "INTEGER NOT NULL"),
        ("failed", "TEXT NOT NULL"),
    ],
};

/// One verdict on a change.
pub(super) const VERDICTS: Table = Table {
    name: "verdicts",
    key: &["lane", "seq"],
    columns: &[
        ("lane", "TEXT NOT NULL"),
        ("seq", "INTEGER NOT NULL"),
        ("at", "INTEGER NOT NULL"),
        ("change", "TEXT NOT NULL"),
        ("version", "INTEGER NOT NULL"),
        ("verdict", "TEXT NOT NULL"),
        ("detail", "TEXT NOT NULL"),
        ("runs", "TEXT NOT NULL"),
    ],
};

/// One replay by a model, with its cost.
pub(super) const REPLAYS: Table = Table {
    name: "replays",
    key: &["lane", "replay"],
    columns: &[
        ("lane", "TEXT NOT NULL"),
        ("replay", "INTEGER NOT NULL"),
        ("seq", "INTEGER NOT NULL"),
        ("at", "INTEGER NOT NULL"),
        ("ended", "INTEGER"),
        ("change", "TEXT NOT NULL"),
        ("version", "INTEGER NOT NULL"),
        ("cause", "TEXT NOT NULL"),
        ("early", "INTEGER NOT NULL"),
        ("outcome", "TEXT NOT NULL"),
        ("made", "INTEGER"),
        ("why", "TEXT NOT NULL"),
        ("model", "TEXT NOT NULL"),
        ("tokens_in", "INTEGER NOT NULL"),
        ("tokens_out", "INTEGER NOT NULL"),
        ("micro_usd", "INTEGER NOT NULL"),
        ("calls", "INTEGER NOT NULL"),
    ],
};

/// Who did what when: one row an event.
pub(super) const TIMELINE: Table = Table {
    name: "timeline",
    key: &["source", "seq"],
    columns: &[
        ("source", "TEXT NOT NULL"),
        ("seq", "INTEGER NOT NULL"),
        ("at", "INTEGER NOT NULL"),
        ("kind", "TEXT NOT NULL"),
        ("who", "TEXT NOT NULL"),
        ("lane", "TEXT"),
        ("changes", "TEXT NOT NULL"),
        ("attempt", "TEXT"),
        ("run", "TEXT"),
        ("text", "TEXT NOT NULL"),
    ],
};

/// All tables.
pub const TABLES: &[Table] = &[VERSIONS, RECORDS, RUNS, VERDICTS, REPLAYS, TIMELINE];

/// What the searches go by, and the costs a change: sums over its replays.
const BESIDES: &[&str] = &[
    "CREATE INDEX IF NOT EXISTS landed_place ON landed (repo, seq, place)",
    "CREATE INDEX IF NOT EXISTS landed_at ON landed (repo, at)",
    "CREATE INDEX IF NOT EXISTS versions_agent ON versions (repo, agent)",
    "CREATE INDEX IF NOT EXISTS verdicts_change ON verdicts (repo, change)",
    "CREATE INDEX IF NOT EXISTS replays_change ON replays (repo, change)",
    "CREATE INDEX IF NOT EXISTS timeline_at ON timeline (repo, at, source, seq)",
    "CREATE VIEW IF NOT EXISTS costs AS SELECT repo, change, count(*) AS replays, sum(calls) AS calls,
       sum(tokens_in) AS tokens_in, sum(tokens_out) AS tokens_out, sum(micro_usd) AS micro_usd
     FROM replays GROUP BY repo, change",
];

impl Table {
    fn create(&self) -> String {
        let columns: Vec<String> = self.columns.iter().map(|(name, of)| format!("{name} {of}")).collect();
        format!(
            "CREATE TABLE IF NOT EXISTS {} (repo TEXT NOT NULL, {}, PRIMARY KEY (repo, {}))",
            self.name,
            columns.join(", "),
            self.key.join(", ")
        )
    }

    /// The statement that writes the rows of the JSON array `?1` into the repository `?2`.
    #[must_use]
    pub fn put(&self) -> String {
        let names: Vec<&str> = self.columns.iter().map(|(name, _)| *name).collect();
        let read: Vec<String> = names.iter().map(|name| format!("json_extract(value, '$.{name}')")).collect();
        let rest = names.iter().filter(|name| !self.key.contains(name));
        let set: Vec<String> = rest.map(|name| format!("{name} = excluded.{name}")).collect();
        format!(
            "INSERT INTO {0} (repo, {1}) SELECT ?2, {2} FROM json_each(?1) WHERE true
             ON CONFLICT (repo, {3}) DO UPDATE SET {4} WHERE excluded.seq > {0}.seq",
            self.name,
            names.join(", "),
            read.join(", "),
            self.key.join(", "),
            set.join(", ")
        )
    }

    /// All rows in the order of their keys, as text: for comparing.
    #[must_use]
    pub fn dump(&self) -> String {
        let names: Vec<&str> = self.columns.iter().map(|(name, _)| *name).collect();
        format!("SELECT repo, {} FROM {} ORDER BY repo, {}", names.join(", "), self.name, self.key.join(", "))
    }
}

/// Makes the tables that are not there. Every statement may be repeated, and run beside another writer's.
///
/// # Errors
/// [`IndexFault`]: some may be made.
pub(super) async fn prepare(index: &impl Index) -> Result<(), IndexFault> {
    for statement in GONE {
        index.run(statement, &[]).await?;
    }
    for table in TABLES {
        index.run(&table.create(), &[]).await?;
    }
    for statement in BESIDES {
        index.run(statement, &[]).await?;
    }
    Ok(())
}
