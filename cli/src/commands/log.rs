//! `yard log`: what landed, newest first, from the index.

use anyhow::Result;

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

/// Percent-encodes what is not unreserved in a query.
#[must_use]
pub fn escape(text: &str) -> String {
    text.bytes()
        .map(|byte| match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => {
                char::from(byte).to_string()
            }
            _ => format!("%{byte:02X}"),
        })
        .collect()
}

/// Seconds since the Unix epoch as `YYYY-MM-DD HH:MM:SS`, UTC.
///
/// Days to civil date after Howard Hinnant's `civil_from_days`.
#[must_use]
pub fn utc(seconds: u64) -> String {
    let (days, rest) = (seconds / 86_400, seconds % 86_400);
    let z = days + 719_468;
    let era = z / 146_097;
    let day_of_era = z - era * 146_097;
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02} {:02}:{:02}:{:02}", rest / 3600, rest / 60 % 60, rest % 60)
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
                utc(record.at.seconds()),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_printed_as_date_does() {
        assert_eq!(utc(0), "1970-01-01 00:00:00");
        assert_eq!(utc(951_782_400), "2000-02-29 00:00:00");
        assert_eq!(utc(1_796_060_072), "2026-11-30 17:34:32");
    }

    #[test]
    fn a_query_keeps_its_bytes() {
        assert_eq!(escape("a b&c=ä"), "a%20b%26c%3D%C3%A4");
    }
}
