//! `toml`: tables and keys by name, arrays of tables by `name` or `id`.
//!
//! As the file writes them: a key that one side moves from a dotted to a table form is another key.

use std::collections::BTreeMap;

use toml::de::{DeTable, DeValue};
use toml_parser::Source;
use toml_parser::parser::{Event, EventKind, parse_document};

use crate::keyed::value::Value;
use crate::keyed::{DEPTH_MAX, Format, Group, Listed, Member, NODES_MAX, Node, Span, at, commas, line_of};

/// Merges three versions of a TOML file.
///
/// # Errors
/// A sentence that names the side and the key path or line which the rule does not take.
pub(crate) fn merge(base: Option<&[u8]>, ours: &[u8], theirs: &[u8]) -> Result<Vec<u8>, String> {
    let base = base.ok_or("both sides add the file")?;
    crate::keyed::merge(&Format { nodes, value }, base, ours, theirs)
}

fn nodes(text: &str) -> Result<Node, String> {
    let tokens = Source::new(text).lex().into_vec();
    let mut events: Vec<Event> = Vec::new();
    let mut faults: Option<toml_parser::ParseError> = None;
    parse_document(&tokens, &mut events, &mut faults);
    if faults.is_some() {
        return Err("is not TOML".to_owned());
    }
    let mut reader = Reader { text, events: &events, next: 0, count: 0 };
    reader.document()
}

struct Reader<'a> {
    text: &'a str,
    events: &'a [Event],
    next: usize,
    count: usize,
}

/// `[a]` or `[[a]]`, before its lines are read.
struct Section {
    key: String,
    array: bool,
    lead: Span,
    start: usize,
    body: usize,
    members: Vec<Member>,
}

