//! `yard clone [DIR]`: a clone that shows intents and needs no flags afterwards.

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use yard_common::ForkName;

use crate::place::Place;
use crate::{git, output};

/// Arguments.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The fork that submissions come from: pushes go to it, main and notes come from the repository
    #[arg(long)]
    fork: Option<ForkName>,
    /// The folder; the repository's name when absent
    dir: Option<PathBuf>,
}

impl Args {
    /// The arguments of a clone of a fork (of the repository itself when `None`) into `dir`.
    ///
    /// # Errors
    /// When the fork's name breaks the rules.
    pub fn new(fork: Option<&str>, dir: &Path) -> Result<Self> {
        Ok(Self { fork: fork.map(ForkName::new).transpose()?, dir: Some(dir.to_owned()) })
    }
}

/// Clones; main and notes come from the repository, pushes go to the fork.
///
/// # Errors
/// When the folder exists, or git fails, with what git said.
pub fn run(place: &Place, args: &Args) -> Result<()> {
    let (client, repo) = (place.client()?, place.repo()?);
    let dir = args.dir.clone().unwrap_or_else(|| PathBuf::from(repo.as_str()));
    if dir.exists() {
        bail!("{} exists already: name another folder", dir.display());
    }
    let url = format!("{}/{repo}.git", client.url());
    let target = dir.to_string_lossy().into_owned();
    git::run_shown(Path::new("."), client.token(), &["clone", &url, &target])?;
    let push = args.fork.as_ref().map(|fork| format!("{}/{repo}/forks/{fork}.git", client.url()));
    let header = format!("http.{}/.extraHeader", client.url());
    let mut settings = vec![
        ("switchyard.url", client.url().to_owned()),
        ("switchyard.repo", repo.to_string()),
        ("switchyard.token", client.token().to_owned()),
        (header.as_str(), git::authorization(client.token())),
        ("notes.displayRef", "refs/notes/intent".to_owned()),
        // What landed is a commit of its own: a pull puts unlanded work on top of it.
        ("pull.rebase", "true".to_owned()),
    ];
    if let Some(push) = push {
        settings.push(("remote.origin.pushurl", push));
    }
    for (key, value) in settings {
        git::run(&dir, None, &["config", key, &value])?;
    }
    git::run(&dir, None, &["config", "--add", "remote.origin.fetch", "+refs/notes/*:refs/notes/*"])?;
    // The configuration holds the token: only its owner may read it.
    let _ = std::process::Command::new("chmod").arg("600").arg(dir.join(".git/config")).status();
    git::run(&dir, None, &["fetch", "-q", "origin"])?;
    if place.json {
        return output::json(&serde_json::json!({ "repo": repo, "fork": args.fork, "dir": target }));
    }
    output::text(&format!("cloned {repo} into {target}: submit with  git push origin HEAD:refs/for/main\n"))
}
