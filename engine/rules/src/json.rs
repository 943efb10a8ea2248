//! `json`: objects by key, lists of records by id; strict JSON (RFC 8259) only.

use std::collections::BTreeMap;

use serde_json::value::RawValue;

use crate::keyed::value::Value;
use crate::keyed::{DEPTH_MAX, Format, Listed, NODES_MAX, Node, commas, line_of};

/// Merges three versions of a JSON file.
///
/// # Errors
/// A sentence that names the side and the key path or line which the rule does not take.
pub(crate) fn merge(base: Option<&[u8]>, ours: &[u8], theirs: &[u8]) -> Result<Vec<u8>, String> {
    let base = base.ok_or("both sides add the file")?;
    crate::keyed::merge(&Format { nodes, value }, base, ours, theirs)
}

fn nodes(text: &str) -> Result<Node, String> {
    let mut reader = Reader::new(text, 0);
    reader.space();
    let node = reader.value(0)?;
    reader.space();
    if reader.at < text.len() { Err(reader.fault("has text after its value")) } else { Ok(node) }
}

/// Reads where values stand; [`value`] is the judge of what they are.
pub(crate) struct Reader<'a> {
    text: &'a str,
    /// The next byte.
    pub at: usize,
    /// Values read.
    pub count: usize,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(text: &'a str, at: usize) -> Self {
        Self { text, at, count: 0 }
    }

    fn fault(&self, what: &str) -> String {
        format!("{what} in line {}", line_of(self.text, self.at))
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    pub(crate) fn space(&mut self) {
        while self.peek().is_some_and(|byte| matches!(byte, b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn expect(&mut self, byte: u8) -> Result<(), String> {
        if self.peek() == Some(byte) {
            self.at += 1;
            return Ok(());
        }
        Err(self.fault("is not JSON"))
    }

    /// # Errors
    /// Not JSON, too deep, too many values.
    pub(crate) fn value(&mut self, depth: usize) -> Result<Node, String> {
        self.count += 1;
        if depth > DEPTH_MAX || self.count > NODES_MAX {
            return Err(self.fault("is too deep or has too many values"));
        }
        let start = self.at;
        match self.peek() {
            Some(open @ (b'{' | b'[')) => return self.group(open, depth),
            Some(b'"') => self.string()?,
            _ => {
                while self.peek().is_some_and(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte)) {
                    self.at += 1;
                }
            }
        }
        if self.at == start {
            return Err(self.fault("is not JSON"));
        }
        Ok(Node { span: start..self.at, group: None })
    }

    fn string(&mut self) -> Result<(), String> {
        self.expect(b'"')?;
        loop {
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(());
                }
                Some(b'\\') => self.at += 2,
                Some(_) => self.at += 1,
                None => return Err(self.fault("has a string without an end")),
            }
        }
    }

    fn group(&mut self, open: u8, depth: usize) -> Result<Node, String> {
        let start = self.at;
        let (list, close) = if open == b'[' { (true, b']') } else { (false, b'}') };
        self.at += 1;
        let inside = self.at;
        let mut listed: Vec<Listed> = Vec::new();
        self.space();
        while self.peek() != Some(close) {
            if listed.last().is_some_and(|last| last.comma.is_none()) {
                return Err(self.fault("lacks a comma"));
            }
            let from = self.at;
            let key = if list { String::new() } else { self.key()? };
            let value = self.value(depth + 1)?;
            let core = from..self.at;
            self.space();
            let comma = (self.peek() == Some(b',')).then_some(self.at);
            if comma.is_some() {
                self.at += 1;
                self.space();
            }
            listed.push(Listed { key, core, comma, value });
        }
        if listed.last().is_some_and(|last| last.comma.is_some()) {
            return Err(self.fault("has a comma before a bracket"));
        }
        let group = commas(self.text, &(inside..self.at), list, listed);
        self.at += 1;
        Ok(Node { span: start..self.at, group: Some(group) })
    }

    fn key(&mut self) -> Result<String, String> {
        let start = self.at;
        self.string()?;
        let raw = self.text.get(start..self.at).unwrap_or_default();
        let key = serde_json::from_str(raw).map_err(|_| self.fault("has a key that is no string"))?;
        self.space();
        self.expect(b':')?;
        self.space();
        Ok(key)
    }
}

/// What JSON text says, by serde_json.
///
/// # Errors
/// Not JSON; an object with one key twice.
pub(crate) fn value(text: &str) -> Result<Value, String> {
    let raw: &RawValue = serde_json::from_str(text).map_err(|error| format!("is not JSON: {error}"))?;
    read(raw, 0)
}

fn read(raw: &RawValue, depth: usize) -> Result<Value, String> {
    if depth > DEPTH_MAX {
        return Err("is too deep".to_owned());
    }
    let text = raw.get();
    let fault = |error: serde_json::Error| format!("is not JSON: {error}");
    match text.as_bytes().first() {
        Some(b'{') => {
            let members: Members<'_> = serde_json::from_str(text).map_err(fault)?;
            let mut map = BTreeMap::new();
            for (key, raw) in members.0 {
                if map.contains_key(&key) {
                    return Err(format!("has the key `{key}` twice in one object"));
                }
                map.insert(key, read(raw, depth + 1)?);
            }
            Ok(Value::Map(map))
        }
        Some(b'[') => {
            let list: Vec<&RawValue> = serde_json::from_str(text).map_err(fault)?;
            list.into_iter().map(|raw| read(raw, depth + 1)).collect::<Result<_, _>>().map(Value::List)
        }
        Some(b'"') => Ok(Value::Scalar(format!("s{}", serde_json::from_str::<String>(text).map_err(fault)?))),
        _ => Ok(Value::Scalar(format!("n{text}"))),
    }
}

/// The members of one object in order, one key twice included.
struct Members<'a>(Vec<(String, &'a RawValue)>);

impl<'de> serde::Deserialize<'de> for Members<'de> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl<'de> serde::de::Visitor<'de> for Visitor {
            type Value = Members<'de>;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: serde::de::MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry::<String, &'de RawValue>()? {
                    members.push(member);
                }
                Ok(Members(members))
            }
        }
        deserializer.deserialize_map(Visitor)
    }
}

#[cfg(test)]
mod tests;
