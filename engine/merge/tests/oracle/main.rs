//! The merge against `git merge-tree`: never clean where git conflicts, never clean with another tree.
//!
//! Synthetic pairs by seed always; `YARD_ORACLE_PAIRS` sets how many. `YARD_REAL_REPOS=dir:dir` names
//! bare repositories whose histories are merged too, `YARD_REAL_PAIRS` pairs each.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]

mod git;
mod real;
mod synth;

use std::collections::BTreeMap;
use std::path::PathBuf;

use synth::Scene;
use yard_common::ObjectId;
use yard_git::editor::Step;
use yard_git::{MemoryObjects, Missing, ReadError, RunningTree};
use yard_merge::{Collision, CollisionKind, Outcome, Row, Rules, TreeLookup, Trees, apply_row, merge_trees};

/// Rounds of asking for missing objects that one merge may take: eight levels of trees, attributes,
/// contents, the rename search, what it read besides.
const ROUNDS_MAX: usize = 16;

fn folder(name: &str) -> PathBuf {
    let dir = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&dir);
    std::fs::create_dir_all(&dir).unwrap();
    dir
}

/// Our answer: the merged tree, or the collisions.
type Answer = Result<ObjectId, Vec<Collision>>;

/// Calls until nothing is missing, as a host does; `None` when an object is nowhere.
fn complete<T>(
    repo: &git::Repo,
    objects: &mut MemoryObjects,
    rounds: &mut usize,
    mut call: impl FnMut(&MemoryObjects) -> Result<T, ReadError>,
) -> Option<T> {
    let mut here = 0;
    loop {
        match call(objects) {
            Ok(value) => {
                *rounds = here.max(*rounds);
                return Some(value);
            }
            Err(ReadError::Missing(Missing(ids))) => {
                here += 1;
                assert!(here <= ROUNDS_MAX, "more than {ROUNDS_MAX} rounds, the last for {ids:?}");
                for id in ids {
                    assert!(yard_git::Objects::get(objects, &id).is_none(), "asked twice for {id}");
                    if !repo.fetch(objects, id) {
                        return None;
                    }
                }
            }
            Err(error) => panic!("{error}"),
        }
    }
}

fn answer(outcome: Outcome, objects: &MemoryObjects, ours: ObjectId) -> Answer {
    match outcome {
        Outcome::Collided(collisions) => Err(collisions),
        Outcome::Clean(applied) => {
            let steps: Vec<_> = applied
                .edits
                .iter()
                .map(|e| Step { path: &e.path, ours: e.ours, result: e.result })
                .collect();
            let mut tree = RunningTree::new(ours);
            tree.fold(objects, &steps).expect("the edits fit on ours, and their trees are at hand");
            Ok(tree.id())
        }
    }
}

/// Both entry points, each starting with nothing at hand; they must agree.
fn merged(repo: &git::Repo, trees: Trees, rounds: &mut usize) -> Option<Answer> {
    let mut objects = MemoryObjects::default();
    let rules = Rules::default();
    let whole = complete(repo, &mut objects, rounds, |o| {
        let outcome = merge_trees(o, trees, &rules)?;
        fold_is_at_hand(o, &outcome, trees.ours).map(|()| outcome)
    })?;
    let edits = yard_git::diff::diff(&objects, trees.base, trees.theirs).unwrap();
    let mut fresh = MemoryObjects::default();
    let by_row = complete(repo, &mut fresh, rounds, |o| {
        let row = Row { edits: &edits, base_tree: trees.base, theirs_tree: trees.theirs };
        apply_row(o, &TreeLookup::new(o, trees.ours), row, &rules)
    })?;
    let whole = answer(whole, &objects, trees.ours);
    let by_row = answer(by_row, &objects, trees.ours);
    assert_eq!(
        by_row.as_ref().ok(),
        whole.as_ref().ok(),
        "the lane's way and the whole trees' way disagree: {trees:?}"
    );
    Some(whole)
}

