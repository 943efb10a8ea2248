//! Lines, differences and sentences.

use std::ops::Range;

use gix_imara_diff::{Algorithm, Diff, InternedInput};
use sha2::{Digest as _, Sha256};
use yard_common::id::hex;

use crate::limits::QUOTE_CHARS_MAX;

/// The bytes as text that a model can read and give back byte for byte: UTF-8 without NUL.
#[must_use]
pub fn readable(bytes: &[u8]) -> Option<&str> {
    if bytes.contains(&0) { None } else { std::str::from_utf8(bytes).ok() }
}

/// The lines without their line feeds; a text that does not end in one has one line more.
#[must_use]
pub fn lines(bytes: &[u8]) -> Vec<&[u8]> {
    let mut lines: Vec<&[u8]> = bytes.split(|byte| *byte == b'\n').collect();
    // What follows the last line feed is no line.
    lines.pop_if(|last| last.is_empty());
    lines
}

/// A run of lines that differ: `before` of one text stands for `after` of the other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hunk {
    /// Lines of the first text.
    pub before: Range<usize>,
    /// Lines of the second.
    pub after: Range<usize>,
}

/// Where two lists of lines differ, in order (histogram, sliders placed as git's `diff` does).
#[must_use]
pub fn hunks(before: &[&[u8]], after: &[&[u8]]) -> Vec<Hunk> {
    let mut input = InternedInput::default();
    input.update_before(before.iter().copied());
    input.update_after(after.iter().copied());
    let mut diff = Diff::compute(Algorithm::Histogram, &input);
    diff.postprocess_lines(&input);
    let wide = |range: Range<u32>| range.start as usize..range.end as usize;
    diff.hunks().map(|hunk| Hunk { before: wide(hunk.before), after: wide(hunk.after) }).collect()
}

/// Hunks that lie within twice `context` lines of each other, gathered, with their context in both texts.
fn groups(all: &[Hunk], context: usize) -> Vec<&[Hunk]> {
    let near = |a: &Hunk, b: &Hunk| b.before.start.saturating_sub(a.before.end) <= 2 * context;
    all.chunk_by(near).collect()
}

/// A unified difference without file headers; bytes that are no UTF-8 are replaced, a text's missing last line
/// feed is not marked.
#[must_use]
pub fn unified(before: &[u8], after: &[u8], context: usize) -> String {
    let (before, after) = (lines(before), lines(after));
    let mut out = String::new();
    let all = hunks(&before, &after);
    for group in groups(&all, context) {
        let (Some(first), Some(last)) = (group.first(), group.last()) else { continue };
        let lead = context.min(first.before.start);
        let tail = context.min(before.len() - last.before.end);
        let (from, to) = (first.before.start - lead, last.before.end + tail);
        let (from_after, to_after) = (first.after.start - lead, last.after.end + tail);
        let start = |at: usize, len: usize| if len == 0 { at } else { at + 1 };
        out.push_str(&format!(
            "@@ -{},{} +{},{} @@\n",
            start(from, to - from),
            to - from,
            start(from_after, to_after - from_after),
            to_after - from_after
        ));
        let mut at = from;
        for hunk in group {
            push_lines(&mut out, ' ', before.get(at..hunk.before.start));
            push_lines(&mut out, '-', before.get(hunk.before.clone()));
            push_lines(&mut out, '+', after.get(hunk.after.clone()));
            at = hunk.before.end;
        }
        push_lines(&mut out, ' ', before.get(at..to));
    }
    out
}

fn push_lines(out: &mut String, sign: char, lines: Option<&[&[u8]]>) {
    for line in lines.into_iter().flatten() {
        out.push(sign);
        out.push_str(&String::from_utf8_lossy(line));
        out.push('\n');
    }
}

/// The longest start of `text` of at most `bytes` bytes that ends with a character.
#[must_use]
pub fn cut(text: &str, bytes: usize) -> &str {
    text.get(..text.floor_char_boundary(bytes)).unwrap_or(text)
}

/// Words of others for a sentence of the record: one line, no control characters, cut.
#[must_use]
pub fn quote(text: &str) -> String {
    let plain = text.chars().take(8 * QUOTE_CHARS_MAX).map(|c| if c.is_control() { ' ' } else { c });
    let words: String = plain.filter(|c| !is_invisible(*c)).collect();
    let words = words.split_whitespace().collect::<Vec<_>>().join(" ");
    let cut: String = words.chars().take(QUOTE_CHARS_MAX).collect();
    if cut.len() < words.len() { format!("{cut} ...") } else { cut }
}

/// Characters that turn or hide what is printed after them.
fn is_invisible(c: char) -> bool {
    matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

/// SHA-256 over parts, each with its length before it, so that no two lists of parts meet; 64 hex digits.
#[must_use]
pub fn digest<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> String {
    let mut hasher = Sha256::new();
    for part in parts {
        hasher.update((part.len() as u64).to_be_bytes());
        hasher.update(part);
    }
    hex(&hasher.finalize())
}

#[cfg(test)]
mod tests;
