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
        (true, true) if ours.headings() != theirs.headings() => {
            return Err("main and the change both cut a release or changed release headings".to_owned());
        }
        (true, true) => return Err("main and the change both cut the same release".to_owned()),
        (false, true) => (&theirs, &ours),
        (_, false) => (&ours, &theirs),
    };
    Ok(three.shape.write(&carry::carry(&base, onto, from)?))
}

#[cfg(test)]
mod tests;
