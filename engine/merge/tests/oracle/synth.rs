//! Synthetic histories by seed: source-like files, and two sides that change them near each other.

use std::collections::BTreeMap;
use std::fmt::Write as _;

/// A small generator (SplitMix64): the same seed makes the same histories everywhere.
pub struct Rng(pub u64);

impl Rng {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
    pub fn below(&mut self, n: usize) -> usize {
        usize::try_from(self.next() % n.max(1) as u64).unwrap()
    }
    pub fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }
    pub fn pick<'a, T>(&mut self, list: &'a [T]) -> &'a T {
        &list[self.below(list.len())]
    }
}

/// Path -> (mode digits, contents; of a submodule its commit id).
pub type Files = BTreeMap<String, (&'static str, Vec<u8>)>;

/// What a pair was made to show; it may show more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scene {
    SameFile,
    RenameAgainstEdit,
    Anything,
    /// Files that are alike, some of which move.
    Doubles,
    Attributes,
    Union,
}

pub struct Pair {
    pub scene: Scene,
    pub base: Files,
    pub ours: Files,
    pub theirs: Files,
}

const WORDS: [&str; 16] = [
    "parse", "token", "index", "merge", "value", "state", "error", "result", "count", "buffer", "owner",
    "lane", "train", "queue", "fork", "tree",
];

fn line(rng: &mut Rng) -> String {
    let (a, b) = (*rng.pick(&WORDS), *rng.pick(&WORDS));
    match rng.below(9) {
        0 => "    }\n".to_owned(),
        1 => "\n".to_owned(),
        2 => format!("    // {a} the {b} before the next one\n"),
        3 => format!("    if {a}.{b}() {{\n"),
        4 => "        return None;\n".to_owned(),
        _ => format!("    let {a}_{b} = {a}({}, {b});\n", rng.below(1000)),
    }
}

fn source(rng: &mut Rng) -> Vec<u8> {
    let mut text = String::new();
    for _ in 0..1 + rng.below(6) {
        let _ = writeln!(text, "fn {}_{}({}: usize) {{", rng.pick(&WORDS), rng.below(50), rng.pick(&WORDS));
        for _ in 0..2 + rng.below(9) {
            text.push_str(&line(rng));
        }
        text.push_str("}\n\n");
    }
    text.into_bytes()
}

fn base(rng: &mut Rng) -> Files {
    let mut files = Files::new();
    for dir in ["", "src/", "src/deep/er/", "docs/", "tests/"] {
        for _ in 0..2 + rng.below(3) {
            let name = format!("{dir}{}_{}.rs", rng.pick(&WORDS), rng.below(30));
            files.insert(name, ("100644", source(rng)));
        }
    }
    let crlf = String::from_utf8(source(rng)).unwrap().replace('\n', "\r\n");
    files.insert("docs/crlf.txt".into(), ("100644", crlf.into_bytes()));
    files.insert("run me.sh".into(), ("100755", source(rng)));
    files.insert("data.bin".into(), ("100644", [b"\0\x01".as_slice(), &source(rng)].concat()));
    files.insert("link".into(), ("120000", b"src".to_vec()));
    files.insert("src/\u{fc}mlaut.rs".into(), ("100644", source(rng)));
    files.insert("vendor/sub".into(), ("160000", b"1111111111111111111111111111111111111111".to_vec()));
    files
}

