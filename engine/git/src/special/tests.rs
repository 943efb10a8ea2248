//! Verdicts against those of git on the same objects.

use std::collections::{BTreeMap, BTreeSet};

use yard_common::ObjectId;

use super::*;
use crate::object::{Kind as ObjectKind, hash};
use crate::pack::PackWriter;
use crate::testing::{Folder, Random, git, run};
use crate::tree::{self, TreeMode};

const FILE: TreeMode = TreeMode::Leaf(Mode::File);
const LINK: TreeMode = TreeMode::Leaf(Mode::Symlink);

/// Objects of a test, each once.
#[derive(Default)]
struct Pile(BTreeMap<ObjectId, (ObjectKind, Vec<u8>)>);

impl Pile {
    fn add(&mut self, kind: ObjectKind, data: Vec<u8>) -> ObjectId {
        let id = hash(kind, &data);
        self.0.insert(id, (kind, data));
        id
    }

    /// A tree with one entry.
    fn tree(&mut self, mode: TreeMode, name: &[u8], id: ObjectId) -> ObjectId {
        self.add(ObjectKind::Tree, tree::encode(&[(mode, name, id)]))
    }

    /// What `git fsck --strict` says of each object: (id, fault), for errors and for warnings.
    fn by_git(&self) -> [BTreeSet<(ObjectId, String)>; 2] {
        let folder = Folder::new();
        git(&folder.0, &["init", "-q", "--bare"], b"");
        let mut writer = PackWriter::in_memory();
        for (id, (kind, data)) in &self.0 {
            writer.add(*id, *kind, data);
        }
        git(&folder.0, &["index-pack", "--stdin"], &writer.finish().unwrap().rest);
        let output = run(&folder.0, &["fsck", "--strict", "--no-dangling"], b"");
        let text = [output.stdout, output.stderr].concat();
        let mut sets = [BTreeSet::new(), BTreeSet::new()];
        for line in String::from_utf8_lossy(&text).lines() {
            let mut words = line.split_ascii_whitespace();
            let (Some(class), Some("in"), Some(_), Some(id), Some(fault)) =
                (words.next(), words.next(), words.next(), words.next(), words.next())
            else {
                continue;
            };
            let Ok(id) = id.trim_end_matches(':').parse() else { continue };
            let fault = fault.trim_end_matches(':').to_owned();
            sets[usize::from(class == "warning")].insert((id, fault));
        }
        sets
    }
}

fn ours(special: Special, id: ObjectId, data: &[u8]) -> [BTreeSet<(ObjectId, String)>; 2] {
    let mut sets = [BTreeSet::new(), BTreeSet::new()];
    for fault in special.faults(data) {
        sets[usize::from(!fault.kind.is_error())].insert((id, fault.kind.as_str().to_owned()));
    }
    sets
}

/// Compares blobs under a name; gives those on which the verdicts differ.
fn differing(name: &[u8], special: Special, texts: &[Vec<u8>]) -> Vec<(Vec<u8>, String)> {
    let mut pile = Pile::default();
    for text in texts {
        let id = pile.add(ObjectKind::Blob, text.clone());
        pile.tree(FILE, name, id);
    }
    let by_git = pile.by_git();
    let mut out = Vec::new();
    for text in texts {
        let id = hash(ObjectKind::Blob, text);
        let of = |set: &BTreeSet<(ObjectId, String)>| -> BTreeSet<(ObjectId, String)> {
            set.iter().filter(|(other, _)| *other == id).cloned().collect()
        };
        let (git, mine) = (by_git.each_ref().map(of), ours(special, id, text));
        if git != mine {
            out.push((
                text.clone(),
                format!("{:?}: git {git:?}, here {mine:?}", String::from_utf8_lossy(text)),
            ));
        }
    }
    out
}

fn modules_with(key: &str, value: &[u8]) -> Vec<u8> {
    [format!("[submodule \"x\"]\n\t{key} = ").as_bytes(), value, b"\n"].concat()
}

