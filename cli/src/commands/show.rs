//! `yard show CHANGE`: one change, so that a reviewer can judge it without leaving the terminal.

use anyhow::Result;
use yard_common::fact::Fact;
use yard_common::landing::{Edit, How, LandChange, LandRequest};
use yard_common::submission::Entry;
use yard_common::{ChangeId, RunId};
use yard_wire::api::{ChangeDetail, ChangeDiff, RunLog};
use yard_wire::lane::Step;

use super::status::stage;
use crate::output::{self, Colour, paint};
use crate::place::Place;
use crate::{Client, ClientError};

mod diff;

/// Lines of a red run's log that are shown with its change.
const LOG_LINES: usize = 30;
/// Rivals of a redone version that are shown with their titles.
const RIVALS_MAX: usize = 20;

/// Arguments.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The change, or a run that was not green: the id, or its first characters
    #[arg(value_name = "CHANGE")]
    id: String,
    /// With what the newest version does to its paths (always shown of one that a model redid)
    #[arg(short = 'p', long)]
    diff: bool,
}

/// A change, with the diffs that were asked for: of a redone version, the reviewed one comes first.
#[derive(Debug, serde::Serialize)]
struct Shown {
    #[serde(flatten)]
    detail: ChangeDetail,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    diffs: Vec<ChangeDiff>,
    /// Id and title of each change that landed meanwhile on a redone version's paths.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    rivals: Vec<String>,
}

/// Prints it.
///
/// # Errors
/// When there is neither such a change nor such a run.
pub fn run(place: &Place, args: &Args) -> Result<()> {
    let (client, repo) = (place.client()?, place.repo()?);
    let detail = match client.change(&repo, &args.id) {
        Ok(detail) => detail,
        Err(error) => match client.run_log(&repo, &args.id, 0) {
            Ok(log) if place.json => return output::json(&log),
            Ok(log) => return output::text(&format!("run {}\n{}", log.run, output::printable(&log.log))),
            // A run's id is no change's; what is wrong with it is said of the run.
            Err(of_run) if is_ambiguous(&of_run) => return Err(of_run.into()),
            Err(_) => return Err(error.into()),
        },
    };
    let log = if place.json { None } else { last_red(&client, place, &detail)? };
    let shown = with_diffs(&client, place, args.diff, detail)?;
    if place.json {
        return output::json(&shown);
    }
    output::text(&text(&shown, log.as_ref()))
}

/// Asks for the diffs, and for the titles of rivals.
fn with_diffs(client: &Client, place: &Place, asked: bool, detail: ChangeDetail) -> Result<Shown> {
    let (repo, change) = (place.repo()?, detail.status.change.clone());
    let mut versions = Vec::new();
    let mut rivals = Vec::new();
    if let Some(origin) = &detail.row.replay {
        versions.push(origin.reviewed);
        for rival in origin.rivals.iter().take(RIVALS_MAX) {
            // A rival that cannot be told stands there by its id.
            let title = client.change(&repo, rival).map(|rival| rival.status.title).unwrap_or_default();
            rivals.push(format!("{rival}  {title}").trim_end().to_owned());
        }
    }
    if asked || detail.row.replay.is_some() {
        versions.push(detail.row.version);
    }
    let diffs = versions.into_iter().map(|version| client.diff(&repo, &change, version));
    Ok(Shown { diffs: diffs.collect::<Result<_, _>>()?, detail, rivals })
}

fn is_ambiguous(error: &ClientError) -> bool {
    error.problem().is_some_and(|problem| problem.detail.starts_with("ambiguous"))
}

/// The log of the newest run that was not green; green runs keep none.
fn last_red(client: &Client, place: &Place, detail: &ChangeDetail) -> Result<Option<RunLog>> {
    let repo = place.repo()?;
    let told = detail.history.iter().rev().filter(|step| step.kind == "red");
    let mut runs: Vec<&RunId> = told.filter_map(|step| step.run.as_ref()).collect();
    runs.extend(detail.entry.iter().flat_map(|entry| entry.runs.iter().rev()));
    Ok(runs.into_iter().take(5).find_map(|run| client.run_log(&repo, run, 0).ok()))
}

