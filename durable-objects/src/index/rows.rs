//! The rows of the index, as the objects' outboxes send them.

use serde::{Deserialize, Serialize};

/// Characters of one event's text.
const TEXT_MAX: usize = 2_000;
/// Bytes of the paths that are kept of one version: the first ones, of about 2,000.
const PATHS_BYTES_MAX: usize = 64 * 1024;

/// Rows of all tables.
#[derive(Debug, Default)]
#[allow(missing_docs, reason = "each is a table")]
pub struct Bundle {
    pub versions: Vec<VersionRow>,
    pub records: Vec<RecordRow>,
    pub runs: Vec<RunRow>,
    pub verdicts: Vec<VerdictRow>,
    pub replays: Vec<ReplayRow>,
    pub timeline: Vec<TimelineRow>,
}

/// One accepted version of a change, with its intent.
#[derive(Debug, Clone, Serialize)]
#[allow(missing_docs, reason = "each is a column")]
pub struct VersionRow {
    pub change: String,
    pub version: u64,
    pub seq: u64,
    pub at: u64,
    pub fork: Option<String>,
    pub agent: String,
    pub model: String,
    pub title: String,
    pub task: String,
    pub intent: String,
    pub lane: String,
    pub via: String,
    pub head: String,
    pub paths: String,
    pub replay_of: Option<u64>,
}

/// One landed change, with the summary of its proof.
#[derive(Debug, Clone, Serialize)]
#[allow(missing_docs, reason = "each is a column")]
pub struct RecordRow {
    pub change: String,
    pub version: u64,
    pub commit_id: String,
    pub fork: Option<String>,
    pub agent: String,
    pub model: String,
    pub title: String,
    pub task: String,
    pub intent: String,
    pub lane: String,
    pub attempt: String,
    pub paths: String,
    pub proof: String,
    pub replay: Option<String>,
    pub seq: u64,
    pub place: usize,
    pub at: u64,
}

/// One run of a test command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs, reason = "each is a column")]
pub struct RunRow {
    pub lane: String,
    pub run: String,
    pub seq: u64,
    pub at: u64,
    pub ended: Option<u64>,
    pub train: u64,
    pub purpose: String,
    pub commit_id: String,
    pub tree: String,
    pub changes: String,
    pub runner: Option<String>,
    /// `open`, `running`, `green`, `red`, `incomplete`.
    pub result: String,
    pub ran: u32,
    pub skipped: u32,
    /// Names of failed tests, one a line.
    pub failed: String,
}

/// One verdict on a change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs, reason = "each is a column")]
pub struct VerdictRow {
    pub lane: String,
    pub seq: u64,
    pub at: u64,
    pub change: String,
    pub version: u64,
    pub verdict: String,
    pub detail: String,
    pub runs: String,
}

/// One replay by a model, with its cost.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs, reason = "each is a column")]
pub struct ReplayRow {
    pub lane: String,
    pub replay: u64,
    pub seq: u64,
    pub at: u64,
    pub ended: Option<u64>,
    pub change: String,
    pub version: u64,
    pub cause: String,
    pub early: u8,
    /// `asked`, `proposed`, `prepared`, `failed`.
    pub outcome: String,
    pub made: Option<u64>,
    pub why: String,
    pub model: String,
    pub tokens_in: u64,
    pub tokens_out: u64,
    pub micro_usd: u64,
    pub calls: u32,
}

/// Who did what when.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs, reason = "each is a column")]
pub struct TimelineRow {
    pub source: String,
    pub seq: u64,
    pub at: u64,
    pub kind: String,
    pub who: String,
    pub lane: Option<String>,
    /// The changes that it is about, one a line between line feeds.
    pub changes: String,
    pub attempt: Option<String>,
    pub run: Option<String>,
    pub text: String,
}

impl TimelineRow {
    /// An event of a source, about no change.
    #[must_use]
    pub fn new(source: &str, seq: u64, at: u64, kind: &str, text: &str) -> Self {
        Self {
            source: source.to_owned(),
            seq,
            at,
            kind: kind.to_owned(),
            who: String::new(),
            lane: None,
            changes: String::new(),
            attempt: None,
            run: None,
            text: text.chars().take(TEXT_MAX).collect(),
        }
    }

    /// The same, done by somebody.
    #[must_use]
    pub fn by(mut self, who: impl Into<String>) -> Self {
        self.who = who.into();
        self
    }

    /// The same, about these changes.
    #[must_use]
    pub fn about<T: ToString>(mut self, changes: impl IntoIterator<Item = T>) -> Self {
        self.changes = lines(changes);
        self
    }
}

/// Each on a line of its own, with a line feed before and behind; empty for none.
#[must_use]
pub fn lines<T: ToString>(items: impl IntoIterator<Item = T>) -> String {
    let mut out = String::new();
    for item in items {
        let item = item.to_string();
        if out.is_empty() {
            out.push('\n');
        }
        if out.len() + item.len() > PATHS_BYTES_MAX {
            break;
        }
        out.push_str(&item);
        out.push('\n');
    }
    out
}
