//! The outcome, checked with git alone: sets, not counts.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context as _, Result, bail, ensure};
use yard_cli::Client;
use yard_common::RepoName;
use yard_loadtest::Sandbox;
use yard_wire::api::ChangeStatus;
use yard_wire::lane::{Stage, Verdict};

use crate::agent::Task;
use crate::plan::Part;
use crate::project;

/// What is checked.
pub struct World<'a> {
    /// The platform.
    pub client: &'a Client,
    /// The repository.
    pub repo: &'a RepoName,
    /// Main at the start.
    pub base: &'a str,
    /// Who did what.
    pub parts: &'a [Part],
    /// Where their changes stand.
    pub changes: &'a [ChangeStatus],
    /// A folder to work in.
    pub sandbox: &'a Sandbox,
}

impl World<'_> {
    fn git(&self, args: &[&str]) -> Result<String> {
        self.sandbox.git("check", None, args)
    }

    fn part(&self, change: &ChangeStatus) -> Result<&Part> {
        let fork = change.fork.as_ref().context("a change without a fork")?;
        self.parts.iter().find(|part| part.fork == fork.as_str()).context("a change of nobody")
    }
}

/// Checks everything that the demo promises.
///
/// # Errors
/// The first promise that was broken.
pub fn outcome(world: &World<'_>) -> Result<()> {
    let url = format!("{}/{}.git", world.client.url(), world.repo);
    let token = Some(world.client.token());
    let refspec = ["-c", "remote.origin.fetch=+refs/notes/*:refs/notes/*", "clone", "-q"];
    world.sandbox.git(".", token, &[refspec.as_slice(), &[&url, "check"]].concat())?;
    world.sandbox.git("check", token, &["fetch", "-q", "origin", "+refs/notes/*:refs/notes/*"])?;
    world.git(&["fsck", "--strict"]).context("git fsck --strict")?;
    stages(world)?;
    let commits = own_commits(world)?;
    same_as_a_sequential_model(world, &commits)?;
    index_complete(world)?;
    records(world)?;
    Ok(())
}

fn stages(world: &World<'_>) -> Result<()> {
    let mut by_task: BTreeMap<Task, Vec<&ChangeStatus>> = BTreeMap::new();
    for change in world.changes {
        by_task.entry(world.part(change)?.task).or_default().push(change);
    }
    ensure!(
        world.changes.len() == world.parts.len(),
        "{} changes of {} agents",
        world.changes.len(),
        world.parts.len()
    );
    for change in by_task.get(&Task::Feature).into_iter().flatten() {
        ensure!(change.stage == Stage::Landed, "{} did not land: {}", change.title, change.reason);
    }
    let greetings = by_task.get(&Task::Greeting).map(Vec::as_slice).unwrap_or_default();
    let landed = greetings.iter().filter(|change| change.stage == Stage::Landed).count();
    ensure!(landed == 1, "{landed} of the two greetings landed");
    for change in greetings.iter().filter(|change| change.stage != Stage::Landed) {
        ensure!(
            change.stage == Stage::NeedsAuthor && change.reason.contains("src/greeting.js"),
            "the other greeting: {:?}, {}",
            change.stage,
            change.reason
        );
    }
    for change in by_task.get(&Task::Break).into_iter().flatten() {
        ensure!(
            change.stage == Stage::NeedsAuthor && change.verdict == Some(Verdict::BrokenAlone),
            "the broken one: {:?}, {:?}, {}",
            change.stage,
            change.verdict,
            change.reason
        );
    }
    Ok(())
}

