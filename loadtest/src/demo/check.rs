//! The outcome, checked with git alone: sets, not counts.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context as _, Result, bail, ensure};
use yard_cli::Client;
use yard_common::RepoName;
use yard_loadtest::Sandbox;
use yard_loadtest::scripted::seeded::OUTSIDE;
use yard_loadtest::scripted::{Act, Asked, MODEL};
use yard_wire::api::ChangeStatus;
use yard_wire::lane::{Stage, Verdict};

use crate::agent::Task;
use crate::model::Model;
use crate::plan::Part;
use crate::project::{self, PLACES, Place};

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
    /// What redid collided changes.
    pub model: &'a Model,
}

impl World<'_> {
    fn git(&self, args: &[&str]) -> Result<String> {
        self.sandbox.git("check", None, args)
    }

    fn part(&self, change: &ChangeStatus) -> Result<&Part> {
        let fork = change.fork.as_ref().context("a change without a fork")?;
        self.parts.iter().find(|part| part.fork == fork.as_str()).context("a change of nobody")
    }

    fn place(&self, part: &Part) -> Result<&'static Place> {
        PLACES.get(part.place).context("a part without its place")
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
    changelog_complete(world)?;
    replays(world)?;
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
            .chain(["features.txt".to_owned(), "CHANGELOG.md".to_owned()])
            .collect(),
        Task::Place => PLACES
            .get(part.place)
            .map(|place| BTreeSet::from([place.path.to_owned(), place.test(part.word, part.number).0]))
            .unwrap_or_default(),
        Task::Break => BTreeSet::from(["src/text.js".to_owned()]),
    }
}

