//! Files of keys and records, merged by key: what `json`, `jsonl`, `toml` and `yaml` share.
//!
//! A format reads a file into [`Node`]s, which are spans of its text, and into a [`Value`] through
//! an independent parser. The change base -> theirs is spliced into main's text, so every byte that the
//! change has no reason to touch stays. Three proofs make the answer exact:
//! 1. in every group that both sides touch, the same splice on the base's text gives theirs byte for
//!    byte: nothing of the change (a comment, an order, a blank line) is lost;
//! 2. the result, parsed anew, is a three-way merge of the three values ([`value::merged`]);
//! 3. it reads back as a file of its format.

mod plan;
mod splice;
pub(crate) mod value;

use std::ops::Range;

use value::Value;

/// Bytes of one side: three sides and a result, each twice as text and with [`NODES_MAX`] nodes of
/// about 300 bytes of spans and value, take 4 * (2 * 2 MiB + 40 000 * 300 B) = 65 MB.
pub(crate) const BYTES_MAX: usize = 2 * 1024 * 1024;
/// Members and elements of one side.
pub(crate) const NODES_MAX: usize = 40_000;
/// Groups within groups.
pub(crate) const DEPTH_MAX: usize = 64;

pub(crate) type Span = Range<usize>;

/// A value in the text.
#[derive(Debug)]
pub(crate) struct Node {
    /// With its brackets, without the text around it.
    pub span: Span,
    /// `None`: it is merged as a whole.
    pub group: Option<Group>,
}

/// An object, a table, a list: its members follow each other without a gap, then comes the tail.
#[derive(Debug)]
pub(crate) struct Group {
    /// Members have no names: a list, whose order counts.
    pub list: bool,
    /// Commas stand between the members; else each ends with its line.
    pub commas: bool,
    /// A list whose order means nothing, or a map whose members may be put in sorted order.
    pub free: bool,
    pub members: Vec<Member>,
    /// The text between the last member and the closing bracket.
    pub tail: Span,
}

/// A member of a group: lead, core and after follow each other.
#[derive(Debug)]
pub(crate) struct Member {
    /// The key, unescaped; empty in a list.
    pub key: String,
    /// The key says which member it is; else its whole text does.
    pub named: bool,
    /// White space and comments before it.
    pub lead: Span,
    /// From the key (or the dash) to the end of the value.
    pub core: Span,
    /// Its comma, and a comment on its line; the newline where lines are members.
    pub after: Span,
    /// Where in `after` the comma stands.
    pub comma: Option<usize>,
    pub value: Node,
}

/// How one format is read.
pub(crate) struct Format {
    /// The spans.
    pub nodes: fn(&str) -> Result<Node, String>,
    /// The value, by a parser that shares nothing with the spans' reading of them.
    pub value: fn(&str) -> Result<Value, String>,
}

/// The text of a span; a span outside of the text is empty.
pub(crate) fn at<'a>(text: &'a str, span: &Span) -> &'a str {
    text.get(span.clone()).unwrap_or_default()
}

/// The line of a place, from 1.
pub(crate) fn line_of(text: &str, place: usize) -> usize {
    text.as_bytes().iter().take(place).filter(|byte| **byte == b'\n').count() + 1
}

/// What both sides changed or only one: the side's that changed it.
pub(crate) fn pick<T: PartialEq>(base: T, ours: T, theirs: T) -> Option<T> {
    if theirs == base || theirs == ours {
        Some(ours)
    } else if ours == base {
        Some(theirs)
    } else {
        None
    }
}

/// One side, read: its line ends, its byte order mark and its final newline are kept apart.
struct Side {
    text: String,
    bom: bool,
    crlf: bool,
    ended: bool,
    root: Node,
    value: Value,
}

