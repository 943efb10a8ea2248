//! `jsonl`: one JSON record a line, by `id`, `key` or `name`, else by its whole line.

use std::collections::BTreeSet;

use crate::json::{self, Reader};
use crate::keyed::value::Value;
use crate::keyed::{Format, Group, Member, Node};

/// Merges three versions of a file of records; a file that both sides add starts from none.
///
/// A log, to which both sides only append, may repeat lines; otherwise a line or id that stands twice
/// on one side is a collision, because which of the two a side means is not known.
///
/// # Errors
/// A sentence that names the side and the record which the rule does not take.
pub(crate) fn merge(base: Option<&[u8]>, ours: &[u8], theirs: &[u8]) -> Result<Vec<u8>, String> {
    let base = base.unwrap_or_default();
    if let Some(log) = appended(base, ours, theirs) {
        return Ok(log);
    }
    crate::keyed::merge(&Format { nodes, value }, base, ours, theirs)
}

/// Both sides' new lines behind the base, where no line and no id of them is known.
fn appended(base: &[u8], ours: &[u8], theirs: &[u8]) -> Option<Vec<u8>> {
    let (mine, new) = (ours.strip_prefix(base)?, theirs.strip_prefix(base)?);
    let whole = |bytes: &[u8]| bytes.ends_with(b"\n") && !bytes.contains(&b'\r');
    if !whole(base) || !whole(ours) || !whole(theirs) || theirs.len() > crate::keyed::BYTES_MAX {
        return None;
    }
    if ours.len() + new.len() > crate::keyed::BYTES_MAX {
        return None;
    }
    let known = ids(mine)?;
    let added = ids(new)?;
    let old = ids(base)?;
    let all = |ids: &BTreeSet<Value>| ids.iter().all(|id| matches!(id, Value::List(_)));
    let clash = added.intersection(&known).next().is_some()
        || (!all(&added) && added.intersection(&old).next().is_some());
    (!clash).then(|| [ours, new].concat())
}

/// What the records are known by: the ids of each, and each as a whole (in a list).
fn ids(lines: &[u8]) -> Option<BTreeSet<Value>> {
    let mut ids = BTreeSet::new();
    for line in std::str::from_utf8(lines).ok()?.lines() {
        let record = json::value(line).ok()?;
        if let Value::Map(map) = &record
            && let Some((name, id)) =
                ["id", "key", "name"].into_iter().find_map(|name| Some((name, map.get(name)?)))
        {
            ids.insert(Value::Map([(name.to_owned(), id.clone())].into()));
        }
        ids.insert(Value::List(vec![record]));
    }
    Some(ids)
}

fn nodes(text: &str) -> Result<Node, String> {
    let mut members = Vec::new();
    let mut reader = Reader::new(text, 0);
    let mut start = 0;
    for (number, line) in text.split_inclusive('\n').enumerate() {
        reader.at = start;
        let value = reader.value(0)?;
        let end = start + line.trim_end_matches('\n').len();
        if value.span.end != end {
            return Err(format!("line {} is no single record", number + 1));
        }
        let core = value.span.clone();
        let after = end..start + line.len();
        let lead = start..start;
        members.push(Member { key: String::new(), named: false, lead, core, after, comma: None, value });
        start += line.len();
    }
    let group = Group { list: true, commas: false, free: true, members, tail: start..start };
    Ok(Node { span: 0..start, group: Some(group) })
}

pub(crate) fn value(text: &str) -> Result<Value, String> {
    let record = |(number, line)| json::value(line).map_err(|fault| format!("line {}: {fault}", number + 1));
    text.lines().enumerate().map(record).collect::<Result<_, _>>().map(Value::List)
}

#[cfg(test)]
mod tests;
