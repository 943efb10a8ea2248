//! The line diff read from the end of the file, with its runs placed as git places them.
//!
//! Where lines repeat, a diff pairs them by its own habits. Pairing from the end shows whether that
//! matters: after the placement both readings are the same unless the pairing itself differs.

use gix_imara_diff::{Algorithm, Diff, InternedInput};

use super::Change;

/// The changes base -> side as a histogram diff from the last line to the first finds them.
pub(super) fn script(base: &[&[u8]], side: &[&[u8]]) -> Vec<Change> {
    let mut input = InternedInput::default();
    input.update_before(base.iter().rev().copied());
    input.update_after(side.iter().rev().copied());
    let diff = Diff::compute(Algorithm::Histogram, &input);
    let flags = |len: usize, is: &dyn Fn(u32) -> bool| -> Vec<bool> {
        (0..len).rev().map(|line| u32::try_from(line).is_ok_and(is)).collect()
    };
    let mut removed = flags(base.len(), &|line| diff.is_removed(line));
    let mut added = flags(side.len(), &|line| diff.is_added(line));
    place(base, &mut removed, &added);
    place(side, &mut added, &removed);
    changes(&removed, &added)
}

/// A run of changed lines, empty between two unchanged ones.
#[derive(Clone, Copy)]
struct Run {
    start: usize,
    end: usize,
}

fn is(changed: &[bool], line: usize) -> bool {
    changed.get(line).copied().unwrap_or(false)
}

fn set(changed: &mut [bool], line: usize, to: bool) {
    if let Some(flag) = changed.get_mut(line) {
        *flag = to;
    }
}

impl Run {
    fn first(changed: &[bool]) -> Self {
        let end = (0..changed.len()).find(|line| !is(changed, *line)).unwrap_or(changed.len());
        Self { start: 0, end }
    }

    fn is_empty(self) -> bool {
        self.start == self.end
    }

    /// The run after the next unchanged line, `None` when there is no such line.
    fn next(self, changed: &[bool]) -> Option<Self> {
        if self.end >= changed.len() {
            return None;
        }
        let start = self.end + 1;
        let end = (start..changed.len()).find(|line| !is(changed, *line)).unwrap_or(changed.len());
        Some(Self { start, end })
    }

    fn previous(self, changed: &[bool]) -> Self {
        let end = self.start.saturating_sub(1);
        let start = (0..end).rev().find(|line| !is(changed, *line)).map_or(0, |line| line + 1);
        Self { start, end }
    }

    /// Moves one line up and takes in a run that it meets; false when the lines do not allow it.
    fn up(&mut self, lines: &[&[u8]], changed: &mut [bool]) -> bool {
        if self.start == 0 || lines.get(self.start - 1) != lines.get(self.end - 1) {
            return false;
        }
        set(changed, self.start - 1, true);
        set(changed, self.end - 1, false);
        self.end -= 1;
        self.start = (0..self.start - 1).rev().find(|line| !is(changed, *line)).map_or(0, |line| line + 1);
        true
    }

    /// As [`Run::up`], one line down.
    fn down(&mut self, lines: &[&[u8]], changed: &mut [bool]) -> bool {
        if self.end >= lines.len() || lines.get(self.start) != lines.get(self.end) {
            return false;
        }
        set(changed, self.start, false);
        set(changed, self.end, true);
        self.start += 1;
        self.end = (self.end + 1..lines.len()).find(|line| !is(changed, *line)).unwrap_or(lines.len());
        true
    }
}

/// Slides every run as far down as it goes, or to the last place beside a run of the other file
/// (git's `xdl_change_compact` without the indent heuristic).
fn place(lines: &[&[u8]], changed: &mut [bool], other: &[bool]) {
    let (mut run, mut beside) = (Run::first(changed), Run::first(other));
    loop {
        if !run.is_empty() {
            let mut matched;
            let earliest = loop {
                let len = run.end - run.start;
                while run.up(lines, changed) {
                    beside = beside.previous(other);
                }
                let earliest = run.end;
                matched = !beside.is_empty();
                while run.down(lines, changed) {
                    beside = beside.next(other).unwrap_or(beside);
                    matched |= !beside.is_empty();
                }
                if len == run.end - run.start {
                    break earliest;
                }
            };
            while matched && run.end > earliest && beside.is_empty() && run.up(lines, changed) {
                beside = beside.previous(other);
            }
        }
        let (Some(next), Some(next_beside)) = (run.next(changed), beside.next(other)) else { return };
        (run, beside) = (next, next_beside);
    }
}

fn changes(removed: &[bool], added: &[bool]) -> Vec<Change> {
    let mut out = Vec::new();
    let (mut base, mut side) = (Some(Run::first(removed)), Some(Run::first(added)));
    while let (Some(was), Some(is)) = (base, side) {
        if !was.is_empty() || !is.is_empty() {
            out.push(Change {
                base: was.start,
                base_len: was.end - was.start,
                side: is.start,
                side_len: is.end - is.start,
            });
        }
        (base, side) = (was.next(removed), is.next(added));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The same placement as the diff library's own, from the same flags.
    #[test]
    fn runs_are_placed_as_the_diff_library_places_them() {
        let words: [&[u8]; 5] = [b"{\n", b"}\n", b"\n", b"a\n", b"b\n"];
        let mut state = 3_u64;
        let mut next = |n: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            usize::try_from(state >> 33).unwrap() % n
        };
        for _ in 0..5_000 {
            let mut text = |n: usize| (0..n).map(|_| words[next(5)]).collect::<Vec<_>>();
            let (base, side) = (text(14), text(15));
            let mut input = InternedInput::default();
            input.update_before(base.iter().copied());
            input.update_after(side.iter().copied());
            let mut diff = Diff::compute(Algorithm::Histogram, &input);
            let mut removed: Vec<_> = (0..14).map(|line| diff.is_removed(line)).collect();
            let mut added: Vec<_> = (0..15).map(|line| diff.is_added(line)).collect();
            diff.postprocess_no_heuristic(&input);
            place(&base, &mut removed, &added);
            place(&side, &mut added, &removed);
            let hunks: Vec<_> =
                diff.hunks().map(|h| (h.before.start, h.before.end, h.after.start, h.after.end)).collect();
            let ours: Vec<_> = changes(&removed, &added)
                .into_iter()
                .map(|c| (c.base as u32, c.base_end() as u32, c.side as u32, c.side_end() as u32))
                .collect();
            assert_eq!(ours, hunks);
        }
    }
}
