//! `changelog`: entries under headings, as Keep a Changelog and its relatives write them.
//!
//! One side's change is read as entries added, removed and reworded under headings, and done anew on
//! the other side's file. A release that one side cut decides where things stand: an entry that the
//! other side added goes under the newest unreleased heading (made anew where the release left
//! none); removing or rewording what was released meanwhile is a collision. Two releases at once
//! are a collision, and so is prose that both changed.

mod carry;
mod items;
mod parse;

use crate::Sides;
use crate::lines::{self, BASE, OURS, THEIRS};
use parse::Log;

/// The other side's entries in the file of the side that moved headings.
pub(crate) fn merge(sides: Sides<'_>) -> Result<Vec<u8>, String> {
    let three = lines::read(&sides)?;
    let base = Log::parse(&three.base, BASE)?;
    let ours = Log::parse(&three.ours, OURS)?;
    let theirs = Log::parse(&three.theirs, THEIRS)?;
    let (onto, from) = match (ours.headings() != base.headings(), theirs.headings() != base.headings()) {
        (true, true) if holds(&base, &ours, &theirs) => return Ok(sides.ours.to_owned()),
        (true, true) if ours.headings() != theirs.headings() => {
            return Err("main and the change both cut a release or changed release headings".to_owned());
        }
        (true, true) => return Err("main and the change both cut the same release".to_owned()),
        (false, true) => (&theirs, &ours),
        (_, false) => (&ours, &theirs),
    };
    Ok(three.shape.write(&carry::carry(&base, onto, from)?))
}

/// Does ours hold all that theirs did?
fn holds(base: &Log<'_>, ours: &Log<'_>, theirs: &Log<'_>) -> bool {
    let stands = theirs.sections.iter().all(|section| {
        let Some(our) = ours.section(section.title) else { return false };
        let head = |log: &Log<'_>, section: &parse::Section<'_>| {
            lines::slice(log.lines, section.start, section.head_end).join("\n")
        };
        if head(ours, our) != head(theirs, section) {
            return false;
        }
        section.groups.iter().all(|group| {
            let items = our.group(group.head).map(|group| group.items.as_slice());
            let found = |text: &[&str]| items.is_some_and(|items| items.iter().any(|item| item.text == text));
            (group.items.is_empty() || items.is_some()) && group.items.iter().all(|item| found(item.text))
        })
    });
    let mut was = base.sections.iter().flat_map(|section| &section.groups).flat_map(|group| &group.items);
    let gone = was.all(|item| theirs.count(item.text) > 0 || ours.count(item.text) == 0);
    stands && gone && ours.preamble() == theirs.preamble()
}

#[cfg(test)]
mod tests;
