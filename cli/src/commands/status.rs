//! `yard status`: what is open, where it stands, and why it is not on main.

use anyhow::Result;
use yard_wire::api::ChangeStatus;
use yard_wire::lane::Stage;

use crate::output::{self, Colour, paint};
use crate::place::Place;

/// Arguments.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Show ended changes as well, this many of the newest
    #[arg(long, value_name = "N")]
    all: Option<u32>,
}

/// The stage as people read it, in its colour.
#[must_use]
pub fn stage(stage: Stage) -> String {
    let (text, colour) = match stage {
        Stage::Submitted => ("submitted", Colour::Dim),
        Stage::Queued => ("queued", Colour::Dim),
        Stage::Testing => ("testing", Colour::Yellow),
        Stage::Replaying => ("replaying", Colour::Yellow),
        Stage::Held => ("held", Colour::Yellow),
        Stage::NeedsAuthor => ("needs-author", Colour::Red),
        Stage::Landed => ("landed", Colour::Green),
        Stage::Withdrawn => ("withdrawn", Colour::Dim),
        Stage::AlreadyOnMain => ("already-on-main", Colour::Dim),
        Stage::Expired => ("expired", Colour::Red),
    };
    paint(colour, text)
}

fn row(change: &ChangeStatus) -> Vec<String> {
    vec![
        change.change.to_string(),
        format!("v{}", change.version),
        change.fork.as_ref().map_or_else(|| "-".to_owned(), ToString::to_string),
        stage(change.stage),
        change.title.chars().take(50).collect(),
        change.reason.clone(),
    ]
}

/// Prints it.
///
/// # Errors
/// When the platform cannot be asked.
pub fn run(place: &Place, args: &Args) -> Result<()> {
    let (client, repo) = (place.client()?, place.repo()?);
    let header = ["change", "version", "fork", "stage", "title", "why"];
    if let Some(limit) = args.all {
        let changes = client.changes(&repo, limit)?;
        if place.json {
            return output::json(&changes);
        }
        return output::text(&output::table(&header, &changes.iter().map(row).collect::<Vec<_>>()));
    }
    let status = client.status(&repo)?;
    if place.json {
        return output::json(&status);
    }
    let main = status.view.head.map_or_else(|| "empty".to_owned(), |id| id.to_string());
    println!("{repo}: main {main}");
    if let Some(reason) = &status.view.frozen {
        println!("{}", paint(Colour::Yellow, &format!("frozen: {reason}")));
    }
    if let Some(waits) = &status.waits {
        println!("{}", paint(Colour::Yellow, &format!("the lane waits: {waits}")));
    }
    if status.open.is_empty() {
        println!("nothing is open");
    } else {
        output::text(&output::table(&header, &status.open.iter().map(row).collect::<Vec<_>>()))?;
    }
    Ok(())
}
