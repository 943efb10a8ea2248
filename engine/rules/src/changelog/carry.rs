//! One side's change of a changelog, done anew on the other side's file.

use super::items::{Edits, Target, gaps, is_plain, loose};
use super::parse::{Group, Item, Log, Section};
use crate::lines::{blank, name, slice};

/// The lines of `onto` with what `from` changed of `base`, whose release headings `from` left alone.
pub(super) fn carry<'a>(base: &Log<'a>, onto: &Log<'a>, from: &Log<'a>) -> Result<Vec<&'a str>, String> {
    let mut edits = Edits::new(onto.lines);
    if from.preamble() != base.preamble() && onto.preamble() != from.preamble() {
        if onto.preamble() != base.preamble() {
            return Err("both sides changed what stands above the first release".to_owned());
        }
        edits.remove(0, onto.preamble().len());
        edits.put(0, from.preamble().iter().copied());
    }
    for (base_section, from_section) in base.sections.iter().zip(&from.sections) {
        if base.raw(base_section) != from.raw(from_section) {
            Carry { base, onto, from, base_section, from_section }.section(&mut edits)?;
        }
    }
    Ok(edits.finish())
}

/// One section that `from` changed.
struct Carry<'g, 'a> {
    base: &'g Log<'a>,
    onto: &'g Log<'a>,
    from: &'g Log<'a>,
    base_section: &'g Section<'a>,
    from_section: &'g Section<'a>,
}

impl<'g, 'a> Carry<'g, 'a> {
    fn section(&self, edits: &mut Edits<'a>) -> Result<(), String> {
        let title = self.base_section.title;
        let same =
            self.onto.section(title).filter(|section| section.unreleased || !self.base_section.unreleased);
        let released = |log: &Log<'a>| log.sections.iter().filter(|section| !section.unreleased).count();
        let cut =
            self.base_section.unreleased && (same.is_none() || released(self.onto) > released(self.base));
        if let (Some(onto), false) = (same, cut)
            && self.onto.raw(onto) == self.base.raw(self.base_section)
        {
            let (was, is) = (self.base_section, self.from_section);
            for item in is.groups.iter().flat_map(|group| &group.items) {
                if is.count(item.text) > was.count(item.text) {
                    self.only_here(item)?;
                }
            }
            edits.remove(onto.start, onto.end);
            edits.put(onto.start, self.from.raw(self.from_section).iter().copied());
            return Ok(());
        }
        if let Some(onto) = same {
            return self.groups(onto, cut, edits);
        }
        let open =
            |log: &'g Log<'a>| log.sections.iter().filter(|section| section.unreleased).collect::<Vec<_>>();
        let was_only = self.base_section.unreleased && open(self.base).len() == 1;
        match open(self.onto).as_slice() {
            [only] if was_only => self.groups(only, true, edits),
            [] if was_only => self.new_section(edits),
            _ => {
                let gone = name(self.base.side, self.base_section.start, title);
                Err(format!("{} has no unreleased heading that follows {gone}", self.onto.side))
            }
        }
    }

    /// Only additions count once the section was released: all gaps of all groups.
    fn additions(&self) -> Result<Vec<(&'g Group<'a>, Vec<Item<'a>>)>, String> {
        let mut out = Vec::new();
        let gone =
            self.base_section.groups.iter().find(|group| self.from_section.group(group.head).is_none());
        if let Some(gone) = gone {
            return Err(self.lost(gone));
        }
        for group in &self.from_section.groups {
            let known = self.base_section.group(group.head);
            let base_items = known.map(|group| group.items.as_slice()).unwrap_or_default();
            let mut added = Vec::new();
            for gap in gaps(base_items, &group.items)? {
                if let Some(item) = gap.removed.first() {
                    let told =
                        name(self.base.side, item.start, item.text.first().copied().unwrap_or_default());
                    return Err(format!("{} changes {told}, which was released meanwhile", self.from.side));
                }
                added.extend_from_slice(gap.added);
            }
            if known.is_none() && added.is_empty() {
                return Err(self.loose_prose(group));
            }
            if !added.is_empty() {
                out.push((group, added));
            }
        }
        Ok(out)
    }

