//! `yaml`: block mappings by key, block sequences by id; flow collections and block scalars as a whole.
//!
//! Anchors, aliases, tags, several documents, directives and complex keys are collisions.

use std::collections::BTreeMap;

use saphyr_parser::{Event, Parser, ScalarStyle};

use crate::keyed::value::Value;
use crate::keyed::{DEPTH_MAX, Format, Group, Member, NODES_MAX, Node, Span, line_of};

/// Merges three versions of a YAML file.
///
/// # Errors
/// A sentence that names the side and the key path or line which the rule does not take.
pub(crate) fn merge(base: Option<&[u8]>, ours: &[u8], theirs: &[u8]) -> Result<Vec<u8>, String> {
    let base = base.ok_or("both sides add the file")?;
    crate::keyed::merge(&Format { nodes, value }, base, ours, theirs)
}

/// A parsed node and where it stands.
struct Tree {
    kind: Kind,
    /// The first byte of its content: of a block sequence its first dash.
    start: usize,
    end: usize,
    value: Value,
}

enum Kind {
    Leaf,
    /// A block scalar: it starts at its `|`, which the parser does not tell.
    Text,
    Map(Vec<(Tree, Tree)>),
    List(Vec<Tree>),
}

pub(crate) fn value(text: &str) -> Result<Value, String> {
    document(text).map(|(_, tree)| tree.value)
}

fn nodes(text: &str) -> Result<Node, String> {
    let (start, tree) = document(text)?;
    if !matches!(tree.kind, Kind::Map(_) | Kind::List(_)) {
        return Err("is no block mapping or sequence".to_owned());
    }
    Layout { text }.node(&tree, &(start..text.len()))
}

/// The only document of a file, and the place behind its `---`.
fn document(text: &str) -> Result<(usize, Tree), String> {
    for (number, line) in text.lines().enumerate() {
        if line.starts_with('%') || line.starts_with("...") {
            return Err(format!("has a directive or an end mark in line {}", number + 1));
        }
    }
    let mut events = Events { text, chars: chars(text), parser: Parser::new_from_str(text), count: 0 };
    let mut start = 0;
    loop {
        match events.next()? {
            (Event::StreamStart | Event::Nothing, _) => {}
            (Event::DocumentStart(explicit), span) => {
                if explicit {
                    let mark = span.start.max(text.find("---").unwrap_or_default());
                    start = text
                        .get(mark..)
                        .and_then(|rest| rest.find('\n'))
                        .map_or(text.len(), |at| mark + at + 1);
                }
                break;
            }
            _ => return Err("has no document".to_owned()),
        }
    }
    let first = events.next()?;
    let tree = events.tree(first, 0)?;
    loop {
        match events.next()? {
            (Event::DocumentEnd, _) => {}
            (Event::StreamEnd, _) => break,
            (_, span) => return Err(format!("has a second document in line {}", line_of(text, span.start))),
        }
    }
    if tree.start < start {
        return Err("has text on the line of its `---`".to_owned());
    }
    Ok((start, tree))
}

/// Where each character starts, if some take several bytes.
fn chars(text: &str) -> Vec<usize> {
    if text.is_ascii() { Vec::new() } else { text.char_indices().map(|(place, _)| place).collect() }
}

struct Events<'a> {
    text: &'a str,
    chars: Vec<usize>,
    parser: Parser<'a, saphyr_parser::StrInput<'a>>,
    count: usize,
}

impl<'a> Events<'a> {
    fn place(&self, index: usize) -> usize {
        let place = if self.chars.is_empty() { Some(index) } else { self.chars.get(index).copied() };
        place.unwrap_or(self.text.len()).min(self.text.len())
    }

    fn next(&mut self) -> Result<(Event<'a>, Span), String> {
        self.count += 1;
        match self.parser.next() {
            Some(Ok((event, span))) => {
                let span = self.place(span.start.index())..self.place(span.end.index());
                if self.count > 3 * NODES_MAX {
                    return Err("has too many values".to_owned());
                }
                Ok((event, span))
            }
            Some(Err(error)) => {
                Err(format!("is not YAML in line {}: {}", error.marker().line(), error.info()))
            }
            None => Err("has no document".to_owned()),
        }
    }

    fn fault(&self, what: &str, place: usize) -> String {
        format!("{what} in line {}", line_of(self.text, place))
    }

