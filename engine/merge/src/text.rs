//! The three-way merge of one text, as git's `xdl_merge` makes it at level "zealous".
//!
//! Both sides are compared with the base line by line; changes that overlap or touch are a conflict,
//! unless both sides made the very same one. Sliders are placed without the indent heuristic, as git's
//! merge does it (its `diff` does otherwise). Verified against git by `tests/oracle.rs`.

mod backwards;

use gix_imara_diff::{Algorithm, Diff, InternedInput};
use yard_rules::LineMerge;

/// git looks for a NUL in this many first bytes to call a file binary.
const BINARY_PROBE_BYTES: usize = 8_000;

/// What became of the merge of one text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TextMerge {
    /// The merged bytes, the same under histogram and Myers.
    Clean(Vec<u8>),
    /// Both sides changed the same or touching lines.
    Conflict,
    /// Clean under one diff algorithm, and a conflict or other bytes under another.
    Ambiguous,
    /// At least one of the three is binary.
    Binary,
}

/// Does git take these bytes for binary?
#[must_use]
pub fn is_binary(bytes: &[u8]) -> bool {
    bytes.iter().take(BINARY_PROBE_BYTES).any(|byte| *byte == 0)
}

/// Merges the changes base -> ours and base -> theirs.
///
/// Histogram, Myers and the histogram read from the end must all merge clean, with the same bytes:
/// else the pairing of repeated lines decides (an entry goes below one heading or below the next).
#[must_use]
pub fn merge(base: &[u8], ours: &[u8], theirs: &[u8]) -> TextMerge {
    if [base, ours, theirs].into_iter().any(is_binary) {
        return TextMerge::Binary;
    }
    let three = [base, ours, theirs].map(lines);
    let Some(merged) = merge_with(Algorithm::Histogram, &three) else { return TextMerge::Conflict };
    if merge_with(Algorithm::Myers, &three).is_none_or(|myers| myers != merged) {
        return TextMerge::Ambiguous;
    }
    let [base, ours, theirs] = &three;
    let backwards = merge_scripts(&three, &backwards::script(base, ours), &backwards::script(base, theirs));
    if backwards.is_none_or(|other| other != merged) {
        return TextMerge::Ambiguous;
    }
    TextMerge::Clean(merged.concat())
}

/// [`merge`] for a rule that leaves a part of its file to the lines.
#[derive(Debug, Clone, Copy, Default)]
pub struct Guarded;

impl LineMerge for Guarded {
    fn merge(&self, base: &[u8], ours: &[u8], theirs: &[u8]) -> Result<Vec<u8>, String> {
        match merge(base, ours, theirs) {
            TextMerge::Clean(bytes) => Ok(bytes),
            TextMerge::Conflict => Err("main and the change both changed the same lines".to_owned()),
            TextMerge::Ambiguous => {
                Err("how main's and the change's lines fit together depends on the diff algorithm".to_owned())
            }
            TextMerge::Binary => Err("a version of the file is binary".to_owned()),
        }
    }
}

/// One run of lines that a side changed: `base` lines replaced by `side` lines.
#[derive(Debug, Clone, Copy)]
struct Change {
    base: usize,
    base_len: usize,
    side: usize,
    side_len: usize,
}

impl Change {
    fn base_end(&self) -> usize {
        self.base + self.base_len
    }
    fn side_end(&self) -> usize {
        self.side + self.side_len
    }
}

fn script(algorithm: Algorithm, base: &[&[u8]], side: &[&[u8]]) -> Vec<Change> {
    let mut input = InternedInput::default();
    input.update_before(base.iter().copied());
    input.update_after(side.iter().copied());
    let mut diff = Diff::compute(algorithm, &input);
    diff.postprocess_no_heuristic(&input);
    let at = |line: u32| line as usize;
    diff.hunks()
        .map(|hunk| Change {
            base: at(hunk.before.start),
            base_len: hunk.before.len(),
            side: at(hunk.after.start),
            side_len: hunk.after.len(),
        })
        .collect()
}

/// Whose lines a region of the result takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Take {
    Ours,
    Theirs,
    Conflict,
}

/// A region where the result is not simply the common text, in lines of ours and of theirs.
#[derive(Debug, Clone, Copy)]
struct Region {
    take: Take,
    ours: usize,
    ours_len: usize,
    theirs: usize,
    theirs_len: usize,
}

/// Adds a region; one that touches the last in either side's lines becomes one with it.
fn push(regions: &mut Vec<Region>, next: Region) {
    if let Some(last) = regions.last_mut()
        && (next.ours <= last.ours + last.ours_len || next.theirs <= last.theirs + last.theirs_len)
    {
        if next.take != last.take {
            last.take = Take::Conflict;
        }
        last.ours_len = (next.ours + next.ours_len).saturating_sub(last.ours);
        last.theirs_len = (next.theirs + next.theirs_len).saturating_sub(last.theirs);
        return;
    }
    regions.push(next);
}

