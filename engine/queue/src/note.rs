//! The notes of landed changes: what is kept of each beside its commit, on `refs/notes/intent`.
//!
//! One note a commit, at the commit's id fanned out as `ab/cdef...`, which every git reads
//! (`git log --notes=intent`); lines `Key: value`, further lines of a value indented by one space,
//! an empty one as ` .`, so that several notes joined one after another are still read.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

use yard_common::landing::{AttemptId, How, PackRef, SignedRun};
use yard_common::replay::{Cause, Origin};
use yard_common::submission::{CommitNode, Entry, Submission};
use yard_common::{ChangeId, Millis, ObjectId, PackKey, RepoPath, RunId};
use yard_git::editor::EditError;
use yard_git::pack::PackWriter;
use yard_git::pack::write::FinishedPack;
use yard_git::{Commit, Kind, Mode, Object, Objects, ReadError, RunningTree, hash};

use crate::assemble::committer;
use crate::fact::Member;

/// What the notes of one landing are made from.
#[derive(Debug, Clone)]
pub struct Order<'a> {
    /// The attempt.
    pub attempt: AttemptId,
    /// The notes ref and its tree.
    pub notes: Option<(ObjectId, ObjectId)>,
    /// The changes that land, in order, with their rows.
    pub landing: Vec<(&'a Member, &'a Submission)>,
    /// The runs that prove them.
    pub runs: &'a [SignedRun],
    /// What the own tests of replayed changes say without them.
    pub proofs: BTreeMap<ChangeId, String>,
    /// Now: the committer's time.
    pub now: Millis,
}

/// The notes commit and its pack.
#[derive(Debug)]
pub struct Notes {
    /// The commit.
    pub commit: CommitNode,
    /// Its committer's time, seconds since the Unix epoch.
    pub seconds: u64,
    /// The pack.
    pub pack: PackRef,
    /// Its bytes and index.
    pub finished: FinishedPack,
    /// Trees that were made: the lane keeps them for its next landing.
    pub objects: Vec<(ObjectId, Arc<Object>)>,
}

/// Why notes cannot be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NotesError {
    /// Trees are not at hand, or malformed.
    Read(ReadError),
    /// The notes ref is not as the server writes it.
    Odd(String),
}

/// Writes one note for each change.
///
/// # Errors
/// [`NotesError::Read`] with all trees that are missing; the notes tree has a file in the way.
pub fn write(objects: &dyn Objects, order: &Order<'_>, key: PackKey) -> Result<Notes, NotesError> {
    let odd = |why: String| NotesError::Odd(why);
    let root = order.notes.map_or(ObjectId::EMPTY_TREE, |(_, tree)| tree);
    let mut tree = RunningTree::new(root);
    let mut writer = PackWriter::in_memory();
    let mut edits = Vec::with_capacity(order.landing.len());
    for (member, row) in &order.landing {
        let text = text(member, row, order);
        let id = hash(Kind::Blob, text.as_bytes());
        writer.add(id, Kind::Blob, text.as_bytes());
        let path = path(member.commit).map_err(|bad| odd(bad.to_string()))?;
        edits.push((path, Some(Entry { mode: Mode::File, id })));
    }
    let applied = tree.apply(&objects, &edits).map_err(|error| match error {
        EditError::Read(error) => NotesError::Read(error),
        other => odd(other.to_string()),
    })?;
    let mut made = Vec::with_capacity(applied.trees.len());
    for new in applied.trees {
        writer.add(new.id, Kind::Tree, &new.data);
        made.push((new.id, Arc::new(Object { kind: Kind::Tree, data: new.data })));
    }
    let committer = committer(order.now);
    let seconds = committer.seconds;
    let parents: Vec<ObjectId> = order.notes.iter().map(|(commit, _)| *commit).collect();
    let commit = Commit {
        tree: applied.root,
        parents: parents.clone(),
        author: committer.clone(),
        committer,
        headers: Vec::new(),
        message: format!("Notes of train {}\n", order.attempt).into_bytes(),
    };
    let data = commit.encode();
    let id = hash(Kind::Commit, &data);
    writer.add(id, Kind::Commit, &data);
    let finished = writer.finish().map_err(|fault| odd(fault.to_string()))?;
    Ok(Notes {
        commit: CommitNode { id, parents, tree: applied.root },
        seconds,
        pack: PackRef { key, bytes: finished.bytes, objects: finished.objects },
        finished,
        objects: made,
    })
}