fn text(shown: &Shown, log: Option<&RunLog>) -> String {
    let detail = &shown.detail;
    let (status, row) = (&detail.status, &detail.row);
    let mut out = format!("change   {} v{}  {}\n", status.change, status.version, stage(status.stage));
    let mut line = |name: &str, text: &str| {
        out.push_str(&format!("{name:<8} {}\n", text.trim_end().replace('\n', "\n         ")));
    };
    line("why", &status.reason);
    line("title", &row.intent.title);
    if !row.intent.body.is_empty() {
        line("says", &row.intent.body);
    }
    let fork = row.fork.as_ref().map(|fork| format!(", fork {fork}")).unwrap_or_default();
    line("by", &format!("{} <{}>{fork}", row.author.name, row.author.email));
    for (name, text) in [
        ("task", &row.intent.task),
        ("plan", &row.intent.plan),
        ("review", &row.intent.review),
        ("tests", &row.intent.tests),
        ("agent", &row.intent.agent),
        ("model", &row.intent.model),
    ] {
        if !text.is_empty() {
            line(name, text);
        }
    }
    let commits: Vec<String> = row.base.commits.iter().map(ToString::to_string).collect();
    line("base", &commits.join(" "));
    line("head", &row.head.to_string());
    row.warnings.iter().for_each(|warning| line("warning", warning));
    out.push_str("\nhistory\n");
    for step in &detail.history {
        out.push_str(&format!("  {}  {}\n", step.at.utc(), coloured(step)));
        out.push_str(&proof_of(step, detail).unwrap_or_default());
    }
    if let Some(origin) = &row.replay {
        out.push_str(&diff::replay(&status.version.to_string(), origin, &shown.rivals, &shown.diffs));
    } else {
        shown.diffs.iter().for_each(|diff| out.push_str(&diff::version("diff", diff)));
    }
    if let Some(log) = log {
        out.push_str(&format!("\nend of the log of run {} (all of it: yard logs {})\n", log.run, log.run));
        let shown = output::printable(&log.log);
        let lines: Vec<&str> = shown.lines().collect();
        for line in lines.iter().skip(lines.len().saturating_sub(LOG_LINES)) {
            out.push_str(&format!("  {line}\n"));
        }
    }
    out
}

fn coloured(step: &Step) -> String {
    match step.kind.as_str() {
        "red" | "back" | "rewritten" => paint(Colour::Red, &step.text),
        "run" | "landed" => paint(Colour::Green, &step.text),
        "held" | "verdict" => paint(Colour::Yellow, &step.text),
        _ => step.text.clone(),
    }
}

/// What proves a landing, under its step.
fn proof_of(step: &Step, detail: &ChangeDetail) -> Option<String> {
    let number = step.fact?;
    let (_, _, fact) = detail.facts.iter().find(|(no, ..)| *no == number)?;
    let Fact::Landed { request, .. } = fact else { return None };
    let change: &ChangeId = &detail.status.change;
    let landed = request.changes.iter().find(|item| item.change == *change)?;
    Some(proof(request, landed))
}

fn proof(request: &LandRequest, landed: &LandChange) -> String {
    let mut out = String::new();
    for run in &request.runs {
        let tests = output::count(run.result.ran.into(), "test");
        out.push_str(&format!("    run {}: {tests} green on tree {}\n", run.run, run.tree));
    }
    out.push_str("    proof: each path as base, on main before, in the change, after\n");
    let rows: Vec<Vec<String>> = landed.edits.iter().map(edit_row).collect();
    for line in output::table(&["path", "base", "ours", "theirs", "result", "how"], &rows).lines() {
        out.push_str(&format!("    {line}\n"));
    }
    out
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
