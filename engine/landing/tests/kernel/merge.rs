//! Three-way merges as lanes do them here: by mode, and by line where the number of lines is the same.

use std::collections::BTreeMap;

use yard_common::RepoPath;
use yard_git::Mode;

/// What stands at a path: mode and text.
pub type Text = Option<(Mode, String)>;
/// A whole tree.
pub type Files = BTreeMap<RepoPath, (Mode, String)>;

/// The clean merge of three texts, or `None` when they collide.
pub fn three_way(base: &Text, ours: &Text, theirs: &Text) -> Option<Text> {
    if ours == base {
        return Some(theirs.clone());
    }
    if theirs == base || ours == theirs {
        return Some(ours.clone());
    }
    let (base, ours, theirs) = (base.as_ref()?, ours.as_ref()?, theirs.as_ref()?);
    let mode = pick(&base.0, &ours.0, &theirs.0)?;
    let lines = |text: &'_ str| text.split('\n').map(str::to_owned).collect::<Vec<_>>();
    let (base, ours, theirs) = (lines(&base.1), lines(&ours.1), lines(&theirs.1));
    if base.len() != ours.len() || base.len() != theirs.len() {
        return pick(&base, &ours, &theirs).map(|lines| Some((mode, lines.join("\n"))));
    }
    let merged: Option<Vec<String>> =
        base.iter().zip(&ours).zip(&theirs).map(|((b, o), t)| pick(b, o, t)).collect();
    Some(Some((mode, merged?.join("\n"))))
}

fn pick<T: Clone + PartialEq>(base: &T, ours: &T, theirs: &T) -> Option<T> {
    if ours == base || ours == theirs {
        Some(theirs.clone())
    } else if theirs == base {
        Some(ours.clone())
    } else {
        None
    }
}

/// The clean merge of what `theirs` did to `base` onto `ours`, or `None` when a path collides.
pub fn merge_files(base: &Files, ours: &Files, theirs: &Files) -> Option<Files> {
    let mut merged = ours.clone();
    let mut paths: Vec<&RepoPath> = base.keys().chain(theirs.keys()).collect();
    paths.sort();
    paths.dedup();
    for path in paths {
        let at = |files: &Files| files.get(path).cloned();
        if at(base) == at(theirs) {
            continue;
        }
        match three_way(&at(base), &at(ours), &at(theirs))? {
            Some(entry) => merged.insert(path.clone(), entry),
            None => merged.remove(path),
        };
    }
    is_tree(&merged).then_some(merged)
}

/// No file lies below another file.
pub fn is_tree(files: &Files) -> bool {
    files.keys().all(|path| {
        let mut at = path.parent();
        while let Some(directory) = at {
            if files.contains_key(&directory) {
                return false;
            }
            at = directory.parent();
        }
        true
    })
}
