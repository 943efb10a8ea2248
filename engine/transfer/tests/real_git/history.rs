//! A made-up history with what makes plans hard: merges, moved folders, equal times, a clock that went
//! back, a submodule, a tag of a tag, 60 annotated tags.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use crate::shell::{Folder, git, git_with};

const COMMITS: u32 = 70;

struct Stream(String);

impl Stream {
    fn commit(&mut self, branch: &str, mark: u32, parents: &[u32], changes: &str) {
        let seconds = match mark {
            33 => 1_500_000_000,
            40..=44 => 1_600_040_000,
            _ => 1_600_000_000 + mark * 1_000,
        };
        let message = format!("commit {mark}");
        let out = &mut self.0;
        writeln!(out, "commit refs/heads/{branch}\nmark :{mark}").unwrap();
        writeln!(out, "committer A <a@example.org> {seconds} +0000\ndata {}\n{message}", message.len())
            .unwrap();
        for (at, parent) in parents.iter().enumerate() {
            writeln!(out, "{} :{parent}", if at == 0 { "from" } else { "merge" }).unwrap();
        }
        out.push_str(changes);
        out.push('\n');
    }

    fn tag(&mut self, name: &str, of: &str) {
        writeln!(self.0, "tag {name}\nfrom {of}\ntagger A <a@example.org> 1700000000 +0000\ndata 1\nx")
            .unwrap();
    }
}

fn file(path: &str, text: &str) -> String {
    format!("M 100644 inline {path}\ndata {}\n{text}\n", text.len())
}

/// Makes the history in a bare repository below the folder.
pub fn make(folder: &Folder) -> PathBuf {
    let dir = folder.join("source.git");
    git(&folder.0, &["init", "-q", "--bare", "source.git"]);
    let mut stream = Stream(String::new());
    let mut last_side = 0;
    for mark in 1..=COMMITS {
        let mut changes =
            file(&format!("src/part{}/deep/file{}.txt", mark % 5, mark % 3), &format!("line {mark}\n"));
        changes.push_str(&file(&format!("notes/{mark}.md"), &format!("note {}\n", mark / 2)));
        match mark {
            20 => changes.push_str(&format!("M 160000 {} module\n", "ab".repeat(20))),
            30 => changes.push_str("R src/part1 moved/part1\n"),
            45 => changes.push_str("M 100755 inline run.sh\ndata 3\nrun\n"),
            _ => {}
        }
        if mark % 7 == 3 {
            let parent = if last_side == 0 { mark - 1 } else { last_side };
            stream.commit("side", mark, &[parent], &changes);
            last_side = mark;
        } else {
            let back = if (mark - 1) % 7 == 3 { mark - 2 } else { mark - 1 };
            let parents = match (mark, mark % 7) {
                (1, _) => vec![],
                (_, 6) if last_side > 0 => vec![back, last_side],
                _ => vec![back],
            };
            stream.commit("main", mark, &parents, &changes);
        }
    }
    for number in 1..=60 {
        stream.tag(&format!("v{number}"), &format!(":{number}"));
    }
    git_with(&dir, &["fast-import", "--quiet"], stream.0.as_bytes()).unwrap();
    let env = ["-c", "user.name=a", "-c", "user.email=a@example.org"];
    git(&dir, &[&env[..], &["tag", "-a", "-m", "x", "tag-of-tag", "v60"]].concat());
    git(&dir, &["tag", "light", "main~3"]);
    dir
}

/// Adds a commit with a new file on main of a bare repository; its id.
pub fn grow(dir: &Path, name: &str) -> String {
    let mut stream = Stream(String::new());
    let message = "grown";
    let out = &mut stream.0;
    writeln!(out, "commit refs/heads/main\ncommitter A <a@example.org> 1800000000 +0000").unwrap();
    writeln!(out, "data {}\n{message}\nfrom refs/heads/main^0", message.len()).unwrap();
    out.push_str(&file(&format!("src/part2/{name}"), name));
    git_with(dir, &["fast-import", "--quiet"], stream.0.as_bytes()).unwrap();
    git(dir, &["rev-parse", "main"])
}

/// The bare repositories named by `YARD_REAL_REPOS`.
pub fn real() -> Vec<PathBuf> {
    let named = std::env::var("YARD_REAL_REPOS").unwrap_or_default();
    named.split(':').filter(|dir| !dir.is_empty()).map(PathBuf::from).collect()
}
