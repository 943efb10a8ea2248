//! `yard log`: what landed, newest first, from the index.

use anyhow::Result;

use crate::client::escape;
use crate::output;
use crate::place::Place;

/// Arguments.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// At most this many
    #[arg(short = 'n', long, default_value_t = 20)]
    limit: u32,
    /// Of this agent only
    #[arg(long)]
    agent: Option<String>,
    /// With this text in title, task or body
    #[arg(long)]
    text: Option<String>,
}

/// Prints it.
///
/// # Errors
/// When the platform cannot be asked.
pub fn run(place: &Place, args: &Args) -> Result<()> {
    let mut query = format!("limit={}", args.limit);
    for (name, value) in [("agent", &args.agent), ("text", &args.text)] {
        if let Some(value) = value {
            query.push_str(&format!("&{name}={}", escape(value)));
        }
    }
    let records = place.client()?.records(&place.repo()?, &query)?;
    if place.json {
        return output::json(&records);
    }
    if records.is_empty() {
        let any = args.agent.is_none() && args.text.is_none();
        return output::text(if any { "nothing has landed yet\n" } else { "nothing that landed fits\n" });
    }
    let rows: Vec<Vec<String>> = records
        .iter()
        .map(|record| {
            vec![
                record.commit.to_string().chars().take(10).collect(),
                record.at.utc(),
                record.change.to_string(),
                format!("v{}", record.version),
                record.fork.as_ref().map_or_else(|| "-".to_owned(), ToString::to_string),
                record.attempt.clone(),
                record.title.clone(),
            ]
        })
        .collect();
    let header = ["commit", "landed (UTC)", "change", "version", "fork", "train", "title"];
    output::text(&output::table(&header, &rows))
}
