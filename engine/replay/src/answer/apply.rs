//! Blocks on contents.

use std::collections::BTreeSet;

use yard_common::RepoPath;

use super::find::{self, Miss};
use super::parse::{Blocks, Edit, Text};
use super::{BadAnswer, Replayed, ResultFile};
use crate::brief::BriefFile;
use crate::limits::{FILE_BYTES_MAX, RESULT_BYTES_MAX};
use crate::text::{hunks, quote};

/// Applies the blocks of an answer.
pub fn apply(
    files: &[BriefFile],
    partly: &BTreeSet<RepoPath>,
    mut blocks: Blocks<'_>,
) -> Result<Replayed, BadAnswer> {
    let mut results = Vec::new();
    let mut total = 0;
    for file in files {
        let edits = blocks.remove(&file.path).unwrap_or_default();
        if partly.contains(&file.path) && edits.iter().any(|edit| matches!(edit, Edit::File(_))) {
            return Err(BadAnswer::PartlyShown { path: file.path.clone() });
        }
        let result = one(file, edits)?;
        if let Some(content) = &result.content
            && result.edited
        {
            total += content.len();
            check(file, content)?;
        }
        if result.content != file.main || (file.mode_moved && !file.is_collided()) {
            results.push(result);
        }
    }
    if total > RESULT_BYTES_MAX {
        return Err(BadAnswer::TooLarge { path: None, bytes: total as u64 });
    }
    if results.is_empty() {
        return Ok(Replayed::AlreadyThere);
    }
    results.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(Replayed::Files(results))
}

fn one(file: &BriefFile, edits: Vec<Edit<'_>>) -> Result<ResultFile, BadAnswer> {
    let path = file.path.clone();
    if edits.is_empty() {
        if file.is_collided() {
            return Err(BadAnswer::Unanswered { path });
        }
        return Ok(ResultFile { path, content: file.start().map(<[u8]>::to_vec), edited: false });
    }
    if !file.is_text() {
        return Err(BadAnswer::NotText { path });
    }
    if edits.len() > 1 && edits.iter().any(|edit| !matches!(edit, Edit::Replace(..))) {
        return Err(BadAnswer::MixedBlocks { path });
    }
    let content = match edits.first() {
        Some(Edit::Keep) => {
            return Ok(ResultFile { path, content: file.start().map(<[u8]>::to_vec), edited: false });
        }
        Some(Edit::Delete) if file.theirs.is_some() => return Err(BadAnswer::DeletesUnreviewed { path }),
        Some(Edit::Delete) => None,
        Some(Edit::File(_)) if file.start().is_none() && file.theirs.is_none() => {
            return Err(BadAnswer::NoFile { path });
        }
        Some(Edit::File(lines)) => Some(Shape::of(file).write(lines)),
        _ => Some(replaced(file, &edits)?),
    };
    Ok(ResultFile { path, content, edited: true })
}

fn replaced(file: &BriefFile, edits: &[Edit<'_>]) -> Result<Vec<u8>, BadAnswer> {
    let path = || file.path.clone();
    let pairs: Vec<(&Text<'_>, &Text<'_>)> = edits
        .iter()
        .filter_map(|edit| match edit {
            Edit::Replace(search, replace) => Some((search, replace)),
            _ => None,
        })
        .collect();
    let Some(start) = file.start() else {
        return match pairs.as_slice() {
            [(search, replace)] if search.is_empty() && file.theirs.is_some() => {
                Ok(Shape::of(file).write(replace))
            }
            _ => Err(BadAnswer::NoFile { path: path() }),
        };
    };
    let shape = Shape::of(file);
    let old = plain(start);
    if pairs.iter().any(|(search, _)| search.is_empty()) {
        return match pairs.as_slice() {
            [(_, replace)] if old.is_empty() => Ok(shape.write(replace)),
            _ => Err(BadAnswer::EmptySearch { path: path() }),
        };
    }
    let searches: Vec<&[&str]> = pairs.iter().map(|(search, _)| search.as_slice()).collect();
    if searches.windows(2).any(|two| matches!(two, [a, b] if a == b)) {
        return Err(BadAnswer::Overlap { path: path() });
    }
    let places = find::once(&old, &searches).map_err(|(index, miss)| {
        let search = searches.get(index).copied().unwrap_or_default();
        match miss {
            Miss::Never => BadAnswer::NoMatch { path: path(), hint: hint(&old, search) },
            Miss::Many => BadAnswer::ManyMatches { path: path(), begins: begins(search) },
        }
    })?;
    let mut order: Vec<_> = places.iter().zip(&pairs).collect();
    order.sort_by_key(|(at, _)| **at);
    let mut new: Text<'_> = Vec::new();
    let mut from = 0;
    for (at, (search, replace)) in order {
        let between = old.get(from..*at).ok_or_else(|| BadAnswer::Overlap { path: path() })?;
        new.extend(between);
        new.extend(replace.iter());
        from = at + search.len();
    }
    new.extend(old.get(from..).unwrap_or_default());
    Ok(shape.write(&new))
}

fn begins(search: &[&str]) -> String {
    quote(search.iter().find(|line| !line.trim().is_empty()).copied().unwrap_or_default())
}

/// How far a search that is nowhere agrees with the file, from the first place where its first line stands.
fn hint(file: &[&str], search: &[&str]) -> String {
    let first = search.first().copied().unwrap_or_default();
    let Some(at) = file.iter().position(|line| *line == first) else {
        return format!("no line of the file reads {:?}", quote(first));
    };
    let rest = file.get(at..).unwrap_or_default();
    let same = rest.iter().zip(search).take_while(|(a, b)| a == b).count();
    let other = search.get(same).copied().unwrap_or_default();
    format!("it agrees from line {} of the file on for {same} lines, and then has {:?}", at + 1, quote(other))
}

/// The lines of a text file without their ends.
fn plain(bytes: &[u8]) -> Text<'_> {
    let text = std::str::from_utf8(bytes).unwrap_or_default();
    let mut lines: Text<'_> = text.split('\n').map(|line| line.strip_suffix('\r').unwrap_or(line)).collect();
    lines.pop_if(|last| last.is_empty() && (text.is_empty() || text.ends_with('\n')));
    lines
}

