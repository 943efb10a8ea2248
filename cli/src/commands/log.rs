//! `yard log`: what landed, newest first, from the index.

use anyhow::Result;
use yard_wire::api::Record;

use crate::client::escape;
use crate::output;
use crate::place::Place;
use crate::when;

/// Arguments.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// At most this many
    #[arg(short = 'n', long, default_value_t = 20)]
    limit: u32,
    /// Of this agent only
    #[arg(long)]
    agent: Option<String>,
    /// That changed this file, or something below this directory
    #[arg(long)]
    path: Option<String>,
    /// With this in the task
    #[arg(long)]
    task: Option<String>,
    /// That ever got this verdict: broken-alone, interaction, victim, flaky, stale-base, infra
    #[arg(long)]
    verdict: Option<String>,
    /// With this text anywhere in the intent
    #[arg(long)]
    text: Option<String>,
    /// Landed since then: 2h, 3d, 2026-11-30, or '2026-11-30 17:05'; UTC
    #[arg(long, value_parser = when::parse)]
    since: Option<when::When>,
    /// Landed before then
    #[arg(long, value_parser = when::parse)]
    until: Option<when::When>,
    /// Older than this record's cursor (in --json)
    #[arg(long)]
    before: Option<u64>,
}

/// The query of these filters; what is not asked for is left out.
pub(super) fn query(limit: u32, filters: &[(&str, Option<String>)]) -> String {
    let mut query = format!("limit={limit}");
    for (name, value) in filters {
        if let Some(value) = value {
            query.push_str(&format!("&{name}={}", escape(value)));
        }
    }
    query
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
        ("task", args.task.clone()),
        ("verdict", args.verdict.clone()),
        ("text", args.text.clone()),
        ("since", args.since.map(|when| when.at(now).to_string())),
        ("until", args.until.map(|when| when.at(now).to_string())),
        ("before", args.before.map(|cursor| cursor.to_string())),
    ];
    let records = place.client()?.records(&place.repo()?, &query(args.limit, &filters))?;
    if place.json {
        return output::json(&records);
    }
    if records.is_empty() {
        let any = filters.iter().all(|(_, value)| value.is_none());
        return output::text(if any { "nothing has landed yet\n" } else { "nothing that landed fits\n" });
    }
    let rows: Vec<Vec<String>> = records.iter().map(row).collect();
    let header = ["commit", "landed (UTC)", "change", "version", "by", "train", "proof", "title"];
    output::text(&output::table(&header, &rows))
}

fn row(record: &Record) -> Vec<String> {
    let fork = record.fork.as_ref().map_or_else(|| "-".to_owned(), ToString::to_string);
    vec![
        record.commit.to_string().chars().take(10).collect(),
        record.at.utc(),
        record.change.to_string().chars().take(12).collect(),
        format!("v{}", record.version),
        if record.agent.is_empty() { fork } else { record.agent.clone() },
        record.attempt.clone(),
        proof(record),
        record.title.clone(),
    ]
}

/// What proves it, in a few words: `12 tests`, `12 tests, 1 by rule, replayed`.
fn proof(record: &Record) -> String {
    let tests = record.proof.runs.iter().map(|run| run.ran).max().unwrap_or(0);
    let mut parts = vec![output::count(tests.into(), "test")];
    let ruled = record.proof.how.iter().filter(|(how, _)| how.starts_with("rule"));
    let ruled: u32 = ruled.map(|(_, count)| count).sum();
    let merged = record.proof.how.get("clean merge").copied().unwrap_or(0);
    parts.extend((merged > 0).then(|| format!("{merged} merged")));
    parts.extend((ruled > 0).then(|| format!("{ruled} by rule")));
    parts.extend(record.replay.is_some().then(|| "replayed".to_owned()));
    parts.extend(record.proof.untested.as_ref().map(|what| format!("untested: {what}")));
    parts.join(", ")
}
