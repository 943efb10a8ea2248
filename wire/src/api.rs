//! The public JSON API, under `/api`: bodies of requests and replies.
//!
//! | method and path | body | reply | scope |
//! |---|---|---|---|
//! | `POST /api/repos` | [`NewRepo`] | [`RepoReply`] | platform admin |
//! | `GET /api/repos` | | `Vec<RepoEntry>` | platform admin |
//! | `GET /api/repos/{repo}` | | [`StatusReply`] | read |
//! | `POST /api/repos/{repo}/forks` | [`NewFork`] | [`ForkReply`] | submit or admin |
//! | `POST /api/repos/{repo}/tokens` | [`NewToken`] | [`TokenReply`] | admin |
//! | `DELETE /api/repos/{repo}/tokens/{id or whole token}` | | `{ "id" }` | admin |
//! | `POST /api/repos/{repo}/changes` | [`SubmitChanges`] | [`SubmitReply`] | submit |
//! | `GET /api/repos/{repo}/changes?before=&limit=` | | `Vec<ChangeStatus>` | read |
//! | `GET /api/repos/{repo}/changes/{change}` | | [`ChangeDetail`] | read |
//! | `GET /api/repos/{repo}/changes/{change}/diff?version=` | | [`ChangeDiff`] | read |
//! | `POST /api/repos/{repo}/changes/{change}/{cancel,hold,release,requeue}` | [`Reason`] | `{}` | submit: own |
//! | `POST /api/repos/{repo}/changes/{change}/approve` | [`Approval`] | `{}` | admin |
//! | `GET /api/metrics` | | counts by name | platform admin |
//! | `POST /api/repos/{repo}/{freeze,thaw,protect,unprotect}` | [`Reason`] | `{}` | admin |
//! | `POST /api/repos/{repo}/rebuild-index` | `{}` | [`IndexReply`]: repeat while `clearing` | admin |
//! | `GET /api/repos/{repo}/rebuild-index` | | [`IndexReply`] | read |
//! | `POST /api/repos/{repo}/claims` | [`NewClaim`] | [`ClaimReply`] | submit |
//! | `DELETE /api/repos/{repo}/claims/{fence}` | | `{}` | submit |
//! | `GET /api/repos/{repo}/landings?after=&limit=` | | `Vec<(FactNo, Millis, Fact)>` | read |
//! | `GET /api/repos/{repo}/log?FILTERS` | | `Vec<Record>`, newest first (from D1) | read |
//! | `GET /api/repos/{repo}/timeline?FILTERS` | | `Vec<TimelineEvent>`, newest first (from D1) | read |
//! | `POST /api/repos/{repo}/lanes/{lane}/{lease,renew,report}` | `wire::lane` types | theirs | run |
//! | `GET /api/repos/{repo}/lanes/{lane}` | | `wire::lane::StatusReply` | read |
//! | `GET /api/repos/{repo}/runs/{run}/log` | | [`RunLog`]; `?from=` goes on at its `next` | read |
//! | `GET /api/repos/{repo}/events?after=&last=` | WebSocket, or SSE, or JSON | | read |
//! | `GET /healthz`, `/openapi.json` | | | none |
//!
//! `{change}` and `{run}` may be cut short while nothing else begins with them: else "ambiguous: ...".
//! Acts on a change answer with its whole id. A repository or fork is made once: the same key gets the same
//! answer, any other 409.
//!
//! Filters of the log: `agent`, `path` (that file, or all below that directory), `task` and `text` (somewhere in
//! it, capitals alike), `verdict` (one that the change ever got), `since`, `until` (milliseconds), `before`
//! (a cursor), `limit`. Of the timeline: `agent`, `path`, `change`, `kind`, `since`, `until`, `before`, `limit`.
//!
//! Every POST takes an `Idempotency-Key` header. Every error is a [`crate::problem::Problem`].

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use yard_common::bytes::Base64;
use yard_common::fact::Fact;
use yard_common::intent::Intent;
use yard_common::replay::Cost;
use yard_common::submission::{Mode, Submission};
use yard_common::{
    ChangeId, FactNo, Fence, ForkName, LeaseNo, Millis, ObjectId, ReplayNo, RepoName, RepoPath, RunId, TokenId,
    Version,
};

use crate::lane::{EntryView, Stage, Step, Verdict};
use crate::problem::Problem;
use crate::repository::{Accepted, View};
use crate::token::Scope;

/// How far the index (D1) is with the rows of a repository.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct IndexReply {
    /// Rows that this request deleted.
    pub cleared: u64,
    /// There are more to delete: ask again. Only once all are gone are rows sent anew.
    pub clearing: bool,
    /// What each object has sent.
    pub parts: Vec<IndexPart>,
}

/// One object's part of the index.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct IndexPart {
    /// `repository`, or `lane NAME`.
    pub name: String,
    /// How much of it has gone to the index.
    pub sent: u64,
    /// How much there is.
    pub total: u64,
}

