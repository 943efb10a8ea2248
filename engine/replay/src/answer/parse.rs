//! The blocks of an answer.

use std::collections::BTreeMap;

use yard_common::RepoPath;

use super::BadAnswer;
use crate::brief::BriefFile;
use crate::limits::{ANSWER_BYTES_MAX, BLOCKS_MAX};
use crate::text::quote;

const OPEN: &str = "<<<<<<< ";
const CLOSE: &str = ">>>>>>> ";
const SEPARATOR: &str = "=======";

/// Lines without their ends.
pub type Text<'a> = Vec<&'a str>;

/// What one block asks for.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Edit<'a> {
    /// These lines become those.
    Replace(Text<'a>, Text<'a>),
    /// The whole file.
    File(Text<'a>),
    /// The file goes.
    Delete,
    /// The file stays as it is on main.
    Keep,
}

/// The edits of each path, in path order, repeated ones once.
pub type Blocks<'a> = BTreeMap<RepoPath, Vec<Edit<'a>>>;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Replace,
    File,
    Delete,
    Keep,
    Cannot,
}

impl Kind {
    const ALL: [(&'static str, &'static str, Self); 5] = [
        ("SEARCH", "REPLACE", Self::Replace),
        ("FILE", "FILE", Self::File),
        ("DELETE", "DELETE", Self::Delete),
        ("KEEP", "KEEP", Self::Keep),
        ("CANNOT", "CANNOT", Self::Cannot),
    ];

    fn opened_by(word: &str) -> Option<(Self, &'static str)> {
        Self::ALL.iter().find(|(open, _, _)| *open == word).map(|(_, close, kind)| (*kind, *close))
    }
}

/// The lines of an answer with their numbers from 1.
struct Reader<'a, L> {
    lines: L,
    number: u64,
    last: Option<&'a str>,
}

impl<'a, L: Iterator<Item = &'a str>> Reader<'a, L> {
    fn next(&mut self) -> Option<&'a str> {
        let line = self.lines.next()?;
        self.number += 1;
        Some(line.strip_suffix('\r').unwrap_or(line))
    }
}

/// Reads all blocks.
pub fn blocks<'a>(files: &[BriefFile], answer: &'a str) -> Result<Blocks<'a>, BadAnswer> {
    if answer.len() > ANSWER_BYTES_MAX {
        return Err(BadAnswer::TooLong { bytes: answer.len() as u64 });
    }
    let text = without_thoughts(answer);
    if text.trim().is_empty() {
        return Err(BadAnswer::Empty);
    }
    let names = names(files);
    let mut reader = Reader { lines: text.split('\n'), number: 0, last: None };
    let mut found = Blocks::new();
    let mut count = 0usize;
    // The path of the block before counts on where a block follows at once.
    let mut path: Option<RepoPath> = None;
    while let Some(line) = reader.next() {
        let Some(marker) = line.strip_prefix(OPEN) else {
            if line.starts_with(CLOSE) {
                return Err(BadAnswer::HalfBlock { line: reader.number });
            }
            let plain = line.trim();
            if !plain.is_empty() && !plain.starts_with("```") && !plain.starts_with("~~~") {
                reader.last = Some(plain);
            }
            continue;
        };
        count += 1;
        if count > BLOCKS_MAX {
            return Err(BadAnswer::TooManyBlocks);
        }
        let begins = reader.number;
        let (word, tag) = marker.trim_end().split_once(' ').unwrap_or((marker.trim_end(), ""));
        let Some((kind, close)) = Kind::opened_by(word) else {
            return Err(BadAnswer::HalfBlock { line: begins });
        };
        let (first, second) = body(&mut reader, kind, close, tag)?;
        if kind == Kind::Cannot {
            return Err(BadAnswer::Cannot { why: quote(&first.join(" ")) });
        }
        if let Some(candidate) = reader.last.take() {
            path = Some(resolve(&names, candidate, begins)?);
        }
        let path = path.clone().ok_or(BadAnswer::NoPath { line: begins })?;
        let edit = match kind {
            Kind::Replace => Edit::Replace(first, second),
            Kind::File => Edit::File(first),
            Kind::Delete => Edit::Delete,
            Kind::Keep | Kind::Cannot => Edit::Keep,
        };
        found.entry(path).or_default().push(edit);
    }
    if found.is_empty() {
        return Err(BadAnswer::NoBlocks { begins: quote(text) });
    }
    for edits in found.values_mut() {
        edits.sort();
        edits.dedup();
    }
    Ok(found)
}

