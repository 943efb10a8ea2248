//! What a file says, without how it is written; and whether one value is the merge of three.

use std::collections::BTreeMap;

/// A value: scalars are text with a letter for their type, so no number loses a digit.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Value {
    Scalar(String),
    Map(BTreeMap<String, Value>),
    List(Vec<Value>),
}

/// The fields that say which record of a list one is, in this order; a lock file has one name in several
/// versions.
pub(crate) const ID_FIELDS: [&[&str]; 4] = [&["id"], &["key"], &["name"], &["name", "version"]];

/// Is `result` what a three-way merge of the other three must be?
///
/// Declared, not computed: each member of a map is what the one side that changed it says; a list has
/// ours' elements and those that theirs added, without those that theirs removed, in both sides' order.
pub(crate) fn merged(
    base: Option<&Value>,
    ours: Option<&Value>,
    theirs: Option<&Value>,
    result: Option<&Value>,
) -> bool {
    if ours == theirs || theirs == base {
        return result == ours;
    }
    if ours == base {
        return result == theirs;
    }
    match (base, ours, theirs, result) {
        (
            Some(Value::Map(base)),
            Some(Value::Map(ours)),
            Some(Value::Map(theirs)),
            Some(Value::Map(result)),
        ) => {
            let mut keys: Vec<&String> =
                [base, ours, theirs, result].into_iter().flat_map(BTreeMap::keys).collect();
            keys.sort();
            keys.dedup();
            keys.into_iter().all(|key| merged(base.get(key), ours.get(key), theirs.get(key), result.get(key)))
        }
        (
            Some(Value::List(base)),
            Some(Value::List(ours)),
            Some(Value::List(theirs)),
            Some(Value::List(result)),
        ) => lists(base, ours, theirs, result).unwrap_or(false),
        _ => false,
    }
}

/// What an element is known by.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord, Clone)]
enum Id<'a> {
    Named(Vec<&'a Value>),
    Whole(&'a Value),
}

fn fields<'a>(value: &'a Value, names: &[&str]) -> Option<Vec<&'a Value>> {
    let Value::Map(map) = value else { return None };
    names.iter().map(|name| map.get(*name).filter(|value| matches!(value, Value::Scalar(_)))).collect()
}

/// The fields that name the elements of all lists: every element's before some elements'.
fn id_fields(lists: [&[Value]; 3]) -> Option<&'static [&'static str]> {
    let unique = |names: &[&str]| {
        lists.iter().all(|list| {
            let mut ids: Vec<_> = list.iter().filter_map(|value| fields(value, names)).collect();
            let all = ids.len();
            ids.sort();
            ids.dedup();
            ids.len() == all
        })
    };
    let have = |names: &[&str]| {
        lists.iter().flat_map(|list| list.iter()).filter(|value| fields(value, names).is_some()).count()
    };
    let all = lists.iter().map(|list| list.len()).sum::<usize>();
    let every = ID_FIELDS.into_iter().find(|names| have(names) == all && unique(names));
    every.or_else(|| ID_FIELDS.into_iter().find(|names| have(names) > 0 && unique(names)))
}

fn ids<'a>(list: &'a [Value], names: Option<&[&str]>) -> Option<BTreeMap<Id<'a>, (usize, &'a Value)>> {
    let mut ids = BTreeMap::new();
    for (place, value) in list.iter().enumerate() {
        let id = match names.and_then(|names| fields(value, names)) {
            Some(names) => Id::Named(names),
            None => Id::Whole(value),
        };
        if ids.insert(id, (place, value)).is_some() {
            return None;
        }
    }
    Some(ids)
}

/// `None` where an element stands twice in one list.
fn lists(base: &[Value], ours: &[Value], theirs: &[Value], result: &[Value]) -> Option<bool> {
    let names = id_fields([base, ours, theirs]);
    let [base, ours, theirs, result] =
        [ids(base, names)?, ids(ours, names)?, ids(theirs, names)?, ids(result, names)?];
    let expected = |id: &Id<'_>| match (base.contains_key(id), ours.contains_key(id), theirs.contains_key(id))
    {
        (true, ours, theirs) => ours && theirs,
        (false, ours, theirs) => ours || theirs,
    };
    let all = [&base, &ours, &theirs, &result].into_iter().flat_map(BTreeMap::keys);
    for id in all {
        if expected(id) != result.contains_key(id) {
            return Some(false);
        }
        let [b, o, t, r] = [&base, &ours, &theirs, &result].map(|side| side.get(id).map(|(_, value)| *value));
        if !merged(b, o, t, r) {
            return Some(false);
        }
    }
    let ordered = |side: &BTreeMap<Id<'_>, (usize, &Value)>| {
        let mut places: Vec<(usize, usize)> =
            side.iter().filter_map(|(id, (place, _))| result.get(id).map(|(at, _)| (*place, *at))).collect();
        places.sort_unstable();
        places.is_sorted_by(|a, b| a.1 < b.1)
    };
    Some(ordered(&ours) && ordered(&theirs))
}
