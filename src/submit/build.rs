//! API submissions: from edits to a head, the same bytes for the same request.

use std::collections::BTreeSet;

use yard_common::bytes::Base64;
use yard_common::intent::Signature;
use yard_common::limits::API_FILE_BYTES_MAX;
use yard_common::submission::{Entry, Mode, RowEdit};
use yard_common::{ForkName, ObjectId, Refusal, RepoPath};
use yard_git::editor::EditError;
use yard_git::special::{self, Special};
use yard_git::tree::{Spot, TreeMode};
use yard_git::{Commit, Kind, Objects, ReadError, RunningTree, hash, message};
use yard_wire::api::{ApiChange, ApiEdit};
use yard_wire::repository::CommitInfo;

use super::offer::check_size;

/// A head that was built.
#[derive(Debug, Clone)]
pub struct Built {
    /// The head commit; its only parent is the base.
    pub commit: CommitInfo,
    /// The head commit, encoded.
    pub encoded: Vec<u8>,
    /// Its author and committer.
    pub author: Signature,
    /// What differs from the base, in path order.
    pub edits: Vec<RowEdit>,
    /// The new blobs.
    pub contents: Vec<(ObjectId, Base64)>,
    /// What the author should know of the files that git reads.
    pub warnings: Vec<String>,
    /// The new trees, for measuring: each with its bytes.
    pub trees: Vec<(ObjectId, Vec<u8>)>,
}

/// Why no head was built.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BuildError {
    /// Objects are missing or malformed.
    Read(ReadError),
    /// The request is wrong.
    Refused(Refusal),
}

