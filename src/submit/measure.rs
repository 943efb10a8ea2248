//! What a head changes against its base, and whether its tree looks like an older main.

use yard_common::submission::RowEdit;
use yard_common::{ObjectId, RepoPath};
use yard_git::diff;
use yard_git::tree;
use yard_git::{Missing, Objects, ReadError};

/// Paths named as taken back, at most.
pub const TAKES_BACK_MAX: usize = 1_000;

/// How a head differs from its base and from older mains.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Measured {
    /// The paths that differ from the base, in path order.
    pub edits: Vec<RowEdit>,
    /// Paths that differ from each older main, counted up to the number of edits.
    pub differs_from_mains: Vec<u32>,
    /// Paths that the head has as the likest older main has them, while its base has them otherwise.
    pub takes_back: Vec<RepoPath>,
}

/// Measures a head's tree whose edits are not known yet.
///
/// # Errors
/// [`ReadError::Missing`] with all trees found missing in one pass.
pub fn measure(
    objects: &impl Objects,
    base: ObjectId,
    head: ObjectId,
    mains_before: &[ObjectId],
) -> Result<Measured, ReadError> {
    let edits = diff::diff(objects, base, head)?;
    against_mains(objects, edits, head, mains_before)
}

/// Measures a head's tree, whose edits are known, against older mains.
///
/// # Errors
/// As [`measure`].
pub fn against_mains(
    objects: &impl Objects,
    edits: Vec<RowEdit>,
    head: ObjectId,
    mains_before: &[ObjectId],
) -> Result<Measured, ReadError> {
    let mut missing = Missing::default();
    let mut differs = Vec::with_capacity(mains_before.len());
    for main in mains_before {
        match diff::count(objects, *main, head, edits.len()) {
            Ok(found) => differs.push(u32::try_from(found).unwrap_or(u32::MAX)),
            Err(ReadError::Missing(more)) => missing.0.extend(more.0),
            Err(error) => return Err(error),
        }
    }
    let differs_from_mains = missing.or(differs)?;
    let likest = differs_from_mains
        .iter()
        .zip(mains_before)
        .filter(|(count, _)| (**count as usize) < edits.len())
        .min_by_key(|(count, _)| **count);
    let mut takes_back = Vec::new();
    let mut missing = Missing::default();
    if let Some((_, main)) = likest {
        for edit in &edits {
            match tree::lookup(objects, *main, &edit.path) {
                Ok(entry) if entry == edit.theirs && takes_back.len() < TAKES_BACK_MAX => {
                    takes_back.push(edit.path.clone());
                }
                Ok(_) => {}
                Err(ReadError::Missing(more)) => missing.0.extend(more.0),
                Err(error) => return Err(error),
            }
        }
    }
    missing.or(Measured { edits, differs_from_mains, takes_back })
}

#[cfg(test)]
mod tests {
    use super::*;
    use yard_common::submission::{Entry, Mode};
    use yard_git::{Kind, MemoryObjects, Overlay, RunningTree};

    fn entry(text: &str, objects: &mut MemoryObjects) -> Entry {
        Entry { mode: Mode::File, id: objects.add(Kind::Blob, text.as_bytes().to_vec()) }
    }

    fn tree_of(objects: &mut MemoryObjects, files: &[(&str, &str)]) -> ObjectId {
        let edits: Vec<_> = files
            .iter()
            .map(|(path, text)| (RepoPath::new(*path).unwrap(), Some(entry(text, objects))))
            .collect();
        let mut tree = RunningTree::new(ObjectId::EMPTY_TREE);
        let overlay = Overlay::new(objects.clone());
        for made in tree.apply(&overlay, &edits).unwrap().trees {
            objects.add(Kind::Tree, made.data);
        }
        tree.id()
    }

    #[test]
    fn a_tree_that_looks_like_an_older_main_is_told_with_the_paths_it_takes_back() {
        let mut objects = MemoryObjects::default();
        let older = tree_of(&mut objects, &[("a", "0"), ("d/b", "0"), ("c", "0")]);
        let before = tree_of(&mut objects, &[("a", "1"), ("d/b", "0"), ("c", "0")]);
        let base = tree_of(&mut objects, &[("a", "1"), ("d/b", "1"), ("c", "0")]);
        let stale = tree_of(&mut objects, &[("a", "0"), ("d/b", "0"), ("c", "9")]);
        let measured = measure(&objects, base, stale, &[before, older]).unwrap();
        assert_eq!(measured.edits.len(), 3);
        assert_eq!(measured.differs_from_mains, [2, 1]);
        let paths: Vec<_> = measured.takes_back.iter().map(RepoPath::to_string).collect();
        assert_eq!(paths, ["a", "d/b"]);
    }

    #[test]
    fn a_fresh_tree_is_no_nearer_to_any_main_than_to_its_base() {
        let mut objects = MemoryObjects::default();
        let before = tree_of(&mut objects, &[("a", "0"), ("b", "0")]);
        let base = tree_of(&mut objects, &[("a", "1"), ("b", "0")]);
        let fresh = tree_of(&mut objects, &[("a", "1"), ("b", "2")]);
        let measured = measure(&objects, base, fresh, &[before]).unwrap();
        assert_eq!((measured.differs_from_mains, measured.takes_back), (vec![1], vec![]));
    }

    #[test]
    fn trees_that_are_not_at_hand_are_asked_for_together() {
        let objects = MemoryObjects::default();
        let (a, b) = (ObjectId([1; 20]), ObjectId([2; 20]));
        match measure(&objects, a, b, &[]) {
            Err(ReadError::Missing(missing)) => assert_eq!(missing.0.len(), 2),
            other => panic!("{other:?}"),
        }
    }
}