/// How a file ends its lines. Models write line feeds; a file keeps the ends that it has.
struct Shape<'a> {
    /// The lines that stand there, with their ends.
    old: Vec<&'a [u8]>,
    /// The end of a line that has none of its own.
    end: &'static [u8],
    /// Do all lines end in it?
    uniform: bool,
    /// Does the last line end in it?
    last: bool,
}

impl<'a> Shape<'a> {
    fn of(file: &'a BriefFile) -> Self {
        let ends = |bytes: &Option<Vec<u8>>| bytes.as_ref().is_none_or(|bytes| bytes.ends_with(b"\n"));
        let model = file.start().or(file.theirs.as_deref()).unwrap_or_default();
        let all = model.split_inclusive(|byte| *byte == b'\n');
        let crlf = all.clone().filter(|line| line.ends_with(b"\r\n")).count();
        let lf = all.clone().filter(|line| line.ends_with(b"\n")).count();
        let last = match (file.start(), &file.theirs) {
            // What the review saw done to the last line is part of the change.
            (_, Some(_)) if ends(&file.base) != ends(&file.theirs) => ends(&file.theirs),
            (Some(start), _) => start.is_empty() || start.ends_with(b"\n"),
            (None, theirs) => ends(theirs),
        };
        let old = file.start().unwrap_or_default().split_inclusive(|byte| *byte == b'\n').collect();
        let end: &[u8] = if crlf * 2 > lf { b"\r\n" } else { b"\n" };
        Self { old, end, uniform: crlf == 0 || crlf == lf, last }
    }

    fn write(&self, lines: &[&str]) -> Vec<u8> {
        let mut out = Vec::with_capacity(lines.iter().map(|line| line.len() + 2).sum());
        if self.uniform {
            for line in lines {
                out.extend_from_slice(line.as_bytes());
                out.extend_from_slice(self.end);
            }
        } else {
            self.weave(lines, &mut out);
        }
        if !self.last {
            out.truncate(out.len() - trailing(&out));
        }
        out
    }

    /// Lines that stay keep the ends that they have.
    fn weave(&self, lines: &[&str], out: &mut Vec<u8>) {
        let old: Vec<&[u8]> =
            self.old.iter().map(|line| line.get(..line.len() - trailing(line)).unwrap_or_default()).collect();
        let new: Vec<&[u8]> = lines.iter().map(|line| line.as_bytes()).collect();
        let mut at = 0;
        let stay = |from: usize, to: usize, out: &mut Vec<u8>| {
            for line in self.old.get(from..to).unwrap_or_default() {
                out.extend_from_slice(line);
                if !line.ends_with(b"\n") {
                    out.extend_from_slice(self.end);
                }
            }
        };
        for hunk in hunks(&old, &new) {
            stay(at, hunk.before.start, out);
            for line in new.get(hunk.after).unwrap_or_default() {
                out.extend_from_slice(line);
                out.extend_from_slice(self.end);
            }
            at = hunk.before.end;
        }
        stay(at, self.old.len(), out);
    }
}

/// Bytes of the line end at the end.
fn trailing(bytes: &[u8]) -> usize {
    if bytes.ends_with(b"\r\n") { 2 } else { usize::from(bytes.ends_with(b"\n")) }
}

