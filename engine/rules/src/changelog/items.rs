//! What one side did to the entries of one group, and where that goes in the other side's group.

use super::parse::{Group, Item, Log, has_version};
use crate::lines::{self, blank, name};

/// Lines put in front of lines, and lines taken out.
#[derive(Debug)]
pub(super) struct Edits<'a> {
    lines: &'a [&'a str],
    gone: Vec<bool>,
    put: Vec<Vec<&'a str>>,
}

impl<'a> Edits<'a> {
    pub fn new(lines: &'a [&'a str]) -> Self {
        Self { lines, gone: vec![false; lines.len()], put: vec![Vec::new(); lines.len() + 1] }
    }

    pub fn remove(&mut self, from: usize, to: usize) {
        self.gone.iter_mut().take(to).skip(from).for_each(|gone| *gone = true);
    }

    pub fn put(&mut self, at: usize, lines: impl IntoIterator<Item = &'a str>) {
        if let Some(put) = self.put.get_mut(at) {
            put.extend(lines);
        }
    }

    pub fn line(&self, at: usize) -> Option<&'a str> {
        self.lines.get(at).copied()
    }

    pub fn finish(self) -> Vec<&'a str> {
        let mut out = Vec::new();
        for (at, put) in self.put.into_iter().enumerate() {
            out.extend(put);
            if self.gone.get(at) == Some(&false) {
                out.extend(self.lines.get(at));
            }
        }
        out
    }
}

/// A run of entries that one side took out and put in at one place.
#[derive(Debug)]
pub(super) struct Gap<'g, 'a> {
    /// Entries of the base before and after it.
    pub before: &'g [Item<'a>],
    pub after: &'g [Item<'a>],
    pub removed: &'g [Item<'a>],
    pub added: &'g [Item<'a>],
}

fn part<'g, 'a>(items: &'g [Item<'a>], from: usize, to: usize) -> &'g [Item<'a>] {
    items.get(from..to).unwrap_or_default()
}

/// What a side did to a group's entries, in order.
pub(super) fn gaps<'g, 'a>(base: &'g [Item<'a>], from: &'g [Item<'a>]) -> Result<Vec<Gap<'g, 'a>>, String> {
    let texts = |items: &[Item<'a>]| items.iter().map(|item| item.text).collect::<Vec<_>>();
    let pairs = lines::common(&texts(base), &texts(from)).ok_or("a heading has too many entries")?;
    let mut out = Vec::new();
    let (mut i, mut j) = (0, 0);
    for (next_i, next_j) in pairs.into_iter().chain([(base.len(), from.len())]) {
        if next_i > i || next_j > j {
            out.push(Gap {
                before: part(base, 0, i),
                after: part(base, next_i, base.len()),
                removed: part(base, i, next_i),
                added: part(from, j, next_j),
            });
        }
        (i, j) = (next_i + 1, next_j + 1);
    }
    Ok(out)
}

/// Are the entries set apart by blank lines?
pub(super) fn loose(group: &Group<'_>) -> Option<bool> {
    let mut pairs = group.items.iter().zip(group.items.iter().skip(1));
    let (first, second) = pairs.next()?;
    Some(second.start > first.end)
}

/// A group of the base, as one side left it, and the place of it in the other side's file.
pub(super) struct Target<'g, 'a> {
    pub base: &'g Log<'a>,
    pub onto: &'g Log<'a>,
    pub from: &'g Log<'a>,
    pub from_group: &'g Group<'a>,
    pub group: &'g Group<'a>,
    /// The base's entries of this group; none when it is new.
    pub base_items: &'g [Item<'a>],
    /// Was what the base calls unreleased released meanwhile?
    pub cut: bool,
}

