//! Which members of a group stay, come and go, and in what order.

use std::collections::{BTreeMap, BTreeSet};

use super::value::ID_FIELDS;
use super::{Group, Member, at};

/// What a member is known by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Id {
    pub key: String,
    pub named: bool,
}

/// One member of the result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pick {
    /// Main's member, and the same one in the base and in theirs.
    Ours(usize, Option<usize>, Option<usize>),
    /// A member that theirs adds.
    Theirs(usize),
}

/// Lists whose order means nothing, by the last key of their path.
const SETS: [&str; 22] = [
    "branches",
    "categories",
    "classifiers",
    "default-members",
    "dependencies",
    "dev",
    "dynamic",
    "exclude",
    "features",
    "ignore",
    "include",
    "keywords",
    "labels",
    "lib",
    "members",
    "platforms",
    "required",
    "requires",
    "tags",
    "topics",
    "types",
    "workspaces",
];

/// Lists whose order means something even where it looks sorted.
const ORDERED: [&str; 8] = ["args", "cmd", "command", "entrypoint", "path", "paths", "run", "steps"];

fn field<'a>(member: &Member, text: &'a str, name: &str) -> Option<&'a str> {
    let group = member.value.group.as_ref().filter(|group| !group.list)?;
    let field = group.members.iter().find(|field| field.key == name && field.value.group.is_none())?;
    Some(at(text, &field.value.span))
}

fn unique(mut ids: Vec<String>) -> bool {
    let all = ids.len();
    ids.sort_unstable();
    ids.dedup();
    ids.len() == all
}

/// The fields that name a record, as `name="x" version="1"`.
fn fields(member: &Member, text: &str, names: &[&str]) -> Option<String> {
    let parts: Option<Vec<String>> =
        names.iter().map(|name| Some(format!("{name}={}", field(member, text, name)?))).collect();
    Some(parts?.join(" "))
}

/// The fields that name the records of all three lists: every record's before some records'.
///
/// # Errors
/// Records whose ids were unique in the base, and are no longer.
fn id_fields(groups: [&Group; 3], texts: [&str; 3]) -> Result<Option<&'static [&'static str]>, String> {
    let values = |names: &[&str]| {
        let mut sides = groups.into_iter().zip(texts).map(|(group, text)| {
            let ids: Vec<String> =
                group.members.iter().filter_map(|member| fields(member, text, names)).collect();
            (ids.len(), unique(ids))
        });
        [(); 3].map(|()| sides.next().unwrap_or((0, true)))
    };
    let all: usize = groups.iter().map(|group| group.members.len()).sum();
    let (mut some, mut twice) = (None, None);
    for names in ID_FIELDS {
        let [base, ours, theirs] = values(names);
        let count = base.0 + ours.0 + theirs.0;
        match base.1 && ours.1 && theirs.1 {
            true if count == all && (twice.is_none() || names.len() > 1) => return Ok(Some(names)),
            true if count > 0 => some = some.or(Some(names)),
            false if count == all && base.0 > 0 && base.1 => twice = twice.or(names.first()),
            _ => {}
        }
    }
    match twice {
        Some(name) => Err(format!("two records have one `{name}`")),
        None => Ok(some),
    }
}

/// The ids of the members of all three groups.
///
/// # Errors
/// Records whose ids were unique in the base, and are no longer.
pub(super) fn ids(groups: [&Group; 3], texts: [&str; 3]) -> Result<[Vec<Id>; 3], String> {
    let names = if groups.iter().any(|group| group.list) { id_fields(groups, texts)? } else { None };
    let mut sides = groups.into_iter().zip(texts).map(|(group, text)| {
        let id = |member: &Member| match names.and_then(|names| fields(member, text, names)) {
            Some(key) => Id { key, named: true },
            None if group.list => {
                Id { key: at(text, &member.value.span).trim_end().to_owned(), named: false }
            }
            None => Id { key: member.key.clone(), named: member.named },
        };
        group.members.iter().map(id).collect::<Vec<_>>()
    });
    let [base, mut ours, mut theirs] = [(); 3].map(|()| sides.next().unwrap_or_default());
    let [b, o, t] = groups;
    let [base_text, our_text, their_text] = texts;
    edits_in_place(&base, &mut ours, &|x, y| alike([base_text, our_text], [b, o], [x, y]));
    edits_in_place(&base, &mut theirs, &|x, y| alike([base_text, their_text], [b, t], [x, y]));
    Ok([base, ours, theirs])
}