fn fold_is_at_hand(objects: &MemoryObjects, outcome: &Outcome, ours: ObjectId) -> Result<(), ReadError> {
    let Outcome::Clean(applied) = outcome else { return Ok(()) };
    RunningTree::new(ours).prefetch(objects, applied.edits.iter().map(|edit| &edit.path))
}

/// What was counted over many pairs.
#[derive(Default)]
pub struct Tally {
    pairs: usize,
    git_conflicts: usize,
    both_clean: usize,
    both_collide: usize,
    skipped: usize,
    rounds: usize,
    same_file: usize,
    rename_against_edit: usize,
    union_apart: usize,
    strict: Vec<String>,
    wrong: Vec<String>,
    kinds: BTreeMap<CollisionKind, usize>,
}

impl Tally {
    /// Merges one triple by git and by us, and notes how they compare.
    pub fn compare(&mut self, repo: &git::Repo, name: &str, commits: [ObjectId; 3]) -> Option<git::Verdict> {
        let [base, ours, theirs] = commits.map(|commit| repo.tree_of(commit));
        if base == ours || base == theirs || ours == theirs {
            self.skipped += 1;
            return None;
        }
        let Some(answer) = merged(repo, Trees { base, ours, theirs }, &mut self.rounds) else {
            self.skipped += 1;
            return None;
        };
        let Some(verdict) = repo.merge(commits[0], commits[1], commits[2]) else {
            self.skipped += 1;
            return None;
        };
        self.pairs += 1;
        self.git_conflicts += usize::from(!verdict.clean);
        let shape = |c: &Collision| format!("{:?} {}", c.kind, c.path);
        match (&answer, verdict.clean) {
            (Ok(tree), true) if *tree == verdict.tree => self.both_clean += 1,
            (Ok(tree), true) => {
                self.wrong.push(format!("{name}: clean with another tree {tree}, git has {}", verdict.tree))
            }
            (Ok(_), false) => self.wrong.push(format!("{name}: clean, git conflicts at {:?}", verdict.paths)),
            (Err(collisions), true) if collisions.iter().all(|c| c.kind == CollisionKind::Union) => {
                self.union_apart += 1
            }
            (Err(collisions), true) => {
                let first: Vec<_> = collisions.iter().take(3).map(shape).collect();
                self.strict.push(format!("{name}: {}", first.join(", ")));
            }
            (Err(collisions), false) => {
                self.both_collide += 1;
                for kind in collisions.iter().map(|c| c.kind).collect::<std::collections::BTreeSet<_>>() {
                    *self.kinds.entry(kind).or_default() += 1;
                }
            }
        }
        Some(verdict)
    }

    /// Prints the counts as a table, and every disagreement.
    pub fn print(&self, title: &str) {
        println!("\n{title}");
        print!("| pairs | git conflicts | both clean, same tree | both collide | git clean, we collide ");
        println!("| union apart | wrong | skipped | rounds |");
        println!("|---|---|---|---|---|---|---|---|---|");
        println!(
            "| {} | {} | {} | {} | {} | {} | {} | {} | {} |",
            self.pairs,
            self.git_conflicts,
            self.both_clean,
            self.both_collide,
            self.strict.len(),
            self.union_apart,
            self.wrong.len(),
            self.skipped,
            self.rounds
        );
        println!("same-file merges {}, rename against edit {}", self.same_file, self.rename_against_edit);
        println!("kinds where both collide: {:?}", self.kinds);
        for line in &self.strict {
            println!("git clean, we collide: {line}");
        }
        for line in &self.wrong {
            println!("WRONG: {line}");
        }
    }

    /// The promises, and that at most `strict_percent` of git's clean merges are collisions here.
    pub fn check(&self, strict_percent: usize) {
        assert!(self.wrong.is_empty(), "{} wrong answers, the first: {}", self.wrong.len(), self.wrong[0]);
        let clean = self.pairs - self.git_conflicts;
        assert!(
            self.strict.len() * 100 <= clean * strict_percent,
            "{} of {clean} clean merges refused",
            self.strict.len()
        );
    }
}

