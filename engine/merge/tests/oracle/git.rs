//! Real git: histories made by fast-import, merges by merge-tree, objects by cat-file.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Arc;

use yard_common::ObjectId;
use yard_git::{Kind, MemoryObjects, Object};

/// A repository to read, and a folder of its own for what merges write.
pub struct Repo {
    pub dir: PathBuf,
    scratch: PathBuf,
    batch: RefCell<Batch>,
}

struct Batch {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

/// What git says of one merge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    pub clean: bool,
    pub tree: ObjectId,
    pub paths: Vec<String>,
}

pub fn command(dir: &Path) -> Command {
    let mut command = Command::new("git");
    command.env_clear().env("PATH", std::env::var_os("PATH").unwrap());
    command.env("HOME", "/nonexistent").env("GIT_CONFIG_NOSYSTEM", "1").env("LC_ALL", "C");
    command.arg("--git-dir").arg(dir).stderr(Stdio::inherit());
    command
}

pub fn output(command: &mut Command) -> Vec<u8> {
    let out = command.output().expect("git runs");
    assert!(out.status.success(), "{command:?}");
    out.stdout
}

pub fn init(dir: &Path) {
    output(Command::new("git").args(["init", "-q", "--bare"]).arg(dir));
}

/// Feeds a stream to fast-import; the commits by mark.
pub fn fast_import(dir: &Path, stream: &[u8]) -> BTreeMap<usize, ObjectId> {
    let marks = dir.join("marks");
    let mut child = command(dir)
        .args(["fast-import", "--quiet", "--force"])
        .arg(format!("--export-marks={}", marks.display()))
        .stdin(Stdio::piped())
        .spawn()
        .expect("git runs");
    child.stdin.take().unwrap().write_all(stream).unwrap();
    assert!(child.wait().unwrap().success(), "fast-import");
    let text = std::fs::read_to_string(marks).unwrap();
    let line = |line: &str| {
        let (mark, id) = line.strip_prefix(':').unwrap().split_once(' ').unwrap();
        (mark.parse().unwrap(), id.parse().unwrap())
    };
    text.lines().map(line).collect()
}

impl Repo {
    pub fn open(dir: PathBuf, scratch: PathBuf) -> Self {
        std::fs::create_dir_all(&scratch).unwrap();
        let mut child = command(&dir)
            .args(["cat-file", "--batch"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("git runs");
        let input = child.stdin.take().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        Self { dir, scratch, batch: RefCell::new(Batch { child, input, output }) }
    }

    /// One object by any name git knows; `None` where there is none.
    pub fn object(&self, name: &str) -> Option<(ObjectId, Object)> {
        let mut batch = self.batch.borrow_mut();
        writeln!(batch.input, "{name}").unwrap();
        batch.input.flush().unwrap();
        let mut head = String::new();
        batch.output.read_line(&mut head).unwrap();
        let parts: Vec<_> = head.split_whitespace().collect();
        let [id, kind, size] = parts[..] else { return None };
        let mut data = vec![0; size.parse::<usize>().ok()? + 1];
        batch.output.read_exact(&mut data).unwrap();
        data.pop();
        let kind = Kind::from_name(kind.as_bytes()).unwrap();
        Some((id.parse().unwrap(), Object { kind, data }))
    }

    pub fn fetch(&self, into: &mut MemoryObjects, id: ObjectId) -> bool {
        match self.object(&id.to_string()) {
            Some((_, object)) => {
                into.insert(id, Arc::new(object));
                true
            }
            None => false,
        }
    }

    pub fn tree_of(&self, commit: ObjectId) -> ObjectId {
        self.object(&format!("{commit}^{{tree}}")).expect("a commit has a tree").0
    }

    /// `git merge-tree` as the oracle; what it writes goes to a folder of its own.
    pub fn merge(&self, base: ObjectId, ours: ObjectId, theirs: ObjectId) -> Option<Verdict> {
        let mut command = command(&self.dir);
        command.env("GIT_OBJECT_DIRECTORY", &self.scratch);
        command.env("GIT_ALTERNATE_OBJECT_DIRECTORIES", self.dir.join("objects"));
        command.arg(format!("--attr-source={ours}"));
        command.args(["merge-tree", "--write-tree", "--name-only", "--no-messages", "-z"]);
        command.arg(format!("--merge-base={base}")).arg(ours.to_string()).arg(theirs.to_string());
        let out = command.stderr(Stdio::null()).output().expect("git runs");
        let code = out.status.code()?;
        if code > 1 {
            return None;
        }
        let mut parts =
            out.stdout.split(|byte| *byte == 0).map(|part| String::from_utf8_lossy(part).into_owned());
        let tree = parts.next()?.parse().ok()?;
        Some(Verdict { clean: code == 0, tree, paths: parts.filter(|part| !part.is_empty()).collect() })
    }
}

impl Drop for Repo {
    fn drop(&mut self) {
        let batch = self.batch.get_mut();
        let _ = batch.child.kill();
        let _ = batch.child.wait();
    }
}