    fn tree(&mut self, (event, span): (Event<'a>, Span), depth: usize) -> Result<Tree, String> {
        if depth > DEPTH_MAX {
            return Err(self.fault("is too deep", span.start));
        }
        let odd = |anchor: usize, tagged: bool| anchor != 0 || tagged;
        match event {
            Event::Scalar(_, _, anchor, ref tag) if odd(anchor, tag.is_some()) => Err(self.odd(span.start)),
            Event::SequenceStart(anchor, ref tag) | Event::MappingStart(anchor, ref tag)
                if odd(anchor, tag.is_some()) =>
            {
                Err(self.odd(span.start))
            }
            Event::Scalar(value, style, ..) => self.scalar(&value, style, span),
            Event::SequenceStart(..) => self.list(&span, depth),
            Event::MappingStart(..) => self.map(&span, depth),
            _ => Err(self.odd(span.start)),
        }
    }

    fn odd(&self, place: usize) -> String {
        self.fault("has an anchor, an alias or a tag", place)
    }

    fn scalar(&self, value: &str, style: ScalarStyle, span: Span) -> Result<Tree, String> {
        let (letter, quote) = match style {
            ScalarStyle::Plain => ('p', None),
            ScalarStyle::SingleQuoted => ('q', Some('\'')),
            ScalarStyle::DoubleQuoted => ('q', Some('"')),
            ScalarStyle::Literal | ScalarStyle::Folded => ('q', None),
        };
        let body = self.text.get(span.clone()).unwrap_or_default();
        let end = match quote {
            Some(quote) => {
                span.start + quoted(body, quote).ok_or_else(|| self.fault("is not clear", span.start))?
            }
            None => span.start + body.trim_end().len(),
        };
        let block = matches!(style, ScalarStyle::Literal | ScalarStyle::Folded);
        let kind = if block { Kind::Text } else { Kind::Leaf };
        Ok(Tree { kind, start: span.start, end, value: Value::Scalar(format!("{letter}{value}")) })
    }

    fn list(&mut self, open: &Span, depth: usize) -> Result<Tree, String> {
        let flow = self.text.as_bytes().get(open.start) == Some(&b'[') && !open.is_empty();
        let mut items: Vec<Tree> = Vec::new();
        let close = loop {
            match self.next()? {
                (Event::SequenceEnd, span) => break span,
                event => items.push(self.tree(event, depth + 1)?),
            }
        };
        let values = |items: &[Tree]| Value::List(items.iter().map(|item| item.value.clone()).collect());
        let value = values(&items);
        if flow {
            return Ok(Tree { kind: Kind::Leaf, start: open.start, end: close.end, value });
        }
        let first = items.first().ok_or_else(|| self.fault("has an empty sequence", open.start))?;
        let start = dash(self.text, first).ok_or_else(|| self.fault("is not clear", first.start))?;
        let end = items.last().map_or(start, |last| last.end);
        Ok(Tree { kind: Kind::List(items), start, end, value })
    }

    fn map(&mut self, open: &Span, depth: usize) -> Result<Tree, String> {
        let flow = self.text.as_bytes().get(open.start) == Some(&b'{') && !open.is_empty();
        let mut members: Vec<(Tree, Tree)> = Vec::new();
        let mut map = BTreeMap::new();
        let close = loop {
            let key = match self.next()? {
                (Event::MappingEnd, span) => break span,
                event => self.tree(event, depth + 1)?,
            };
            let Value::Scalar(name) = &key.value else {
                return Err(self.fault("has a key that is no scalar", key.start));
            };
            let name = name.get(1..).unwrap_or_default().to_owned();
            let next = self.next()?;
            let value = self.tree(next, depth + 1)?;
            if map.insert(name.clone(), value.value.clone()).is_some() {
                return Err(self.fault(&format!("has the key `{name}` twice"), key.start));
            }
            members.push((key, value));
        };
        let value = Value::Map(map);
        if flow {
            return Ok(Tree { kind: Kind::Leaf, start: open.start, end: close.end, value });
        }
        let start = members.first().map_or(open.start, |(key, _)| key.start);
        let end = members.last().map_or(start, |(key, value)| value.end.max(key.end));
        Ok(Tree { kind: Kind::Map(members), start, end, value })
    }
}

/// The length of a quoted scalar at the start of a text.
fn quoted(text: &str, quote: char) -> Option<usize> {
    let mut chars = text.char_indices().skip(1).peekable();
    if !text.starts_with(quote) {
        return None;
    }
    while let Some((place, c)) = chars.next() {
        if quote == '"' && c == '\\' {
            chars.next();
        } else if c == quote {
            if quote == '\'' && chars.peek().is_some_and(|(_, next)| *next == quote) {
                chars.next();
            } else {
                return Some(place + c.len_utf8());
            }
        }
    }
    None
}

fn line_start(text: &str, place: usize) -> usize {
    text.get(..place).and_then(|before| before.rfind('\n')).map_or(0, |newline| newline + 1)
}

/// The dash before a sequence's item, on its line; a block scalar's item starts at its `|` or `>`, on the
/// last line above its text.
fn dash(text: &str, item: &Tree) -> Option<usize> {
    let item = match item.kind {
        Kind::Text => text.get(..line_start(text, item.start))?.trim_end().rfind(['|', '>'])?,
        _ => item.start,
    };
    let start = line_start(text, item);
    let before = text.get(start..item)?;
    let trimmed = before.trim_end_matches(' ');
    (trimmed.ends_with('-') && trimmed.len() < before.len()).then(|| start + trimmed.len() - 1)
}

/// Puts the lines of a file to the members they belong to.
struct Layout<'a> {
    text: &'a str,
}

/// One member of a block: its key (or dash), what follows it, and where the one before it ends.
struct Item<'t> {
    key: String,
    start: usize,
    /// Where the value may start.
    behind: usize,
    tree: &'t Tree,
}

