//! Trees: parse, encode, look up, and the strict checks of a pushed tree.
//!
//! The format is a list of `mode SP name NUL id`, sorted by name where a directory's name counts
//! as ending in `/` (git's `base_name_compare`).

use std::cmp::Ordering;

use yard_common::submission::{Entry, Mode};
use yard_common::{ObjectId, RepoPath};

use crate::error::{Malformed, Missing, ReadError};
use crate::object::{Kind, Objects};
use crate::special::Special;

/// What an entry of a tree is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TreeMode {
    /// Another tree, `40000`.
    Tree,
    /// Anything else.
    Leaf(Mode),
}

impl TreeMode {
    /// The mode as it is written into a tree.
    #[must_use]
    pub fn as_bytes(self) -> &'static [u8] {
        match self {
            Self::Tree => b"40000",
            Self::Leaf(Mode::File) => b"100644",
            Self::Leaf(Mode::Executable) => b"100755",
            Self::Leaf(Mode::Symlink) => b"120000",
            Self::Leaf(Mode::Gitlink) => b"160000",
        }
    }

    /// The mode that octal digits mean, odd ones as git reads them (`canon_mode`).
    #[must_use]
    pub fn from_digits(digits: &[u8]) -> Option<Self> {
        if digits.is_empty() || digits.len() > 7 {
            return None;
        }
        let bits = digits.iter().try_fold(0u32, |bits, digit| match digit {
            b'0'..=b'7' => Some(bits * 8 + u32::from(digit - b'0')),
            _ => None,
        })?;
        Some(match bits & 0o170_000 {
            0o100_000 if bits & 0o100 != 0 => Self::Leaf(Mode::Executable),
            0o100_000 => Self::Leaf(Mode::File),
            0o120_000 => Self::Leaf(Mode::Symlink),
            0o040_000 => Self::Tree,
            _ => Self::Leaf(Mode::Gitlink),
        })
    }

    /// Is it a tree?
    #[must_use]
    pub fn is_tree(self) -> bool {
        self == Self::Tree
    }
}

/// One entry of a tree, borrowed from its bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TreeEntry<'a> {
    /// The mode as git reads it.
    pub mode: TreeMode,
    /// The mode's digits as they stand in the tree, such as `100664` or `040000`.
    pub digits: &'a [u8],
    /// One path component.
    pub name: &'a [u8],
    /// The tree, blob or commit.
    pub id: ObjectId,
}

impl TreeEntry<'_> {
    /// The entry, unless it is a tree.
    #[must_use]
    pub fn leaf(&self) -> Option<Entry> {
        match self.mode {
            TreeMode::Tree => None,
            TreeMode::Leaf(mode) => Some(Entry { mode, id: self.id }),
        }
    }

    /// Length in the tree's bytes.
    #[must_use]
    pub fn encoded_len(&self) -> usize {
        self.digits.len() + self.name.len() + 22
    }
}

/// The entries of a tree's bytes, first to last; stops after the first fault.
#[derive(Debug, Clone)]
pub struct Entries<'a> {
    rest: &'a [u8],
}

/// Reads the entries of a tree's bytes.
#[must_use]
pub fn entries(data: &[u8]) -> Entries<'_> {
    Entries { rest: data }
}

fn split_entry(data: &[u8]) -> Option<(TreeEntry<'_>, &[u8])> {
    let space = data.iter().take(8).position(|byte| *byte == b' ')?;
    let (digits, rest) = data.split_at_checked(space)?;
    let rest = rest.get(1..)?;
    let nul = rest.iter().position(|byte| *byte == 0)?;
    let (name, rest) = rest.split_at_checked(nul)?;
    let (id, rest) = rest.get(1..)?.split_at_checked(20)?;
    let mode = TreeMode::from_digits(digits)?;
    Some((TreeEntry { mode, digits, name, id: ObjectId::from_bytes(id)? }, rest))
}

impl<'a> Iterator for Entries<'a> {
    type Item = Result<TreeEntry<'a>, Malformed>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let Some((entry, rest)) = split_entry(self.rest) else {
            self.rest = &[];
            return Some(Err(Malformed { why: "a tree entry is cut or has no valid mode" }));
        };
        self.rest = rest;
        Some(Ok(entry))
    }
}

/// All entries of a tree's bytes.
///
/// # Errors
/// [`Malformed`] when an entry is cut or its mode is no octal number.
pub fn parse(data: &[u8]) -> Result<Vec<TreeEntry<'_>>, Malformed> {
    entries(data).collect()
}

/// git's order of the entries of one tree.
#[must_use]
pub fn compare(a: (&[u8], TreeMode), b: (&[u8], TreeMode)) -> Ordering {
    let common = a.0.len().min(b.0.len());
    let (Some((a_start, a_rest)), Some((b_start, b_rest))) =
        (a.0.split_at_checked(common), b.0.split_at_checked(common))
    else {
        return Ordering::Equal;
    };
    let next = |rest: &[u8], mode: TreeMode| match rest.first() {
        Some(byte) => *byte,
        None if mode.is_tree() => b'/',
        None => 0,
    };
    a_start
        .cmp(b_start)
        .then_with(|| next(a_rest, a.1).cmp(&next(b_rest, b.1)))
        .then_with(|| a_rest.len().cmp(&b_rest.len()))
}

/// The bytes of a tree with these entries, in whatever order they come.
///
/// Names are the caller's business: one component each, none twice.
#[must_use]
pub fn encode(entries: &[(TreeMode, &[u8], ObjectId)]) -> Vec<u8> {
    let mut sorted: Vec<_> = entries.iter().collect();
    sorted.sort_by(|a, b| compare((a.1, a.0), (b.1, b.0)));
    let mut data = Vec::with_capacity(entries.iter().map(|entry| entry.1.len() + 28).sum());
    for (mode, name, id) in sorted {
        push_entry(&mut data, mode.as_bytes(), name, id);
    }
    data
}

