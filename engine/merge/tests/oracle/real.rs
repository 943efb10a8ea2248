//! Triples from a real history: its own merges, and commits picked onto other points of main.

use std::collections::BTreeMap;

use yard_common::ObjectId;

use crate::git::{self, Repo};
use crate::synth::Rng;

/// Up to `count` triples (base, ours, theirs) by a fixed seed: real merges with one merge base first,
/// then picks whose base is a commit's first parent and whose ours stands 5 to 50 commits away.
pub fn triples(repo: &Repo, count: usize) -> Vec<(String, [ObjectId; 3])> {
    let mut out = merges(repo, count / 3);
    let main = ids(repo, &["rev-list", "--first-parent", "HEAD"]);
    let parents = parents(repo);
    let mut rng = Rng(1);
    let mut tries = 0;
    while out.len() < count && tries < count * 20 && main.len() > 60 {
        tries += 1;
        let at = 50 + rng.below(main.len() - 55);
        let away = 5 + rng.below(46);
        let ours = if rng.chance(50) {
            main.get(at + away)
        } else {
            at.checked_sub(away).and_then(|at| main.get(at))
        };
        let (Some(theirs), Some(ours)) = (main.get(at), ours) else { continue };
        // Every parent of a merge commit makes a change; the first is what main had before it.
        let Some([base, ..]) = parents.get(theirs).map(Vec::as_slice) else { continue };
        out.push((format!("pick {base} {ours} {theirs}"), [*base, *ours, *theirs]));
    }
    out
}

fn merges(repo: &Repo, count: usize) -> Vec<(String, [ObjectId; 3])> {
    let text = String::from_utf8(git::output(git::command(&repo.dir).args([
        "rev-list",
        "--merges",
        "--parents",
        "HEAD",
    ])));
    let mut out = Vec::new();
    for line in text.unwrap().lines() {
        let parts: Vec<_> = line.split(' ').collect();
        let [_, ours, theirs] = parts[..] else { continue };
        let bases =
            git::command(&repo.dir).args(["merge-base", "--all", ours, theirs]).output().unwrap().stdout;
        let bases = String::from_utf8(bases).unwrap();
        let [base] = bases.lines().collect::<Vec<_>>()[..] else { continue };
        if base != ours && base != theirs {
            out.push((
                format!("merge {base} {ours} {theirs}"),
                [base, ours, theirs].map(|id| id.parse().unwrap()),
            ));
        }
        if out.len() >= count {
            break;
        }
    }
    out
}

fn ids(repo: &Repo, arguments: &[&str]) -> Vec<ObjectId> {
    let text = String::from_utf8(git::output(git::command(&repo.dir).args(arguments))).unwrap();
    text.lines().map(|line| line.parse().unwrap()).collect()
}

fn parents(repo: &Repo) -> BTreeMap<ObjectId, Vec<ObjectId>> {
    let text = git::output(git::command(&repo.dir).args(["rev-list", "--first-parent", "--parents", "HEAD"]));
    let line = |line: &str| {
        let mut ids = line.split(' ').map(|id| id.parse().unwrap());
        (ids.next().unwrap(), ids.collect())
    };
    String::from_utf8(text).unwrap().lines().map(line).collect()
}
