//! What git alone needs for the same: `git fast-import` of the same commits and notes.

use std::time::Instant;

use anyhow::{Context as _, Result, ensure};
use yard_loadtest::Sandbox;

use crate::corpus::{Corpus, fast_import};

/// A landed history as a fast-import stream: the same trees, messages, authors, dates and notes.
///
/// `clone` is a bare clone of the platform's repository with its notes.
///
/// # Errors
/// When git fails.
pub fn stream(sandbox: &Sandbox, clone: &str, base: &str) -> Result<Vec<u8>> {
    let range = format!("{base}..main");
    let list = sandbox.git(clone, None, &["rev-list", "--reverse", "--first-parent", &range])?;
    let mut stream: Vec<u8> = Vec::new();
    let mut marks = Vec::new();
    for (index, commit) in list.lines().enumerate() {
        let raw = sandbox.git(clone, None, &["cat-file", "commit", commit])?;
        let (head, message) = raw.split_once("\n\n").context("a commit without a message")?;
        let header = |name: &str| head.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default();
        // `git` above cut the last line feed of the message.
        let message = format!("{message}\n");
        stream.extend(format!("commit refs/heads/main\nmark :{}\n", index + 1).bytes());
        stream.extend(format!("author {}\ncommitter {}\n", header("author "), header("committer ")).bytes());
        stream.extend(format!("data {}\n{message}", message.len()).bytes());
        if index == 0 {
            stream.extend(format!("from {base}\n").bytes());
        }
        let diff = sandbox.git(clone, None, &["diff-tree", "-r", "--no-commit-id", commit])?;
        for line in diff.lines() {
            let (meta, path) = line.split_once('\t').context("diff-tree's line")?;
            let fields: Vec<&str> = meta.split(' ').collect();
            let (mode, blob) = (fields.get(1).context("mode")?, fields.get(3).context("blob")?);
            let text = sandbox.git(clone, None, &["cat-file", "blob", blob])? + "\n";
            stream.extend(format!("M {mode} inline {path}\ndata {}\n{text}\n", text.len()).bytes());
        }
        marks.push(commit.to_owned());
    }
    stream.extend(
        b"commit refs/notes/intent\ncommitter bench <bench@example.org> 1700000000 +0000\ndata 0\n".iter(),
    );
    for (index, commit) in marks.iter().enumerate() {
        let note = sandbox.git(clone, None, &["notes", "--ref=intent", "show", commit])? + "\n";
        stream.extend(format!("N inline :{}\ndata {}\n{note}\n", index + 1, note.len()).bytes());
    }
    Ok(stream)
}

/// Seconds that fast-import takes for the stream on a fresh copy of the base: the median of `times`.
///
/// # Errors
/// When git fails, or the result is another tree than `tree`.
pub fn fast_import_seconds(sandbox: &Sandbox, stream: &[u8], tree: &str, times: usize) -> Result<f64> {
    let mut seconds = Vec::new();
    for run in 0..times {
        let dir = format!("fast-{run}.git");
        sandbox.git(".", None, &["clone", "-q", "--bare", "base.git", &dir])?;
        let began = Instant::now();
        fast_import(sandbox, &dir, stream)?;
        seconds.push(began.elapsed().as_secs_f64());
        let found = sandbox.git(&dir, None, &["rev-parse", "main^{tree}"])?;
        ensure!(found == tree, "fast-import made tree {found}, the platform {tree}");
    }
    seconds.sort_by(f64::total_cmp);
    seconds.get(times / 2).copied().context("no run")
}

/// Landings per second of a shell loop of git commands over the first `count` changes: a three-way
/// merge, a commit, a note and a ref update each, as the queue of git commands must do at least.
///
/// # Errors
/// When git fails.
pub fn git_loop_per_second(sandbox: &Sandbox, corpus: &Corpus, base: &str, count: usize) -> Result<f64> {
    sandbox.git(".", None, &["clone", "-q", "--bare", "base.git", "loop.git"])?;
    let mut heads = Vec::new();
    let mut stream = String::new();
    for i in 0..count {
        let (path, text) = corpus.change(i);
        stream.push_str(&format!(
            "commit refs/changes/{i}\nmark :{}\ncommitter bench <bench@example.org> 1700000000 +0000\n\
             data 6\nchange\nfrom {base}\nM 100644 inline {path}\ndata {}\n{text}\n",
            i + 1,
            text.len()
        ));
    }
    fast_import(sandbox, "loop.git", stream.as_bytes())?;
    for i in 0..count {
        heads.push(sandbox.git("loop.git", None, &["rev-parse", &format!("refs/changes/{i}")])?);
    }
    let began = Instant::now();
    let mut main = base.to_owned();
    for head in &heads {
        let merge_base = format!("--merge-base={base}");
        let tree =
            sandbox.git("loop.git", None, &["merge-tree", "--write-tree", &merge_base, &main, head])?;
        let next = sandbox.git("loop.git", None, &["commit-tree", &tree, "-p", &main, "-m", "land"])?;
        sandbox.git("loop.git", None, &["notes", "--ref=intent", "add", "-m", "intent", &next])?;
        sandbox.git("loop.git", None, &["update-ref", "refs/heads/main", &next, &main])?;
        main = next;
    }
    #[allow(clippy::cast_precision_loss, reason = "a count of changes")]
    let count = count as f64;
    Ok(count / began.elapsed().as_secs_f64())
}