/// Appends one entry to a tree's bytes.
pub fn push_entry(data: &mut Vec<u8>, digits: &[u8], name: &[u8], id: &ObjectId) {
    data.extend_from_slice(digits);
    data.push(b' ');
    data.extend_from_slice(name);
    data.push(0);
    data.extend_from_slice(id.as_bytes());
}

/// What stands at a path below a tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Spot {
    /// No entry there, no blob at any prefix, no tree at the path.
    Absent,
    /// An entry that is not a tree.
    Entry(Entry),
    /// A tree.
    Directory(ObjectId),
    /// A prefix of the path, of this many bytes, is an entry that is not a tree.
    BelowFile(usize),
}

impl Spot {
    /// The entry, if one stands there.
    #[must_use]
    pub fn entry(&self) -> Option<Entry> {
        match self {
            Self::Entry(entry) => Some(*entry),
            _ => None,
        }
    }
}

/// What stands at `path` below the tree `root`.
///
/// # Errors
/// [`ReadError::Missing`] with the one tree that is not at hand; [`ReadError::Malformed`].
pub fn spot(objects: &impl Objects, root: ObjectId, path: &RepoPath) -> Result<Spot, ReadError> {
    let mut tree = root;
    let mut depth_bytes = 0;
    let mut components = path.components().peekable();
    while let Some(name) = components.next() {
        depth_bytes += name.len();
        let found = read_tree(objects, tree, |data| {
            for entry in entries(data) {
                let entry = entry?;
                if entry.name == name {
                    return Ok(Some((entry.mode, entry.id)));
                }
            }
            Ok(None)
        })?;
        let last = components.peek().is_none();
        match found {
            None => return Ok(Spot::Absent),
            Some((TreeMode::Tree, id)) if last => return Ok(Spot::Directory(id)),
            Some((TreeMode::Tree, id)) => tree = id,
            Some((TreeMode::Leaf(mode), id)) if last => return Ok(Spot::Entry(Entry { mode, id })),
            Some(_) => return Ok(Spot::BelowFile(depth_bytes)),
        }
        depth_bytes += 1;
    }
    Ok(Spot::Absent)
}

/// The entry at `path` below the tree `root`; `None` where there is none (also for a directory).
///
/// # Errors
/// As [`spot`].
pub fn lookup(objects: &impl Objects, root: ObjectId, path: &RepoPath) -> Result<Option<Entry>, ReadError> {
    spot(objects, root, path).map(|spot| spot.entry())
}

/// Runs `read` over the bytes of a tree that is at hand.
///
/// # Errors
/// [`ReadError::Missing`] when it is not, [`ReadError::Malformed`] when it is no tree or `read` says so.
pub fn read_tree<T>(
    objects: &impl Objects,
    id: ObjectId,
    read: impl FnOnce(&[u8]) -> Result<T, Malformed>,
) -> Result<T, ReadError> {
    let object = objects.get(&id).ok_or_else(|| Missing::from(id))?;
    if object.kind != Kind::Tree {
        return Err(ReadError::Malformed { id, why: "it stands where a tree should be" });
    }
    read(&object.data).map_err(|fault| ReadError::malformed(id, fault))
}

/// The checks of a pushed tree: `git fsck --strict` but for zero-padded modes, which old histories have.
///
/// # Errors
/// [`Malformed`] that names the rule: bad mode, bad or double name, wrong order, null id,
/// `.gitmodules` as a symbolic link or in place of a directory.
pub fn check(data: &[u8]) -> Result<(), Malformed> {
    let mut before: Option<TreeEntry<'_>> = None;
    // Files whose name is a prefix of the current one: a directory of the same name may follow
    // after others in between (`a`, `a.b`, `a/`), as git's verify_ordered does it.
    let mut prefixes: Vec<&[u8]> = Vec::new();
    for entry in entries(data) {
        let entry = entry?;
        check_entry(&entry)?;
        if let Some(before) = before {
            if before.name == entry.name {
                return Err(Malformed { why: "contains duplicate file entries" });
            }
            if compare((before.name, before.mode), (entry.name, entry.mode)) != Ordering::Less {
                return Err(Malformed { why: "not properly sorted" });
            }
        }
        while prefixes.last().is_some_and(|prefix| !entry.name.starts_with(prefix)) {
            prefixes.pop();
        }
        if entry.mode.is_tree() {
            if prefixes.last() == Some(&entry.name) {
                return Err(Malformed { why: "contains duplicate file entries" });
            }
        } else {
            prefixes.push(entry.name);
        }
        before = Some(entry);
    }
    Ok(())
}

fn check_entry(entry: &TreeEntry<'_>) -> Result<(), Malformed> {
    let digits = entry.digits.iter().position(|digit| *digit != b'0').and_then(|at| entry.digits.get(at..));
    if !matches!(digits, Some(b"40000" | b"100644" | b"100755" | b"100664" | b"120000" | b"160000")) {
        return Err(Malformed { why: "contains bad file modes" });
    }
    if entry.name.contains(&b'/') {
        return Err(Malformed { why: "contains full pathnames" });
    }
    if let Some(why) = yard_common::path::component_fault(entry.name) {
        return Err(Malformed { why });
    }
    if entry.id.is_zero() {
        return Err(Malformed { why: "contains entries pointing to null sha1" });
    }
    match Special::of(entry.name).entry_fault(entry.mode) {
        Some(kind) if kind.is_error() => Err(Malformed { why: kind.why() }),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests;
