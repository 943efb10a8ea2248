//! Where a command works: platform, token, repository; from flags, the environment, or the clone.
//!
//! `yard clone` writes `switchyard.url`, `switchyard.repo` and `switchyard.token` into the clone's
//! own git configuration (readable by its owner only), so that commands inside it need no flags.

use std::path::Path;

use anyhow::{Context as _, Result};
use yard_common::{LaneName, RepoName};

use crate::client::Client;
use crate::git;

/// The flags that every command takes.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct Place {
    /// Address of the platform, like http://127.0.0.1:8787
    #[arg(long, global = true, env = "YARD_URL")]
    pub url: Option<String>,
    /// Token (better: the environment variable, which other users cannot see)
    #[arg(long, global = true, env = "YARD_TOKEN", hide_env_values = true)]
    pub token: Option<String>,
    /// Repository
    #[arg(long, global = true, env = "YARD_REPO")]
    pub repo: Option<String>,
    /// Print JSON instead of text
    #[arg(long, global = true)]
    pub json: bool,
}

impl Place {
    /// A client of the platform.
    ///
    /// # Errors
    /// When neither flag, environment nor clone say where it is or who asks.
    pub fn client(&self) -> Result<Client> {
        let url = self
            .setting(self.url.as_deref(), "switchyard.url")
            .context("no platform: pass --url, set YARD_URL, or work inside a clone made by `yard clone`")?;
        let token = self
            .setting(self.token.as_deref(), "switchyard.token")
            .context("no token: pass --token, set YARD_TOKEN, or work inside a clone made by `yard clone`")?;
        if !["http://", "https://"].iter().any(|scheme| url.starts_with(scheme)) {
            anyhow::bail!("{url:?} is no address: write http://HOST:PORT");
        }
        Ok(Client::new(&url, &token))
    }

    /// The repository.
    ///
    /// # Errors
    /// When nothing names one, or the name breaks the rules.
    pub fn repo(&self) -> Result<RepoName> {
        let name = self
            .setting(self.repo.as_deref(), "switchyard.repo")
            .context("no repository: pass --repo or set YARD_REPO")?;
        Ok(RepoName::new(name)?)
    }

    /// The default lane.
    ///
    /// # Errors
    /// Never in practice: the name is fixed.
    pub fn lane(&self) -> Result<LaneName> {
        Ok(LaneName::new(yard_wire::names::DEFAULT_LANE)?)
    }

    fn setting(&self, flag: Option<&str>, key: &str) -> Option<String> {
        flag.map(str::to_owned).or_else(|| git::config(Path::new("."), key))
    }
}