const URLS: &[&str] = &[
    "-u",
    "--upload-pack=evil",
    "https://example.org/x.git",
    "git://h/p",
    "ssh://git@h/p",
    "../x",
    "./x",
    "../../y",
    "..\\\\x",
    ".\\\\../:x",
    "../:x",
    "..//x",
    "../../:x",
    "./:x",
    ".//x",
    ".././/x",
    "../%0ax",
    "../%0Ax",
    "../%250ax",
    "../%%0ax",
    "git://h%0ax",
    "git%0a://x",
    "https://h%0ax/y",
    "https://h/%0a",
    "https://h/a?b%0a",
    "https://h/a#%0A",
    "https:///x",
    "http:///x",
    "https://",
    "https::",
    "https::x",
    "https::https://h/x",
    "http::http://",
    "ftp://h:0/",
    "ftp://h:99999/x",
    "http://h:80/x",
    "http://h:080/",
    "http://h:/x",
    "http://h:a/x",
    "http://h:65536",
    "http://h:1/",
    "http://u@h/",
    "http://u%@h/",
    "http://u%0a@h/",
    "http://@h/",
    "http://u:p@h:8/",
    "http://u@",
    "http://u@/x",
    "http://[::1]/x",
    "http://[::1]:8/x",
    "http://h/%",
    "http://h/%zz",
    "http://h/..",
    "http://h/../x",
    "http://h/a/../..",
    "http://h/a/../x",
    "http://h/./x",
    "http://h/%2e%2e/x",
    "http://h/%0a/../x",
    "http://h/a/..%2fx",
    "http://h/a/..",
    "http://h/a/.",
    "http://h/.",
    "HTTP://h/x",
    "Https:///x",
    "http:/h",
    "http:h",
    "file:///x",
    "file://h:8/x",
    "http::file:///x",
    "http::file://h:8/",
    "http::file://:8/",
    "http::file://",
    "http::1a://x",
    "http::+a://x",
    "http://h_-.x/y",
    "http://h x/y",
    "http://h/ x",
    "http://h?x",
    "http://h#y",
    "http://h?%",
    "http://h/\u{e4}",
    "http://\u{e4}/",
    "https://h/a\\nb",
    "../a\\nb",
    "a\\nb",
    "ext::sh -c evil",
    "/abs",
    "C:\\\\x",
    "",
    " ",
    "\"-x\"",
    "\"  -x\"",
    "http://h:00000080/",
    "http://h:000/",
    "http://h@x@y/",
    "http://h/@:",
    "http://a:b:c/",
    "http://a]:8/",
    "http://:8@h/",
    "ftps://h/%00%0a",
    "http://h/a//..//..",
    "http://h//..",
    "http://h//../..",
    "../\\t:x",
    "http::http::x",
    "https://h/x y%0",
];

#[test]
fn urls_are_judged_as_git_does() {
    let texts: Vec<Vec<u8>> = URLS.iter().map(|url| modules_with("url", url.as_bytes())).collect();
    let out = differing(b".gitmodules", Special::MODULES, &texts);
    assert!(out.is_empty(), "{out:#?}");
    let bad = texts.iter().filter(|text| !Special::MODULES.faults(text).is_empty()).count();
    assert!(bad > 40 && bad < texts.len() - 30, "{bad} of {}", texts.len());
}

