//! Commits and annotated tags: tolerant parse, deterministic encode, strict checks.

use yard_common::ObjectId;
use yard_common::intent::Signature;

use crate::error::Malformed;
use crate::object::Kind;

/// A commit, taken apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Commit {
    /// Its tree.
    pub tree: ObjectId,
    /// Its parents, first parent first.
    pub parents: Vec<ObjectId>,
    /// Who wrote it and when.
    pub author: Signature,
    /// Who made the commit and when.
    pub committer: Signature,
    /// Other headers in order, such as `encoding`, `gpgsig`, `mergetag`; lines of a value joined by `\n`.
    pub headers: Vec<(Vec<u8>, Vec<u8>)>,
    /// The message, whatever its encoding.
    pub message: Vec<u8>,
}

/// What a graph walk needs of a commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommitLinks {
    /// Its tree.
    pub tree: ObjectId,
    /// Its parents, first parent first.
    pub parents: Vec<ObjectId>,
    /// Committer's seconds since the Unix epoch; 0 where there is no number.
    pub committed_at: u64,
}

/// An annotated tag, taken apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tag {
    /// What it points to.
    pub target: ObjectId,
    /// The kind of the target.
    pub kind: Kind,
    /// The tag's own name.
    pub name: Vec<u8>,
    /// Who made it and when; very old tags have none.
    pub tagger: Option<Signature>,
    /// The message, signature included.
    pub message: Vec<u8>,
}

/// One header line, continuation lines joined; `None` at the blank line that ends the headers.
fn next_header<'a>(rest: &mut &'a [u8]) -> Option<(&'a [u8], Vec<u8>)> {
    let (line, after) = split_line(rest);
    if line.is_empty() {
        return None;
    }
    let space = line.iter().position(|byte| *byte == b' ').unwrap_or(line.len());
    let (name, value) = line.split_at_checked(space)?;
    let mut value = value.get(1..).unwrap_or_default().to_vec();
    *rest = after;
    while rest.first() == Some(&b' ') {
        let (line, after) = split_line(rest);
        value.push(b'\n');
        value.extend_from_slice(line.get(1..).unwrap_or_default());
        *rest = after;
    }
    Some((name, value))
}

fn split_line(data: &[u8]) -> (&[u8], &[u8]) {
    match data.iter().position(|byte| *byte == b'\n') {
        Some(end) => (data.get(..end).unwrap_or_default(), data.get(end + 1..).unwrap_or_default()),
        None => (data, &[]),
    }
}

fn header_id(rest: &mut &[u8], name: &[u8]) -> Option<ObjectId> {
    let after_name = rest.strip_prefix(name)?.strip_prefix(b" ")?;
    let (digits, after) = after_name.split_at_checked(40)?;
    let after = after.strip_prefix(b"\n")?;
    let id = std::str::from_utf8(digits).ok()?.parse().ok()?;
    *rest = after;
    Some(id)
}

impl Commit {
    /// Reads a commit; odd identities, dates and unknown headers are taken as they come.
    ///
    /// # Errors
    /// [`Malformed`] where the tree or a parent is no id, or the author or committer is not there.
    pub fn parse(data: &[u8]) -> Result<Self, Malformed> {
        let mut rest = data;
        let (tree, parents) = tree_and_parents(&mut rest)?;
        let (mut author, mut committer, mut headers) = (None, None, Vec::new());
        while let Some((name, value)) = next_header(&mut rest) {
            match name {
                b"author" if author.is_none() => author = Some(signature(&value)),
                b"committer" if committer.is_none() => committer = Some(signature(&value)),
                _ => headers.push((name.to_vec(), value)),
            }
        }
        let author = author.ok_or(Malformed { why: "a commit has no author line" })?;
        let committer = committer.ok_or(Malformed { why: "a commit has no committer line" })?;
        let message = rest.strip_prefix(b"\n").unwrap_or(rest).to_vec();
        Ok(Self { tree, parents, author, committer, headers, message })
    }