impl Layout<'_> {
    fn fault(&self, place: usize) -> String {
        format!("is written in a way that the rule does not take in line {}", line_of(self.text, place))
    }

    fn node(&self, tree: &Tree, region: &Span) -> Result<Node, String> {
        let mut items = Vec::new();
        match &tree.kind {
            Kind::Leaf | Kind::Text => return Ok(Node { span: tree.start..tree.end, group: None }),
            Kind::Map(members) => {
                for (key, value) in members {
                    let rest = self.text.get(key.end..).unwrap_or_default();
                    let spaces = rest.len() - rest.trim_start_matches(' ').len();
                    if !rest.trim_start_matches(' ').starts_with(':') || !matches!(key.kind, Kind::Leaf) {
                        return Err(self.fault(key.start));
                    }
                    let Value::Scalar(name) = &key.value else { return Err(self.fault(key.start)) };
                    let name = name.get(1..).unwrap_or_default().to_owned();
                    items.push(Item {
                        key: name,
                        start: key.start,
                        behind: key.end + spaces + 1,
                        tree: value,
                    });
                }
            }
            Kind::List(list) => {
                for item in list {
                    let dash = dash(self.text, item).ok_or_else(|| self.fault(item.start))?;
                    items.push(Item { key: String::new(), start: dash, behind: dash + 1, tree: item });
                }
            }
        }
        let list = matches!(tree.kind, Kind::List(_));
        let leads = self.leads(&items, region)?;
        let mut members = Vec::with_capacity(items.len());
        for (place, item) in items.iter().enumerate() {
            let from = leads.get(place).copied().unwrap_or(region.start);
            let until = leads.get(place + 1).copied().unwrap_or(region.end);
            members.push(self.member(item, from, until, list)?);
        }
        let group = Group { list, commas: false, free: !list, members, tail: region.end..region.end };
        Ok(Node { span: region.clone(), group: Some(group) })
    }

    /// Where each member's lead starts: blank lines and comments that are not indented deeper belong to
    /// what follows.
    fn leads(&self, items: &[Item<'_>], region: &Span) -> Result<Vec<usize>, String> {
        let column = items.first().map_or(0, |item| item.start - line_start(self.text, item.start));
        let mut leads = Vec::with_capacity(items.len());
        let mut floor = region.start;
        for (place, item) in items.iter().enumerate() {
            if place == 0 {
                leads.push(region.start);
            } else {
                let line = line_start(self.text, item.start);
                let lead = self.text.get(line..item.start).unwrap_or_default();
                if lead.len() != column || !lead.bytes().all(|byte| byte == b' ') || line < floor {
                    return Err(self.fault(item.start));
                }
                leads.push(self.above(line, floor, column));
            }
            let tree = item.tree;
            floor = match tree.kind {
                Kind::Leaf if tree.start < tree.end => tree.end.max(item.behind),
                Kind::Map(_) | Kind::List(_) => tree.start.max(item.behind),
                _ => item.behind,
            };
        }
        Ok(leads)
    }

    fn above(&self, mut line: usize, floor: usize, column: usize) -> usize {
        while line > floor {
            let before = line_start(self.text, line - 1);
            let text = self.text.get(before..line).unwrap_or_default();
            let deep = text.len() - text.trim_start_matches(' ').len();
            let comment = text.trim_start_matches(' ').starts_with('#') && deep <= column;
            if before < floor || !(text.trim().is_empty() || comment) {
                break;
            }
            line = before;
        }
        line
    }

    fn member(&self, item: &Item<'_>, from: usize, until: usize, list: bool) -> Result<Member, String> {
        let lead = from..item.start;
        let (value, core, after) = match &item.tree.kind {
            Kind::Map(_) | Kind::List(_) => {
                let line = self.text.get(item.behind..).and_then(|rest| rest.find('\n'));
                let next = line.map_or(self.text.len(), |newline| item.behind + newline + 1);
                let region = if item.tree.start < next { item.tree.start } else { next };
                (self.node(item.tree, &(region..until))?, item.start..until, until..until)
            }
            Kind::Text => {
                let mark = self.text.get(item.behind..).unwrap_or_default();
                let start = item.behind + mark.len() - mark.trim_start_matches(' ').len();
                let header = self.text.get(start..).and_then(|rest| rest.lines().next()).unwrap_or_default();
                let end = item.tree.end.max(start + header.trim_end().len());
                if !header.starts_with(['|', '>']) || header.contains('+') || end > until {
                    return Err(self.fault(item.start));
                }
                (Node { span: start..end, group: None }, item.start..end, end..until)
            }
            Kind::Leaf => {
                let empty = item.tree.start >= item.tree.end || item.tree.start < item.behind;
                let span = if empty { item.behind..item.behind } else { item.tree.start..item.tree.end };
                if empty && list || span.end > until {
                    return Err(self.fault(item.start));
                }
                let end = span.end;
                (Node { span, group: None }, item.start..end, end..until)
            }
        };
        let key = item.key.clone();
        Ok(Member { key, named: !list, lead, core, after, comma: None, value })
    }
}

#[cfg(test)]
mod tests;
