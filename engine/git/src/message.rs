//! Commit messages: the trailer block as git finds it, and the intent that it carries.
//!
//! The block is found as `git interpret-trailers --parse --no-divider` finds it with no trailer
//! configured (git 2.47, `trailer.c`). Text of several lines stands in one trailer as folded
//! lines: each goes on with one space, an empty line is a lone `.` (as in Debian's control files),
//! and a line of dots alone gets one more.

use yard_common::ChangeId;
use yard_common::intent::Intent;

/// One trailer of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trailer {
    /// The key as it is written; compare it with [`Trailer::is`].
    pub key: String,
    /// The value in one line, as `git interpret-trailers --unfold` gives it.
    pub value: String,
    /// The value with its lines.
    pub text: String,
}

impl Trailer {
    /// Has it this key, in whatever case?
    #[must_use]
    pub fn is(&self, key: &str) -> bool {
        self.key.eq_ignore_ascii_case(key)
    }
}

/// A message, taken apart.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Message {
    /// Title, body and the intent's trailers; `notes` is empty. Trailers with other keys stay in the body.
    pub intent: Intent,
    /// Values of `Change-Id`, in order, not checked.
    pub change_ids: Vec<String>,
    /// Values of `Reverts`, in order, not checked; several in one line are split at commas and spaces.
    pub reverts: Vec<String>,
}

fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r')
}

fn is_blank(line: &str) -> bool {
    line.bytes().all(is_space)
}

fn starts_with_space(line: &str) -> bool {
    line.bytes().next().is_some_and(is_space)
}

/// Where the `:` of a trailer line is (git's `find_separator`), if the line is one.
fn separator(line: &str) -> Option<usize> {
    let mut space_seen = false;
    for (at, byte) in line.bytes().enumerate() {
        match byte {
            b':' => return (at > 0).then_some(at),
            b'-' if !space_seen => {}
            _ if !space_seen && byte.is_ascii_alphanumeric() => {}
            b' ' | b'\t' if at > 0 => space_seen = true,
            _ => return None,
        }
    }
    None
}

/// Bytes of the message without the comments and blank lines at its end (`ignored_log_message_bytes`).
fn log_end(message: &str) -> usize {
    const SCISSORS: &str = "# ------------------------ >8 ------------------------\n";
    let mut cutoff = message.len();
    if message.starts_with(SCISSORS) {
        cutoff = 0;
    } else if let Some(at) = message.find(&format!("\n{SCISSORS}")) {
        cutoff = at + 1;
    }
    let (mut first_comment, mut in_conflicts, mut at) = (None, false, 0);
    for line in message.split_inclusive('\n') {
        if at >= cutoff {
            break;
        }
        if line.starts_with('#') || line.starts_with('\n') {
            first_comment = first_comment.or(Some(at));
        } else if line.trim_end_matches('\n') == "Conflicts:" {
            in_conflicts = true;
            first_comment = first_comment.or(Some(at));
        } else if !(in_conflicts && line.starts_with('\t')) && first_comment.is_some() {
            first_comment = None;
            in_conflicts = false;
        }
        at += line.len();
    }
    // git takes 0 for "no comment seen", so a comment at the very start does not count.
    first_comment.filter(|at| *at > 0).unwrap_or(cutoff)
}

/// Start of the trailer block in `message`, whose end is [`log_end`]; its length when there is none.
fn block_start(message: &str) -> usize {
    let lines: Vec<(usize, &str)> = message
        .split_inclusive('\n')
        .scan(0, |at, line| {
            let start = *at;
            *at += line.len();
            Some((start, line))
        })
        .collect();
    let title_end = lines.iter().position(|(_, line)| !line.starts_with('#') && is_blank(line));
    let Some(title_end) = title_end else { return message.len() };
    let (mut only_spaces, mut recognized) = (true, false);
    let (mut trailers, mut others, mut continuations) = (0usize, 0usize, 0usize);
    for (start, line) in lines.iter().skip(title_end).rev() {
        if line.starts_with('#') {
            others += std::mem::take(&mut continuations);
            continue;
        }
        if is_blank(line) {
            if only_spaces {
                continue;
            }
            others += continuations;
            let is_block = (recognized && trailers * 3 >= others) || (trailers > 0 && others == 0);
            return if is_block { start + line.len() } else { message.len() };
        }
        only_spaces = false;
        if line.starts_with("Signed-off-by: ") || line.starts_with("(cherry picked from commit ") {
            trailers += 1;
            continuations = 0;
            recognized = true;
        } else if separator(line).is_some() && !starts_with_space(line) {
            trailers += 1;
            continuations = 0;
        } else if starts_with_space(line) {
            continuations += 1;
        } else {
            others += 1 + std::mem::take(&mut continuations);
        }
    }
    message.len()
}