    /// The bytes of the commit: the same fields give the same bytes.
    ///
    /// Names and addresses lose what git does not take in them (`<`, `>`, line feeds, NUL).
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut data = Vec::with_capacity(300 + self.message.len());
        let mut line = |name: &str, value: &str| {
            data.extend_from_slice(format!("{name} {value}\n").as_bytes());
        };
        line("tree", &self.tree.to_string());
        for parent in &self.parents {
            line("parent", &parent.to_string());
        }
        line("author", &signature_text(&self.author));
        line("committer", &signature_text(&self.committer));
        for (name, value) in &self.headers {
            data.extend_from_slice(name);
            data.push(b' ');
            for byte in value {
                data.push(*byte);
                if *byte == b'\n' {
                    data.push(b' ');
                }
            }
            data.push(b'\n');
        }
        data.push(b'\n');
        data.extend_from_slice(&self.message);
        data
    }

    /// The message as text; bytes that are not UTF-8 become U+FFFD.
    #[must_use]
    pub fn message_text(&self) -> std::borrow::Cow<'_, str> {
        String::from_utf8_lossy(&self.message)
    }
}

fn tree_and_parents(rest: &mut &[u8]) -> Result<(ObjectId, Vec<ObjectId>), Malformed> {
    let tree = header_id(rest, b"tree").ok_or(Malformed { why: "a commit has no valid tree line" })?;
    let mut parents = Vec::new();
    while rest.starts_with(b"parent ") {
        parents.push(
            header_id(rest, b"parent").ok_or(Malformed { why: "a commit has no valid parent line" })?,
        );
    }
    Ok((tree, parents))
}

/// Reads only what a graph walk needs.
///
/// # Errors
/// [`Malformed`] where the tree or a parent is no id.
pub fn links(data: &[u8]) -> Result<CommitLinks, Malformed> {
    let mut rest = data;
    let (tree, parents) = tree_and_parents(&mut rest)?;
    let mut committed_at = 0;
    while !rest.is_empty() && rest.first() != Some(&b'\n') {
        let (line, after) = split_line(rest);
        if let Some(value) = line.strip_prefix(b"committer ") {
            committed_at = signature(value).seconds;
            break;
        }
        rest = after;
    }
    Ok(CommitLinks { tree, parents, committed_at })
}

/// `Name <email> seconds +hhmm`, as far as it can be read.
fn signature(value: &[u8]) -> Signature {
    let text = String::from_utf8_lossy(value);
    let (name, rest) = text.split_once('<').unwrap_or((&text, ""));
    let (email, date) = rest.rsplit_once('>').unwrap_or((rest, ""));
    let mut parts = date.split_whitespace();
    let seconds = parts.next().and_then(|digits| digits.parse().ok()).unwrap_or(0);
    let offset_minutes = parts.next().and_then(offset).unwrap_or(0);
    Signature { name: name.trim().to_owned(), email: email.trim().to_owned(), seconds, offset_minutes }
}

fn offset(text: &str) -> Option<i16> {
    let (sign, digits) = match text.split_at_checked(1)? {
        ("+", digits) => (1, digits),
        ("-", digits) => (-1, digits),
        _ => return None,
    };
    let number: i16 = digits.parse().ok().filter(|number| (0..=2400).contains(number))?;
    Some(sign * (number / 100 * 60 + number % 100))
}

/// A signature as git writes it into a commit: `Name <email> seconds +hhmm`.
#[must_use]
pub fn signature_text(signature: &Signature) -> String {
    let clean = |text: &str| {
        let kept: String = text.chars().filter(|c| !matches!(c, '<' | '>' | '\n' | '\0')).collect();
        kept.trim().to_owned()
    };
    let sign = if signature.offset_minutes < 0 { '-' } else { '+' };
    let minutes = signature.offset_minutes.unsigned_abs();
    format!(
        "{} <{}> {} {sign}{:02}{:02}",
        clean(&signature.name),
        clean(&signature.email),
        signature.seconds,
        minutes / 60,
        minutes % 60
    )
}

impl Tag {
    /// Reads an annotated tag.
    ///
    /// # Errors
    /// [`Malformed`] where the target, its kind or the name is not there.
    pub fn parse(data: &[u8]) -> Result<Self, Malformed> {
        let mut rest = data;
        let target =
            header_id(&mut rest, b"object").ok_or(Malformed { why: "a tag has no valid object line" })?;
        let (mut kind, mut name, mut tagger) = (None, None, None);
        while let Some((key, value)) = next_header(&mut rest) {
            match key {
                b"type" => kind = Kind::from_name(&value),
                b"tag" => name = Some(value),
                b"tagger" => tagger = Some(signature(&value)),
                _ => {}
            }
        }
        Ok(Self {
            target,
            kind: kind.ok_or(Malformed { why: "a tag has no valid type line" })?,
            name: name.ok_or(Malformed { why: "a tag has no tag line" })?,
            tagger,
            message: rest.strip_prefix(b"\n").unwrap_or(rest).to_vec(),
        })
    }
}