/// Gives an element without a name the id of the one that it stands for: where as many come as go
/// between two elements that stay, each edits the one in its place.
fn edits_in_place(base: &[Id], side: &mut [Id], alike: &dyn Fn(usize, usize) -> bool) {
    let here: BTreeSet<String> = side.iter().map(|id| id.key.clone()).collect();
    let there: BTreeSet<&str> = base.iter().map(|id| id.key.as_str()).collect();
    let (mut x, mut y) = (0, 0);
    loop {
        let gone = base.iter().skip(x).take_while(|id| !here.contains(&id.key)).count();
        let new = side.iter().skip(y).take_while(|id| !there.contains(id.key.as_str())).count();
        for step in 0..if gone == new { gone } else { 0 } {
            if let (Some(old), Some(id)) = (base.get(x + step), side.get_mut(y + step))
                && !old.named
                && !id.named
                && alike(x + step, y + step)
            {
                id.key.clone_from(&old.key);
            }
        }
        (x, y) = (x + gone, y + new);
        match (base.get(x), side.get(y)) {
            (Some(old), Some(id)) if old.key == id.key => (x, y) = (x + 1, y + 1),
            _ => return,
        }
    }
}

/// Two scalars; or two records that start with the same field of one value, or of one requirement.
fn alike(texts: [&str; 2], groups: [&Group; 2], places: [usize; 2]) -> bool {
    let ([a, b], [x, y], [i, j]) = (texts, groups, places);
    let (Some(x), Some(y)) = (x.members.get(i), y.members.get(j)) else { return false };
    let (Some(left), Some(right)) = (&x.value.group, &y.value.group) else {
        return x.value.group.is_none() && y.value.group.is_none();
    };
    let (Some(left), Some(right)) = (left.members.first(), right.members.first()) else { return false };
    let (old, new) = (at(a, &left.value.span), at(b, &right.value.span));
    let action = |text: &'_ str| text.split_once('@').map(|(name, _)| name.to_owned());
    !left.key.is_empty()
        && left.key == right.key
        && (old == new || action(old).is_some_and(|name| Some(name) == action(new)))
}

/// Where each key stands; a key that stands twice is told.
fn places<'a>(ids: &'a [Id], side: &str) -> Result<BTreeMap<&'a str, usize>, String> {
    let mut places = BTreeMap::new();
    for (place, id) in ids.iter().enumerate() {
        if places.insert(id.key.as_str(), place).is_some() {
            return Err(format!("{side} has {} twice", short(&id.key)));
        }
    }
    Ok(places)
}

/// A key for a sentence: its first 60 characters on one line.
pub(super) fn line(key: &str) -> String {
    key.chars().take(60).map(|c| if c.is_control() { ' ' } else { c }).collect()
}

fn short(key: &str) -> String {
    format!("`{}`", line(key))
}

/// The three lists of ids with their places.
pub(super) struct Plan<'a> {
    base: &'a [Id],
    ours: &'a [Id],
    theirs: &'a [Id],
    in_base: BTreeMap<&'a str, usize>,
    in_ours: BTreeMap<&'a str, usize>,
    in_theirs: BTreeMap<&'a str, usize>,
    list: bool,
    free: bool,
    sorts: bool,
}

impl<'a> Plan<'a> {
    /// # Errors
    /// A key that stands twice; members in another order.
    pub(super) fn new(ids: &'a [Vec<Id>; 3], group: &Group, name: &str) -> Result<Self, String> {
        let [base, ours, theirs] = ids;
        let plan = Self {
            base,
            ours,
            theirs,
            in_base: places(base, "the change's base")?,
            in_ours: places(ours, "main's file")?,
            in_theirs: places(theirs, "the change's file")?,
            list: group.list,
            free: group.free || group.list && SETS.contains(&name) && !ids.iter().flatten().any(negated),
            sorts: if group.list { !ORDERED.contains(&name) } else { group.free },
        };
        let kept = |places: &BTreeMap<&str, usize>| {
            let found = plan.base.iter().filter_map(|id| places.get(id.key.as_str()).copied());
            found.collect::<Vec<_>>().is_sorted()
        };
        if !kept(&plan.in_theirs) {
            return Err("the change puts members in another order".to_owned());
        }
        if plan.list && !kept(&plan.in_ours) {
            return Err("main puts elements in another order".to_owned());
        }
        Ok(plan)
    }