/// Main's tree is what git makes of the project's start and each landed intent, one after another. Where the
/// lines of a place or of the changelog stand among others' is the merge's affair: there, nothing that stood
/// there is gone, and the change's own lines are new.
fn same_as_a_sequential_model(world: &World<'_>, commits: &[(String, ChangeStatus)]) -> Result<()> {
    world.git(&["checkout", "-q", "--detach", world.base])?;
    for (commit, change) in commits {
        let part = world.part(change)?;
        let read = |path: &str| std::fs::read_to_string(world.sandbox.join("check").join(path));
        let landed = |path: &str| world.git(&["show", &format!("{commit}:{path}")]).map(|text| text + "\n");
        let edits: Vec<(String, String)> = match part.task {
            Task::Feature => {
                let index = project::index_with(&read("features.txt")?, part.word);
                let changelog = landed("CHANGELOG.md")?;
                let entry = format!("{}\n", project::entry(part.word));
                only_adds("CHANGELOG.md", &read("CHANGELOG.md")?, &changelog, &entry, true)?;
                let own = [("features.txt".to_owned(), index), ("CHANGELOG.md".to_owned(), changelog)];
                project::feature(part.word, part.number).into_iter().chain(own).collect()
            }
            Task::Place => {
                let place = world.place(part)?;
                let text = landed(place.path)?;
                // A real model may write a line of its own in another way.
                let exact = change.version.0 == 1 || matches!(world.model, Model::Scripted { .. });
                only_adds(
                    place.path,
                    &read(place.path)?,
                    &text,
                    &place.lines(part.word, part.number),
                    exact,
                )?;
                vec![(place.path.to_owned(), text), place.test(part.word, part.number)]
            }
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

/// Is a text the one before with these lines more, in one piece? If not `exact`, other lines may be new too.
fn only_adds(path: &str, before: &str, after: &str, added: &str, exact: bool) -> Result<()> {
    let left: Vec<&str> = if exact {
        let pieces = after.matches(added).count();
        ensure!(pieces == 1, "{path} has {added:?} {pieces} times:\n{after}");
        let without = after.replacen(added, "", 1);
        ensure!(without == before, "{path} without {added:?} is not what stood there:\n{without}");
        return Ok(());
    } else {
        after.lines().collect()
    };
    let gone: Vec<&str> = before.lines().filter(|line| !left.contains(line)).collect();
    ensure!(gone.is_empty(), "{path} lost {gone:?}");
    Ok(())
}

/// Of two changes at one place the first lands and the other is redone: it lands too, or goes back with the
/// reason; each mistake of the scripted model is made once and contained.
fn replays(world: &World<'_>) -> Result<()> {
    let asked = world.model.asked()?;
    let mut acts: BTreeMap<&str, usize> = BTreeMap::new();
    for (number, place) in PLACES.iter().enumerate() {
        let mut two = Vec::new();
        for change in world.changes {
            let part = world.part(change)?;
            if part.task == Task::Place && part.place == number {
                two.push((change, part));
            }
        }
        let is_first = |change: &ChangeStatus| change.version.0 == 1 && change.stage == Stage::Landed;
        two.sort_by_key(|(change, _)| !is_first(change));
        let [(first, _), (second, part)] = two.as_slice() else { bail!("{} is not of two", place.path) };
        ensure!(is_first(first) && !is_first(second), "at {}: {first:?}, {second:?}", place.path);
        let main = world.git(&["show", &format!("main:{}", place.path)])?;
        let there = main.contains(place.lines(part.word, part.number).trim_end());
        match &asked {
            Some(asked) => *acts.entry(scripted(world, place, second, there, asked)?).or_default() += 1,
            None => real(second, there)?,
        }
    }
    let expected = BTreeMap::from([("right", 2), ("wrong", 1), ("outside", 1), ("late", 1)]);
    ensure!(asked.is_none() || acts == expected, "the scripted model was {acts:?}, not {expected:?}");
    Ok(())
}

fn landed_by(world: &World<'_>, change: &ChangeStatus, model: &str) -> Result<()> {
    ensure!(change.stage == Stage::Landed && change.version.0 == 2, "not replayed: {change:?}");
    let detail = world.client.change(world.repo, &change.change)?;
    let origin = detail.row.replay.context("a version 2 that no model made")?;
    ensure!(origin.cost.model == model && !origin.compared.is_empty(), "{origin:?}");
    let commit = change.commit.context("landed without a commit")?.to_string();
    let note = world.git(&["notes", "--ref=intent", "show", &commit])?;
    ensure!(note.contains("Replay: ") && note.contains(&origin.compared), "the note of {commit}: {note}");
    Ok(())
}

/// Checks a replay by what the scripted model did; which is returned.
fn scripted(
    world: &World<'_>,
    place: &Place,
    change: &ChangeStatus,
    there: bool,
    asked: &[Asked],
) -> Result<&'static str> {
    let own: Vec<&Act> =
        asked.iter().filter(|asked| asked.paths == [place.path]).map(|asked| &asked.act).collect();
    ensure!(asked.iter().all(|asked| asked.paths.len() == 1), "the model was asked about more: {asked:?}");
    match own.as_slice() {
        [Act::Right] => {
            landed_by(world, change, MODEL)?;
            ensure!(there, "{} lacks what {} added", place.path, change.title);
            Ok("right")
        }
        // The first answer came after the time limit, and counted for nothing.
        [Act::Late(_), Act::Right] => {
            landed_by(world, change, MODEL)?;
            ensure!(there, "{} lacks what {} added", place.path, change.title);
            Ok("late")
        }
        [Act::Wrong] => {
            ensure!(
                change.stage == Stage::NeedsAuthor && change.verdict == Some(Verdict::BrokenAlone),
                "the wrong replay: {change:?}"
            );
            ensure!(change.version.0 == 2 && !there, "the wrong replay is on main: {change:?}");
            Ok("wrong")
        }
        // Asked early and again: a refused answer is not prepared.
        [Act::Outside(_)] | [Act::Outside(_), Act::Outside(_)] => {
            ensure!(change.stage == Stage::NeedsAuthor && change.version.0 == 1, "out of path: {change:?}");
            ensure!(change.reason.contains(OUTSIDE) && !there, "out of path: {change:?}");
            Ok("outside")
        }
        own => bail!("at {} the scripted model did {own:?}; {change:?}", place.path),
    }
}

/// A real model may be right or not: either it landed, or it is said why not.
fn real(change: &ChangeStatus, there: bool) -> Result<()> {
    match change.stage {
        Stage::Landed => ensure!(change.version.0 > 1 && there, "landed, but not as it was: {change:?}"),
        Stage::NeedsAuthor => ensure!(!there && !change.reason.is_empty(), "{change:?}"),
        _ => bail!("not at rest: {change:?}"),
    }
    Ok(())
}

fn changelog_complete(world: &World<'_>) -> Result<()> {
    let text = world.git(&["show", "main:CHANGELOG.md"])?;
    let (open, released) = text.split_once("## 0.1.0").context("the changelog lost a heading")?;
    for part in world.parts.iter().filter(|part| part.task == Task::Feature) {
        let entry = project::entry(part.word);
        let (once, wrong) = (open.lines().filter(|line| *line == entry).count(), released.contains(&entry));
        ensure!(once == 1 && !wrong, "the changelog has {entry:?} {once} times:\n{text}");
    }
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
