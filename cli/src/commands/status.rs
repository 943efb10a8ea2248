//! `yard status`: what is open, where it stands, and why it is not on main.

use anyhow::Result;
use yard_common::Millis;
use yard_wire::api::ChangeStatus;
use yard_wire::lane::Stage;
use yard_wire::repository::ClaimView;

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
    let mut out = format!("{repo}: main {main}\n");
    let frozen = status.view.frozen.as_ref().map(|reason| format!("landing is frozen: {reason}"));
    // A lane that waits because of the freeze says so itself.
    for told in [&frozen, &status.waits.filter(|waits| Some(waits) != frozen.as_ref())].into_iter().flatten()
    {
        out.push_str(&format!("{}\n", paint(Colour::Yellow, told)));
    }
    if status.open.is_empty() {
        out.push_str("nothing is open\n");
    } else {
        out.push_str(&output::table(&header, &status.open.iter().map(row).collect::<Vec<_>>()));
    }
    if !status.view.claims.is_empty() {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH)?.as_millis();
        out.push_str(&format!("\n{}", claims(&status.view.claims, Millis(u64::try_from(now)?))));
    }
    output::text(&out)
}

/// Paths of a claim that are shown.
const CLAIM_PATHS: usize = 5;

fn claims(claims: &[ClaimView], now: Millis) -> String {
    let rows: Vec<Vec<String>> = claims
        .iter()
        .map(|claim| {
            let mut paths: Vec<String> =
                claim.paths.iter().take(CLAIM_PATHS).map(ToString::to_string).collect();
            if claim.paths.len() > CLAIM_PATHS {
                paths.push(format!("and {} more", claim.paths.len() - CLAIM_PATHS));
            }
            let holder =
                claim.fork.as_ref().map_or_else(|| "the parent repository".to_owned(), ToString::to_string);
            vec![claim.fence.to_string(), holder, claim.until.until(now), paths.join(", ")]
        })
        .collect();
    output::table(&["claim", "held by", "for how long", "paths"], &rows)
}

#[cfg(test)]
mod tests {
    use super::*;
    use yard_common::{Fence, ForkName, RepoPath};

    #[test]
    fn a_claim_says_who_what_and_until_when() {
        let path = |name: &str| RepoPath::new(name).unwrap();
        let claim = ClaimView {
            fork: Some(ForkName::new("ann").unwrap()),
            paths: ["a", "b", "c", "d", "e", "f"].map(path).to_vec(),
            fence: Fence(7),
            until: Millis(240_000),
        };
        let text = claims(&[claim], Millis(0));
        assert_eq!(
            text.lines().last().unwrap(),
            "7      ann      until 00:04:00Z (in 4 min)  a, b, c, d, e, and 1 more"
        );
    }
}