/// A line of the block: a trailer with its own lines as they stand, or other text.
enum Line {
    Trailer(Trailer, String),
    Other(String),
}

/// The block's lines; continuations joined to the trailer before them.
fn block_lines(block: &str) -> Vec<Line> {
    let mut raw: Vec<(bool, String)> = Vec::new();
    let mut in_trailer = false;
    for line in block.split_inclusive('\n') {
        if in_trailer && starts_with_space(line) {
            if let Some(last) = raw.last_mut() {
                last.1.push_str(line);
            }
            continue;
        }
        // git joins a comment to nothing, and a line after it is no continuation any more.
        in_trailer = !line.starts_with('#') && separator(line).is_some();
        if !line.starts_with('#') {
            raw.push((in_trailer, line.to_owned()));
        }
    }
    raw.into_iter()
        .map(|(is_trailer, text)| match text.split_once(':') {
            Some((key, value)) if is_trailer => {
                let key = key.trim().to_owned();
                let trailer = Trailer { key, value: unfold(value), text: unfold_lines(value) };
                Line::Trailer(trailer, text.trim_end().to_owned())
            }
            _ => Line::Other(text.trim_end().to_owned()),
        })
        .collect()
}

fn unfold(value: &str) -> String {
    let mut out = String::with_capacity(value.len());
    let mut chars = value.chars().peekable();
    while let Some(c) = chars.next() {
        if c != '\n' {
            out.push(c);
            continue;
        }
        while chars.peek().is_some_and(|c| matches!(c, ' ' | '\t' | '\n' | '\r')) {
            chars.next();
        }
        out.push(' ');
    }
    out.trim_matches(|c| matches!(c, ' ' | '\t' | '\n' | '\r')).to_owned()
}

fn is_dots(line: &str) -> bool {
    !line.is_empty() && line.bytes().all(|byte| byte == b'.')
}

fn unfold_lines(value: &str) -> String {
    let mut lines = value.trim_end().split('\n');
    let mut out = lines.next().unwrap_or_default().trim().to_owned();
    for line in lines {
        let line = line.strip_prefix(|c: char| matches!(c, ' ' | '\t')).unwrap_or(line).trim_end();
        out.push('\n');
        out.push_str(if is_dots(line) { line.get(1..).unwrap_or_default() } else { line });
    }
    out
}

fn fold_lines(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for (number, line) in text.trim().split('\n').enumerate() {
        let line = line.trim_end();
        if number > 0 {
            out.push_str("\n ");
            if line.is_empty() || is_dots(line) {
                out.push('.');
            }
        }
        out.push_str(line);
    }
    out
}

fn until_nul(message: &str) -> &str {
    message.split('\0').next().unwrap_or_default()
}

/// The trailers of a message, in order.
#[must_use]
pub fn trailers(message: &str) -> Vec<Trailer> {
    let message = until_nul(message);
    let log = message.get(..log_end(message)).unwrap_or_default();
    let lines = block_lines(log.get(block_start(log)..).unwrap_or_default());
    lines
        .into_iter()
        .filter_map(|line| match line {
            Line::Trailer(trailer, _) => Some(trailer),
            Line::Other(_) => None,
        })
        .collect()
}