/// What no result may have.
fn check(file: &BriefFile, content: &[u8]) -> Result<(), BadAnswer> {
    let path: &RepoPath = &file.path;
    if content.len() > FILE_BYTES_MAX {
        return Err(BadAnswer::TooLarge { path: Some(path.clone()), bytes: content.len() as u64 });
    }
    if content.contains(&0) {
        return Err(BadAnswer::Binary { path: path.clone() });
    }
    let text = plain(content);
    if let Some(lines) = lost(file, &text) {
        return Err(BadAnswer::CutOff { path: path.clone(), lines });
    }
    if let Some((lines, line)) = taken_back(file, &text) {
        return Err(BadAnswer::TakesBack { path: path.clone(), lines, line: quote(line) });
    }
    let known: BTreeSet<&str> = [file.start(), file.theirs.as_deref(), file.base.as_deref()]
        .into_iter()
        .flatten()
        .flat_map(plain)
        .collect();
    for line in text.iter().filter(|line| !known.contains(*line)) {
        if is_marker(line) {
            return Err(BadAnswer::MarkersLeft { path: path.clone() });
        }
        if is_elision(line) {
            return Err(BadAnswer::Elided { path: path.clone(), line: quote(line) });
        }
    }
    Ok(())
}

/// Of the lines that both sides left as they were, so many that the file must have been cut off: all of them, or
/// three and more than a quarter.
fn lost(file: &BriefFile, text: &[&str]) -> Option<u64> {
    let words = |bytes: &'_ [u8]| -> BTreeSet<String> {
        plain(bytes).into_iter().filter(|line| !line.trim().is_empty()).map(str::to_owned).collect()
    };
    let [Some(base), Some(theirs), Some(start)] =
        [file.base.as_deref(), file.theirs.as_deref(), file.start()]
    else {
        return None;
    };
    let (theirs, start, new) = (words(theirs), words(start), text.iter().copied().collect::<BTreeSet<_>>());
    let both: Vec<String> =
        words(base).into_iter().filter(|line| theirs.contains(line) && start.contains(line)).collect();
    let gone = both.iter().filter(|line| !new.contains(line.as_str())).count();
    let cut = gone > 0 && (gone == both.len() || (gone >= 3 && gone * 4 > both.len()));
    cut.then_some(gone as u64)
}

/// Lines that main has got since the base and the result has not, beyond those that new lines may stand for; with
/// the first of them.
///
/// What main has put into a place that the reviewed change takes away goes with it, and where both rewrote the same
/// lines there is one outcome: neither counts.
fn taken_back<'a>(file: &'a BriefFile, text: &[&str]) -> Option<(u64, &'a str)> {
    let (Some(main), Some(theirs)) = (file.main.as_deref(), file.theirs.as_deref()) else { return None };
    let (base, main, theirs) = (plain(file.base.as_deref().unwrap_or_default()), plain(main), plain(theirs));
    let bytes = |lines: &[&'a str]| -> Vec<&'a [u8]> { lines.iter().map(|line| line.as_bytes()).collect() };
    let (kept, new): (BTreeSet<&str>, BTreeSet<&str>) =
        (theirs.iter().copied().collect(), text.iter().copied().collect());
    let goes = |line: Option<&&str>| line.is_some_and(|line| !kept.contains(*line));
    let mut gone: Vec<&'a str> = Vec::new();
    for hunk in hunks(&bytes(&base), &bytes(&main)) {
        let around =
            [hunk.before.start.checked_sub(1).and_then(|at| base.get(at)), base.get(hunk.before.end)];
        if hunk.before.is_empty() && !around.into_iter().all(goes) {
            let lines = main.get(hunk.after).unwrap_or_default();
            gone.extend(lines.iter().filter(|line| !line.trim().is_empty() && !new.contains(*line)));
        }
    }
    let known: BTreeSet<&str> = base.iter().chain(&main).chain(&theirs).copied().collect();
    let adapted = new.iter().filter(|line| !known.contains(*line)).count();
    let lost = gone.len().saturating_sub(adapted);
    gone.first().filter(|_| lost > 0).map(|line| (lost as u64, *line))
}

fn is_marker(line: &str) -> bool {
    ["<<<<<<<", ">>>>>>>", "|||||||"]
        .iter()
        .any(|marker| line.strip_prefix(marker).is_some_and(|rest| rest.is_empty() || rest.starts_with(' ')))
}

/// A remark that stands for lines left out, as models write it.
fn is_elision(line: &str) -> bool {
    const SAID: [&str; 7] = [
        "rest of the",
        "rest of file",
        "existing code",
        "unchanged",
        "remains the same",
        "remain the same",
        "same as before",
    ];
    let dots = line.contains("...") || line.contains('\u{2026}');
    let line = line.trim().to_lowercase();
    let remark = ["//", "#", "/*", "<!--", "--", ";", "...", "\u{2026}", "[", "(", "%", "*"];
    dots && remark.iter().any(|sign| line.starts_with(sign)) && SAID.iter().any(|said| line.contains(said))
}
