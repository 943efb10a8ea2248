//! The parts of a large file that a replay is about.

use std::ops::Range;

use crate::brief::BriefFile;
use crate::text::{Hunk, hunks, lines};

/// Lines shown around each part.
const AROUND: usize = 40;
/// Lines of the file's head shown: imports, headings.
const HEAD: usize = 20;

/// The ranges of the lines of a file's start that belong to the reviewed change's places, with what is around
/// them and the file's head; in order, apart from each other.
pub fn parts(file: &BriefFile) -> Vec<Range<usize>> {
    let (base, theirs) = (lines(file.base.as_deref().unwrap_or_default()), lines_of(file.theirs.as_deref()));
    let start = lines_of(file.start());
    let moved = hunks(&base, &start);
    let mut places = Vec::new();
    for hunk in hunks(&base, &theirs) {
        let (from, to) = (map(&moved, hunk.before.start), map(&moved, hunk.before.end));
        places.push(from.start.min(to.start)..to.end.max(from.end));
    }
    places.sort_by_key(|place| place.start);
    let around =
        |place: Range<usize>| place.start.saturating_sub(AROUND)..(place.end + AROUND).min(start.len());
    let mut wide = Vec::new();
    wide.push(0..HEAD.min(start.len()));
    for part in places.into_iter().map(around) {
        match wide.last_mut() {
            Some(Range { end, .. }) if part.start <= *end => *end = part.end.max(*end),
            _ => wide.push(part),
        }
    }
    wide
}

fn lines_of(bytes: Option<&[u8]>) -> Vec<&[u8]> {
    lines(bytes.unwrap_or_default())
}

/// Where a place of the base lies now: exactly, or anywhere in what replaced it.
fn map(moved: &[Hunk], at: usize) -> Range<usize> {
    let mut shift = (0, 0);
    for hunk in moved {
        if hunk.before.end < at {
            shift = (hunk.before.end, hunk.after.end);
        } else if hunk.before.start <= at {
            return hunk.after.clone();
        } else {
            break;
        }
    }
    let here = at - shift.0 + shift.1;
    here..here
}