fn edit_text(rng: &mut Rng, text: &[u8], near: Option<usize>) -> Vec<u8> {
    let mut lines: Vec<Vec<u8>> = text.split_inclusive(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect();
    let crlf = text.windows(2).any(|pair| pair == b"\r\n");
    let new = |rng: &mut Rng| {
        let line = line(rng);
        if crlf { line.replace('\n', "\r\n").into_bytes() } else { line.into_bytes() }
    };
    for _ in 0..1 + rng.below(3) {
        let at = match near {
            Some(near) if rng.chance(70) => (near + rng.below(5)).min(lines.len().saturating_sub(1)),
            _ => rng.below(lines.len().max(1)),
        };
        match rng.below(5) {
            0 if lines.len() > 3 => {
                lines.remove(at);
            }
            1 | 2 => lines.insert(at, new(rng)),
            3 if lines.len() > 6 && at + 2 < lines.len() => {
                let moved = lines.remove(at);
                lines.insert(at + 2, moved);
            }
            _ => match lines.get_mut(at) {
                Some(line) => *line = new(rng),
                None => lines.push(new(rng)),
            },
        }
    }
    lines.concat()
}

struct Focus {
    path: String,
    line: usize,
}

fn focus(rng: &mut Rng, files: &Files) -> Focus {
    let paths: Vec<_> =
        files.iter().filter(|(_, file)| file.0.starts_with("1006")).map(|(path, _)| path).collect();
    let path = (*rng.pick(&paths)).clone();
    Focus { line: rng.below(20), path }
}

fn edit(rng: &mut Rng, files: &mut Files, focus: &Focus) {
    if let Some(file) = files.get_mut(&focus.path)
        && file.0 != "160000"
        && file.0 != "120000"
    {
        file.1 = edit_text(rng, &file.1, Some(focus.line));
    }
}

fn rename(rng: &mut Rng, files: &mut Files, path: &str) -> Option<String> {
    let file = files.remove(path)?;
    let name = path.rsplit('/').next().unwrap();
    let to = match rng.below(4) {
        0 => format!("moved/{name}"),
        1 => format!("src/{name}"),
        2 => format!("{path}.new"),
        _ => format!("new_{}.rs", rng.below(20)),
    };
    files.insert(to.clone(), file);
    Some(to)
}

fn move_directory(rng: &mut Rng, files: &mut Files) {
    let from = *rng.pick(&["src/", "docs/", "tests/", "src/deep/"]);
    let to = *rng.pick(&["lib/", "src/inner/", "docs/", "other/deep/"]);
    let paths: Vec<_> = files.keys().filter(|path| path.starts_with(from)).cloned().collect();
    for path in paths {
        let file = files.remove(&path).unwrap();
        files.insert(format!("{to}{}", &path[from.len()..]), file);
    }
}

fn anything(rng: &mut Rng, files: &mut Files, focus: &Focus) {
    let paths: Vec<_> = files.keys().cloned().collect();
    let other = rng.pick(&paths).clone();
    let path = if rng.chance(60) { focus.path.clone() } else { other };
    match rng.below(17) {
        0 | 1 => {
            if let Some(to) = rename(rng, files, &path)
                && rng.chance(50)
            {
                edit(rng, files, &Focus { path: to, line: focus.line });
            }
        }
        2 => {
            files.remove(&path);
        }
        3 => move_directory(rng, files),
        4 => {
            let dir = *rng.pick(&["src/", "docs/", "", "src/deep/er/", "fresh/"]);
            files.insert(format!("{dir}added_{}.rs", rng.below(4)), ("100644", source(rng)));
        }
        5 => {
            if let Some(file) = files.get_mut(&path) {
                file.0 = match file.0 {
                    "100644" => "100755",
                    "100755" => "100644",
                    other => other,
                };
            }
        }
        6 => {
            if let Some(file) = files.get_mut("data.bin") {
                file.1.push(u8::try_from(rng.below(250)).unwrap());
            }
        }
        7 => {
            files.insert("link".into(), ("120000", format!("to{}", rng.below(3)).into_bytes()));
        }
        8 if files.contains_key("vendor/sub") => {
            let commit = format!("{:040}", 2 + rng.below(2));
            files.insert("vendor/sub".into(), ("160000", commit.into_bytes()));
        }
        9 => {
            if let Some(file) = files.remove(&path) {
                files.insert(format!("{path}/inner.rs"), file);
            }
        }
        10 => {
            if let Some(file) = files.get_mut(&path)
                && file.0 == "100644"
            {
                *file = ("120000", b"elsewhere".to_vec());
            }
        }
        11 => edit(rng, files, &Focus { path: "docs/crlf.txt".into(), line: focus.line }),
        _ => edit(rng, files, &Focus { path, line: focus.line }),
    }
}

fn attributes(rng: &mut Rng, files: &mut Files) {
    let text = *rng.pick(&[
        "*.rs -merge\n",
        "*.rs binary\n",
        "src/** merge=binary\n",
        "*.rs text eol=lf\n",
        "*.rs merge=mine\n",
    ]);
    let dir = *rng.pick(&["", "src/"]);
    files.insert(format!("{dir}.gitattributes"), ("100644", text.as_bytes().to_vec()));
}

/// One file in several folders, nearly or wholly alike; one side moves and deletes some, the other edits one,
/// and now and then moves it alike.
fn doubles(rng: &mut Rng, base: &mut Files, ours: &mut Files, theirs: &mut Files) {
    let text = source(rng);
    let paths: Vec<String> = (0..2 + rng.below(3)).map(|n| format!("d{n}/f.rs")).collect();
    for path in &paths {
        let text = if rng.chance(30) { edit_text(rng, &text, None) } else { text.clone() };
        base.insert(path.clone(), ("100644", text));
    }
    (*ours, *theirs) = (base.clone(), base.clone());
    let (mover, editor) = if rng.chance(50) { (ours, theirs) } else { (theirs, ours) };
    let edited = rng.pick(&paths).clone();
    for path in &paths {
        let to = match rng.below(5) {
            0 => continue,
            1 => {
                mover.remove(path);
                continue;
            }
            2 => path.replace("/f.rs", "/g.rs"),
            3 => path.replace('d', "e"),
            _ => format!("all/{}", path.replace('/', "-")),
        };
        let Some(file) = mover.remove(path) else { continue };
        let text = if rng.chance(25) { edit_text(rng, &file.1, None) } else { file.1 };
        mover.insert(to.clone(), (file.0, text));
        if *path == edited
            && rng.chance(25)
            && let Some(file) = editor.remove(path)
        {
            editor.insert(to.clone(), (file.0, edit_text(rng, &file.1, None)));
        }
    }
    if let Some(file) = editor.get_mut(&edited) {
        file.1 = edit_text(rng, &file.1, None);
    }
}

/// The pair of a seed.
pub fn pair(seed: u64) -> Pair {
    let mut rng = Rng(seed);
    let scene = match seed % 20 {
        0..8 => Scene::SameFile,
        8..14 => Scene::RenameAgainstEdit,
        14..17 => Scene::Anything,
        17 => Scene::Doubles,
        18 => Scene::Attributes,
        _ => Scene::Union,
    };
    let mut base = base(&mut rng);
    match scene {
        Scene::Attributes => attributes(&mut rng, &mut base),
        Scene::Union => {
            base.insert(".gitattributes".into(), ("100644", b"*.rs merge=union\n".to_vec()));
        }
        _ => {}
    }
    let mut focus = focus(&mut rng, &base);
    let (mut ours, mut theirs) = (base.clone(), base.clone());
    match scene {
        Scene::SameFile | Scene::Attributes | Scene::Union => {
            edit(&mut rng, &mut ours, &focus);
            if rng.chance(60) {
                focus.line += 4 + rng.below(30);
            }
            edit(&mut rng, &mut theirs, &focus);
            if rng.chance(30) {
                anything(&mut rng, &mut ours, &focus);
            }
        }
        Scene::RenameAgainstEdit => {
            let (mover, editor) =
                if rng.chance(50) { (&mut ours, &mut theirs) } else { (&mut theirs, &mut ours) };
            if let Some(to) = rename(&mut rng, mover, &focus.path)
                && rng.chance(60)
            {
                edit(&mut rng, mover, &Focus { path: to, line: 3 });
            }
            focus.line += rng.below(40);
            edit(&mut rng, editor, &focus);
            if rng.chance(25) {
                anything(&mut rng, mover, &focus);
            }
        }
        Scene::Doubles => doubles(&mut rng, &mut base, &mut ours, &mut theirs),
        Scene::Anything => {
            for _ in 0..1 + rng.below(3) {
                anything(&mut rng, &mut ours, &focus);
                anything(&mut rng, &mut theirs, &focus);
            }
        }
    }
    Pair { scene, base, ours, theirs }
}

fn quoted(path: &str) -> String {
    let mut out = "\"".to_owned();
    for byte in path.bytes() {
        match byte {
            b'"' | b'\\' => out.extend(['\\', char::from(byte)]),
            32..127 => out.push(char::from(byte)),
            _ => {
                let _ = write!(out, "\\{byte:03o}");
            }
        }
    }
    out + "\""
}

/// Appends one commit of these files to a fast-import stream.
pub fn commit(stream: &mut Vec<u8>, mark: usize, parent: Option<usize>, files: &Files) {
    let text = format!("commit {mark}");
    let mut head = format!("commit refs/heads/c{mark}\nmark :{mark}\ncommitter a <a@example> {mark} +0000\n");
    let _ = write!(head, "data {}\n{text}\n", text.len());
    if let Some(parent) = parent {
        let _ = writeln!(head, "from :{parent}");
    }
    head.push_str("deleteall\n");
    stream.extend_from_slice(head.as_bytes());
    for (path, (mode, bytes)) in files {
        if *mode == "160000" {
            let commit = String::from_utf8_lossy(bytes);
            stream.extend_from_slice(format!("M 160000 {commit} {}\n", quoted(path)).as_bytes());
            continue;
        }
        stream.extend_from_slice(
            format!("M {mode} inline {}\ndata {}\n", quoted(path), bytes.len()).as_bytes(),
        );
        stream.extend_from_slice(bytes);
        stream.push(b'\n');
    }
    stream.push(b'\n');
}