impl<'a> Target<'_, 'a> {
    /// Does one gap anew.
    pub fn run(&self, gap: &Gap<'_, 'a>, edits: &mut Edits<'a>) -> Result<(), String> {
        match (gap.removed, gap.added) {
            (removed, []) => removed.iter().try_for_each(|item| self.remove(item, edits)),
            ([], added) => self.add(gap, added, edits),
            (removed, added) => self.reword(removed, added, edits),
        }
    }

    fn here(&self, text: &[&str]) -> Vec<&Item<'a>> {
        self.group.items.iter().filter(|item| item.text == text).collect()
    }

    fn in_base(&self, text: &[&str]) -> usize {
        self.base_items.iter().filter(|item| item.text == text).count()
    }

    fn told(&self, item: &Item<'_>) -> String {
        name(self.base.side, item.start, item.text.first().copied().unwrap_or_default())
    }

    fn remove(&self, item: &Item<'a>, edits: &mut Edits<'a>) -> Result<(), String> {
        if self.cut {
            return Err(format!(
                "{} takes out {}, which was released meanwhile",
                self.from.side,
                self.told(item)
            ));
        }
        if self.in_base(item.text) > 1 {
            return Err(format!(
                "{} takes out one of several equal entries: {}",
                self.from.side,
                self.told(item)
            ));
        }
        match self.here(item.text).as_slice() {
            [] if self.kept_or_gone(item) => Ok(()),
            [found] => {
                self.take_out(found, edits);
                Ok(())
            }
            _ => Err(format!(
                "{} takes out {}, which {} changed",
                self.from.side,
                self.told(item),
                self.onto.side
            )),
        }
    }

    /// Did the other side take the entry out too, and put nothing in its place?
    fn kept_or_gone(&self, item: &Item<'a>) -> bool {
        let Ok(gaps) = gaps(self.base_items, &self.group.items) else { return false };
        gaps.iter().any(|gap| gap.added.is_empty() && gap.removed.iter().any(|gone| gone.text == item.text))
    }

    fn take_out(&self, item: &Item<'a>, edits: &mut Edits<'a>) {
        edits.remove(item.start, item.end);
        let is_blank = |at: usize| edits.line(at).is_some_and(blank);
        if item.start > 0 && is_blank(item.start - 1) && is_blank(item.end) {
            let last = self.group.items.last().is_some_and(|last| last.start == item.start);
            let at = if last { item.start - 1 } else { item.end };
            edits.remove(at, at + 1);
        }
    }

    fn reword(&self, old: &[Item<'a>], new: &[Item<'a>], edits: &mut Edits<'a>) -> Result<(), String> {
        let told = old.first().map(|item| self.told(item)).unwrap_or_default();
        if self.cut {
            return Err(format!("{} rewords {told}, which was released meanwhile", self.from.side));
        }
        if new.iter().all(|item| self.here(item.text).len() == 1 && self.in_base(item.text) == 0)
            && old.iter().all(|item| self.here(item.text).is_empty())
        {
            return Ok(());
        }
        let items = &self.group.items;
        let same = |window: &[Item<'a>]| window.iter().zip(old).all(|(a, b)| a.text == b.text);
        let mut found = items.windows(old.len()).filter(|window| same(window));
        let (Some(window), None) = (found.next(), found.next()) else {
            return Err(format!("{} rewords {told}, which {} changed too", self.from.side, self.onto.side));
        };
        if new.iter().any(|item| !self.here(item.text).is_empty())
            || old.iter().any(|i| self.in_base(i.text) > 1)
        {
            return Err(format!("{} rewords {told} to an entry that is there", self.from.side));
        }
        let (Some(first), Some(last)) = (window.first(), window.last()) else { return Ok(()) };
        let (Some(new_first), Some(new_last)) = (new.first(), new.last()) else { return Ok(()) };
        edits.remove(first.start, last.end);
        edits.put(first.start, lines::slice(self.from.lines, new_first.start, new_last.end).iter().copied());
        Ok(())
    }

    fn add(&self, gap: &Gap<'_, 'a>, added: &[Item<'a>], edits: &mut Edits<'a>) -> Result<(), String> {
        let mut fresh = Vec::new();
        for item in added {
            let text = item.text;
            let own = self.from_group.items.iter().filter(|other| other.text == text).count();
            let told = || name(self.from.side, item.start, text.first().copied().unwrap_or_default());
            if own.saturating_sub(self.in_base(text)) != 1 {
                return Err(format!("{} stands there more than once", told()));
            }
            if let (true, Some(found)) = (self.here(text).len() > self.in_base(text), self.here(text).first())
            {
                // Both added it: what theirs put before it goes before it.
                self.before(found.start, &std::mem::take(&mut fresh), edits);
                continue;
            }
            if self.onto.count(text) > self.base.count(text) {
                return Err(format!("{} has under another heading what {} adds", self.onto.side, told()));
            }
            fresh.push(*item);
        }
        self.place(gap, &fresh, edits);
        Ok(())
    }

    fn loose(&self) -> bool {
        let group = loose(self.group).or_else(|| loose(self.from_group));
        group
            .or_else(|| self.onto.sections.iter().flat_map(|one| &one.groups).find_map(loose))
            .unwrap_or(false)
    }

    fn before(&self, start: usize, fresh: &[Item<'a>], edits: &mut Edits<'a>) {
        let loose = self.loose();
        for item in fresh {
            edits.put(start, item.text.iter().copied().chain(loose.then_some("")));
        }
    }

    fn place(&self, gap: &Gap<'_, 'a>, fresh: &[Item<'a>], edits: &mut Edits<'a>) {
        let loose = self.loose();
        let stands = |item: &&Item<'a>| self.here(item.text).len() == 1;
        let after = if gap.after.is_empty() { None } else { Some(gap.after.iter().find(stands)) };
        let found = |item: &Item<'a>| self.here(item.text).first().map(|found| (found.start, found.end));
        let before_it = match after {
            None => None,
            Some(_) if gap.before.is_empty() => self.group.items.first().map(|item| (item.start, item.end)),
            Some(next) => next.and_then(found),
        };
        if let Some((start, _)) = before_it {
            for item in fresh {
                edits.put(start, item.text.iter().copied().chain(loose.then_some("")));
            }
            return;
        }
        let last = gap.before.iter().rev().find(stands).filter(|_| after.is_some()).and_then(found);
        let end = last.map_or_else(|| self.group.end(), |(_, end)| end);
        self.append(end, loose, fresh, edits);
    }

    fn append(&self, end: usize, loose: bool, fresh: &[Item<'a>], edits: &mut Edits<'a>) {
        let Some(first) = self.from_group.items.first().filter(|_| !fresh.is_empty()) else { return };
        let empty = self.group.items.is_empty();
        // Under a heading without entries the distance is the change's own.
        let own = if empty { first.start.saturating_sub(self.from_group.head_end) } else { 0 };
        let there = (0..own).take_while(|more| edits.line(end + more).is_some_and(blank)).count();
        let end = end + there;
        edits.put(end, std::iter::repeat_n("", own - there));
        for (index, item) in fresh.iter().enumerate() {
            let apart = loose && !(empty && index == 0);
            edits.put(end, apart.then_some("").into_iter().chain(item.text.iter().copied()));
        }
        if edits.line(end).is_some_and(|next| !blank(next) && !super::parse::is_entry(next)) {
            edits.put(end, [""]);
        }
    }
}

/// May an unreleased heading be made anew from its title alone?
pub(super) fn is_plain(title: &str) -> bool {
    !has_version(title)
}