const CONFIGS: &[&[u8]] = &[
    b"",
    b"[",
    b"[submodule",
    b"[submodule]",
    b"[submodule]\nurl = -x",
    b"[submodule.x]\nurl = -x",
    b"[submodule \"\"]\nurl = x",
    b"[submodule \"..\"]\nurl = x",
    b"[submodule \"a/..\"]\nx",
    b"[submodule \"a\\\\..\"]\nx",
    b"[submodule \"a\\..\"]\nx",
    b"[submodule \"..a\"]\nx",
    b"[submodule \"../a\"]\npath",
    b"[SUBMODULE \"../a\"]\nPATH = -x",
    b"[submodule \"a.b.c\"]\nurl=-x",
    b"[submodule \"a\"]\npath = -x",
    b"[submodule \"a\"]\npath = \"-x\"",
    b"[submodule \"a\"]\npath\n",
    b"[submodule \"a\"] path = -x",
    b"[submodule \"a\"]\nupdate = !cmd",
    b"[submodule \"a\"]\nupdate = none",
    b"[submodule \"a\"]\nupdate = \"!x\"",
    b"[submodule \"a\"]\nupdate = bogus",
    b"[submodule \"a\"]\nupdate = ! # x",
    b"[submodule \"a\"]\nurl = x\\",
    b"# c\n; d\n",
    b"[submodule \"a\"]\nurl = x\\q",
    b"[submodule \"a\"]\nurl = \"x",
    b"[submodule \"a\"]\nurl = \"x\ny\"",
    b"url = -x",
    b"[submodule \"a\nb\"]\nurl=-x",
    b"[submodule \"a\"x]\nurl=-x",
    b"[submodule x]\nurl=-x",
    b"[submodule  \t\"a\"]\nurl=-x",
    b"[submodule\r\"a\"]\nurl=-x",
    b"[submodule \"a\"]\r\nurl=-x\r\n",
    b"[submodule \"a\"]\nurl=\\\n-x",
    b"[submodule \"a\"]\n1=x",
    b"[submodule \"a\"]\nu_l=x",
    b"[submodule \"a\"]\nurl x",
    b"[submodule \"a\"]\nurl-x = -x\nurl = -y",
    b"[submodule \"a\"]\nurl",
    b"[submodule \"a\"]\nurl = a\nbad line\nurl = -x",
    b"[submodule \"a\"]\nurl = -x\nbad line =\n!\n",
    b"[x \"..\"]\nurl=-x",
    b"[submodule \"a\0b\"]\nurl=-x",
    b"[submodule \"..\0b\"]\nurl=-x",
    b"[submodule \"a\"]\nurl=x\0\nurl=-x",
    b"[submodule \"a\"]\nurl=\0-x",
    b"[submodule \"a\"]\nu\0rl=-x",
    b"[submodule \"a\"]\n\0",
    b"[submodule \"a\"]\npath = a \t-b ; c\n",
    b"[submodule \"a\"]\nupdate = \\b!",
    b"[submodule \"a\"]\nurl = \xc3\xa4",
    b"[submodule \"\xc3\xa4\"]\nurl = -x",
    b"[submodule \"a\"]\n\xc3\xa4 = -x",
    b"[submodulex \"..\"]\nurl=-x",
    b"[submodule.x \"..\"]\nurl=-x",
    b"[submodule \"..\" ]\nurl=-x",
    b"[submodule \"a\"] # x\n[submodule \"..\"] url",
    b"[submodule \"a\"]\nurl = x \\\n  -y",
    b"[submodule \"a\"]\nurl = \\\n\\\n-",
    b"\n\n  [submodule \"a\"]\n\n\n   url = -x",
    b"[submodule \"\\..\"]\nurl",
    b"[submodule \"\\\"..\"]\nurl",
    b"[submodule \".\\.\"]\nurl=a",
    b"[submodule \"a\"]\nurl=-x\r",
    b"\r",
    b"[a\r]",
];

#[test]
fn configuration_is_read_as_git_does() {
    let texts: Vec<Vec<u8>> = CONFIGS.iter().map(|text| text.to_vec()).collect();
    let out = differing(b".gitmodules", Special::MODULES, &texts);
    assert!(out.is_empty(), "{out:#?}");
}

