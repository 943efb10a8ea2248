//! `yard cancel|hold|release|requeue CHANGE`, `yard freeze|thaw|protect|unprotect`.

use anyhow::Result;
use yard_common::Version;

use crate::output;
use crate::place::Place;

/// Arguments of an act on a change.
#[derive(Debug, clap::Args)]
pub struct ChangeArgs {
    /// The change: its id, or the first characters of it
    change: String,
    /// Why: kept with the change, for whoever looks at it
    #[arg(long, default_value = "")]
    reason: String,
}

/// Arguments of an act on the repository.
#[derive(Debug, clap::Args)]
pub struct RepoArgs {
    /// Why: shown to whoever waits
    #[arg(long, default_value = "")]
    reason: String,
}

/// Arguments of `yard approve`.
#[derive(Debug, clap::Args)]
pub struct ApproveArgs {
    /// The change: its id, or the first characters of it
    change: String,
    /// The version that you have read, as status prints it: v2, or 2
    #[arg(value_parser = version)]
    version: Version,
}

fn version(text: &str) -> Result<Version, String> {
    let number = text.strip_prefix('v').unwrap_or(text);
    number.parse().map(Version).map_err(|_| "a version is a number, as in v2 or 2".to_owned())
}

/// What the platform has done, in the past tense.
fn done(act: &str) -> &str {
    match act {
        "cancel" => "cancelled",
        "hold" => "held",
        "release" => "released",
        "requeue" => "offered again",
        "freeze" => "landing is frozen in",
        "thaw" => "landing goes on in",
        "protect" => "main takes no direct pushes in",
        "unprotect" => "main takes an admin's direct pushes in",
        other => other,
    }
}

/// The change's whole id, as the platform answers with it.
fn whole<'a>(answer: &'a serde_json::Value, given: &'a str) -> &'a str {
    answer.get("change").and_then(serde_json::Value::as_str).unwrap_or(given)
}

/// Lets a version touch the configuration.
///
/// # Errors
/// When the platform refuses, with its reason.
pub fn approve(place: &Place, args: &ApproveArgs) -> Result<()> {
    let answer = place.client()?.approve(&place.repo()?, &args.change, args.version)?;
    if place.json {
        return output::json(&answer);
    }
    output::text(&format!("approved {} v{}\n", whole(&answer, &args.change), args.version))
}

/// Does it to a change.
///
/// # Errors
/// When the platform refuses, with its reason.
pub fn change(place: &Place, act: &str, args: &ChangeArgs) -> Result<()> {
    let answer = place.client()?.act_on_change(&place.repo()?, &args.change, act, &args.reason)?;
    if place.json {
        return output::json(&answer);
    }
    output::text(&format!("{} {}\n", done(act), whole(&answer, &args.change)))
}

/// Does it to the repository.
///
/// # Errors
/// When the platform refuses, with its reason.
pub fn repo(place: &Place, act: &str, args: &RepoArgs) -> Result<()> {
    let repo = place.repo()?;
    let answer = place.client()?.act_on_repo(&repo, act, &args.reason)?;
    if place.json {
        return output::json(&answer);
    }
    output::text(&format!("{} {repo}\n", done(act)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_taken_as_it_is_printed() {
        assert_eq!(version("v2"), Ok(Version(2)));
        assert_eq!(version("2"), Ok(Version(2)));
        assert!(version("two").is_err());
    }
}