/// The region of two overlapping changes: both extended to the same lines of the base.
fn overlap(ours: &Change, theirs: &Change) -> Region {
    let start = ours.base.min(theirs.base);
    let end = ours.base_end().max(theirs.base_end());
    let from_ours = ours.side.saturating_sub(ours.base - start);
    let from_theirs = theirs.side.saturating_sub(theirs.base - start);
    Region {
        take: Take::Conflict,
        ours: from_ours,
        ours_len: ours.side_end() + (end - ours.base_end()) - from_ours,
        theirs: from_theirs,
        theirs_len: theirs.side_end() + (end - theirs.base_end()) - from_theirs,
    }
}

/// `line` of the base as a line of the other side, given how far that side has shifted so far.
fn shifted(line: usize, shift: isize) -> usize {
    line.saturating_add_signed(shift)
}

/// Lines that a side has gained before a change of it.
fn shift_before(change: &Change) -> isize {
    change.side.wrapping_sub(change.base).cast_signed()
}

fn shift_after(changes: &[Change]) -> isize {
    changes.last().map_or(0, |last| last.side_end().wrapping_sub(last.base_end()).cast_signed())
}

fn regions(ours: &[Change], theirs: &[Change], same: impl Fn(&Change, &Change) -> bool) -> Vec<Region> {
    let mut out = Vec::new();
    let (mut our_rest, mut their_rest) = (ours.iter().peekable(), theirs.iter().peekable());
    let take_ours = |change: &Change, shift: isize| Region {
        take: Take::Ours,
        ours: change.side,
        ours_len: change.side_len,
        theirs: shifted(change.base, shift),
        theirs_len: change.base_len,
    };
    let take_theirs = |change: &Change, shift: isize| Region {
        take: Take::Theirs,
        ours: shifted(change.base, shift),
        ours_len: change.base_len,
        theirs: change.side,
        theirs_len: change.side_len,
    };
    while let (Some(our), Some(their)) = (our_rest.peek().copied(), their_rest.peek().copied()) {
        if our.base_end() < their.base {
            push(&mut out, take_ours(our, shift_before(their)));
            our_rest.next();
            continue;
        }
        if their.base_end() < our.base {
            push(&mut out, take_theirs(their, shift_before(our)));
            their_rest.next();
            continue;
        }
        if !same(our, their) {
            push(&mut out, overlap(our, their));
        }
        let (our_end, their_end) = (our.base_end(), their.base_end());
        if our_end >= their_end {
            their_rest.next();
        }
        if their_end >= our_end {
            our_rest.next();
        }
    }
    for change in our_rest {
        push(&mut out, take_ours(change, shift_after(theirs)));
    }
    for change in their_rest {
        push(&mut out, take_theirs(change, shift_after(ours)));
    }
    out
}

fn lines(bytes: &[u8]) -> Vec<&[u8]> {
    bytes.split_inclusive(|byte| *byte == b'\n').collect()
}

fn slice<'a, 'b>(lines: &'a [&'b [u8]], from: usize, len: usize) -> &'a [&'b [u8]] {
    lines.get(from..from.saturating_add(len)).unwrap_or_default()
}

/// The merged lines under one algorithm, `None` on a conflict.
fn merge_with<'a>(algorithm: Algorithm, three: &[Vec<&'a [u8]>; 3]) -> Option<Vec<&'a [u8]>> {
    let [base, ours, theirs] = three;
    merge_scripts(three, &script(algorithm, base, ours), &script(algorithm, base, theirs))
}

/// The merged lines, `None` on a conflict.
fn merge_scripts<'a>(
    [_, ours, theirs]: &[Vec<&'a [u8]>; 3],
    our_script: &[Change],
    their_script: &[Change],
) -> Option<Vec<&'a [u8]>> {
    if our_script.is_empty() {
        return Some(theirs.clone());
    }
    if their_script.is_empty() {
        return Some(ours.clone());
    }
    let same = |our: &Change, their: &Change| {
        our.base == their.base
            && our.base_len == their.base_len
            && our.side_len == their.side_len
            && slice(ours, our.side, our.side_len) == slice(theirs, their.side, their.side_len)
    };
    let mut out = Vec::with_capacity(ours.len() + theirs.len() / 4);
    let mut done = 0;
    for region in regions(our_script, their_script, same) {
        let our_part = slice(ours, region.ours, region.ours_len);
        let their_part = slice(theirs, region.theirs, region.theirs_len);
        let part = match region.take {
            Take::Ours => our_part,
            Take::Theirs => their_part,
            // git refines a conflict: the same lines on both sides are none, unless one is empty.
            Take::Conflict if !our_part.is_empty() && our_part == their_part => our_part,
            Take::Conflict => return None,
        };
        out.extend_from_slice(slice(ours, done, region.ours.saturating_sub(done)));
        out.extend_from_slice(part);
        done = region.ours + region.ours_len;
    }
    out.extend_from_slice(ours.get(done..).unwrap_or_default());
    Some(out)
}

#[cfg(test)]
mod tests;
