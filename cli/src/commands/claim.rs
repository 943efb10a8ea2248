//! `yard claim PATH...`: leases paths; `yard claim --release FENCE` gives a lease back.

use anyhow::{Result, bail};
use yard_common::{Fence, RepoPath};
use yard_wire::api::NewClaim;

use crate::output;
use crate::place::Place;

/// Arguments.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The paths
    paths: Vec<String>,
    /// For how long, in seconds
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
        println!("released {fence}");
        return Ok(());
    }
    if args.paths.is_empty() {
        bail!("name the paths to claim");
    }
    let paths = args.paths.iter().map(|path| RepoPath::new(path.as_bytes())).collect::<Result<_, _>>()?;
    let reply = client.claim(&repo, &NewClaim { paths, ttl_seconds: args.seconds })?;
    if place.json {
        return output::json(&reply);
    }
    println!("claimed for {} s; give it back with  yard claim --release {}", args.seconds, reply.fence);
    Ok(())
}
