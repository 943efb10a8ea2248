//! The past merges of a repository: files that both sides changed, and what the merge made of them.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use anyhow::{Context as _, Result, bail};
use yard_common::RepoPath;
use yard_rules::Rule;

use crate::git;

/// One file of one past merge.
#[derive(Debug)]
pub(super) struct Case {
    pub commit: String,
    pub path: RepoPath,
    pub rule: Rule,
    pub base: Option<Vec<u8>>,
    pub ours: Vec<u8>,
    pub theirs: Vec<u8>,
    /// `None`: the merge deleted it.
    pub merged: Option<Vec<u8>>,
}

/// A merge commit and its two parents.
#[derive(Debug)]
struct Merge {
    commit: String,
    ours: String,
    theirs: String,
}

/// All merges with two parents, newest first.
pub(super) struct History {
    folder: PathBuf,
    merges: Vec<Merge>,
    objects: Objects,
}

/// Old and new blob by path; `None` where there is none.
type Changes = BTreeMap<Vec<u8>, (Option<String>, Option<String>)>;

impl History {
    pub fn new(folder: &Path, from: &str, limit: Option<usize>) -> Result<Self> {
        let limit = limit.map(|limit| format!("--max-count={limit}"));
        let mut args = vec!["rev-list", "--parents", "--min-parents=2", "--max-parents=2"];
        args.extend(limit.as_deref());
        args.extend(["--end-of-options", from, "--"]);
        let list = git::run(folder, None, &args)?;
        let merges = list.lines().filter_map(|line| {
            let mut words = line.split(' ').map(str::to_owned);
            Some(Merge { commit: words.next()?, ours: words.next()?, theirs: words.next()? })
        });
        Ok(Self { folder: folder.to_owned(), merges: merges.collect(), objects: Objects::open(folder)? })
    }

    pub fn len(&self) -> usize {
        self.merges.len()
    }

    /// The files of one merge that a rule covers and both sides changed, each in its own way.
    ///
    /// Merges with several merge bases or none are passed over.
    pub fn cases(&mut self, at: usize, rule: impl Fn(&RepoPath) -> Option<Rule>) -> Result<Vec<Case>> {
        let Some(merge) = self.merges.get(at) else { return Ok(Vec::new()) };
        let bases = git::run(&self.folder, None, &["merge-base", "--all", &merge.ours, &merge.theirs]);
        let bases = bases.unwrap_or_default();
        let [base] = bases.lines().collect::<Vec<_>>()[..] else { return Ok(Vec::new()) };
        let (ours, theirs) = (self.changes(base, &merge.ours)?, self.changes(base, &merge.theirs)?);
        let mut both = Vec::new();
        for (path, (base, our)) in ours {
            let Some((_, their)) = theirs.get(&path) else { continue };
            let (Some(our), Some(their)) = (our, their.clone()) else { continue };
            let Ok(path) = RepoPath::new(path) else { continue };
            if our != their
                && let Some(rule) = rule(&path)
            {
                both.push((path, rule, base, our, their));
            }
        }
        if both.is_empty() {
            return Ok(Vec::new());
        }
        let commit = merge.commit.clone();
        let merged = self.changes(base, &commit)?;
        let mut out = Vec::new();
        for (path, rule, base, our, their) in both {
            let result = merged.get(path.as_bytes()).map_or_else(|| base.clone(), |(_, new)| new.clone());
            let mut blob = |id: Option<String>| id.map(|id| self.objects.blob(&id)).transpose();
            let (base, merged) = (blob(base)?, blob(result)?);
            let (Some(ours), Some(theirs)) = (blob(Some(our))?, blob(Some(their))?) else { continue };
            out.push(Case { commit: commit.clone(), path, rule, base, ours, theirs, merged });
        }
        Ok(out)
    }

    /// Plain files that differ.
    fn changes(&self, old: &str, new: &str) -> Result<Changes> {
        let args = ["diff-tree", "-r", "-z", "--no-renames", old, new];
        let out = git::run_bytes(&self.folder, None, &args, &[])?;
        let mut changes = Changes::new();
        let mut fields = out.split(|byte| *byte == 0);
        while let (Some(meta), Some(path)) = (fields.next(), fields.next()) {
            let meta = String::from_utf8_lossy(meta).into_owned();
            let words: Vec<&str> = meta.trim_start_matches(':').split(' ').collect();
            let [old_mode, new_mode, old, new, _] = words.as_slice() else {
                bail!("git diff-tree printed {meta:?}");
            };
            let file = |mode: &str, id: &str| mode.starts_with("100").then(|| id.to_owned());
            changes.insert(path.to_vec(), (file(old_mode, old), file(new_mode, new)));
        }
        Ok(changes)
    }
}

/// One `git cat-file --batch` for all blobs.
struct Objects {
    child: Child,
    ask: Option<ChildStdin>,
    answer: BufReader<ChildStdout>,
}

impl Objects {
    fn open(folder: &Path) -> Result<Self> {
        let mut child = git::command(folder, None)
            .args(["cat-file", "--batch"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .context("git cannot be started: is it installed?")?;
        let ask = child.stdin.take();
        let answer = child.stdout.take().context("git has no output")?;
        Ok(Self { child, ask, answer: BufReader::new(answer) })
    }

    fn blob(&mut self, id: &str) -> Result<Vec<u8>> {
        let ask = self.ask.as_mut().context("git cat-file has ended")?;
        writeln!(ask, "{id}")?;
        ask.flush()?;
        let mut head = String::new();
        self.answer.read_line(&mut head)?;
        let size = head.trim_end().strip_prefix(&format!("{id} blob "));
        let size: usize =
            size.and_then(|size| size.parse().ok()).with_context(|| format!("no blob {id}: {head}"))?;
        let mut bytes = vec![0; size + 1];
        self.answer.read_exact(&mut bytes)?;
        bytes.pop();
        Ok(bytes)
    }
}

impl Drop for Objects {
    fn drop(&mut self) {
        drop(self.ask.take());
        let _ = self.child.wait();
    }
}