    /// The base has no such member.
    fn new_in(&self, key: &str) -> bool {
        !self.in_base.contains_key(key)
    }

    /// The members of the result in order; `same(base, side, ours)`: the side left the member as it was.
    ///
    /// # Errors
    /// A member that one side removes and the other changes; additions whose order is not known.
    pub(super) fn picks(&self, same: &dyn Fn(usize, usize, bool) -> bool) -> Result<Vec<Pick>, String> {
        self.removed(same)?;
        let mut kept = Vec::new();
        for (place, id) in self.ours.iter().enumerate() {
            let key = id.key.as_str();
            let (base, theirs) = (self.in_base.get(key).copied(), self.in_theirs.get(key).copied());
            if base.is_none() || theirs.is_some() {
                kept.push((place, base, theirs));
            }
        }
        let added = |id: &Id| self.new_in(&id.key) && !self.in_ours.contains_key(id.key.as_str());
        if !self.theirs.iter().any(added) {
            return Ok(kept
                .into_iter()
                .map(|(place, base, theirs)| Pick::Ours(place, base, theirs))
                .collect());
        }
        self.rivals()?;
        match self.order() {
            Some(order) => Ok(self.sorted(kept, order)),
            None => self.anchored(kept),
        }
    }

    /// Removals, against what the other side did with the member.
    fn removed(&self, same: &dyn Fn(usize, usize, bool) -> bool) -> Result<(), String> {
        for (place, id) in self.base.iter().enumerate() {
            let (ours, theirs) = (self.in_ours.get(id.key.as_str()), self.in_theirs.get(id.key.as_str()));
            match (ours, theirs) {
                (Some(ours), None) if !same(place, *ours, true) => {
                    return Err(format!("main changes {}, the change removes it", short(&id.key)));
                }
                (None, Some(theirs)) if !same(place, *theirs, false) => {
                    return Err(format!("main removes {}, the change changes it", short(&id.key)));
                }
                (None, None) => self.replaced(place, id)?,
                _ => {}
            }
        }
        Ok(())
    }

    /// A member that both sides removed and that one of them may have renamed or changed.
    fn replaced(&self, place: usize, id: &Id) -> Result<(), String> {
        let put = |side: &[Id], places: &BTreeMap<&str, usize>| {
            let before = self.base.iter().take(place).rev().find_map(|id| places.get(id.key.as_str()));
            let next = before.map_or(0, |before| before + 1);
            let here = side.get(next).is_some_and(|id| self.new_in(&id.key));
            here || !id.named && side.iter().any(|id| !id.named && self.new_in(&id.key))
        };
        if put(self.ours, &self.in_ours) || put(self.theirs, &self.in_theirs) {
            return Err(format!("both sides remove {} and something stands in its place", short(&id.key)));
        }
        Ok(())
    }

    /// Elements without a name that both sides add for one requirement: `click>=8` and `click>=9`.
    fn rivals(&self) -> Result<(), String> {
        if !self.list {
            return Ok(());
        }
        let new = |id: &&Id, other: &BTreeMap<&str, usize>| {
            !id.named && self.new_in(&id.key) && !other.contains_key(id.key.as_str())
        };
        let main = self.ours.iter().filter(|id| new(id, &self.in_theirs));
        let main: BTreeSet<String> = main.filter_map(|id| requirement(&id.key)).collect();
        for id in self.theirs.iter().filter(|id| new(id, &self.in_ours)) {
            if let Some(name) = requirement(&id.key)
                && main.contains(&name)
            {
                return Err(format!("both sides set {}", short(&name)));
            }
        }
        Ok(())
    }

    /// The order that all three sides keep, if there is one.
    fn order(&self) -> Option<fn(&str) -> String> {
        let long = self.base.len() >= if self.list { 3 } else { 2 };
        let mut all = [self.base, self.ours, self.theirs].into_iter().flatten();
        // Numbers in order may be anything: a size, a version, a point.
        if !self.sorts || !long || all.any(|id| !id.named && !id.key.starts_with(is_text)) {
            return None;
        }
        let orders: [fn(&str) -> String; 2] = [bare, folded];
        orders.into_iter().find(|order| {
            [self.base, self.ours, self.theirs]
                .into_iter()
                .all(|side| side.is_sorted_by(|a, b| order(&a.key) < order(&b.key)))
        })
    }

