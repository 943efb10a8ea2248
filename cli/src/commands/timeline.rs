//! `yard timeline`: who did what when, newest first, from the index.

use anyhow::Result;
use yard_wire::api::TimelineEvent;

use super::log::query;
use crate::output::{self, Colour, paint};
use crate::place::Place;
use crate::when;

/// Arguments.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// At most this many
    #[arg(short = 'n', long, default_value_t = 40)]
    limit: u32,
    /// By this agent, or about its changes
    #[arg(long)]
    agent: Option<String>,
    /// About changes of this file, or of something below this directory
    #[arg(long)]
    path: Option<String>,
    /// About this change: its id, or its first characters
    #[arg(long)]
    change: Option<String>,
    /// Of this kind: submitted, testing, run, landed, needs-author, replaying, held, claimed, ...
    #[arg(long)]
    kind: Option<String>,
    /// Since then: 2h, 3d, 2026-11-30, or '2026-11-30 17:05'; UTC
    #[arg(long, value_parser = when::parse)]
    since: Option<when::When>,
    /// Before then
    #[arg(long, value_parser = when::parse)]
    until: Option<when::When>,
    /// Older than this event's cursor (in --json)
    #[arg(long)]
    before: Option<String>,
}

/// Prints it.
///
/// # Errors
/// When the platform cannot be asked.
pub fn run(place: &Place, args: &Args) -> Result<()> {
    let now = when::now();
    let filters = [
        ("agent", args.agent.clone()),
        ("path", args.path.clone()),
        ("change", args.change.clone()),
        ("kind", args.kind.clone()),
        ("since", args.since.map(|when| when.at(now).to_string())),
        ("until", args.until.map(|when| when.at(now).to_string())),
        ("before", args.before.clone()),
    ];
    let events = place.client()?.timeline(&place.repo()?, &query(args.limit, &filters))?;
    if place.json {
        return output::json(&events);
    }
    if events.is_empty() {
        return output::text("nothing that happened fits\n");
    }
    let rows: Vec<Vec<String>> = events.iter().map(row).collect();
    output::text(&output::table(&["when (UTC)", "who", "what", "change", "in words"], &rows))
}

fn row(event: &TimelineEvent) -> Vec<String> {
    let colour = match event.kind.as_str() {
        "landed" => Some(Colour::Green),
        "needs-author" | "refused" | "expired" => Some(Colour::Red),
        "held" | "frozen" | "replaying" => Some(Colour::Yellow),
        _ => None,
    };
    let short = |change: &yard_common::ChangeId| change.as_str().chars().take(12).collect::<String>();
    let about = match event.changes.as_slice() {
        [] => "-".to_owned(),
        [one] => short(one),
        many => output::count(many.len() as u64, "change"),
    };
    vec![
        event.at.utc(),
        if event.who.is_empty() { "-".to_owned() } else { event.who.clone() },
        colour.map_or_else(|| event.kind.clone(), |colour| paint(colour, &event.kind)),
        about,
        event.text.lines().next().unwrap_or_default().to_owned(),
    ]
}
