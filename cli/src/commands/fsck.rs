//! `yard fsck --landings`: redoes every landing with git and compares.
//!
//! For each landed change: all that it brought can be fetched; main's commit differs from its parent by
//! exactly the edits of the proof; edits by a rule are what the rule makes of them; and git's own
//! three-way merge of (the row's base, the commit's parent, the version's tree) gives the rest of the
//! commit's tree. The version's tree is rebuilt from the base and the row's entries.

mod redo;

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context as _, Result, bail};
use yard_common::fact::Fact;
use yard_common::landing::LandChange;
use yard_common::submission::Submission;
use yard_common::{ChangeId, FactNo, ObjectId, Version};

use crate::output::{self, Colour, paint};
use crate::place::Place;
use crate::{Client, git};

/// Facts asked for at once.
const PAGE: u32 = 200;

/// What is found of a landing that a rewind took back.
const OFF_MAIN: &str = "off main: an admin rewrote main";

/// Arguments.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Redo every landing (so far the only check there is, made without this flag too)
    #[arg(long)]
    landings: bool,
    /// A clone to work in; a temporary bare one when absent
    #[arg(long)]
    clone: Option<std::path::PathBuf>,
}

/// What was found about one landed change.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Finding {
    /// The change.
    pub change: ChangeId,
    /// Its commit.
    pub commit: ObjectId,
    /// `ok`, `rule` (redone by its rule), `unknown` (an object is not kept), or what is wrong.
    pub result: String,
    /// Is it a fault?
    pub fault: bool,
}

/// Redoes all landings; faults make the command fail.
///
/// # Errors
/// When a landing cannot be proven again, or the platform or git fails.
pub fn run(place: &Place, args: &Args) -> Result<()> {
    let (client, repo) = (place.client()?, place.repo()?);
    let temporary = std::env::temp_dir().join(format!("yard-fsck-{}", std::process::id()));
    let folder = args.clone.clone().unwrap_or_else(|| temporary.clone());
    if args.clone.is_none() {
        std::fs::create_dir_all(&folder)?;
        git::run(&folder, None, &["init", "-q", "--bare"])?;
    }
    let url = format!("{}/{repo}.git", client.url());
    // git itself refuses a fetch whose history, trees and files are not whole.
    git::run_shown(&folder, client.token(), &["fetch", &url, "+refs/*:refs/yard/fsck/*"])
        .context("what main is made of cannot be fetched whole")?;
    let findings = check_all(&client, place, &folder);
    if args.clone.is_none() {
        let _ = std::fs::remove_dir_all(&temporary);
    }
    let findings = findings?;
    print(place, &findings)?;
    let faults = findings.iter().filter(|finding| finding.fault).count();
    if faults > 0 {
        bail!("{faults} of {} landings cannot be proven again", findings.len());
    }
    Ok(())
}

fn print(place: &Place, findings: &[Finding]) -> Result<()> {
    if place.json {
        return output::json(&findings);
    }
    let rows: Vec<Vec<String>> = findings
        .iter()
        .filter(|finding| finding.result != "ok")
        .map(|finding| {
            let colour = if finding.fault { Colour::Red } else { Colour::Dim };
            vec![finding.change.to_string(), finding.commit.to_string(), paint(colour, &finding.result)]
        })
        .collect();
    if !rows.is_empty() {
        output::text(&output::table(&["change", "commit", "result"], &rows))?;
    }
    output::text(&summary(findings))
}

/// One line: what was redone with git, and what was only compared and why.
fn summary(findings: &[Finding]) -> String {
    let count = |fits: &dyn Fn(&Finding) -> bool| findings.iter().filter(|finding| fits(finding)).count();
    let ok = count(&|finding| finding.result == "ok");
    let rule = count(&|finding| finding.result == "rule");
    let unknown = count(&|finding| !finding.fault && finding.result.starts_with("unknown"));
    let mut line = format!("{}: {ok} proven again by git", output::count(findings.len() as u64, "landing"));
    if rule > 0 {
        line.push_str(&format!(", {rule} by git and by their rule"));
    }
    let off = count(&|finding| finding.result == OFF_MAIN);
    if off > 0 {
        line.push_str(&format!(", {off} that a rewind took off main"));
    }
    if unknown > 0 {
        line.push_str(&format!(", {unknown} whose submitted objects are not kept (own edits compared)"));
    }
    line.push('\n');
    line
}

