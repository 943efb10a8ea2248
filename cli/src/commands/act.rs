//! `yard cancel|hold|release|requeue CHANGE`, `yard freeze|thaw|protect|unprotect`.

use anyhow::Result;
use yard_common::{ChangeId, Version};

use crate::output;
use crate::place::Place;

/// Arguments of an act on a change.
#[derive(Debug, clap::Args)]
pub struct ChangeArgs {
    /// The change
    change: ChangeId,
    /// Why
    #[arg(long, default_value = "")]
    reason: String,
}

/// Arguments of an act on the repository.
#[derive(Debug, clap::Args)]
pub struct RepoArgs {
    /// Why
    #[arg(long, default_value = "")]
    reason: String,
}

/// Arguments of `yard approve`.
#[derive(Debug, clap::Args)]
pub struct ApproveArgs {
    /// The change
    change: ChangeId,
    /// The version that you have read
    version: u64,
}

/// Lets a version touch the configuration.
///
/// # Errors
/// When the platform refuses, with its reason.
pub fn approve(place: &Place, args: &ApproveArgs) -> Result<()> {
    let answer = place.client()?.approve(&place.repo()?, &args.change, Version(args.version))?;
    if place.json {
        return output::json(&answer);
    }
    println!("approved: {} v{}", args.change, args.version);
    Ok(())
}

/// Does it to a change.
///
/// # Errors
/// When the platform refuses, with its reason.
pub fn change(place: &Place, act: &str, args: &ChangeArgs) -> Result<()> {
    let answer = place.client()?.act_on_change(&place.repo()?, &args.change, act, &args.reason)?;
    if place.json {
        return output::json(&answer);
    }
    println!("{act}: {}", args.change);
    Ok(())
}

/// Does it to the repository.
///
/// # Errors
/// When the platform refuses, with its reason.
pub fn repo(place: &Place, act: &str, args: &RepoArgs) -> Result<()> {
    let repo = place.repo()?;
    let answer = place.client()?.act_on_repo(&repo, act, &args.reason)?;
    if place.json {
        return output::json(&answer);
    }
    println!("{act}: {repo}");
    Ok(())
}