/// The checks of a pushed commit: the errors of `git fsck --strict`.
///
/// # Errors
/// [`Malformed`] that names the rule.
pub fn check(data: &[u8]) -> Result<(), Malformed> {
    let mut rest = data;
    tree_and_parents(&mut rest)?;
    let mut people = [0usize; 2];
    while !rest.is_empty() && rest.first() != Some(&b'\n') {
        let (line, after) = split_line(rest);
        if let Some(value) = line.strip_prefix(b"author ") {
            people = [people[0] + 1, people[1]];
            check_person(value)?;
        } else if let Some(value) = line.strip_prefix(b"committer ") {
            people = [people[0], people[1] + 1];
            check_person(value)?;
        }
        rest = after;
    }
    match people {
        [1, 1] if data.contains(&0) => Err(Malformed { why: "NUL byte in the commit object body" }),
        [1, 1] => Ok(()),
        [0, _] => Err(Malformed { why: "expected 'author' line" }),
        [_, 0] => Err(Malformed { why: "expected 'committer' line" }),
        _ => Err(Malformed { why: "multiple 'author' or 'committer' lines" }),
    }
}

/// The checks of a pushed tag: the errors of `git fsck`; a tagger is not required.
///
/// # Errors
/// [`Malformed`] that names the rule.
pub fn check_tag(data: &[u8]) -> Result<(), Malformed> {
    let tag = Tag::parse(data)?;
    if tag.target.is_zero() {
        return Err(Malformed { why: "a tag has no valid object line" });
    }
    let headers_end = data.windows(2).position(|pair| pair == b"\n\n").unwrap_or(data.len());
    let headers = data.get(..headers_end).unwrap_or_default();
    if headers.contains(&0) {
        return Err(Malformed { why: "unterminated header: NUL" });
    }
    for line in headers.split(|byte| *byte == b'\n') {
        if let Some(value) = line.strip_prefix(b"tagger ") {
            check_person(value)?;
        }
    }
    Ok(())
}

/// git's `fsck_ident` over one value.
fn check_person(value: &[u8]) -> Result<(), Malformed> {
    let bad = |why| Err(Malformed { why });
    if value.first() == Some(&b'<') {
        return bad("invalid author/committer line - missing space before email");
    }
    let is_mark = |byte: &u8| matches!(byte, b'<' | b'>');
    let Some(open) = value.iter().position(is_mark) else {
        return bad("invalid author/committer line - missing email");
    };
    if value.get(open) == Some(&b'>') {
        return bad("invalid author/committer line - bad name");
    }
    if open == 0 || value.get(open - 1) != Some(&b' ') {
        return bad("invalid author/committer line - missing space before email");
    }
    let rest = value.get(open + 1..).unwrap_or_default();
    let Some(close) = rest.iter().position(is_mark).filter(|at| rest.get(*at) == Some(&b'>')) else {
        return bad("invalid author/committer line - bad email");
    };
    let date = rest.get(close + 1..).unwrap_or_default();
    let Some(date) = date.strip_prefix(b" ").and_then(|date| std::str::from_utf8(date).ok()) else {
        return bad("invalid author/committer line - missing space before date");
    };
    let Some((seconds, zone)) = date.split_once(' ') else {
        return bad("invalid author/committer line - bad date");
    };
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !digits(seconds) || (seconds.starts_with('0') && seconds.len() > 1) {
        return bad("invalid author/committer line - bad date");
    }
    if seconds.parse::<i64>().is_err() {
        return bad("invalid author/committer line - date causes integer overflow");
    }
    match zone.split_at_checked(1) {
        Some(("+" | "-", rest)) if rest.len() == 4 && digits(rest) => Ok(()),
        _ => bad("invalid author/committer line - bad time zone"),
    }
}

#[cfg(test)]
mod tests;