fn check_all(client: &Client, place: &Place, folder: &Path) -> Result<Vec<Finding>> {
    let repo = place.repo()?;
    let mut log = Log::default();
    let mut after = FactNo(0);
    loop {
        let page = client.landings(&repo, after, PAGE)?;
        let Some((last, _, _)) = page.last() else { break };
        after = *last;
        page.into_iter().for_each(|(_, _, fact)| log.take(fact));
    }
    let progress = output::Progress::new("landings", log.landings.len());
    let findings = log.landings.iter().map(|landing| {
        progress.step();
        let key = (landing.change.change.clone(), landing.change.version);
        if landing.on_main {
            return finding(folder, &landing.change, log.rows.get(&key));
        }
        let (commit, result) = (landing.change.commit, OFF_MAIN.to_owned());
        Ok(Finding { change: key.0, commit, result, fault: false })
    });
    findings.collect()
}

/// The landings of a log, and which of them main still has.
#[derive(Debug, Default)]
struct Log {
    rows: BTreeMap<(ChangeId, Version), Submission>,
    landings: Vec<Landing>,
}

#[derive(Debug)]
struct Landing {
    change: LandChange,
    on_main: bool,
}

impl Log {
    fn take(&mut self, fact: Fact) {
        match fact {
            Fact::Submitted { row, .. } => {
                self.rows.insert((row.change.clone(), row.version), *row);
            }
            Fact::Landed { request, .. } => {
                let landed = request.changes.into_iter();
                self.landings.extend(landed.map(|change| Landing { change, on_main: true }));
            }
            Fact::DirectPush { rewritten, restored, standing, .. } => {
                let commits: Vec<ObjectId> = standing.iter().map(|standing| standing.commit).collect();
                for landing in &mut self.landings {
                    let change = &landing.change.change;
                    if rewritten.contains(change) {
                        landing.on_main = false;
                    } else if restored.contains(change) {
                        landing.on_main = commits.contains(&landing.change.commit);
                    }
                }
            }
            _ => {}
        }
    }
}

fn finding(folder: &Path, landed: &LandChange, row: Option<&Submission>) -> Result<Finding> {
    let (result, fault) = match row {
        None => ("no accepted version belongs to it".to_owned(), true),
        Some(row) => redo::judge(folder, landed, row)?,
    };
    Ok(Finding { change: landed.change.clone(), commit: landed.commit, result, fault })
}

#[cfg(test)]
mod tests {
    use super::*;
    use yard_common::fact::Standing;
    use yard_common::{Epoch, Millis};

    fn id(digit: &str) -> ObjectId {
        digit.repeat(40).parse().unwrap()
    }

    fn change(name: &str) -> ChangeId {
        ChangeId::new(format!("change-{name}")).unwrap()
    }

    fn landing(name: &str, digit: &str) -> Landing {
        let change = LandChange {
            change: change(name),
            version: Version(1),
            commit: id(digit),
            edits: Vec::new(),
            list: None,
        };
        Landing { change, on_main: true }
    }

    fn push(rewritten: &[&str], standing: &[(&str, &str)]) -> Fact {
        let stands = |(name, digit): &(&str, &str)| Standing {
            change: change(name),
            version: Version(1),
            commit: id(digit),
        };
        let standing: Vec<Standing> = standing.iter().map(stands).collect();
        Fact::DirectPush {
            old: None,
            new: id("f"),
            epoch: Epoch(1),
            reason: "rewind".into(),
            rewritten: rewritten.iter().map(|name| change(name)).collect(),
            restored: standing.iter().map(|standing| standing.change.clone()).collect(),
            standing,
            policy: None,
            at: Millis(0),
        }
    }

    fn on_main(log: &Log) -> Vec<bool> {
        log.landings.iter().map(|landing| landing.on_main).collect()
    }

    #[test]
    fn what_a_rewind_took_off_main_is_no_fault_until_it_stands_there_again() {
        let mut log = Log { landings: vec![landing("one", "1"), landing("two", "2")], ..Log::default() };
        log.take(push(&["two"], &[]));
        assert_eq!(on_main(&log), [true, false]);
        log.landings.push(landing("two", "3"));
        assert_eq!(on_main(&log), [true, false, true], "landed anew, by another commit");
        log.take(push(&["two"], &[]));
        log.take(push(&[], &[("two", "2")]));
        assert_eq!(on_main(&log), [true, true, false], "its first commit came back");
    }
}
