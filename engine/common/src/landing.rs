//! The landing request: what a lane asks the kernel, and what it proves it with.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::edit_list::EditList;
use crate::id::{
    AttemptNo, ChangeId, Epoch, LaneName, LeaseNo, ObjectId, OwnerEpoch, PackKey, RuleName, RunId, SuiteId,
    TokenClaims, TrainNo, Version,
};
use crate::path::RepoPath;
use crate::submission::Entry;

/// How the result of an edit came about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum How {
    /// `ours` = `base`, so `result` = `theirs`.
    Theirs,
    /// `ours` already has what the change wants; `result` = `ours`.
    Same,
    /// A clean three-way merge of content or mode.
    Merge,
    /// An exact rule of this name.
    Rule(RuleName),
}

/// One edit as it was made: the proof that nothing goes back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Edit {
    /// The path on the tree it was put on.
    pub path: RepoPath,
    /// The row's path, where main renamed it meanwhile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<RepoPath>,
    /// The entry in the row's base.
    pub base: Option<Entry>,
    /// The entry on the running tree when the edit was made.
    pub ours: Option<Entry>,
    /// The entry in the submitted version.
    pub theirs: Option<Entry>,
    /// The entry put there.
    pub result: Option<Entry>,
    /// How `result` came about.
    pub how: How,
}

/// One try at one train of one lane: the idempotency key of a landing.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct AttemptId {
    /// The lane.
    pub lane: LaneName,
    /// The train.
    pub train: TrainNo,
    /// The try.
    pub attempt: AttemptNo,
}

impl std::fmt::Display for AttemptId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}/{}", self.lane, self.train, self.attempt)
    }
}

/// A pack as a catalogue names it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PackRef {
    /// Its R2 key; the index, where it is not kept inline, lies at the key plus `.idx`.
    pub key: PackKey,
    /// Its length in bytes, trailer included.
    pub bytes: u64,
    /// How many objects are in it.
    pub objects: u32,
}

/// One change of a landing request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LandChange {
    /// The change.
    pub change: ChangeId,
    /// Its version.
    pub version: Version,
    /// Its commit in the candidate.
    pub commit: ObjectId,
    /// Its edits, each made on the tree of the change before it in the train; empty where they are the value of
    /// `list` and that was not read.
    pub edits: Vec<Edit>,
    /// Where the edits are, when they are too many for a fact.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub list: Option<EditList>,
}

/// What a complete run said.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunResult {
    /// Did the command end by itself, within its time, with a readable report?
    pub complete: bool,
    /// Exit status 0 and no failed test.
    pub green: bool,
    /// Tests that ran; 0 is never green.
    pub ran: u32,
    /// Tests that failed or errored, by name, sorted; at most 200 names.
    pub failed: Vec<String>,
    /// Tests that were skipped.
    pub skipped: u32,
}

impl RunResult {
    /// Complete and green with at least one test run: the only result that lands anything.
    #[must_use]
    pub fn proves_green(&self) -> bool {
        self.complete && self.green && self.ran > 0 && self.failed.is_empty()
    }
}

/// A run's result as its runner signed it: mac = HMAC-SHA256(key = the whole token's text, `signed_text`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SignedRun {
    /// The run.
    pub run: RunId,
    /// The lease it was reported under.
    pub lease: LeaseNo,
    /// The tree that was tested.
    pub tree: ObjectId,
    /// Test command, configuration and environment.
    pub suite: SuiteId,
    /// The test command that was run, as the configuration of the tested tree has it.
    pub command: String,
    /// The blob of `.switchyard.toml` in force; `None` where there is none.
    pub config: Option<ObjectId>,
    /// What it said.
    pub result: RunResult,
    /// The public part of the runner's token: with the platform's secret the Repository rebuilds
    /// the whole token from it, and the whole token is the key of the mac.
    pub token: TokenClaims,
    /// 64 hex digits.
    pub mac: String,
}

impl SignedRun {
    /// The text the runner signs: one line a field, in this order, nothing left out.
    ///
    /// No two runs have the same text: in each field a backslash and a line feed are escaped as `\\` and `\n`,
    /// and each failed test is a line of its own after their number.
    #[must_use]
    pub fn signed_text(&self) -> String {
        let result = &self.result;
        let mut fields = vec![
            "switchyard-run-2".to_owned(),
            self.run.to_string(),
            self.lease.to_string(),
            self.tree.to_string(),
            self.suite.to_string(),
            self.command.clone(),
            self.config.map_or_else(|| "-".to_owned(), |id| id.to_string()),
            format!("{} {} {} {}", result.complete, result.green, result.ran, result.skipped),
            result.failed.len().to_string(),
        ];
        fields.extend(result.failed.iter().cloned());
        fields.push(self.token.to_string());
        let line = |field: &String| {
            let field = field.replace('\\', "\\\\").replace('\n', "\\n");
            format!("{field}\n")
        };
        fields.iter().map(line).collect()
    }
}

/// What a lane asks of the kernel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LandRequest {
    /// The idempotency key: lane, train, attempt.
    pub key: AttemptId,
    /// Main's epoch as the lane knows it.
    pub epoch: Epoch,
    /// The lane's owner epoch.
    pub owner_epoch: OwnerEpoch,
    /// Main as the lane expects it: the candidate's first parent.
    pub head: ObjectId,
    /// Main when the candidate was tested; equals `head` under `strict`.
    pub tested_head: ObjectId,
    /// The candidate's last commit.
    pub tip: ObjectId,
    /// The notes ref as the lane expects it; `None` where there is none yet.
    pub notes_head: Option<ObjectId>,
    /// The commit that adds one note for each listed commit.
    pub notes_tip: ObjectId,
    /// The pack with the candidate's new objects.
    pub candidate: PackRef,
    /// The pack with the notes' new objects.
    pub notes: PackRef,
    /// The changes, in landing order; never empty.
    pub changes: Vec<LandChange>,
    /// The runs that prove the candidate's tree green.
    pub runs: Vec<SignedRun>,
}

impl LandRequest {
    /// The request as a fact holds it: without the edits that are values of the bucket.
    #[must_use]
    pub fn without_lists(&self) -> Cow<'_, Self> {
        if self.changes.iter().all(|listed| listed.list.is_none()) {
            return Cow::Borrowed(self);
        }
        let mut request = self.clone();
        for listed in request.changes.iter_mut().filter(|listed| listed.list.is_some()) {
            listed.edits.clear();
        }
        Cow::Owned(request)
    }
}

#[cfg(test)]
mod tests;