fn number(variable: &str, default: usize) -> usize {
    std::env::var(variable).ok().map_or(default, |text| text.parse().expect("a number"))
}

#[test]
fn synthetic_histories_merge_as_git_merges_them() {
    let count = number("YARD_ORACLE_PAIRS", 830);
    let dir = folder("oracle");
    let bare = dir.join("repo.git");
    git::init(&bare);
    let mut stream = Vec::new();
    let pairs: Vec<_> = (0..count).map(|n| synth::pair(n as u64 + 1)).collect();
    for (n, pair) in pairs.iter().enumerate() {
        synth::commit(&mut stream, 3 * n + 1, None, &pair.base);
        synth::commit(&mut stream, 3 * n + 2, Some(3 * n + 1), &pair.ours);
        synth::commit(&mut stream, 3 * n + 3, Some(3 * n + 1), &pair.theirs);
    }
    let marks = git::fast_import(&bare, &stream);
    let repo = git::Repo::open(bare, dir.join("scratch"));
    let mut tally = Tally::default();
    for (n, pair) in pairs.iter().enumerate() {
        let commits = [1, 2, 3].map(|side| marks[&(3 * n + side)]);
        let name = format!("seed {} {:?}", n + 1, pair.scene);
        let apart = tally.union_apart;
        let Some(verdict) = tally.compare(&repo, &name, commits) else { continue };
        assert!(
            pair.scene == Scene::Union || tally.union_apart == apart,
            "{name}: union where none is asked for"
        );
        // Counted by what the sides did to paths, not by what the scene meant to do.
        let differs = |a: &synth::Files, path: &String| a.get(path) != pair.base.get(path);
        let both = |path: &&String| {
            pair.ours.contains_key(*path)
                && pair.theirs.contains_key(*path)
                && differs(&pair.ours, path)
                && differs(&pair.theirs, path)
        };
        tally.same_file += usize::from(verdict.clean && pair.base.keys().filter(both).count() > 0);
        let moved = |mover: &synth::Files, editor: &synth::Files| {
            let added = mover.keys().any(|path| !pair.base.contains_key(path));
            added
                && pair
                    .base
                    .keys()
                    .any(|p| !mover.contains_key(p) && editor.contains_key(p) && differs(editor, p))
        };
        tally.rename_against_edit +=
            usize::from(moved(&pair.ours, &pair.theirs) || moved(&pair.theirs, &pair.ours));
    }
    tally.print("synthetic histories");
    tally.check(5);
    if count >= 800 {
        assert!(tally.pairs >= 500, "{} pairs", tally.pairs);
        assert!(tally.git_conflicts >= 100, "{} conflicts", tally.git_conflicts);
        assert!(tally.same_file >= 100, "{} clean merges of one file", tally.same_file);
        assert!(tally.rename_against_edit >= 50, "{} renames against edits", tally.rename_against_edit);
    }
    drop(repo);
    let _ = std::fs::remove_dir_all(dir);
}

#[test]
fn real_histories_merge_as_git_merges_them() {
    let Some(list) = std::env::var_os("YARD_REAL_REPOS") else { return };
    let count = number("YARD_REAL_PAIRS", 300);
    for (n, path) in std::env::split_paths(&list).filter(|path| !path.as_os_str().is_empty()).enumerate() {
        let dir = folder(&format!("oracle-real-{n}"));
        let repo = git::Repo::open(path.clone(), dir.join("scratch"));
        let mut tally = Tally::default();
        for (name, commits) in real::triples(&repo, count) {
            tally.compare(&repo, &name, commits);
        }
        tally.print(&path.display().to_string());
        tally.check(3);
        drop(repo);
        let _ = std::fs::remove_dir_all(dir);
    }
}
