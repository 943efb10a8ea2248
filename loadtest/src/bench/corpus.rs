//! The repository and the changes of the landing benchmark: the ones of the shell loop beside it.

use anyhow::{Context as _, Result};
use yard_loadtest::Sandbox;

/// Files of the repository and changes to it.
#[derive(Debug, Clone, Copy)]
pub struct Corpus {
    /// Directories.
    pub dirs: usize,
    /// Files in each.
    pub per: usize,
    /// Changes, each rewriting one file that no other rewrites.
    pub changes: usize,
}

impl Corpus {
    /// The path of file `n`.
    #[must_use]
    pub fn path(&self, n: usize) -> String {
        format!("dir{:03}/file{:03}.txt", n / self.per, n % self.per)
    }

    /// The content of file `n`, with a last line of its own.
    #[must_use]
    pub fn body(&self, n: usize, tag: &str) -> String {
        let mut text = String::new();
        for i in 0..20 {
            text.push_str(&format!("line {i} of file {n}\n"));
        }
        text.push_str(tag);
        text.push('\n');
        text
    }

    /// The file that change `i` rewrites, and what it becomes.
    #[must_use]
    pub fn change(&self, i: usize) -> (String, String) {
        let n = i * (self.dirs * self.per / self.changes.max(1)).max(1);
        (self.path(n), self.body(n, &format!("change {i}")))
    }

    /// Makes the base commit in the sandbox's bare repository `base.git`, with a configuration.
    ///
    /// # Errors
    /// When git fails.
    pub fn import(&self, sandbox: &Sandbox, config: &str) -> Result<String> {
        sandbox.git(".", None, &["init", "-q", "--bare", "base.git"])?;
        let mut stream =
            String::from("commit refs/heads/main\ncommitter bench <bench@example.org> 1700000000 +0000\n");
        stream.push_str("data 5\nbase\n\n");
        let mut file = |path: &str, text: &str| {
            stream.push_str(&format!("M 100644 inline {path}\ndata {}\n{text}\n", text.len()));
        };
        file(".switchyard.toml", config);
        for n in 0..self.dirs * self.per {
            file(&self.path(n), &self.body(n, "base"));
        }
        fast_import(sandbox, "base.git", stream.as_bytes())?;
        sandbox.git("base.git", None, &["rev-parse", "main"])
    }
}

/// Feeds a stream to `git fast-import`.
///
/// # Errors
/// When git refuses it.
pub fn fast_import(sandbox: &Sandbox, dir: &str, stream: &[u8]) -> Result<()> {
    use std::io::Write as _;
    use std::process::Stdio;
    let mut child = sandbox
        .command(dir, None)
        .args(["fast-import", "--quiet", "--force"])
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .context("git cannot be started")?;
    if let Some(mut stdin) = child.stdin.take() {
        stdin.write_all(stream).context("fast-import closed its input")?;
    }
    let out = child.wait_with_output()?;
    anyhow::ensure!(out.status.success(), "fast-import: {}", String::from_utf8_lossy(&out.stderr));
    Ok(())
}