impl Reader<'_> {
    fn peek(&self) -> Option<EventKind> {
        self.events.get(self.next).map(Event::kind)
    }

    fn place(&self) -> usize {
        self.events.get(self.next).map_or(self.text.len(), |event| event.span().start())
    }

    fn skip(&mut self) {
        while matches!(self.peek(), Some(EventKind::Whitespace | EventKind::Comment | EventKind::Newline)) {
            self.next += 1;
        }
    }

    /// The end of the line, with its comment and its newline.
    fn line_end(&mut self) -> usize {
        while matches!(self.peek(), Some(EventKind::Whitespace | EventKind::Comment)) {
            self.next += 1;
        }
        if self.peek() == Some(EventKind::Newline) {
            self.next += 1;
        }
        self.place()
    }

    fn fault(&self, what: &str) -> String {
        format!("{what} in line {}", line_of(self.text, self.place()))
    }

    fn document(&mut self) -> Result<Node, String> {
        let mut root: Vec<Member> = Vec::new();
        let mut section: Option<Section> = None;
        let mut place = 0;
        loop {
            self.skip();
            match self.peek() {
                None => break,
                Some(EventKind::SimpleKey) => {
                    let member = self.line(place)?;
                    place = member.after.end;
                    section.as_mut().map_or(&mut root, |section| &mut section.members).push(member);
                }
                Some(kind @ (EventKind::StdTableOpen | EventKind::ArrayTableOpen)) => {
                    if let Some(section) = section.take() {
                        root.push(self.closed(section, &root, place));
                    }
                    let start = self.place();
                    self.next += 1;
                    let key = self.key();
                    self.next += 1;
                    let array = kind == EventKind::ArrayTableOpen;
                    let lead = place..start;
                    place = self.line_end();
                    section = Some(Section { key, array, lead, start, body: place, members: Vec::new() });
                }
                Some(_) => return Err(self.fault("is not TOML")),
            }
        }
        if let Some(section) = section.take() {
            root.push(self.closed(section, &root, place));
        }
        let end = self.text.len();
        let group = Group { list: false, commas: false, free: false, members: root, tail: place..end };
        Ok(Node { span: 0..end, group: Some(group) })
    }

    /// A section whose last line is read.
    ///
    /// An element of an array of tables is known by its `id`, `key` or `name` (with its `version`); a
    /// table below such an element is known with it.
    fn closed(&self, section: Section, before: &[Member], end: usize) -> Member {
        let Section { key, array, lead, start, body, members } = section;
        let field = |name: &str| {
            let field = members.iter().find(|member| member.key == name && member.value.group.is_none())?;
            Some(format!("{name}={}", at(self.text, &field.value.span)))
        };
        let (key, named) = if array {
            let ids: Vec<String> = match ["id", "key", "name"].into_iter().find_map(field) {
                Some(id) => std::iter::once(id).chain(field("version")).collect(),
                None => Vec::new(),
            };
            let whole = at(self.text, &(body..end));
            let id = if ids.is_empty() { whole.to_owned() } else { ids.join(" ") };
            (format!("[[{key}]] {id}"), !ids.is_empty())
        } else {
            let above = before.iter().rev().find(|member| {
                let name = member.key.strip_prefix("[[").and_then(|name| name.split_once("]]"));
                name.is_some_and(|(name, _)| key.strip_prefix(name).is_some_and(|rest| rest.starts_with('.')))
            });
            match above {
                Some(above) => (format!("[{key}] of {}", above.key), above.named),
                None => (format!("[{key}]"), true),
            }
        };
        let group = Group { list: false, commas: false, free: true, members, tail: end..end };
        let value = Node { span: body..end, group: Some(group) };
        Member { key, named, lead, core: start..end, after: end..end, comma: None, value }
    }

    fn line(&mut self, place: usize) -> Result<Member, String> {
        let start = self.place();
        let (key, value) = self.pair(0)?;
        let core = start..value.span.end;
        let after = core.end..self.line_end();
        Ok(Member { key, named: true, lead: place..start, core, after, comma: None, value })
    }

    /// A key, dotted or not: its parts unescaped, a part with a dot in quotes.
    fn key(&mut self) -> String {
        let mut parts: Vec<String> = Vec::new();
        loop {
            match self.peek() {
                Some(EventKind::Whitespace | EventKind::KeySep) => self.next += 1,
                Some(EventKind::SimpleKey) => {
                    let mut part = String::new();
                    if let Some(event) = self.events.get(self.next)
                        && let Some(raw) = Source::new(self.text).get(event)
                    {
                        raw.decode_key(&mut part, &mut ());
                    }
                    parts.push(if part.contains(['.', '"']) { format!("{part:?}") } else { part });
                    self.next += 1;
                }
                _ => return parts.join("."),
            }
        }
    }

    fn pair(&mut self, depth: usize) -> Result<(String, Node), String> {
        let key = self.key();
        if self.peek() != Some(EventKind::KeyValSep) {
            return Err(self.fault("is not TOML"));
        }
        self.next += 1;
        self.skip();
        Ok((key, self.value(depth)?))
    }

    fn value(&mut self, depth: usize) -> Result<Node, String> {
        self.count += 1;
        if depth > DEPTH_MAX || self.count > NODES_MAX {
            return Err(self.fault("is too deep or has too many values"));
        }
        let event = self.events.get(self.next).ok_or_else(|| self.fault("is not TOML"))?;
        let (start, end) = (event.span().start(), event.span().end());
        self.next += 1;
        match event.kind() {
            EventKind::Scalar => Ok(Node { span: start..end, group: None }),
            EventKind::ArrayOpen => self.group(start, end, EventKind::ArrayClose, depth),
            EventKind::InlineTableOpen => self.group(start, end, EventKind::InlineTableClose, depth),
            _ => Err(self.fault("is not TOML")),
        }
    }

    fn group(&mut self, start: usize, inside: usize, close: EventKind, depth: usize) -> Result<Node, String> {
        let list = close == EventKind::ArrayClose;
        let mut listed: Vec<Listed> = Vec::new();
        loop {
            self.skip();
            let from = self.place();
            match self.peek() {
                Some(kind) if kind == close => {
                    self.next += 1;
                    let end = self.events.get(self.next - 1).map_or(from, |event| event.span().end());
                    let group = commas(self.text, &(inside..from), list, listed);
                    return Ok(Node { span: start..end, group: Some(group) });
                }
                Some(EventKind::ValueSep) => {
                    if let Some(last) = listed.last_mut() {
                        last.comma = Some(from);
                    }
                    self.next += 1;
                }
                Some(_) => {
                    let (key, value) =
                        if list { (String::new(), self.value(depth + 1)?) } else { self.pair(depth + 1)? };
                    listed.push(Listed { key, core: from..value.span.end, comma: None, value });
                }
                None => return Err(self.fault("is not TOML")),
            }
        }
    }
}

/// What TOML text says, by the toml crate.
pub(crate) fn value(text: &str) -> Result<Value, String> {
    let table = DeTable::parse(text).map_err(|error| {
        let line = error.span().map_or(1, |span| line_of(text, span.start));
        format!("is not TOML in line {line}: {}", error.message())
    })?;
    read_table(table.get_ref(), 0)
}

fn read_table(table: &DeTable<'_>, depth: usize) -> Result<Value, String> {
    let mut map = BTreeMap::new();
    for (key, value) in table {
        map.insert(key.get_ref().clone().into_owned(), read(value.get_ref(), depth + 1)?);
    }
    Ok(Value::Map(map))
}

fn read(value: &DeValue<'_>, depth: usize) -> Result<Value, String> {
    if depth > DEPTH_MAX {
        return Err("is too deep".to_owned());
    }
    Ok(match value {
        DeValue::String(text) => Value::Scalar(format!("s{text}")),
        DeValue::Integer(number) => Value::Scalar(format!("i{} {}", number.radix(), number.as_str())),
        DeValue::Float(number) => Value::Scalar(format!("f{}", number.as_str())),
        DeValue::Boolean(flag) => Value::Scalar(format!("b{flag}")),
        DeValue::Datetime(time) => Value::Scalar(format!("d{time}")),
        DeValue::Array(list) => {
            let list = list.iter().map(|value| read(value.get_ref(), depth + 1));
            Value::List(list.collect::<Result<_, _>>()?)
        }
        DeValue::Table(table) => read_table(table, depth)?,
    })
}

#[cfg(test)]
mod tests;