/// Takes a message apart.
#[must_use]
pub fn read(message: &str) -> Message {
    let message = until_nul(message);
    let log = message.get(..log_end(message)).unwrap_or_default();
    let (before, block) = log.split_at_checked(block_start(log)).unwrap_or((log, ""));
    let before = if block.is_empty() { message } else { before };
    let before = before.trim_start_matches(|c: char| c.is_ascii_whitespace());
    let (title, body) = before.split_once('\n').unwrap_or((before, ""));
    let mut out = Message::default();
    out.intent.title = title.trim_end().to_owned();
    let mut rest = Vec::new();
    for line in block_lines(block) {
        match line {
            Line::Trailer(trailer, text) => {
                if !take(&mut out, &trailer) {
                    rest.push(text);
                }
            }
            Line::Other(text) => rest.push(text),
        }
    }
    out.intent.body = trimmed_body(body).to_owned();
    if !rest.is_empty() {
        if !out.intent.body.is_empty() {
            out.intent.body.push_str("\n\n");
        }
        out.intent.body.push_str(&rest.join("\n"));
    }
    out
}

fn trimmed_body(body: &str) -> &str {
    let mut body = body;
    while let Some((line, after)) = body.split_once('\n').filter(|(line, _)| is_blank(line)) {
        debug_assert!(is_blank(line));
        body = after;
    }
    body.trim_end()
}

/// Puts a trailer where it belongs; says whether its key is known.
fn take(out: &mut Message, trailer: &Trailer) -> bool {
    let intent = &mut out.intent;
    let texts = [
        ("Task", &mut intent.task),
        ("Plan", &mut intent.plan),
        ("Review", &mut intent.review),
        ("Tests", &mut intent.tests),
    ];
    for (key, field) in texts {
        if trailer.is(key) {
            append(field, &trailer.text);
            return true;
        }
    }
    for (key, field) in [("Agent", &mut intent.agent), ("Model", &mut intent.model)] {
        if trailer.is(key) {
            append(field, &trailer.value);
            return true;
        }
    }
    let value = || trailer.value.clone();
    if trailer.is("Co-authored-by") {
        intent.co_authors.push(value());
    } else if trailer.is("Change-Id") {
        out.change_ids.push(value());
    } else if trailer.is("Reverts") {
        let ids = trailer.value.split([',', ' ']).filter(|id| !id.is_empty());
        out.reverts.extend(ids.map(str::to_owned));
    } else {
        return false;
    }
    true
}

fn append(field: &mut String, text: &str) {
    if !field.is_empty() {
        field.push('\n');
    }
    field.push_str(text);
}

/// The message of a commit that carries this intent; `notes` go into the git note, not in here.
///
/// [`read`] gives the same intent back, but for spaces at line ends and blank lines around texts.
#[must_use]
pub fn write(intent: &Intent, change_id: Option<&ChangeId>, reverts: &[ChangeId]) -> String {
    let clean = |text: &str| text.replace("\r\n", "\n").replace('\0', "");
    let title = clean(&intent.title).split_whitespace().collect::<Vec<_>>().join(" ");
    let mut out = if title.is_empty() { "(no title)".to_owned() } else { title };
    let body = clean(&intent.body);
    if !is_blank(&body) {
        out.push_str("\n\n");
        out.push_str(trimmed_body(&body));
    }
    let joins_block = {
        let log = out.get(..log_end(&out)).unwrap_or_default();
        // Known keys in the body's own last paragraph are text there, so they must not join.
        let is_known = |trailer: &Trailer| take(&mut Message::default(), trailer);
        log.len() == out.len() && block_start(log) < log.len() && !trailers(&out).iter().any(is_known)
    };
    out.push_str(if joins_block { "\n" } else { "\n\n" });
    let mut line = |key: &str, value: &str| {
        if !value.trim().is_empty() {
            out.push_str(&format!("{key}: {value}\n"));
        }
    };
    for (key, text) in [
        ("Task", &intent.task),
        ("Plan", &intent.plan),
        ("Review", &intent.review),
        ("Tests", &intent.tests),
    ] {
        line(key, &fold_lines(&clean(text)));
    }
    let one_line = |text: &str| clean(text).split_whitespace().collect::<Vec<_>>().join(" ");
    line("Agent", &one_line(&intent.agent));
    line("Model", &one_line(&intent.model));
    for change in reverts {
        line("Reverts", change.as_str());
    }
    for author in &intent.co_authors {
        line("Co-authored-by", &one_line(author));
    }
    if let Some(change) = change_id {
        line("Change-Id", change.as_str());
    }
    out.truncate(out.trim_end().len());
    out.push('\n');
    out
}

#[cfg(test)]
mod tests;
