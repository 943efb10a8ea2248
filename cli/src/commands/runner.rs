//! `yard runner`: tests candidates until it is stopped.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;
use yard_common::LaneName;

use crate::place::Place;
use crate::runner::{Round, Runner};

/// Arguments.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Lanes to work for
    #[arg(long, value_delimiter = ',', default_value = "main")]
    lanes: Vec<LaneName>,
    /// Folder for the clone and logs
    #[arg(long)]
    work: Option<PathBuf>,
    /// A word that tells this environment from others (it is part of the suite)
    #[arg(long, default_value = "")]
    label: String,
    /// Stop after this many runs
    #[arg(long)]
    runs: Option<u64>,
}

/// Runs; a platform that cannot be reached is asked again, a refusal of the token ends it.
///
/// # Errors
/// When the platform refuses the runner.
pub fn run(place: &Place, args: Args) -> Result<()> {
    let (client, repo) = (place.client()?, place.repo()?);
    let work = args.work.unwrap_or_else(|| {
        let home = std::env::var_os("HOME").map_or_else(std::env::temp_dir, PathBuf::from);
        home.join(format!(".cache/yard-runner/{repo}-{}", std::process::id()))
    });
    let runner = Runner::new(client, repo, args.lanes, work, &args.label)?;
    eprintln!("runner {} works in {}", runner.id, runner.work.display());
    let mut done = 0;
    while args.runs.is_none_or(|limit| done < limit) {
        match runner.round() {
            Ok(Round::Idle) => std::thread::sleep(Duration::from_millis(100)),
            Ok(Round::Ran(said)) => {
                done += 1;
                eprintln!("{said}");
            }
            Err(error) => match error.problem() {
                Some(problem) if matches!(problem.status, 401 | 403 | 404) => return Err(error.into()),
                _ => {
                    eprintln!("{error}: asking again");
                    std::thread::sleep(Duration::from_secs(1));
                }
            },
        }
    }
    Ok(())
}
