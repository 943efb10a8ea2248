//! The one attribute that a merge asks for: `merge`, from the `.gitattributes` of ours.

use std::path::PathBuf;

use gix_attributes::search::{MetadataCollection, Outcome};
use gix_attributes::{Search, StateRef};
use yard_common::submission::Mode;
use yard_common::{ObjectId, RepoPath};
use yard_git::{Objects, ReadError};

use crate::changes::Wanted;
use crate::lookup::Lookup;

/// How `.gitattributes` wants a path merged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Driver {
    /// As text: nothing said, `merge`, `merge=text`, or a driver that is not known here.
    Text,
    /// Never: `-merge`, `merge=binary`, `binary`.
    Binary,
    /// `merge=union`, which keeps both sides' lines and loses deletions.
    Union,
}

/// The blobs of all `.gitattributes` that reach `path`, the root's first; missing trees are noted.
pub(crate) fn files(
    ours: &dyn Lookup,
    path: &RepoPath,
    wanted: &mut Wanted,
) -> Result<Vec<(RepoPath, ObjectId)>, ReadError> {
    let mut directories: Vec<Vec<u8>> =
        std::iter::successors(path.parent(), RepoPath::parent).map(|dir| dir.as_bytes().to_vec()).collect();
    directories.push(Vec::new());
    let mut found = Vec::new();
    for mut name in directories.into_iter().rev() {
        if !name.is_empty() {
            name.push(b'/');
        }
        name.extend_from_slice(b".gitattributes");
        let Ok(file) = RepoPath::new(name) else { continue };
        // git follows no symbolic link here.
        if let Some(entry) = wanted.take(ours.at(&file))?.and_then(|at| at.entry())
            && matches!(entry.mode, Mode::File | Mode::Executable)
        {
            found.push((file, entry.id));
        }
    }
    Ok(found)
}

/// What the given `.gitattributes`, all at hand, say about `path`.
pub(crate) fn driver(
    objects: &dyn Objects,
    files: &[(RepoPath, ObjectId)],
    path: &RepoPath,
) -> Result<Driver, String> {
    if files.is_empty() {
        return Ok(Driver::Text);
    }
    let fail = |error: std::io::Error| format!("its attributes cannot be read: {error}");
    let mut collection = MetadataCollection::default();
    let none: [PathBuf; 0] = [];
    // The globals hold the built-in macro `binary`.
    let mut search = Search::new_globals(none, &mut Vec::new(), &mut collection).map_err(fail)?;
    for (file, id) in files {
        let Some(object) = objects.get(id) else { continue };
        let Ok(name) = std::str::from_utf8(file.as_bytes()) else {
            return Err("its attributes lie at a path that is not UTF-8".to_owned());
        };
        let macros = !name.contains('/');
        let root = Some(std::path::Path::new(""));
        search
            .add_patterns_buffer(&object.data, PathBuf::from(name), root, &mut collection, macros)
            .map_err(fail)?;
    }
    let mut outcome = Outcome::default();
    outcome.initialize_with_selection(&collection, ["merge"]);
    let case = gix_attributes::glob::pattern::Case::Sensitive;
    search.pattern_matching_relative_path(path.as_bytes().into(), case, Some(false), &mut outcome);
    let driver = outcome.iter_selected().next().map(|found| match found.assignment.state {
        StateRef::Unset => Driver::Binary,
        StateRef::Value(value) if value.as_bstr() == "binary" => Driver::Binary,
        StateRef::Value(value) if value.as_bstr() == "union" => Driver::Union,
        _ => Driver::Text,
    });
    Ok(driver.unwrap_or(Driver::Text))
}