impl Side {
    fn read(format: &Format, bytes: &[u8]) -> Result<Self, String> {
        if bytes.len() > BYTES_MAX {
            return Err(format!("has {} bytes; the rule takes at most {BYTES_MAX}", bytes.len()));
        }
        let text = std::str::from_utf8(bytes).map_err(|error| {
            let line = bytes.iter().take(error.valid_up_to()).filter(|byte| **byte == b'\n').count() + 1;
            format!("line {line} is not UTF-8")
        })?;
        let (bom, text) = match text.strip_prefix('\u{feff}') {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let crlf = text.contains('\r');
        if crlf && text.matches('\n').count() != text.matches("\r\n").count() {
            return Err("mixes line ends".to_owned());
        }
        let mut text = text.replace("\r\n", "\n");
        if text.contains('\r') {
            return Err("has a carriage return inside a line".to_owned());
        }
        let ended = text.is_empty() || text.ends_with('\n');
        if !ended {
            text.push('\n');
        }
        let value = (format.value)(&text)?;
        let root = (format.nodes)(&text)?;
        Ok(Self { text, bom, crlf, ended, root, value })
    }
}

/// Merges three versions of a file by key.
///
/// # Errors
/// A sentence that names the side, the key path or the line which the rule does not take.
pub(crate) fn merge(format: &Format, base: &[u8], ours: &[u8], theirs: &[u8]) -> Result<Vec<u8>, String> {
    let base = Side::read(format, base).map_err(|fault| format!("the change's base {fault}"))?;
    let ours = Side::read(format, ours).map_err(|fault| format!("main's file {fault}"))?;
    let theirs = Side::read(format, theirs).map_err(|fault| format!("the change's file {fault}"))?;
    let text = spliced(&base, &ours, &theirs)?;
    let value = (format.value)(&text)
        .and_then(|value| (format.nodes)(&text).map(|_| value))
        .map_err(|fault| format!("put together, the file {fault}"))?;
    if !value::merged(Some(&base.value), Some(&ours.value), Some(&theirs.value), Some(&value)) {
        return Err("put together, the file does not say what both sides say".to_owned());
    }
    finished(text, &base, &ours, &theirs)
}

fn spliced(base: &Side, ours: &Side, theirs: &Side) -> Result<String, String> {
    let around = |side: &'_ Side| {
        let before = side.text.get(..side.root.span.start).unwrap_or_default().to_owned();
        (before, side.text.get(side.root.span.end..).unwrap_or_default().to_owned())
    };
    let [(base_before, base_after), (before, after), (their_before, their_after)] =
        [around(base), around(ours), around(theirs)];
    let fault = |place: &str| format!("both sides change the text {place} differently");
    let before = pick(base_before, before, their_before).ok_or_else(|| fault("at the top"))?;
    let after = pick(base_after, after, their_after).ok_or_else(|| fault("at the end"))?;
    let body = splice::merge([&base.text, &ours.text, &theirs.text], [&base.root, &ours.root, &theirs.root])?;
    Ok(format!("{before}{body}{after}"))
}

fn finished(mut text: String, base: &Side, ours: &Side, theirs: &Side) -> Result<Vec<u8>, String> {
    // Two values and three sides: one of them is always the majority.
    let flag = |of: fn(&Side) -> bool| pick(of(base), of(ours), of(theirs)).unwrap_or_else(|| of(ours));
    if !flag(|side| side.ended) && text.ends_with('\n') {
        text.pop();
    }
    if flag(|side| side.crlf) {
        text = text.replace('\n', "\r\n");
    }
    if flag(|side| side.bom) {
        text.insert(0, '\u{feff}');
    }
    if text.len() > BYTES_MAX {
        return Err(format!("put together, the file has {} bytes; the rule takes {BYTES_MAX}", text.len()));
    }
    Ok(text.into_bytes())
}

/// A member between commas, before its place among the others is known.
pub(crate) struct Listed {
    pub key: String,
    pub core: Span,
    pub comma: Option<usize>,
    pub value: Node,
}

/// A group between brackets: a comment after a comma on the same line belongs to the member before it.
pub(crate) fn commas(text: &str, inside: &Span, list: bool, listed: Vec<Listed>) -> Group {
    let mut place = inside.start;
    let mut members = Vec::with_capacity(listed.len());
    for Listed { key, core, comma, value } in listed {
        let lead = place..core.start;
        let end = comma.map_or(core.end, |comma| comma + 1);
        let rest = text.get(end..).unwrap_or_default();
        let rest = rest.find('\n').map_or(rest, |line| rest.get(..line).unwrap_or_default());
        place = if rest.trim_start().starts_with('#') { end + rest.len() } else { end };
        let after = core.end..place;
        members.push(Member { key, named: !list, lead, core, after, comma, value });
    }
    Group { list, commas: true, free: !list, members, tail: place..inside.end }
}

#[cfg(test)]
mod tests;
