//! A folder with a git of its own: no configuration but this, fixed identity and dates.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use anyhow::{Context as _, Result, bail};

/// A temporary folder in which git knows nobody's configuration.
#[derive(Debug)]
pub struct Sandbox {
    folder: tempfile::TempDir,
}

impl Sandbox {
    /// A new, empty one.
    ///
    /// # Errors
    /// When no temporary folder can be made.
    pub fn new() -> Result<Self> {
        let folder = tempfile::Builder::new().prefix("yard-").tempdir()?;
        std::fs::create_dir(folder.path().join("home"))?;
        Ok(Self { folder })
    }

    /// The folder.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// A path below it.
    #[must_use]
    pub fn join(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// A git command in the subfolder `dir`, with a token for the platform if one is given.
    #[must_use]
    pub fn command(&self, dir: &str, token: Option<&str>) -> Command {
        let mut command = Command::new("git");
        command
            .current_dir(self.join(dir))
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.join("home"))
            .env("LC_ALL", "C.UTF-8")
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_TERMINAL_PROMPT", "0")
            .env("GIT_AUTHOR_NAME", "Ann Author")
            .env("GIT_AUTHOR_EMAIL", "ann@example.org")
            .env("GIT_COMMITTER_NAME", "Ann Author")
            .env("GIT_COMMITTER_EMAIL", "ann@example.org")
            .env("NO_PROXY", "127.0.0.1,localhost")
            .args(["-c", "gc.auto=0", "-c", "maintenance.auto=false", "-c", "init.defaultBranch=main"])
            .args(["-c", "protocol.file.allow=always", "-c", "advice.detachedHead=false"]);
        if let Some(token) = token {
            yard_cli::git::sign_in(&mut command, token);
        }
        command
    }

    /// Runs git and returns all that it said.
    ///
    /// # Errors
    /// When git cannot be started.
    pub fn try_git(&self, dir: &str, token: Option<&str>, args: &[&str]) -> Result<Output> {
        self.command(dir, token).args(args).output().context("git cannot be started")
    }

    /// Runs git and returns its standard output, without the last line feed.
    ///
    /// # Errors
    /// When git fails: with all that it said.
    pub fn git(&self, dir: &str, token: Option<&str>, args: &[&str]) -> Result<String> {
        let out = self.try_git(dir, token, args)?;
        if !out.status.success() {
            bail!("git {} failed: {}", args.join(" "), String::from_utf8_lossy(&out.stderr));
        }
        Ok(String::from_utf8_lossy(&out.stdout).trim_end_matches('\n').to_owned())
    }

    /// Writes a file below the folder, making its directories.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn write(&self, path: &str, content: &str) -> Result<()> {
        let path = self.join(path);
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent)?;
        }
        std::fs::write(path, content)?;
        Ok(())
    }
}
