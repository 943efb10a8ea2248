//! git itself redoes every landing of a simulated history: trees, commits, edits, notes and main.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use yard_common::ObjectId;
use yard_common::fact::Fact;
use yard_common::landing::LandChange;
use yard_git::{Entry, Mode};
use yard_landing::Ledger as _;

use crate::simulation::world_after;
use crate::world::World;

/// A bare repository of its own, away from every configuration.
struct Git {
    dir: PathBuf,
}

impl Git {
    fn new(name: &str) -> Self {
        let dir = std::env::temp_dir().join(format!("yard-oracle-{}-{name}", std::process::id()));
        let _ = std::fs::remove_dir_all(&dir);
        std::fs::create_dir_all(&dir).unwrap();
        let git = Self { dir };
        git.run(&["init", "-q", "--bare", "--initial-branch=main", "."], "");
        git
    }

    fn run(&self, arguments: &[&str], input: &str) -> String {
        let (ok, out) = self.try_run(arguments, input);
        assert!(ok, "git {arguments:?}: {out}");
        out
    }

    fn try_run(&self, arguments: &[&str], input: &str) -> (bool, String) {
        let mut child = Command::new("git")
            .args(arguments)
            .current_dir(&self.dir)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", &self.dir)
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .envs(["AUTHOR", "COMMITTER"].map(|who| (format!("GIT_{who}_NAME"), "A")))
            .envs(["AUTHOR", "COMMITTER"].map(|who| (format!("GIT_{who}_EMAIL"), "a@b")))
            .envs(["AUTHOR", "COMMITTER"].map(|who| (format!("GIT_{who}_DATE"), "@1 +0000")))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
        let output = child.wait_with_output().unwrap();
        let mut text = String::from_utf8(output.stdout).unwrap();
        if !output.status.success() {
            text += &String::from_utf8_lossy(&output.stderr);
        }
        (output.status.success(), text.trim_end().to_owned())
    }

    /// Every object of the world, loose.
    fn take(&self, world: &World) {
        for (id, object) in world.store.objects.iter() {
            let name = id.to_string();
            let file = self.dir.join("objects").join(Path::new(&name[..2])).join(&name[2..]);
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            let out = std::fs::File::create(file).unwrap();
            let mut zlib = flate2::write::ZlibEncoder::new(out, flate2::Compression::fast());
            write!(zlib, "{} {}\0", object.kind.as_str(), object.data.len()).unwrap();
            zlib.write_all(&object.data).unwrap();
            zlib.finish().unwrap();
        }
    }
}

impl Drop for Git {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}

fn raw(entry: Option<Entry>) -> (String, String) {
    let Some(entry) = entry else { return ("000000".into(), ObjectId::ZERO.to_string()) };
    let mode = match entry.mode {
        Mode::File => "100644",
        Mode::Executable => "100755",
        Mode::Symlink => "120000",
        Mode::Gitlink => "160000",
    };
    (mode.into(), entry.id.to_string())
}

/// The edits of a landed commit as `git diff-tree` shows them.
fn own_edits(listed: &LandChange) -> Vec<String> {
    let mut lines: Vec<String> = listed
        .edits
        .iter()
        .filter(|edit| edit.result != edit.ours)
        .map(|edit| {
            let (ours, result) = (raw(edit.ours), raw(edit.result));
            format!(":{} {} {} {} {}", ours.0, result.0, ours.1, result.1, edit.path)
        })
        .collect();
    lines.sort();
    lines
}

/// What `git diff-tree` says of each commit.
fn shown_edits(git: &Git, commits: &[ObjectId]) -> BTreeMap<String, Vec<String>> {
    let input = commits.iter().fold(String::new(), |mut text, id| {
        let _ = writeln!(text, "{id}");
        text
    });
    let out = git.run(&["diff-tree", "--stdin", "-r", "--no-renames", "--abbrev=40"], &input);
    let mut edits: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut at = String::new();
    for line in out.lines() {
        match line.strip_prefix(':') {
            None => at = line.to_owned(),
            Some(line) => {
                let (before, path) = line.split_once('\t').unwrap();
                let (values, _) = before.rsplit_once(' ').unwrap();
                edits.entry(at.clone()).or_default().push(format!(":{values} {path}"));
            }
        }
    }
    edits.values_mut().for_each(|lines| lines.sort());
    edits
}

/// git merges, commits and shows every landing of this world as the kernel took it.
fn redo(world: &World, git: &Git) -> usize {
    git.take(world);
    let landed = world.facts.iter().filter_map(|fact| match fact {
        Fact::Landed { request, .. } => Some(request),
        _ => None,
    });
    let (mut commits, mut listed_by_commit) = (Vec::new(), BTreeMap::new());
    for request in landed {
        let mut parent = request.head;
        for listed in &request.changes {
            let row = world.ledger.row(&listed.change, listed.version).unwrap();
            let (base, theirs, onto) = (
                row.base.tree.to_string(),
                row.head_tree.to_string(),
                world.store.links(parent).0.to_string(),
            );
            let over = format!("--merge-base={base}");
            let merge = ["merge-tree", "--write-tree", "-Xno-renames", &over, &onto, &theirs];
            let tree = git.run(&merge, "");
            assert_eq!(tree, world.store.links(listed.commit).0.to_string(), "{}", listed.change);
            let message = format!("{}\n", listed.change);
            let commit = git.run(&["commit-tree", &tree, "-p", &parent.to_string()], &message);
            assert_eq!(commit, listed.commit.to_string(), "{}", listed.change);
            commits.push(listed.commit);
            listed_by_commit.insert(listed.commit, listed);
            parent = listed.commit;
        }
        assert_eq!(parent, request.tip);
    }
    let shown = shown_edits(git, &commits);
    for (commit, listed) in &listed_by_commit {
        let found = shown.get(&commit.to_string()).cloned().unwrap_or_default();
        assert_eq!(found, own_edits(listed), "{}", listed.change);
    }
    main_and_notes(world, git, &listed_by_commit);
    commits.len()
}

/// Main is the last decision, sound to its root, and each landed commit has its one note.
fn main_and_notes(world: &World, git: &Git, listed: &BTreeMap<ObjectId, &LandChange>) {
    git.run(&["update-ref", "refs/heads/main", &world.main().to_string()], "");
    if let Some(notes) = world.ledger.notes() {
        git.run(&["update-ref", "refs/notes/intent", &notes.to_string()], "");
        let list = git.run(&["notes", "--ref", "intent", "list"], "");
        let mut noted: Vec<ObjectId> =
            list.lines().map(|line| line.split(' ').nth(1).unwrap().parse().unwrap()).collect();
        noted.sort();
        assert_eq!(noted, listed.keys().copied().collect::<Vec<_>>());
        let shown = git.run(&["log", "--notes=intent", "--format=%H %N", "main"], "");
        for (commit, listed) in listed {
            if world.store.history(world.main()).contains(commit) {
                assert!(shown.contains(&format!("{commit} Change-Id: {}", listed.change)));
            }
        }
    }
    git.run(&["fsck", "--strict", "--no-dangling"], "");
    let tree = git.run(&["rev-parse", "main^{tree}"], "");
    assert_eq!(world.store.files(tree.parse().unwrap()), world.model.main);
}

#[test]
fn git_redoes_every_landing_to_the_same_trees_commits_edits_notes_and_main() {
    let mut redone = 0;
    for seed in 1..=5 {
        let (world, _) = world_after(1000 + seed, 400).unwrap();
        redone += redo(&world, &Git::new(&seed.to_string()));
    }
    println!("{redone} landings redone by git");
    assert!(redone >= 40);
}