impl From<Refusal> for BuildError {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

impl From<ReadError> for BuildError {
    fn from(error: ReadError) -> Self {
        Self::Read(error)
    }
}

fn invalid(why: String) -> Refusal {
    Refusal::Invalid { why }
}

/// Checks what can be checked without the base: sizes, doubled paths, contradictions.
///
/// # Errors
/// [`Refusal::Invalid`], [`Refusal::TooLarge`] or [`Refusal::NoEdits`] that names the path.
pub fn check(change: &ApiChange) -> Result<(), Refusal> {
    if change.edits.is_empty() {
        return Err(Refusal::NoEdits);
    }
    let mut seen = BTreeSet::new();
    for edit in &change.edits {
        let path = &edit.path;
        if !seen.insert(path) {
            return Err(invalid(format!("{path} occurs twice: one edit a path")));
        }
        check_edit(edit)?;
    }
    if change.intent.title.trim().is_empty() {
        return Err(invalid("intent.title is empty: it becomes the first line of the commit".into()));
    }
    if change.intent.title.contains('\n') {
        return Err(invalid("intent.title has several lines: put the rest into intent.body".into()));
    }
    check_size(&change.intent)
}

fn check_edit(edit: &ApiEdit) -> Result<(), Refusal> {
    let path = &edit.path;
    if edit.content.is_some() && edit.content_base64.is_some() {
        return Err(invalid(format!("{path}: send content or content_base64, not both")));
    }
    let has_content = edit.content.is_some() || edit.content_base64.is_some();
    if edit.keep && (has_content || edit.mode.is_none()) {
        return Err(invalid(format!("{path}: keep changes the mode alone: send a mode and no content")));
    }
    if !edit.keep && !has_content && edit.mode.is_some() {
        return Err(invalid(format!("{path}: a mode without content needs keep (a deletion has no mode)")));
    }
    let mut components = path.components();
    components.next_back();
    if components.any(|name| !Special::of(name).checked().is_none()) {
        return Err(invalid(format!("{path}: {}", special::Kind::NoFile.why())));
    }
    if edit.mode == Some(Mode::Gitlink) {
        return Err(invalid(format!("{path}: submodules are changed by git push, not by the API")));
    }
    let size = content(edit).map_or(0, <[u8]>::len);
    if size > API_FILE_BYTES_MAX {
        let what = format!("{path} (push larger files with git)");
        return Err(Refusal::TooLarge { what, size: size as u64, limit: API_FILE_BYTES_MAX as u64 });
    }
    Ok(())
}

fn content(edit: &ApiEdit) -> Option<&[u8]> {
    let text = edit.content.as_deref().map(str::as_bytes);
    text.or(edit.content_base64.as_ref().map(|bytes| bytes.0.as_slice()))
}

/// `Name <email>`, or the fork's name at `agents.invalid`.
///
/// # Errors
/// [`Refusal::Invalid`] when the text has another form.
pub fn author(given: Option<&str>, fork: Option<&ForkName>, seconds: u64) -> Result<Signature, Refusal> {
    let fork = fork.map_or("switchyard", ForkName::as_str);
    let (name, email) = match given {
        None => (fork.to_owned(), format!("{fork}@agents.invalid")),
        Some(text) => {
            let bad = || invalid(format!("author {text:?} is not of the form 'Name <email>'"));
            let (name, rest) = text.split_once('<').ok_or_else(bad)?;
            let email = rest.trim_end().strip_suffix('>').ok_or_else(bad)?;
            let (name, email) = (name.trim(), email.trim());
            if name.is_empty()
                || email.is_empty()
                || text.contains(['\n', '\0'])
                || email.contains(['<', '>'])
            {
                return Err(bad());
            }
            (name.to_owned(), email.to_owned())
        }
    };
    Ok(Signature { name, email, seconds, offset_minutes: 0 })
}

/// Builds the head of a change on its base: one commit, a second after its base.
///
/// `tree` is the base's tree; what is loaded of it stays loaded for the next change.
///
/// # Errors
/// [`ReadError::Missing`] with all trees that are not at hand; else the refusal.
pub fn build(
    objects: &impl Objects,
    base: &CommitInfo,
    tree: &mut RunningTree,
    change: &ApiChange,
    fork: Option<&ForkName>,
) -> Result<Built, BuildError> {
    tree.prefetch(objects, change.edits.iter().map(|edit| &edit.path))?;
    let mut edits = Vec::with_capacity(change.edits.len());
    let (mut contents, mut warnings) = (Vec::new(), Vec::new());
    for edit in &change.edits {
        let (row, blob) = row_of(objects, tree, edit)?;
        if row.base != row.theirs {
            warnings.extend(check_special(objects, &row, edit)?);
            contents.extend(blob);
            edits.push(row);
        }
    }
    warnings.truncate(special::WARNINGS_MAX);
    if edits.is_empty() {
        return Err(Refusal::NoEdits.into());
    }
    edits.sort_unstable_by(|a, b| a.path.cmp(&b.path));
    contents.sort_unstable_by_key(|(id, _)| *id);
    contents.dedup_by_key(|(id, _)| *id);
    let steps: Vec<(RepoPath, Option<Entry>)> =
        edits.iter().map(|row| (row.path.clone(), row.theirs)).collect();
    let applied = tree.clone().apply(objects, &steps).map_err(|error| match error {
        EditError::Read(error) => BuildError::Read(error),
        clash => BuildError::Refused(invalid(clash.to_string())),
    })?;
    let author = author(change.author.as_deref(), fork, base.seconds.saturating_add(1))?;
    let commit = Commit {
        tree: applied.root,
        parents: vec![base.id],
        author: author.clone(),
        committer: author.clone(),
        headers: Vec::new(),
        message: message::write(&change.intent, change.change.as_ref(), &change.reverts).into_bytes(),
    };
    let encoded = commit.encode();
    let commit = CommitInfo {
        id: hash(Kind::Commit, &encoded),
        tree: applied.root,
        parents: commit.parents,
        seconds: author.seconds,
    };
    let trees = applied.trees.into_iter().map(|tree| (tree.id, tree.data)).collect();
    Ok(Built { commit, encoded, author, edits, contents, warnings, trees })
}

/// Checks what stands at a special file's path afterwards as `git fsck --strict` does; gives warnings.
fn check_special(objects: &impl Objects, row: &RowEdit, edit: &ApiEdit) -> Result<Vec<String>, BuildError> {
    let path = &row.path;
    let special = Special::of(path.components().next_back().unwrap_or_default());
    let Some(entry) = row.theirs.filter(|_| !special.is_none()) else { return Ok(Vec::new()) };
    if let Some(kind) = special.entry_fault(TreeMode::Leaf(entry.mode)) {
        let text = format!("{path}: {}", kind.why());
        return if kind.is_error() { Err(invalid(text).into()) } else { Ok(vec![text]) };
    }
    let faults = match content(edit) {
        Some(bytes) => special.faults(bytes),
        None => {
            let missing = || ReadError::Missing(entry.id.into());
            special.faults(&objects.get(&entry.id).ok_or_else(missing)?.data)
        }
    };
    match faults.iter().find(|fault| fault.kind.is_error()) {
        Some(fault) => Err(invalid(format!("{path}, {fault}")).into()),
        None => Ok(faults.iter().map(|fault| format!("{path}, {fault}")).collect()),
    }
}

type NewBlob = Option<(ObjectId, Base64)>;

fn row_of(
    objects: &impl Objects,
    tree: &mut RunningTree,
    edit: &ApiEdit,
) -> Result<(RowEdit, NewBlob), BuildError> {
    let spot = tree.spot(objects, &edit.path)?;
    let there = match &spot {
        Spot::Directory(_) => {
            return Err(invalid(format!("{}: a directory stands there in the base commit", edit.path)).into());
        }
        spot => spot.entry(),
    };
    if there.map(|entry| entry.id) != edit.base {
        let found = there.map(|entry| entry.id);
        return Err(Refusal::BaseMismatch { path: edit.path.clone(), found }.into());
    }
    let (theirs, blob) = match (content(edit), edit.keep, there) {
        (Some(bytes), _, there) => {
            let mode = edit.mode.or(there.map(|entry| entry.mode)).unwrap_or(Mode::File);
            let id = hash(Kind::Blob, bytes);
            (Some(Entry { mode, id }), Some((id, Base64(bytes.to_vec()))))
        }
        (None, true, Some(there)) => {
            (Some(Entry { mode: edit.mode.unwrap_or(there.mode), id: there.id }), None)
        }
        (None, false, Some(_)) => (None, None),
        (None, _, None) => {
            return Err(invalid(format!(
                "{}: there is nothing to delete or keep in the base commit",
                edit.path
            ))
            .into());
        }
    };
    Ok((RowEdit { path: edit.path.clone(), base: there, theirs }, blob))
}

#[cfg(test)]
mod tests;