/// Where a commit's note stands.
fn path(commit: ObjectId) -> Result<RepoPath, yard_common::BadId> {
    let digits = commit.to_string();
    let (first, rest) = digits.split_at_checked(2).unwrap_or((&digits, ""));
    RepoPath::new(format!("{first}/{rest}"))
}

/// The text of one note.
#[must_use]
pub fn text(member: &Member, row: &Submission, order: &Order<'_>) -> String {
    let mut out = String::with_capacity(600);
    let mut line = |key: &str, value: &str| {
        if value.trim().is_empty() {
            return;
        }
        out.push_str(key);
        out.push_str(": ");
        fold(&mut out, value);
        out.push('\n');
    };
    let intent = &row.intent;
    line("Change-Id", row.change.as_str());
    line("Version", &row.version.to_string());
    line("Fork", row.fork.as_ref().map_or("", |fork| fork.as_str()));
    line("Agent", &intent.agent);
    line("Model", &intent.model);
    line("Task", &intent.task);
    line("Plan", &intent.plan);
    line("Review", &intent.review);
    line("Tests", &intent.tests);
    intent.notes.iter().for_each(|note| line("Note", note));
    intent.co_authors.iter().for_each(|author| line("Co-authored-by", author));
    row.reverts.iter().for_each(|change| line("Reverts", change.as_str()));
    line("Via", via(row));
    if let Some(origin) = &row.replay {
        line("Replay", &replay(origin));
        line("Proof", order.proofs.get(&row.change).map_or("", String::as_str));
        line("Reviewed", &format!("version {}; {}", origin.reviewed, origin.compared));
    }
    line("Submitted", &format!("{} seq {}", row.head, row.seq));
    let bases: Vec<String> = row.base.commits.iter().map(ToString::to_string).collect();
    line("Base", &bases.join(" "));
    line("Train", &order.attempt.to_string());
    for edit in member.edits.iter().filter(|edit| matches!(edit.how, How::Merge | How::Rule(_))) {
        let how = match &edit.how {
            How::Rule(rule) => format!("by rule {rule}"),
            _ => "clean".to_owned(),
        };
        line("Merged", &format!("{} {how}", edit.path));
    }
    for run in order.runs {
        let result = if run.result.proves_green() { "green" } else { "red" };
        line(
            "Run",
            &format!("{} {result} {} tests, tree {}, suite {}", run.run, run.result.ran, run.tree, run.suite),
        );
    }
    row.warnings.iter().for_each(|warning| line("Warning", warning));
    out
}

/// How a model made it: number, version, cause, rivals, model and cost in one line.
fn replay(origin: &Origin) -> String {
    let cause = match &origin.cause {
        Cause::Collision { paths } => {
            let paths: Vec<String> = paths.iter().take(10).map(|(path, _)| path.to_string()).collect();
            format!("collision at {}", paths.join(", "))
        }
        Cause::Interaction { runs, .. } => {
            let runs: Vec<&str> = runs.iter().map(RunId::as_str).collect();
            format!("interaction ({})", runs.join(", "))
        }
    };
    let rivals: Vec<&str> = origin.rivals.iter().map(ChangeId::as_str).collect();
    let with = if rivals.is_empty() { String::new() } else { format!(" with {}", rivals.join(", ")) };
    let cost = &origin.cost;
    let tokens = format!("{} + {} tokens, {} micro-USD", cost.tokens_in, cost.tokens_out, cost.micro_usd);
    let (no, of, prompt) = (origin.no, origin.of, &origin.prompt);
    format!("{no} of version {of} by model {}: {cause}{with}; {tokens}; prompt {prompt}", cost.model)
}

fn via(row: &Submission) -> &'static str {
    match row.via {
        yard_common::submission::Via::Git => "git",
        yard_common::submission::Via::Api => "api",
        yard_common::submission::Via::Replay => "replay",
    }
}

fn fold(out: &mut String, value: &str) {
    for (number, text) in value.trim().lines().enumerate() {
        if number > 0 {
            out.push_str("\n ");
        }
        let text = text.trim_end();
        if number > 0 && (text.is_empty() || text.bytes().all(|byte| byte == b'.')) {
            out.push('.');
        }
        let _ = out.write_str(text);
    }
}