/// Makes a repository.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NewRepo {
    /// Its name.
    pub name: RepoName,
    /// The branch that HEAD names, without `refs/heads/`; `main` when absent.
    #[serde(default)]
    pub default_branch: Option<String>,
}
/// A made repository.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RepoReply {
    /// Its name.
    pub repo: RepoName,
    /// Its remote URL.
    pub url: String,
    /// An admin token for it, good for 90 days.
    pub token: String,
}

/// Makes a fork.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NewFork {
    /// Its name.
    pub name: ForkName,
}
/// A made fork.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ForkReply {
    /// The repository.
    pub repo: RepoName,
    /// The fork.
    pub fork: ForkName,
    /// Its remote URL.
    pub url: String,
    /// A token with read and submit, bound to the fork, good for 30 days.
    pub token: String,
}

/// Makes a token.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NewToken {
    /// What it allows.
    pub scopes: Vec<Scope>,
    /// The fork it is bound to.
    #[serde(default)]
    pub fork: Option<ForkName>,
    /// For how long, in seconds, at most 366 days.
    pub ttl_seconds: u64,
}
/// A made token.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TokenReply {
    /// The token; shown once.
    pub token: String,
    /// Its id.
    pub id: TokenId,
    /// When it ends.
    pub expires: Millis,
}

/// What a run printed, from the place asked for on; it may still run.
///
/// Of a long log the beginning and the end are kept, together 1 MiB; a line says what lies between.
/// The text is as the command wrote it: make it safe before a terminal shows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunLog {
    /// The run.
    pub run: RunId,
    /// The text.
    pub log: String,
    /// Ask with `from` at this place for what comes after.
    #[serde(default)]
    pub next: u64,
    /// The lease that it is written under: with another one the log began anew, at 0.
    #[serde(default)]
    pub lease: LeaseNo,
    /// Has the run ended? Then nothing comes after.
    #[serde(default)]
    pub ended: bool,
}

/// One edit of an API submission.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ApiEdit {
    /// The path.
    pub path: RepoPath,
    /// The blob that the author saw at the path in the base commit; absent: there was none.
    #[serde(default)]
    pub base: Option<ObjectId>,
    /// The new content as text. With neither `content` nor `content_base64` the path is deleted
    /// (or, when `mode` differs, only its mode changes: then `keep` is true).
    #[serde(default)]
    pub content: Option<String>,
    /// The new content as base64.
    #[serde(default)]
    pub content_base64: Option<Base64>,
    /// The new mode; the base's mode, or `100644`, when absent.
    #[serde(default)]
    pub mode: Option<Mode>,
    /// Keep the content: only the mode changes.
    #[serde(default)]
    pub keep: bool,
}
/// One change of an API submission.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ApiChange {
    /// The change, for a new version of it or to choose the id.
    #[serde(default)]
    pub change: Option<ChangeId>,
    /// It is another change although it overlaps with an open one of the fork.
    #[serde(default)]
    pub new_change: bool,
    /// The commit that the author worked on; main when absent.
    #[serde(default)]
    pub base: Option<ObjectId>,
    /// The edits; never empty.
    pub edits: Vec<ApiEdit>,
    /// What was asked.
    pub intent: Intent,
    /// `Name <email>`; the fork's name at `agents.invalid` when absent.
    #[serde(default)]
    pub author: Option<String>,
    /// Changes that this one declares to revert.
    #[serde(default)]
    pub reverts: Vec<ChangeId>,
}
impl ApiChange {
    /// A digest of the change as `fork` offers it, in hex: what an idempotency key is bound to.
    #[must_use]
    pub fn digest(&self, fork: Option<&ForkName>) -> String {
        let mut digest = Sha256::new();
        digest.update(fork.map_or("", ForkName::as_str));
        digest.update("\n");
        digest.update(serde_json::to_vec(self).unwrap_or_default());
        yard_common::hex(&digest.finalize())
    }
}

/// Offers changes; each stands alone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SubmitChanges {
    /// The fork that offers them; the token's fork when absent.
    #[serde(default)]
    pub fork: Option<ForkName>,
    /// The changes.
    pub changes: Vec<ApiChange>,
}
/// One result a change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SubmitReply {
    /// In the order of the changes: accepted, or the problem.
    pub results: Vec<SubmitResult>,
}
/// What became of one offered change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SubmitResult {
    /// Stored.
    Accepted(Accepted),
    /// Refused; nothing of it is kept.
    Refused(Problem),
}