/// Each landed change has one commit with its own edits and one note; returns them in main's order.
fn own_commits(world: &World<'_>) -> Result<Vec<(String, ChangeStatus)>> {
    let list = world.git(&["rev-list", "--reverse", "--first-parent", &format!("{}..main", world.base)])?;
    let landed: BTreeMap<String, &ChangeStatus> = world
        .changes
        .iter()
        .filter_map(|change| change.commit.map(|commit| (commit.to_string(), change)))
        .collect();
    let on_main: BTreeSet<&str> = list.lines().collect();
    let named: BTreeSet<&str> = landed.keys().map(String::as_str).collect();
    ensure!(on_main == named, "main holds {on_main:?}, the platform says {named:?}");
    let mut commits = Vec::new();
    for commit in list.lines() {
        let change = landed.get(commit).context("unnamed commit")?;
        let part = world.part(change)?;
        let paths = world.git(&["diff-tree", "-r", "--no-commit-id", "--name-only", commit])?;
        let paths: BTreeSet<&str> = paths.lines().collect();
        let expected = expected_paths(part);
        ensure!(
            paths == expected.iter().map(String::as_str).collect(),
            "{commit} changes {paths:?}, not {expected:?}"
        );
        let note = world.git(&["notes", "--ref=intent", "show", commit])?;
        ensure!(
            note.contains(change.change.as_str()) && note.contains(&part.fork),
            "the note of {commit} is not {}'s: {note}",
            part.fork
        );
        commits.push((commit.to_owned(), (*change).clone()));
    }
    let notes = world.git(&["notes", "--ref=intent", "list"])?;
    let noted: BTreeSet<&str> = notes.lines().filter_map(|line| line.split(' ').nth(1)).collect();
    ensure!(noted == on_main, "notes on {noted:?}, commits {on_main:?}");
    Ok(commits)
}

fn expected_paths(part: &Part) -> BTreeSet<String> {
    match part.task {
        Task::Feature => project::feature(part.word, part.number)
            .into_iter()
            .map(|(path, _)| path)
            .chain(["features.txt".to_owned()])
            .collect(),
        Task::Greeting => BTreeSet::from(["src/greeting.js".to_owned()]),
        Task::Break => BTreeSet::from(["src/text.js".to_owned()]),
    }
}

/// Main's tree is what git makes of the project's start and each landed intent, one after another.
fn same_as_a_sequential_model(world: &World<'_>, commits: &[(String, ChangeStatus)]) -> Result<()> {
    world.git(&["checkout", "-q", "--detach", world.base])?;
    for (commit, change) in commits {
        let part = world.part(change)?;
        let read = |path: &str| std::fs::read_to_string(world.sandbox.join("check").join(path));
        let edits: Vec<(String, String)> = match part.task {
            Task::Feature => {
                let index = project::index_with(&read("features.txt")?, part.word);
                project::feature(part.word, part.number)
                    .into_iter()
                    .chain([("features.txt".to_owned(), index)])
                    .collect()
            }
            Task::Greeting => vec![(
                "src/greeting.js".to_owned(),
                format!("export const GREETING = \"{} greets you\";\n", part.word.to_uppercase()),
            )],
            Task::Break => bail!("the broken change landed as {commit}"),
        };
        for (path, content) in edits {
            world.sandbox.write(&format!("check/{path}"), &content)?;
        }
        world.git(&["add", "-A"])?;
        let (model, main) =
            (world.git(&["write-tree"])?, world.git(&["rev-parse", &format!("{commit}^{{tree}}")])?);
        ensure!(model == main, "after {commit} the model has tree {model}, main has {main}");
    }
    world.git(&["checkout", "-q", "--force", "main"])?;
    Ok(())
}

fn index_complete(world: &World<'_>) -> Result<()> {
    let index = world.git(&["show", "main:features.txt"])?;
    let named: Vec<&str> = index.lines().collect();
    let mut expected: Vec<&str> = world
        .parts
        .iter()
        .filter(|part| part.task == Task::Feature)
        .map(|part| part.word)
        .chain(["harbour"])
        .collect();
    expected.sort_unstable();
    ensure!(named == expected, "the index names {named:?}, not {expected:?}");
    Ok(())
}

fn records(world: &World<'_>) -> Result<()> {
    let records = world.client.records(world.repo, "limit=500")?;
    let recorded: BTreeSet<String> = records.iter().map(|record| record.commit.to_string()).collect();
    let landed: BTreeSet<String> =
        world.changes.iter().filter_map(|change| change.commit.map(|commit| commit.to_string())).collect();
    ensure!(
        recorded == landed && records.len() == landed.len(),
        "the index records {recorded:?}, landed are {landed:?}"
    );
    Ok(())
}
