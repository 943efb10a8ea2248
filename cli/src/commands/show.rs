//! `yard show CHANGE`: one change, so that a reviewer can judge it without leaving the terminal.

use anyhow::Result;
use yard_common::fact::Fact;
use yard_common::landing::{Edit, How, LandChange, LandRequest};
use yard_common::submission::Entry;
use yard_common::{ChangeId, FactNo, Millis};

use super::log::utc;
use super::status::stage;
use crate::output;
use crate::place::Place;

/// Lines of a red run's log that are shown.
const LOG_LINES: usize = 30;

/// Arguments.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The change
    change: ChangeId,
}

/// Prints it.
///
/// # Errors
/// When there is no such change.
pub fn run(place: &Place, args: &Args) -> Result<()> {
    let (client, repo) = (place.client()?, place.repo()?);
    let detail = client.change(&repo, &args.change)?;
    if place.json {
        return output::json(&detail);
    }
    let (status, row) = (&detail.status, &detail.row);
    println!("change   {} v{}  {}", status.change, status.version, stage(status.stage));
    println!("why      {}", status.reason);
    println!("title    {}", row.intent.title);
    println!(
        "by       {} <{}>{}",
        row.author.name,
        row.author.email,
        row.fork.as_ref().map(|fork| format!(", fork {fork}")).unwrap_or_default()
    );
    for (name, text) in [
        ("task", &row.intent.task),
        ("plan", &row.intent.plan),
        ("review", &row.intent.review),
        ("tests", &row.intent.tests),
        ("agent", &row.intent.agent),
        ("model", &row.intent.model),
    ] {
        if !text.is_empty() {
            println!("{name:<8} {}", text.replace('\n', "\n         "));
        }
    }
    println!("base     {}", row.base.commits.iter().map(ToString::to_string).collect::<Vec<_>>().join(" "));
    println!("head     {}", row.head);
    for warning in &row.warnings {
        println!("warning  {warning}");
    }
    println!("\nhistory");
    for (number, at, fact) in &detail.facts {
        event(*number, *at, fact, &args.change);
    }
    let runs = detail.entry.map(|entry| entry.runs).unwrap_or_default();
    // Green runs keep no log.
    if let Some(log) = runs.iter().rev().find_map(|run| client.run_log(&repo, run).ok()) {
        println!("\nend of the log of run {}", log.run);
        let lines: Vec<&str> = log.log.lines().collect();
        for line in lines.iter().skip(lines.len().saturating_sub(LOG_LINES)) {
            println!("  {line}");
        }
    }
    Ok(())
}

fn event(number: FactNo, at: Millis, fact: &Fact, change: &ChangeId) {
    let line = |text: String| println!("  {}  fact {number}: {text}", utc(at.seconds()));
    match fact {
        Fact::Submitted { row, .. } => {
            let paths = output::count(row.edits.len() as u64, "path");
            line(format!("version {} accepted, {}, lane {}", row.version, paths, row.lane));
        }
        Fact::Landed { request, .. } => {
            if let Some(landed) = request.changes.iter().find(|item| item.change == *change) {
                line(format!("landed as {} in {}", landed.commit, request.key));
                proof(request, landed);
            }
        }
        Fact::Closed { stage, by, .. } => line(format!("{stage:?} by {by}")),
        Fact::HoldSet { reason: Some(reason), .. } => line(format!("held: {reason}")),
        Fact::HoldSet { reason: None, .. } => line("released".into()),
        Fact::Requeued { .. } => line("offered again".into()),
        Fact::LandingRefused { refusal, .. } => line(format!("landing refused: {refusal}")),
        other => line(
            serde_json::to_value(other)
                .ok()
                .and_then(|value| value.get("fact").and_then(|name| name.as_str().map(str::to_owned)))
                .unwrap_or_default(),
        ),
    }
}

fn proof(request: &LandRequest, landed: &LandChange) {
    for run in &request.runs {
        println!(
            "    run {}: {} green on tree {}",
            run.run,
            output::count(run.result.ran.into(), "test"),
            run.tree
        );
    }
    println!("    proof: each path as base, on main before, in the change, after");
    let rows: Vec<Vec<String>> = landed.edits.iter().map(edit_row).collect();
    for line in output::table(&["path", "base", "ours", "theirs", "result", "how"], &rows).lines() {
        println!("    {line}");
    }
}

fn edit_row(edit: &Edit) -> Vec<String> {
    let path = match &edit.from {
        Some(from) => format!("{from} -> {}", edit.path),
        None => edit.path.to_string(),
    };
    let how = match &edit.how {
        How::Theirs => "theirs".to_owned(),
        How::Same => "same".to_owned(),
        How::Merge => "clean merge".to_owned(),
        How::Rule(name) => format!("rule {name}"),
    };
    vec![path, entry(edit.base), entry(edit.ours), entry(edit.theirs), entry(edit.result), how]
}

fn entry(entry: Option<Entry>) -> String {
    entry.map_or_else(|| "absent".to_owned(), |entry| entry.id.to_string().chars().take(10).collect())
}
