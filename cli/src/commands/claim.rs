//! `yard claim PATH...`: leases paths; `yard claim --release FENCE` gives a lease back.

use anyhow::{Result, bail};
use yard_common::time::span;
use yard_common::{Fence, RepoPath};
use yard_wire::api::NewClaim;

use crate::output;
use crate::place::Place;

/// Arguments.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The paths; a directory stands for all below it
    paths: Vec<String>,
    /// For how long, in seconds, at most 86400
    #[arg(long, default_value_t = 600)]
    seconds: u64,
    /// Give this claim back instead
    #[arg(long, value_name = "FENCE", conflicts_with = "paths")]
    release: Option<u64>,
}

/// Does it and prints the fencing number.
///
/// # Errors
/// When somebody else holds one of the paths: with the holder's name.
pub fn run(place: &Place, args: &Args) -> Result<()> {
    let (client, repo) = (place.client()?, place.repo()?);
    if let Some(fence) = args.release {
        let answer = client.release(&repo, Fence(fence))?;
        if place.json {
            return output::json(&answer);
        }
        return output::text(&format!("released claim {fence}\n"));
    }
    if args.paths.is_empty() {
        bail!("name the paths to claim");
    }
    let paths = args.paths.iter().map(|path| RepoPath::new(path.as_bytes())).collect::<Result<_, _>>()?;
    let reply = client.claim(&repo, &NewClaim { paths, ttl_seconds: args.seconds })?;
    if place.json {
        return output::json(&reply);
    }
    let (fence, how_long) = (reply.fence, span(args.seconds.saturating_mul(1000)));
    output::text(&format!("claim {fence}, for {how_long}; give it back with  yard claim --release {fence}\n"))
}
