//! One landing, redone with git and by its rules.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context as _, Result, bail};
use yard_common::landing::{Edit, How, LandChange};
use yard_common::submission::{Entry, Mode, Submission};
use yard_common::{ObjectId, RepoPath};
use yard_merge::Rule;
use yard_merge::text::Guarded;

use crate::git;

/// What redoing one landing finds, and whether that is a fault.
pub(super) fn judge(folder: &Path, landed: &LandChange, row: &Submission) -> Result<(String, bool)> {
    let commit = landed.commit.to_string();
    if git::run(folder, None, &["cat-file", "-e", &commit]).is_err() {
        return Ok(("its commit is not in any fetched history".into(), true));
    }
    let wrong = match own_edits(folder, landed) {
        Ok(wrong) => wrong,
        Err(error) => return Ok((format!("not all of its trees can be fetched: {error:#}"), true)),
    };
    if !wrong.is_empty() {
        return Ok((format!("its commit changes other paths than its proof: {}", wrong.join(", ")), true));
    }
    if let Some(edit) = lost_blob(folder, landed)? {
        return Ok((format!("{}: what it brought cannot be fetched", edit.path), true));
    }
    if let Some(edit) = landed.edits.iter().find(|edit| !plain(edit)) {
        return Ok((format!("{}: result is not what its kind says", edit.path), true));
    }
    let mut by_rule = false;
    for edit in &landed.edits {
        let How::Rule(name) = &edit.how else { continue };
        match ruled(folder, edit, name.as_str())? {
            Ruled::Same => by_rule = true,
            Ruled::Unknown => return Ok((format!("unknown: {} as submitted is not kept", edit.path), false)),
            Ruled::Wrong(why) => return Ok((format!("{}: rule {name}: {why}", edit.path), true)),
        }
    }
    let fine = if by_rule { "rule" } else { "ok" };
    if landed.edits.iter().all(|edit| edit.how != How::Merge) {
        return Ok((fine.into(), false));
    }
    let Some(theirs) = version_tree(folder, landed, row)? else {
        return Ok(("unknown: a submitted blob is not kept".into(), false));
    };
    let base = row.base.tree.to_string();
    let parent = git::run(folder, None, &["rev-parse", &format!("{commit}^^{{tree}}")])?;
    let tree = merged_part(folder, landed)?;
    let merge_base = format!("--merge-base={base}");
    let merged = git::run(folder, None, &["merge-tree", "--write-tree", &merge_base, &parent, &theirs]);
    Ok(match merged {
        Ok(found) if found == tree => (fine.into(), false),
        Ok(found) => (format!("git merges to {found}, main has {tree}"), true),
        Err(_) => ("git sees a conflict".into(), true),
    })
}

/// What redoing a rule finds.
#[derive(Debug, PartialEq, Eq)]
enum Ruled {
    Same,
    /// A version of the file is not kept.
    Unknown,
    Wrong(String),
}

/// Redoes one edit by its rule, on the bytes that its proof names.
fn ruled(folder: &Path, edit: &Edit, name: &str) -> Result<Ruled> {
    let Some(rule) = Rule::from_name(name) else {
        return Ok(Ruled::Wrong("this yard does not know it: take a newer one".into()));
    };
    let mut sides = Vec::new();
    for side in [edit.base, edit.ours, edit.theirs, edit.result] {
        match side {
            None => sides.push(None),
            Some(entry) => match blob(folder, entry.id) {
                Some(bytes) => sides.push(Some(bytes)),
                None => return Ok(Ruled::Unknown),
            },
        }
    }
    let [base, ours, theirs, result] = sides.as_slice() else { bail!("an edit has four sides") };
    let (base, ours, theirs) = (base.as_deref(), ours.as_deref(), theirs.as_deref());
    Ok(match rule.apply(base, ours, theirs, &edit.path, &Guarded) {
        Ok(found) if Some(&found) == result.as_ref() => Ruled::Same,
        Ok(_) => Ruled::Wrong("it makes something else of it than main has".into()),
        Err(why) => Ruled::Wrong(format!("it sees a collision: {why}")),
    })
}

/// The bytes of a blob; `None` when it is not in any fetched history.
fn blob(folder: &Path, id: ObjectId) -> Option<Vec<u8>> {
    git::run_bytes(folder, None, &["cat-file", "blob", &id.to_string()], &[]).ok()
}

/// An edit whose result cannot be read; a submodule's commit lies elsewhere.
fn lost_blob<'a>(folder: &Path, landed: &'a LandChange) -> Result<Option<&'a Edit>> {
    let brought: Vec<(&Edit, ObjectId)> = landed
        .edits
        .iter()
        .filter_map(|edit| Some((edit, edit.result.filter(|entry| entry.mode != Mode::Gitlink)?.id)))
        .collect();
    let asked: String = brought.iter().map(|(_, id)| format!("{id}\n")).collect();
    let said = git::run_bytes(folder, None, &["cat-file", "--batch-check"], asked.as_bytes())?;
    let said = String::from_utf8_lossy(&said).into_owned();
    let lost = brought.iter().zip(said.lines()).find(|(_, line)| !line.contains(" blob "));
    Ok(lost.map(|((edit, _), _)| *edit))
}

