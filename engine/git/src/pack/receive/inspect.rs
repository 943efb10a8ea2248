//! What is learnt from an object's bytes: strict checks, references, commits, tags.

use yard_common::ObjectId;

use super::super::PackError;
use crate::commit::{self, CommitLinks, Tag};
use crate::error::Malformed;
use crate::object::Kind;
use crate::special::{Special, WARNINGS_MAX};
use crate::tree::{self, TreeEntry, TreeMode};
use yard_common::submission::Mode;

/// References are sorted and freed of doubles when they have doubled, and at least this many are new.
const COMPACT_MIN: usize = 1 << 16;

/// What the objects looked at so far have told.
#[derive(Debug, Default)]
pub(super) struct Inspected {
    pub commits: Vec<(ObjectId, CommitLinks)>,
    pub tags: Vec<(ObjectId, ObjectId, Kind)>,
    /// What stands under the name of a file whose contents git checks.
    files: Vec<(ObjectId, Special)>,
    /// Names of special files that are links, for warnings.
    pub links: Vec<String>,
    references: Vec<(ObjectId, Kind)>,
    compacted: usize,
}

impl Inspected {
    /// Checks an object strictly and notes what it refers to.
    pub(super) fn inspect(&mut self, id: ObjectId, kind: Kind, data: &[u8]) -> Result<(), PackError> {
        let fault = |fault: Malformed| PackError::Object { id, why: fault.why };
        match kind {
            Kind::Blob => return Ok(()),
            Kind::Tree => {
                tree::check(data).map_err(fault)?;
                for entry in tree::entries(data) {
                    let entry = entry.map_err(fault)?;
                    match entry.mode {
                        TreeMode::Tree => self.references.push((entry.id, Kind::Tree)),
                        // A submodule's commit lives in another repository.
                        TreeMode::Leaf(Mode::Gitlink) => {}
                        TreeMode::Leaf(_) => self.references.push((entry.id, Kind::Blob)),
                    }
                    self.note_special(&entry);
                }
            }
            Kind::Commit => {
                commit::check(data).map_err(fault)?;
                let links = commit::links(data).map_err(fault)?;
                self.references.push((links.tree, Kind::Tree));
                self.references.extend(links.parents.iter().map(|parent| (*parent, Kind::Commit)));
                self.commits.push((id, links));
            }
            Kind::Tag => {
                commit::check_tag(data).map_err(fault)?;
                let tag = Tag::parse(data).map_err(fault)?;
                self.references.push((tag.target, tag.kind));
                self.tags.push((id, tag.target, tag.kind));
            }
        }
        if self.references.len() > self.compacted * 2 + COMPACT_MIN {
            self.compact();
        }
        Ok(())
    }

    fn note_special(&mut self, entry: &TreeEntry<'_>) {
        let special = Special::of(entry.name);
        if special.entry_fault(entry.mode).is_some() {
            if self.links.len() < WARNINGS_MAX {
                self.links.push(String::from_utf8_lossy(entry.name).into_owned());
            }
        } else if !special.checked().is_none() {
            self.files.push((entry.id, special.checked()));
        }
    }

    /// The files whose contents git checks, sorted, none twice.
    pub(super) fn take_files(&mut self) -> Vec<(ObjectId, Special)> {
        let mut files = std::mem::take(&mut self.files);
        files.sort_unstable();
        files.dedup();
        files
    }

    fn compact(&mut self) {
        self.files.sort_unstable();
        self.files.dedup();
        self.references.sort_unstable();
        self.references.dedup();
        self.compacted = self.references.len();
    }

    /// The references, sorted, none twice.
    pub(super) fn references(&mut self) -> &[(ObjectId, Kind)] {
        self.compact();
        &self.references
    }
}
