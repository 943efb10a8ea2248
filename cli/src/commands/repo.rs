//! `yard repo NAME`: makes a repository.

use anyhow::Result;
use yard_common::RepoName;
use yard_wire::api::NewRepo;

use crate::output;
use crate::place::Place;

/// Arguments.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Its name
    name: RepoName,
    /// The branch that HEAD names
    #[arg(long, default_value = "main")]
    default_branch: String,
}

/// Makes it and prints its URL and an admin token for it.
///
/// # Errors
/// When the platform refuses, with its reason.
pub fn run(place: &Place, args: &Args) -> Result<()> {
    let body = NewRepo { name: args.name.clone(), default_branch: Some(args.default_branch.clone()) };
    let made = place.client()?.new_repo(&body)?;
    if place.json {
        return output::json(&made);
    }
    output::text(&format!(
        "repository {}\nurl        {}\ntoken      {}  (admin, 90 days, shown once)\n\
         next       git push {} main, with the token as git's password; main needs a .switchyard.toml\n",
        made.repo, made.url, made.token, made.url
    ))
}
