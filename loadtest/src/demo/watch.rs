//! Live progress: a bar on a terminal, lines elsewhere.

use std::collections::BTreeMap;
use std::io::{IsTerminal as _, Write as _};
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use yard_cli::Client;
use yard_common::{ChangeId, RepoName};
use yard_wire::api::ChangeStatus;
use yard_wire::lane::Stage;

/// The longest that the changes of a demo may take.
const SETTLE_MAX: Duration = Duration::from_secs(180);
/// Cells of the bar.
const BAR: usize = 30;

/// Has this change come to rest: landed, ended, or waiting for its author?
fn rests(stage: Stage) -> bool {
    match stage {
        Stage::Landed | Stage::Withdrawn | Stage::AlreadyOnMain | Stage::Expired | Stage::NeedsAuthor => true,
        Stage::Submitted | Stage::Queued | Stage::Testing | Stage::Replaying | Stage::Held => false,
    }
}

/// Watches until `expected` changes rest and nothing waits for the index.
///
/// # Errors
/// When they do not in time: with where they stand.
pub fn until_settled(client: &Client, repo: &RepoName, expected: usize) -> Result<Vec<ChangeStatus>> {
    let live = std::io::stderr().is_terminal();
    let began = Instant::now();
    let mut seen: BTreeMap<ChangeId, Stage> = BTreeMap::new();
    loop {
        let changes = client.changes(repo, 200)?;
        let resting = changes.iter().filter(|change| rests(change.stage)).count();
        if live {
            bar(&changes, expected, began);
        } else {
            lines(&changes, &mut seen, began);
        }
        if resting == changes.len() && changes.len() >= expected && client.status(repo)?.outbox == 0 {
            if live {
                eprintln!();
            }
            return Ok(changes);
        }
        if began.elapsed() > SETTLE_MAX {
            let left: Vec<String> = changes
                .iter()
                .filter(|change| !rests(change.stage))
                .map(|change| format!("{} {:?}: {}", change.change, change.stage, change.reason))
                .collect();
            bail!(
                "not settled after {} s ({} of {expected} changes):\n{}",
                SETTLE_MAX.as_secs(),
                changes.len(),
                left.join("\n")
            );
        }
        std::thread::sleep(Duration::from_millis(200));
    }
}

fn count(changes: &[ChangeStatus], is: impl Fn(Stage) -> bool) -> usize {
    changes.iter().filter(|change| is(change.stage)).count()
}

fn bar(changes: &[ChangeStatus], expected: usize, began: Instant) {
    let landed = count(changes, |stage| stage == Stage::Landed);
    let back = count(changes, |stage| stage == Stage::NeedsAuthor);
    let testing = count(changes, |stage| stage == Stage::Testing);
    let cells = |n: usize| n * BAR / expected.max(1);
    let (good, bad) = (cells(landed), cells(back));
    let rest = BAR.saturating_sub(good + bad);
    eprint!(
        "\r\u{1b}[K[\u{1b}[32m{}\u{1b}[31m{}\u{1b}[0m{}] {landed} landed, {testing} in test, {back} sent back, {} \
         offered of {expected}, {:.1} s",
        "#".repeat(good),
        "#".repeat(bad),
        ".".repeat(rest),
        changes.len(),
        began.elapsed().as_secs_f64()
    );
    let _ = std::io::stderr().flush();
}

fn lines(changes: &[ChangeStatus], seen: &mut BTreeMap<ChangeId, Stage>, began: Instant) {
    for change in changes.iter().rev() {
        if seen.insert(change.change.clone(), change.stage) != Some(change.stage) {
            eprintln!(
                "{:6.1} s  {:?}: {} ({})",
                began.elapsed().as_secs_f64(),
                change.stage,
                change.title,
                change.reason
            );
        }
    }
}