    fn lost(&self, group: &Group<'_>) -> String {
        let line = name(self.base.side, group.start, group.head.first().copied().unwrap_or_default());
        format!("{} takes out or rewords {line}", self.from.side)
    }

    fn loose_prose(&self, group: &Group<'_>) -> String {
        let line = name(self.from.side, group.start, group.head.first().copied().unwrap_or_default());
        format!("{line} was added without an entry, and what it belongs to was released meanwhile")
    }

    /// The release left no unreleased heading: it is made as it was.
    fn new_section(&self, edits: &mut Edits<'a>) -> Result<(), String> {
        let title = self.base_section.title;
        let first = self.base.sections.first().is_some_and(|section| section.title == title);
        let named = title.strip_prefix('[').and_then(|rest| rest.split(']').next());
        let defined = |log: &Log<'_>| {
            let define = named.map(|named| format!("[{named}]:").to_lowercase());
            define.is_some_and(|define| log.lines.iter().any(|line| line.to_lowercase().starts_with(&define)))
        };
        if !first || !is_plain(title) || (defined(self.base) && !defined(self.onto)) {
            let why = "it cannot be made anew";
            return Err(format!("a release left no unreleased heading in {}, and {why}", self.onto.side));
        }
        let added = self.additions()?;
        let mut lines: Vec<&'a str> =
            slice(self.from.lines, self.from_section.start, self.from_section.head_end).to_vec();
        for (group, items) in &added {
            for item in items {
                self.only_here(item)?;
            }
            let apart = self.from.lines.get(self.from_section.head_end).is_some_and(|line| blank(line));
            if !group.head.is_empty() && apart {
                lines.push("");
            }
            lines.extend(self.block(group, items));
        }
        let at = self.onto.sections.first().map_or(0, |section| section.start);
        let distance = self.base.raw(self.base_section).iter().rev().take_while(|line| blank(line)).count();
        lines.extend(std::iter::repeat_n("", distance.max(1)));
        edits.put(at, lines);
        Ok(())
    }

    fn only_here(&self, item: &Item<'a>) -> Result<(), String> {
        if self.onto.count(item.text) > self.base.count(item.text) {
            let told = name(self.from.side, item.start, item.text.first().copied().unwrap_or_default());
            return Err(format!("{} has under another heading what {told} adds", self.onto.side));
        }
        Ok(())
    }

    /// A group's head and some of its entries, as far apart as in `from`.
    fn block(&self, group: &Group<'a>, items: &[Item<'a>]) -> Vec<&'a str> {
        let mut lines = group.head.to_vec();
        let first = group.items.first().map_or(group.head_end, |item| item.start);
        lines.extend(std::iter::repeat_n("", first.saturating_sub(group.head_end)));
        let file = || self.onto.sections.iter().flat_map(|one| &one.groups).find_map(loose);
        let loose = loose(group).or_else(file).unwrap_or(false);
        for (index, item) in items.iter().enumerate() {
            lines.extend((loose && index > 0).then_some(""));
            lines.extend_from_slice(item.text);
        }
        lines
    }

    fn groups(&self, onto: &'g Section<'a>, cut: bool, edits: &mut Edits<'a>) -> Result<(), String> {
        for section in [self.base_section, self.from_section, onto] {
            let mut heads: Vec<_> = section.groups.iter().map(|group| group.head).collect();
            heads.sort_unstable();
            if let Some(twice) = heads.windows(2).find(|pair| matches!(pair, [a, b] if a == b)) {
                let head = twice.first().and_then(|head| head.first()).copied().unwrap_or_default();
                return Err(format!("{head:?} stands twice under {:?}", section.title));
            }
        }
        self.order()?;
        self.more_than_blanks()?;
        if cut {
            self.additions()?;
        }
        for group in &self.base_section.groups {
            if self.from_section.group(group.head).is_none() {
                self.drop_group(group, onto, edits)?;
            }
        }
        for group in &self.from_section.groups {
            let known = self.base_section.group(group.head);
            // Once released, what the base listed here counts as not listed.
            let base_items = known.map(|group| group.items.as_slice()).unwrap_or_default();
            let gaps = gaps(base_items, &group.items)?;
            let Some(target) = onto.group(group.head) else {
                self.missing(group, known.is_some(), cut, onto, edits)?;
                continue;
            };
            let (base, onto, from) = (self.base, self.onto, self.from);
            let target = Target { base, onto, from, from_group: group, group: target, base_items, cut };
            gaps.iter().try_for_each(|gap| target.run(gap, edits))?;
        }
        Ok(())
    }

    /// A change of blank lines alone belongs to no entry.
    fn more_than_blanks(&self) -> Result<(), String> {
        let said = |log: &Log<'a>, section: &Section<'a>| -> Vec<&'a str> {
            log.raw(section).iter().copied().filter(|line| !blank(line)).collect()
        };
        if said(self.base, self.base_section) != said(self.from, self.from_section) {
            return Ok(());
        }
        let title = self.base_section.title;
        Err(format!("{} changes blank lines under {title:?}, and {} more", self.from.side, self.onto.side))
    }

    /// Heads that both know must stand in one order.
    fn order(&self) -> Result<(), String> {
        let known = |a: &Section<'a>, b: &Section<'a>| -> Vec<&'a [&'a str]> {
            a.groups.iter().map(|group| group.head).filter(|head| b.group(head).is_some()).collect()
        };
        let (base, from) = (self.base_section, self.from_section);
        if known(base, from) == known(from, base) {
            return Ok(());
        }
        Err(format!("{} moves the headings under {:?}", self.from.side, base.title))
    }

    fn drop_group(&self, group: &Group<'a>, onto: &Section<'a>, edits: &mut Edits<'a>) -> Result<(), String> {
        let Some(found) = onto.group(group.head) else {
            // Gone on both sides; but what came in its place is another version of it.
            if onto.groups.iter().all(|other| self.base_section.group(other.head).is_some()) {
                return Ok(());
            }
            return Err(format!("{}, which {} changed too", self.lost(group), self.onto.side));
        };
        let texts = |group: &Group<'a>| group.items.iter().map(|item| item.text).collect::<Vec<_>>();
        if texts(found) != texts(group) {
            return Err(format!("{}, and {} changed what it heads", self.lost(group), self.onto.side));
        }
        let mut end = found.end();
        while end < onto.end && edits.line(end).is_some_and(blank) {
            end += 1;
        }
        let last = end == onto.end && onto.groups.last().is_some_and(|group| group.start == found.start);
        if last {
            return Err(self.lost(group));
        }
        edits.remove(found.start, end);
        Ok(())
    }

    /// A head of `from` that `onto` does not have: made there, unless `onto` took it out.
    fn missing(
        &self,
        group: &'g Group<'a>,
        known: bool,
        cut: bool,
        onto: &Section<'a>,
        edits: &mut Edits<'a>,
    ) -> Result<(), String> {
        let base_items = self.base_section.group(group.head).map(|group| group.items.as_slice());
        let all = gaps(base_items.unwrap_or_default(), &group.items)?;
        let added: Vec<Item<'a>> = all.iter().flat_map(|gap| gap.added.iter().copied()).collect();
        if known && all.is_empty() {
            return Ok(());
        }
        if known && !cut {
            return Err(format!("{} has no longer {:?}", self.onto.side, group.head.first().unwrap_or(&"")));
        }
        added.iter().try_for_each(|item| self.only_here(item))?;
        let block = self.block(group, &added);
        let place = self.from_section.groups.iter().position(|other| other.start == group.start).unwrap_or(0);
        let known = |other: &&Group<'a>| onto.group(other.head).is_some() && !other.head.is_empty();
        let heads = &self.from_section.groups;
        let before = heads.iter().take(place).rev().find(known).and_then(|other| onto.group(other.head));
        let after = heads.iter().skip(place + 1).find(known).and_then(|other| onto.group(other.head));
        if let (None, Some(after)) = (before, after) {
            edits.put(after.start, block.into_iter().chain([""]));
            return Ok(());
        }
        let first_end = onto.groups.first().map_or(onto.head_end, Group::end);
        let at = before.map_or(first_end, Group::end);
        edits.put(at, std::iter::once("").chain(block));
        if edits.line(at).is_some_and(|next| !blank(next)) {
            edits.put(at, [""]);
        }
        Ok(())
    }
}