/// What some models think aloud before they answer is no answer.
fn without_thoughts(answer: &str) -> &str {
    let text = answer.trim_start();
    match text.strip_prefix("<think>") {
        Some(thoughts) => thoughts.split_once("</think>").map_or("", |(_, rest)| rest),
        None => answer,
    }
}

fn body<'a, L: Iterator<Item = &'a str>>(
    reader: &mut Reader<'a, L>,
    kind: Kind,
    close: &str,
    tag: &str,
) -> Result<(Text<'a>, Text<'a>), BadAnswer> {
    let begins = reader.number;
    let half = BadAnswer::HalfBlock { line: begins };
    let tagged = |marker: &str| if tag.is_empty() { marker.to_owned() } else { format!("{marker} {tag}") };
    let (separator, end) = (tagged(SEPARATOR), tagged(&format!("{CLOSE}{close}")));
    let mut parts = (Text::new(), Text::new());
    let mut separators = 0u32;
    loop {
        let Some(line) = reader.next() else { return Err(half) };
        let marker = line.trim_end();
        if marker == end {
            break;
        }
        if kind == Kind::Replace && marker == separator {
            separators += 1;
            continue;
        }
        // Without a word of its own, a block that opens inside another is one that was never closed.
        let opens = marker.strip_prefix(OPEN).and_then(Kind::opened_by).is_some();
        if opens && tag.is_empty() {
            return Err(half);
        }
        if separators == 0 { parts.0.push(line) } else { parts.1.push(line) }
    }
    match (kind, separators) {
        (Kind::Replace, 0) => Err(half),
        (Kind::Replace, 2..) => Err(BadAnswer::TwoSeparators { line: begins }),
        (Kind::Delete | Kind::Keep, _) if !parts.0.iter().all(|line| line.trim().is_empty()) => Err(half),
        _ => Ok(parts),
    }
}

/// The paths by all the names that they had in the prompt.
fn names(files: &[BriefFile]) -> BTreeMap<&[u8], &RepoPath> {
    let old = files.iter().map(|file| (file.reviewed.as_bytes(), &file.path));
    let new = files.iter().map(|file| (file.path.as_bytes(), &file.path));
    // A name of today wins over one that main has given up.
    old.chain(new).collect()
}

fn resolve(names: &BTreeMap<&[u8], &RepoPath>, text: &str, line: u64) -> Result<RepoPath, BadAnswer> {
    let known = |text: &str| names.get(text.as_bytes()).map(|path| (*path).clone());
    let bare = text.trim_start_matches('#').trim().trim_end_matches(':');
    let bare = bare.trim_matches(['*', '`']).trim_end_matches(':').trim();
    let spoken: Option<String> = serde_json::from_str(bare).ok();
    let prefixed = ["a/", "b/", "./", "/"].iter().find_map(|prefix| bare.strip_prefix(prefix));
    let candidates = [Some(text), Some(bare), spoken.as_deref(), prefixed];
    if let Some(path) = candidates.into_iter().flatten().find_map(known) {
        return Ok(path);
    }
    // A remark is no path; what reads like one is named.
    let bare = spoken.as_deref().unwrap_or(bare);
    if bare.contains(char::is_whitespace) && !bare.contains('/') {
        return Err(BadAnswer::NoPath { line });
    }
    Err(BadAnswer::OutOfPaths { path: quote(bare) })
}