    fn sorted(
        &self,
        kept: Vec<(usize, Option<usize>, Option<usize>)>,
        order: fn(&str) -> String,
    ) -> Vec<Pick> {
        let mut out: Vec<(String, Pick)> = Vec::new();
        for (place, base, theirs) in kept {
            let key = self.ours.get(place).map(|id| order(&id.key)).unwrap_or_default();
            out.push((key, Pick::Ours(place, base, theirs)));
        }
        for (place, id) in self.theirs.iter().enumerate() {
            if self.new_in(&id.key) && !self.in_ours.contains_key(id.key.as_str()) {
                out.push((order(&id.key), Pick::Theirs(place)));
            }
        }
        out.sort_by(|a, b| a.0.cmp(&b.0));
        out.into_iter().map(|(_, pick)| pick).collect()
    }

    /// Each addition after the member that it follows in theirs, and after what main added there.
    fn anchored(&self, kept: Vec<(usize, Option<usize>, Option<usize>)>) -> Result<Vec<Pick>, String> {
        let mut kept: BTreeMap<usize, Pick> =
            kept.into_iter().map(|(place, base, theirs)| (place, Pick::Ours(place, base, theirs))).collect();
        let mut after: BTreeMap<Option<usize>, Vec<usize>> = BTreeMap::new();
        let mut anchor = None;
        for (place, id) in self.theirs.iter().enumerate() {
            match self.in_ours.get(id.key.as_str()) {
                Some(found) => anchor = Some(*found),
                None if self.new_in(&id.key) => after.entry(anchor).or_default().push(place),
                None => {}
            }
        }
        let mut out = Vec::new();
        let mut waiting = after.remove(&None).unwrap_or_default();
        // Put where theirs removes a member: main's next addition may be meant for the same place.
        let mut replacing: Vec<usize> = Vec::new();
        for place in 0..self.ours.len() {
            let pick = kept.remove(&place);
            match pick {
                Some(Pick::Ours(_, None, None)) => {
                    self.both_add_here(&waiting, place)?;
                    self.both_add_here(&replacing, place)?;
                }
                Some(_) => {
                    replacing.clear();
                    out.extend(waiting.drain(..).map(Pick::Theirs));
                    waiting = after.remove(&Some(place)).unwrap_or_default();
                }
                None => {
                    out.extend(waiting.iter().copied().map(Pick::Theirs));
                    replacing.append(&mut waiting);
                }
            }
            out.extend(pick);
        }
        out.extend(waiting.into_iter().map(Pick::Theirs));
        Ok(out)
    }

    fn both_add_here(&self, theirs: &[usize], ours: usize) -> Result<(), String> {
        let named = |id: Option<&Id>| id.is_some_and(|id| id.named);
        for place in theirs {
            let (mine, other) = (self.ours.get(ours), self.theirs.get(*place));
            if !(self.free || named(mine) && named(other)) {
                let key = other.map(|id| short(&id.key)).unwrap_or_default();
                return Err(format!(
                    "both sides add at the place of {key}, and which comes first is not known"
                ));
            }
        }
        Ok(())
    }
}

/// Patterns of which a later one takes back an earlier one.
fn negated(id: &Id) -> bool {
    bare(&id.key).starts_with('!')
}

fn is_text(c: char) -> bool {
    c.is_alphabetic() || matches!(c, '"' | '\'')
}

fn bare(key: &str) -> String {
    key.trim_matches(['"', '\'']).to_owned()
}

fn folded(key: &str) -> String {
    bare(key).to_lowercase()
}

/// The name that a string requires or sets: `"Click>=8; x"` requires `click`, `DEBUG=1` sets `debug`.
fn requirement(key: &str) -> Option<String> {
    let text = bare(key);
    let end = text.find(|c: char| !(c.is_ascii_alphanumeric() || "-_.".contains(c))).unwrap_or(text.len());
    let (name, rest) = text.split_at_checked(end)?;
    let next = rest.trim_start().chars().next();
    let ends = next.is_none_or(|c| "<>=!~;@([".contains(c));
    (ends && !name.is_empty()).then(|| name.to_lowercase().replace(['_', '.'], "-"))
}