#[test]
fn thousands_of_generated_files_are_judged_as_git_does() {
    let pieces: &[&[u8]] = &[
        b"[submodule \"",
        b"\"]\n",
        b"]",
        b"[",
        b"\n",
        b"\r\n",
        b"\r",
        b"url = ",
        b"\tpath = ",
        b"update=",
        b"=",
        b"\\",
        b"\"",
        b"..",
        b"/",
        b"-x",
        b"!cmd",
        b"../",
        b":",
        b"http://",
        b"https::",
        b"%0a",
        b"%",
        b"h",
        b"@",
        b"#",
        b";",
        b"a",
        b" ",
        b"\t",
        b".",
        b"\0",
        b"none",
        b"[submodule \"x\"]\nurl = ",
        b"[submodule \"x\"]\npath = ",
        b"[submodule \"..\"]\n",
        b"git://",
        b"\xc3\xa4",
        b"?",
        b"80",
    ];
    let mut random = Random(0x5eed_0001);
    let mut texts = BTreeSet::new();
    while texts.len() < 6000 {
        let head = random.pick(&["", "[submodule \"x\"]\nurl = ", "", "http://", "../", "https::"]);
        let mut text = match head {
            "" => Vec::new(),
            head if head.starts_with('[') => head.into(),
            head => [b"[submodule \"x\"]\nurl = ", head.as_bytes()].concat(),
        };
        for _ in 0..random.below(10) {
            text.extend_from_slice(random.pick(pieces));
        }
        texts.insert(text);
    }
    let texts: Vec<Vec<u8>> = texts.into_iter().collect();
    let out = differing(b".gitmodules", Special::MODULES, &texts);
    assert!(out.is_empty(), "{} of {}: {:#?}", out.len(), texts.len(), &out[..out.len().min(20)]);
    let faults = texts.iter().filter(|text| Special::MODULES.faults(text).iter().any(|f| f.kind.is_error()));
    let faults = faults.count();
    assert!(faults > 500, "{faults}");
}

#[test]
fn attributes_are_judged_as_git_does() {
    let line = |length: usize| [vec![b'*'; length], b"\n".to_vec()].concat();
    let texts = vec![
        line(2047),
        line(2048),
        line(3000),
        [line(10), line(2048)].concat(),
        vec![b'x'; 2048],
        vec![b'x'; 2047],
        [b"a\0".to_vec(), line(3000)].concat(),
        [b"\0".to_vec(), line(3000)].concat(),
        [line(2047), b"\r\n".to_vec()].concat(),
        [vec![b'x'; 2047], b"\r\n".to_vec()].concat(),
        Vec::new(),
    ];
    let out = differing(b".gitattributes", Special::ATTRIBUTES, &texts);
    assert!(out.is_empty(), "{out:#?}");
    assert_eq!(Special::ATTRIBUTES.faults(&texts[3])[0].line, 2);
}

const NAMES: &[&[u8]] = &[
    b".gitmodules",
    b".GitModules",
    b".gitmodules ",
    b".gitmodules. .",
    b".gitmodules:x",
    b".gitmodulesx",
    b".gitmodules x",
    b"gitmodules",
    b"GITMOD~1",
    b"gitmod~4",
    b"gitmod~5",
    b"gitmod~1 .",
    b"gitmod~11",
    b"gi7eba~1",
    b"GI7EBA~9",
    b"gi7eb~10",
    b"gi7e~123",
    b"~1000000",
    b"~1",
    b"gi7eba~0",
    b"gi7eba~1x",
    b"gi7eba~1:x",
    b"g~12345",
    b"g~123456",
    b"gi7eb~1",
    b"gi7eba~a",
    b"gi7eb\xc3~1",
    "\u{200c}.gitmodules".as_bytes(),
    ".git\u{200d}modules".as_bytes(),
    ".gitmodules\u{feff}".as_bytes(),
    ".gitmodules\u{202f}".as_bytes(),
    b".gitmodules\xff",
    b".gitmodules\xffabc",
    b".git\xffmodules",
    b"\xff.gitmodules",
    b".gitmodules\xed\xa0\x80x",
    b".gitmodules\xef\xbf\xbe",
    b".gitmodules\xef\xb7\x90x",
    b".gitmodules\xf4\x90\x80\x80",
    b"a\\.gitmodules",
    b"a\\b\\.GITMODULES",
    b"a\\gitmod~1",
    b"a\\.gitmodules\\b",
    b"a\\.gitmodules:b",
    b".gitmodules\\",
    b"a\\.gitattributes",
    b".gitattributes",
    b"gitatt~1",
    b"GI7D29~1",
    b".gitattributes ",
    b".gitattributes:\\.gitmodules",
    ".gitattributes\u{200e}".as_bytes(),
    b".gitignore",
    b"gitign~1",
    b"gi250a~1",
    b".gitignore::$DATA",
    b".mailmap",
    b"mailma~1",
    b"maba30~2",
    b".MAILMAP.",
    b"\\.gitmodules",
    b".gitmodule",
    b".g",
    b"g",
    b"m",
    b".gitmodules\n",
    b".gitmodules\t",
    b"xgitmod~1",
    b".gitattributesx",
    b"gi7d29~",
    b"gi7eba~12",
];

