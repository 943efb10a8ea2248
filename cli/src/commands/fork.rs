//! `yard fork NAME`: makes an agent's fork.

use anyhow::Result;
use yard_common::ForkName;
use yard_wire::api::NewFork;

use crate::output;
use crate::place::Place;

/// Arguments.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Its name, usually the agent's
    name: ForkName,
}

/// Makes it and prints its URL and its token.
///
/// # Errors
/// When the platform refuses, with its reason.
pub fn run(place: &Place, args: &Args) -> Result<()> {
    let made = place.client()?.new_fork(&place.repo()?, &NewFork { name: args.name.clone() })?;
    if place.json {
        return output::json(&made);
    }
    let (fork, url, token) = (&made.fork, &made.url, &made.token);
    output::text(&format!(
        "fork   {fork}\nurl    {url}\ntoken  {token}  (read and submit, 30 days, shown once)\n\
         next   YARD_TOKEN=THE_TOKEN yard clone --fork {fork}\n"
    ))
}