/// One change with its stage.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangeStatus {
    /// The change.
    pub change: ChangeId,
    /// The newest version.
    pub version: Version,
    /// The fork.
    pub fork: Option<ForkName>,
    /// First line of the intent.
    pub title: String,
    /// The stage, derived from the repository's log and the lane.
    pub stage: Stage,
    /// Why it is not on main; or as what commit it is.
    pub reason: String,
    /// The verdict, where one was reached.
    pub verdict: Option<Verdict>,
    /// Its commit on main.
    pub commit: Option<ObjectId>,
    /// When the newest version was accepted.
    pub at: Millis,
    /// The version that a model redid as this one, where one did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replay_of: Option<Version>,
}
/// What one version of a change does to its paths.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangeDiff {
    /// The change.
    pub change: ChangeId,
    /// The version.
    pub version: Version,
    /// Its paths in order, at most 100.
    pub files: Vec<FileDiff>,
    /// Paths that are left out.
    pub left_out: u64,
}
/// What a version does to one path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileDiff {
    /// The path.
    pub path: RepoPath,
    /// The mode in the base; `None`: it is new.
    pub before: Option<Mode>,
    /// The mode afterwards; `None`: it is deleted.
    pub after: Option<Mode>,
    /// The difference in unified form, without file headers; all of a reply at most 256 KiB.
    pub text: String,
    /// Why the text is not all of it, if it is not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}
/// One change, whole.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangeDetail {
    /// Its status.
    pub status: ChangeStatus,
    /// The newest row: edits, base, intent.
    pub row: Submission,
    /// The lane's entry.
    pub entry: Option<EntryView>,
    /// All facts about it, oldest first: versions, refusals, the landing with its proof.
    pub facts: Vec<(FactNo, Millis, Fact)>,
    /// Its whole story, oldest first: versions, attempts, runs with their results, verdicts, sendings back.
    #[serde(default)]
    pub history: Vec<Step>,
}

/// The state of a repository.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StatusReply {
    /// The repository.
    pub repo: RepoName,
    /// Main and what governs landing.
    pub view: View,
    /// Why its lane waits as a whole, if it does.
    pub waits: Option<String>,
    /// Open changes by stage, with their number.
    pub stages: Vec<(Stage, u64)>,
    /// Open changes, oldest first, at most 500.
    pub open: Vec<ChangeStatus>,
    /// Effects that are still to be done (records on their way to the index): 0 when complete.
    pub outbox: u64,
}

/// A reason in words.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reason {
    /// Why.
    #[serde(default)]
    pub reason: String,
}

/// Lets one version of a change touch `.switchyard.toml`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Approval {
    /// The version that was read.
    pub version: Version,
}

/// Leases paths.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NewClaim {
    /// The paths.
    pub paths: Vec<RepoPath>,
    /// For how long, in seconds, at most 24 h.
    pub ttl_seconds: u64,
}
/// A lease on paths.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClaimReply {
    /// The fencing number.
    pub fence: Fence,
}

/// A green run that proves a landing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProvingRun {
    /// The run.
    pub run: RunId,
    /// The tree that was tested.
    pub tree: ObjectId,
    /// Tests that ran.
    pub ran: u32,
    /// Tests that were skipped.
    pub skipped: u32,
}
/// What proves a landing, in short; the four values of each path are in the landing log.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Proof {
    /// How many paths came about in which way: `theirs`, `same`, `clean merge`, `rule NAME`.
    pub how: BTreeMap<String, u32>,
    /// The runs.
    pub runs: Vec<ProvingRun>,
    /// What of the tip no run has tested, where something is: `paths`, `operations`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub untested: Option<String>,
}
/// How a model redid what landed, in short.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReplaySummary {
    /// The version that was reviewed.
    pub reviewed: Version,
    /// The replay's number in its lane.
    pub replay: ReplayNo,
    /// How the replayed diff differs from the reviewed one.
    pub compared: String,
    /// Lines that differ.
    pub differing_lines: u32,
    /// What it cost.
    pub cost: Cost,
}

/// A landed change as the index (D1) keeps it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// The change.
    pub change: ChangeId,
    /// The version that landed.
    pub version: Version,
    /// Its commit on main.
    pub commit: ObjectId,
    /// The fork.
    pub fork: Option<ForkName>,
    /// The agent.
    pub agent: String,
    /// The model that the agent ran on.
    #[serde(default)]
    pub model: String,
    /// First line of the intent.
    pub title: String,
    /// The task.
    pub task: String,
    /// Lane, train and attempt.
    pub attempt: String,
    /// The paths that it changed, at most 64 kB of them.
    #[serde(default)]
    pub paths: Vec<String>,
    /// What proves it.
    #[serde(default)]
    pub proof: Proof,
    /// How a model redid it, where one did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replay: Option<ReplaySummary>,
    /// The fact that landed it.
    pub fact: FactNo,
    /// Its place in the index, larger is newer: `before=CURSOR` goes on after it.
    pub cursor: u64,
    /// When.
    pub at: Millis,
}

/// Who did what when.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TimelineEvent {
    /// When.
    pub at: Millis,
    /// What: `submitted`, `landed`, `needs-author`, `testing`, `run`, `replaying`, `held`, `claimed`, ...
    pub kind: String,
    /// Who did it; empty where nobody in particular.
    pub who: String,
    /// The lane, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lane: Option<String>,
    /// The changes that it is about.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<ChangeId>,
    /// The attempt, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempt: Option<String>,
    /// The run, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<RunId>,
    /// One sentence.
    pub text: String,
    /// Its place: `before=CURSOR` goes on after it.
    pub cursor: String,
}
