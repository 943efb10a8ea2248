//! `yard logs RUN`: what a run printed; `--follow` while it runs.

use std::time::Duration;

use anyhow::Result;
use yard_common::LaneName;
use yard_wire::lane::RunView;
use yard_wire::names;

use crate::output;
use crate::place::Place;

/// How often a run that is followed is asked for more.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Arguments.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The run, or its first characters; lists the last runs when absent
    run: Option<String>,
    /// Go on until the run ends
    #[arg(long, short)]
    follow: bool,
    /// Print it as the command wrote it, with all that steers a terminal
    #[arg(long)]
    raw: bool,
}

/// Prints it.
///
/// # Errors
/// When there is no log of such a run.
pub fn run(place: &Place, args: &Args) -> Result<()> {
    let Some(run) = &args.run else { return list(place) };
    let (client, repo) = (place.client()?, place.repo()?);
    let mut safe = output::Printable::default();
    let (mut from, mut lease) = (0, None);
    loop {
        let mut log = client.run_log(&repo, run, from)?;
        if place.json && !args.follow {
            return output::json(&log);
        }
        if from > 0 && lease != Some(log.lease) {
            eprintln!("run {run} went to another runner: its log begins anew");
            log = client.run_log(&repo, run, 0)?;
        }
        output::raw(&if args.raw { log.log } else { safe.next(&log.log) })?;
        if log.ended || !args.follow {
            return output::raw(&safe.end());
        }
        (from, lease) = (log.next, Some(log.lease));
        std::thread::sleep(LOOK_EVERY);
    }
}

fn list(place: &Place) -> Result<()> {
    let lane = LaneName::new(names::DEFAULT_LANE)?;
    let runs = place.client()?.lane(&place.repo()?, &lane)?.runs;
    if place.json {
        return output::json(&runs);
    }
    let rows: Vec<Vec<String>> = runs.iter().map(row).collect();
    output::text(&output::table(&["run", "for", "changes", "runner", "result"], &rows))
}

fn row(run: &RunView) -> Vec<String> {
    let result = match (&run.result, &run.runner) {
        (Some(result), _) if result.proves_green() => format!("green, {} ran", result.ran),
        (Some(result), _) if result.complete => {
            format!("red, {} of {} failed", result.failed.len(), result.ran)
        }
        (Some(_), _) => "no complete result".to_owned(),
        (None, Some(_)) => "runs".to_owned(),
        (None, None) => "waits for a runner".to_owned(),
    };
    let runner = run.runner.as_ref().map_or_else(|| "-".to_owned(), ToString::to_string);
    vec![run.run.to_string(), run.purpose.clone(), run.changes.len().to_string(), runner, result]
}