#[test]
fn names_are_read_as_git_does_for_files_links_directories_and_submodules() {
    let mut pile = Pile::default();
    let bad = modules_with("url", b"-x");
    // A blob for each name, faulty as both kinds.
    let blob = |n: usize| [bad.clone(), vec![b'*'; 3000], format!("\n# {n}").into_bytes()].concat();
    let inner = pile.add(ObjectKind::Blob, b"inner".to_vec());
    let mut cases = Vec::new();
    for (n, name) in NAMES.iter().enumerate() {
        let id = pile.add(ObjectKind::Blob, blob(n));
        pile.tree(FILE, name, id);
        let mut trees = Vec::new();
        let below = pile.tree(FILE, format!("inner{n}").as_bytes(), inner);
        let gitlink = hash(ObjectKind::Blob, format!("link{n}").as_bytes());
        let text = pile.add(ObjectKind::Blob, format!("target{n}").into_bytes());
        trees.push((LINK, pile.tree(LINK, name, text), text));
        trees.push((TreeMode::Tree, pile.tree(TreeMode::Tree, name, below), below));
        let submodule = TreeMode::Leaf(Mode::Gitlink);
        trees.push((submodule, pile.tree(submodule, name, gitlink), gitlink));
        cases.push((*name, id, trees));
    }
    let [errors, warnings] = pile.by_git();
    let says = |set: &BTreeSet<(ObjectId, String)>, id: ObjectId| set.iter().any(|(other, _)| *other == id);
    let mut out = Vec::new();
    for (n, (name, id, trees)) in cases.iter().enumerate() {
        let special = Special::of(name);
        let [mine, _] = ours(special, *id, &blob(n));
        let git: BTreeSet<_> = errors.iter().filter(|(other, _)| other == id).cloned().collect();
        if mine != git {
            out.push(format!("{:?} file: git {git:?}, here {mine:?}", String::from_utf8_lossy(name)));
        }
        for (mode, tree, target) in trees {
            let fault = special.entry_fault(*mode);
            let by_name = yard_common::path::component_fault(name).is_some();
            let refused = says(&errors, *tree) || says(&errors, *target);
            // One fault of a tree is told, errors before warnings.
            let git = (refused && !by_name, says(&warnings, *tree) && !refused);
            let mine = (fault.is_some_and(Kind::is_error), fault.is_some_and(|kind| !kind.is_error()));
            if git != mine {
                out.push(format!("{:?} {mode:?}: git {git:?}, here {mine:?}", String::from_utf8_lossy(name)));
            }
        }
    }
    assert!(out.is_empty(), "{out:#?}");
}

#[test]
fn where_git_stops_at_a_byte_both_readings_count() {
    // Listed differences: git on a machine whose `char` is signed ends at 0xFF and takes a byte order mark
    // for a fault; its clients read on. More is refused here, never less.
    for (text, wants) in [
        (&b"\xff[submodule \"..\"]\nurl = -x"[..], &[Kind::ModulesParse][..]),
        (b"[submodule \"x\"]\nurl = a\xff\nurl = -x", &[Kind::ModulesUrl]),
        (b"[submodule \"x\"]\nurl = http://\xff", &[Kind::ModulesUrl]),
        (b"\xef\xbb\xbf[submodule \"x\"]\nurl = -x", &[Kind::ModulesUrl]),
    ] {
        let kinds: Vec<Kind> = Special::MODULES.faults(text).iter().map(|fault| fault.kind).collect();
        assert_eq!(kinds, wants, "{:?}", String::from_utf8_lossy(text));
    }
}
