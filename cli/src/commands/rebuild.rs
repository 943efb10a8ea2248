//! `yard rebuild-index`: the index made anew from the objects.

use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use serde::Serialize;
use yard_wire::api::IndexPart;

use crate::output;
use crate::place::Place;

/// How often it is asked how far it is.
const POLL: Duration = Duration::from_millis(300);

/// Arguments of `yard rebuild-index`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Seconds without any progress after which this gives up; the platform goes on by itself
    #[arg(long, default_value_t = 120)]
    patience: u64,
}

#[derive(Debug, Serialize)]
struct Done {
    cleared: u64,
    parts: Vec<IndexPart>,
}

/// What is sent of what there was at the beginning, over all parts.
fn sent(now: &[IndexPart], goal: &[IndexPart]) -> u64 {
    now.iter().zip(goal).map(|(part, goal)| part.sent.min(goal.total)).sum()
}

/// Empties the index, has it filled again, and waits until it is.
///
/// # Errors
/// When the platform refuses, with its reason; when it makes no progress.
pub fn run(place: &Place, args: &Args) -> Result<()> {
    let (client, repo) = (place.client()?, place.repo()?);
    let mut cleared = 0;
    let goal = loop {
        let step = client.rebuild_index(&repo)?;
        cleared += step.cleared;
        if !step.clearing {
            break step.parts;
        }
    };
    let total: u64 = goal.iter().map(|part| part.total).sum();
    let progress = output::Progress::new("facts and rows", usize::try_from(total).unwrap_or(usize::MAX));
    let (mut best, mut since) = (0, Instant::now());
    let parts = loop {
        let parts = client.index_progress(&repo)?.parts;
        let reached = sent(&parts, &goal);
        progress.reach(usize::try_from(reached).unwrap_or(usize::MAX));
        if reached >= total {
            break parts;
        }
        if reached > best {
            (best, since) = (reached, Instant::now());
        }
        if since.elapsed() > Duration::from_secs(args.patience) {
            bail!(
                "the index stands at {reached} of {total}: the platform goes on; look again with yard status"
            );
        }
        std::thread::sleep(POLL);
    };
    drop(progress);
    if place.json {
        return output::json(&Done { cleared, parts });
    }
    output::text(&format!(
        "the index of {repo} is made anew: {cleared} rows deleted, {total} facts and rows sent\n"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_came_meanwhile_does_not_make_up_for_what_is_missing() {
        let part = |sent, total| IndexPart { name: "p".into(), sent, total };
        let goal = [part(0, 10), part(0, 5)];
        assert_eq!(sent(&[part(20, 20), part(3, 9)], &goal), 13);
    }
}