fn plain(edit: &Edit) -> bool {
    match edit.how {
        How::Theirs => edit.ours == edit.base && edit.result == edit.theirs,
        How::Same => edit.result == edit.ours,
        How::Merge | How::Rule(_) => true,
    }
}

/// Paths where the commit's own difference is not what the proof says.
fn own_edits(folder: &Path, landed: &LandChange) -> Result<Vec<String>> {
    let commit = landed.commit.to_string();
    let args = ["diff-tree", "-r", "-z", "--no-renames", "--no-commit-id", "--root", &commit];
    let out = git::run_bytes(folder, None, &args, &[])?;
    let mut found: BTreeMap<Vec<u8>, (String, String)> = BTreeMap::new();
    let mut fields = out.split(|byte| *byte == 0);
    while let (Some(meta), Some(path)) = (fields.next(), fields.next()) {
        let meta = String::from_utf8_lossy(meta).into_owned();
        let words: Vec<&str> = meta.trim_start_matches(':').split(' ').collect();
        let [old_mode, new_mode, old, new, _] = words.as_slice() else {
            bail!("git diff-tree printed {meta:?}");
        };
        found.insert(path.to_vec(), (format!("{old_mode} {old}"), format!("{new_mode} {new}")));
    }
    let mut wrong = Vec::new();
    for edit in landed.edits.iter().filter(|edit| edit.ours != edit.result) {
        let expected = (described(edit.ours), described(edit.result));
        if found.remove(edit.path.as_bytes()) != Some(expected) {
            wrong.push(edit.path.to_string());
        }
    }
    wrong.extend(found.keys().map(|path| String::from_utf8_lossy(path).into_owned()));
    Ok(wrong)
}

fn mode(mode: Mode) -> &'static str {
    match mode {
        Mode::File => "100644",
        Mode::Executable => "100755",
        Mode::Symlink => "120000",
        Mode::Gitlink => "160000",
    }
}

fn described(entry: Option<Entry>) -> String {
    entry.map_or_else(
        || format!("000000 {}", ObjectId::ZERO),
        |entry| format!("{} {}", mode(entry.mode), entry.id),
    )
}

/// The version's tree but for what a rule merged; `None` when a blob is not kept.
fn version_tree(folder: &Path, landed: &LandChange, row: &Submission) -> Result<Option<String>> {
    let ruled: Vec<&RepoPath> = landed
        .edits
        .iter()
        .filter(|edit| matches!(edit.how, How::Rule(_)))
        .map(|edit| edit.from.as_ref().unwrap_or(&edit.path))
        .collect();
    let edits = row.edits.iter().filter(|edit| !ruled.contains(&&edit.path));
    let entries: Vec<(&RepoPath, Option<Entry>)> = edits.map(|edit| (&edit.path, edit.theirs)).collect();
    tree_with(folder, &row.base.tree.to_string(), &entries)
}

/// The commit's tree with main's own files where a rule merged.
fn merged_part(folder: &Path, landed: &LandChange) -> Result<String> {
    let tree = git::run(folder, None, &["rev-parse", &format!("{}^{{tree}}", landed.commit)])?;
    let ruled = landed.edits.iter().filter(|edit| matches!(edit.how, How::Rule(_)));
    let entries: Vec<(&RepoPath, Option<Entry>)> = ruled.map(|edit| (&edit.path, edit.ours)).collect();
    if entries.is_empty() {
        return Ok(tree);
    }
    tree_with(folder, &tree, &entries)?.context("main's own file is not in any fetched history")
}

/// A tree with these entries instead of its own; `None` when a blob is not kept.
fn tree_with(folder: &Path, tree: &str, entries: &[(&RepoPath, Option<Entry>)]) -> Result<Option<String>> {
    let index = std::env::temp_dir().join(format!("yard-fsck-index-{}", std::process::id()));
    let mut lines = Vec::new();
    for (path, entry) in entries {
        let (mode, id) = entry.map_or(("0", ObjectId::ZERO), |entry| (mode(entry.mode), entry.id));
        lines.extend_from_slice(format!("{mode} {id}\t").as_bytes());
        lines.extend_from_slice(path.as_bytes());
        lines.push(0);
    }
    with_index(folder, &index, &["read-tree", tree], &[])
        .context("a base tree is not in any fetched history")?;
    with_index(folder, &index, &["update-index", "-z", "--index-info"], &lines)?;
    let tree = with_index(folder, &index, &["write-tree"], &[]).ok();
    let _ = std::fs::remove_file(&index);
    Ok(tree)
}

fn with_index(folder: &Path, index: &Path, args: &[&str], input: &[u8]) -> Result<String> {
    let mut command = git::command(folder, None);
    command.env("GIT_INDEX_FILE", index);
    let out = git::finish(command, args, input)?;
    Ok(String::from_utf8_lossy(&out).trim_end().to_owned())
}

#[cfg(test)]
mod tests;
