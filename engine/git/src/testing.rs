//! Real git as the oracle of tests.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};

/// A folder of a test, gone when dropped.
pub(crate) struct Folder(pub PathBuf);

impl Folder {
    pub(crate) fn new() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let name = format!("yard-git-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Runs git in a folder with nothing of the user's configuration.
pub(crate) fn run(folder: &Path, args: &[&str], input: &[u8]) -> Output {
    let mut child = Command::new("git")
        .current_dir(folder)
        .args(args)
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("HOME", folder)
        .env("GIT_AUTHOR_NAME", "A")
        .env("GIT_AUTHOR_EMAIL", "a@example.org")
        .env("GIT_COMMITTER_NAME", "C")
        .env("GIT_COMMITTER_EMAIL", "c@example.org")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_vec();
    let writer = std::thread::spawn(move || {
        let _ = stdin.write_all(&input);
    });
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    output
}

/// As [`run`], and git must succeed; gives its standard output.
pub(crate) fn git(folder: &Path, args: &[&str], input: &[u8]) -> Vec<u8> {
    let output = run(folder, args, input);
    assert!(output.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

/// As [`git`], as trimmed text.
pub(crate) fn git_text(folder: &Path, args: &[&str], input: &[u8]) -> String {
    String::from_utf8(git(folder, args, input)).unwrap().trim_end().to_owned()
}

/// A small generator of test cases (xorshift).
pub(crate) struct Random(pub u64);

impl Random {
    pub(crate) fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % n
    }

    pub(crate) fn pick<'a, T: ?Sized>(&mut self, from: &[&'a T]) -> &'a T {
        from[usize::try_from(self.below(from.len() as u64)).unwrap()]
    }
}

/// Bare repositories of `YARD_REAL_REPOS`, none where it is not set.
pub(crate) fn real_repositories() -> Vec<PathBuf> {
    let list = std::env::var_os("YARD_REAL_REPOS").unwrap_or_default();
    std::env::split_paths(&list).filter(|path| !path.as_os_str().is_empty()).collect()
}

/// A bare repository of one branch `main` with this many commits: growing files, a rename, modes, a
/// symbolic link, a merge, an annotated tag.
pub(crate) fn sample_repository(commits: u32) -> Folder {
    let folder = Folder::new();
    git(&folder.0, &["init", "-q", "--bare", "-b", "main"], b"");
    let mut stream = String::new();
    let mut random = Random(0x1234_5678);
    for n in 1..=commits {
        let message = format!("commit {n}\n");
        stream.push_str(&format!(
            "commit refs/heads/main\nmark :{n}\nauthor A <a@x> {n} +0100\n\
             committer C <c@x> {n} -0330\ndata {}\n{message}\n",
            message.len()
        ));
        if n == commits {
            stream.push_str(&format!("merge :{}\n", n / 2));
        }
        let grown: String = (0..n * 5).map(|line| format!("line {line} of the growing file\n")).collect();
        let noise: String = (0..800).map(|_| char::from(b'a' + random.below(26) as u8)).collect();
        for (mode, path, text) in [
            ("100644", "grown.txt".to_owned(), grown),
            ("100755", format!("dir{}/noise{}", n % 5, n % 17), noise),
            ("120000", "link".to_owned(), format!("target{n}")),
        ] {
            stream.push_str(&format!("M {mode} inline {path}\ndata {}\n{text}\n", text.len()));
        }
        if n % 7 == 0 {
            stream.push_str("R grown.txt moved.txt\n");
        }
    }
    stream.push_str(&format!("tag v1\nfrom :{commits}\ntagger T <t@x> 9 +0000\ndata 4\ntag\n\ndone\n"));
    git(&folder.0, &["fast-import", "--quiet", "--done"], stream.as_bytes());
    folder
}

/// All objects of the packs of a bare repository.
pub(crate) fn packed_objects(repository: &Path) -> crate::MemoryObjects {
    let mut objects = crate::MemoryObjects::default();
    for file in std::fs::read_dir(repository.join("objects/pack")).unwrap() {
        let path = file.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "pack") {
            continue;
        }
        let pack = std::fs::read(&path).unwrap();
        let index =
            crate::pack::PackIndex::parse(std::fs::read(path.with_extension("idx")).unwrap()).unwrap();
        let spans = index.spans(pack.len() as u64);
        let reader = crate::pack::read::Pack { bytes: &pack, index: &index, spans: Some(&spans) };
        let mut cache = crate::pack::read::BaseCache::new(64 << 20);
        for (offset, place) in spans.in_pack_order() {
            let batch = reader.read(&[*offset], &mut cache).unwrap();
            let object = &batch.done[0].1;
            if object.kind != crate::Kind::Blob {
                objects.insert(index.id(*place as usize).unwrap(), std::sync::Arc::clone(object));
            }
        }
    }
    objects
}
