//! Is the replayed change the one that was reviewed? Both differences beside each other, line by line.
//!
//! As `git range-diff` compares two versions of a patch, this compares the lines that the reviewed change takes
//! away and adds (base -> theirs) with those of the replay (main -> result). A line number is no difference, but
//! the lines that a line stands below are: its function, its block, its section ([`place`]).
//! In the text, `<` marks a line of the reviewed change alone, `>` one of the replay alone:
//!
//! ```text
//! src/harbour.py
//! @@ reviewed from line 12, replayed from line 15 @@
//!   -limit = 10
//! < +limit = 20
//! > +limit = scale(20)
//! ```

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use yard_common::RepoPath;

use crate::answer::ResultFile;
use crate::brief::BriefFile;
use crate::limits::{PROOF_BYTES_MAX, PROOF_FILE_BYTES_MAX};
use crate::text::{cut, hunks, lines, readable};
use place::Places;

mod place;

/// Common lines shown around a difference.
const CONTEXT: usize = 3;

/// Lines of both differences, by how they compare.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Counts {
    /// In both.
    pub same: u64,
    /// Of the reviewed change, with another in its place.
    pub changed: u64,
    /// Of the replay alone.
    pub new: u64,
    /// Of the reviewed change alone.
    pub dropped: u64,
    /// In both, but below other lines: in another function, block or section.
    #[serde(default)]
    pub elsewhere: u64,
}

impl Counts {
    /// Lines that differ.
    #[must_use]
    pub fn differ(&self) -> u64 {
        self.changed + self.new + self.dropped + self.elsewhere
    }

    fn plus(self, other: Self) -> Self {
        Self {
            same: self.same + other.same,
            changed: self.changed + other.changed,
            new: self.new + other.new,
            dropped: self.dropped + other.dropped,
            elsewhere: self.elsewhere + other.elsewhere,
        }
    }
}

/// One reviewed path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileProof {
    /// The path in the reviewed version.
    pub reviewed: RepoPath,
    /// The path on main.
    pub path: RepoPath,
    /// The lines.
    pub counts: Counts,
    /// What no line shows: a file kept that was to go, a binary one that differs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// The difference of the differences; empty where there is none.
    pub text: String,
}

/// The comparison of a whole change; its text is at most [`PROOF_BYTES_MAX`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Proof {
    /// The files, in path order.
    pub files: Vec<FileProof>,
    /// The sum.
    pub counts: Counts,
    /// One sentence.
    pub verdict: String,
}

impl Proof {
    /// Is there anything for a second review?
    #[must_use]
    pub fn differs(&self) -> bool {
        self.counts.differ() > 0 || self.files.iter().any(|file| file.note.is_some())
    }

    /// What `yard show` prints: the verdict, then each file that differs.
    #[must_use]
    pub fn text(&self) -> String {
        let mut out = format!("{}\n", self.verdict);
        for file in self.files.iter().filter(|file| file.note.is_some() || !file.text.is_empty()) {
            let renamed = if file.path == file.reviewed {
                String::new()
            } else {
                format!(" (reviewed as {})", file.reviewed)
            };
            out.push_str(&format!("\n{}{renamed}\n", file.path));
            if let Some(note) = &file.note {
                out.push_str(&format!("{note}\n"));
            }
            out.push_str(&file.text);
        }
        out
    }
}

/// Compares a replay with what was reviewed.
#[must_use]
pub fn of(files: &[BriefFile], replayed: &[ResultFile]) -> Proof {
    let results: BTreeMap<&RepoPath, Option<&[u8]>> =
        replayed.iter().map(|result| (&result.path, result.content.as_deref())).collect();
    let mut proofs: Vec<FileProof> = files
        .iter()
        .map(|file| {
            let result = results.get(&file.path).copied().unwrap_or(file.main.as_deref());
            one(file, result)
        })
        .collect();
    proofs.sort_by(|a, b| a.path.cmp(&b.path));
    let counts = proofs.iter().fold(Counts::default(), |sum, file| sum.plus(file.counts));
    bound(&mut proofs);
    let moved = files.iter().any(|file| file.base != file.main || file.path != file.reviewed);
    let noted = proofs.iter().filter(|file| file.note.is_some()).count();
    Proof { verdict: verdict(counts, noted, moved), files: proofs, counts }
}

fn verdict(counts: Counts, noted: usize, moved: bool) -> String {
    let lines = |count: u64| if count == 1 { "1 line".to_owned() } else { format!("{count} lines") };
    let mut sentence = if counts.differ() == 0 {
        let how = if moved { "the same change, moved" } else { "the same change" };
        format!("{how}: all {} as reviewed", lines(counts.same))
    } else {
        let parts = [
            (counts.changed, "changed"),
            (counts.new, "new"),
            (counts.dropped, "dropped"),
            (counts.elsewhere, "in another place"),
        ];
        let parts: Vec<String> = parts
            .iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, what)| format!("{count} {what}"))
            .collect();
        format!(
            "{} {} from the reviewed change: {}; {} as reviewed",
            lines(counts.differ()),
            if counts.differ() == 1 { "differs" } else { "differ" },
            parts.join(", "),
            lines(counts.same)
        )
    };
    if noted > 0 {
        let files = if noted == 1 { "1 file" } else { &format!("{noted} files") };
        sentence.push_str(&format!("; {files} with a difference that no line shows"));
    }
    sentence
}

/// One line that a change takes away or adds, and where: in the old text, or in the new.
struct Signed {
    text: Vec<u8>,
    at: usize,
    /// The lines that it stands below, outermost first.
    place: String,
}

fn patch(path: &RepoPath, before: &[u8], after: &[u8]) -> Vec<Signed> {
    let places = [Places::of(path, before), Places::of(path, after)];
    let (before, after) = (lines(before), lines(after));
    let mut out = Vec::new();
    for hunk in hunks(&before, &after) {
        let sides = [(b'-', &before, hunk.before), (b'+', &after, hunk.after)];
        for ((sign, all, range), places) in sides.into_iter().zip(&places) {
            for (offset, line) in all.get(range.clone()).unwrap_or_default().iter().enumerate() {
                let mut text = vec![sign];
                text.extend_from_slice(line);
                let place = places.at(range.start + offset);
                out.push(Signed { text, at: range.start + offset + 1, place });
            }
        }
    }
    out
}

fn one(file: &BriefFile, result: Option<&[u8]>) -> FileProof {
    let sides = [file.base.as_deref(), file.theirs.as_deref(), file.main.as_deref(), result];
    let mut proof = FileProof {
        reviewed: file.reviewed.clone(),
        path: file.path.clone(),
        counts: Counts::default(),
        note: presence(file, result),
        text: String::new(),
    };
    if file.special || sides.iter().flatten().any(|bytes| readable(bytes).is_none()) {
        if result != file.theirs.as_deref() && proof.note.is_none() {
            proof.note = Some("this is no text, and it is not what was reviewed".to_owned());
        }
        return proof;
    }
    let [base, theirs, main, result] = sides.map(Option::unwrap_or_default);
    let (reviewed, replayed) = (patch(&file.reviewed, base, theirs), patch(&file.path, main, result));
    compare(&reviewed, &replayed, &mut proof);
    compare_places(&reviewed, &replayed, &mut proof);
    proof
}

/// A file that is there or not, where the review saw the other.
fn presence(file: &BriefFile, result: Option<&[u8]>) -> Option<String> {
    let note = match (&file.theirs, result) {
        (Some(_), None) => "the reviewed change has this file, and the replay has not",
        (None, Some(_)) => "the reviewed change deletes this file, and the replay keeps it",
        _ => return None,
    };
    Some(note.to_owned())
}

fn compare(reviewed: &[Signed], replayed: &[Signed], proof: &mut FileProof) {
    let a: Vec<&[u8]> = reviewed.iter().map(|line| line.text.as_slice()).collect();
    let b: Vec<&[u8]> = replayed.iter().map(|line| line.text.as_slice()).collect();
    let all = hunks(&a, &b);
    // A line that only stands elsewhere is the same: the places where it is missing and new meet here.
    let mut balance: BTreeMap<&[u8], (u64, u64)> = BTreeMap::new();
    for hunk in &all {
        for line in a.get(hunk.before.clone()).unwrap_or_default() {
            balance.entry(line).or_default().0 += 1;
        }
        for line in b.get(hunk.after.clone()).unwrap_or_default() {
            balance.entry(line).or_default().1 += 1;
        }
    }
    let moved: BTreeMap<&[u8], u64> = balance.into_iter().map(|(line, (x, y))| (line, x.min(y))).collect();
    let (mut moved_a, mut moved_b) = (moved.clone(), moved);
    let differing: usize = all.iter().map(|hunk| hunk.before.len()).sum();
    let mut counts = Counts { same: (a.len() - differing) as u64, ..Counts::default() };
    let mut at = 0;
    for hunk in &all {
        let old = alone(&a, &hunk.before, &mut moved_a);
        let new = alone(&b, &hunk.after, &mut moved_b);
        counts.same += (hunk.before.len() - old.len()) as u64;
        for sign in [b'-', b'+'] {
            let of = |lines: &[&[u8]]| lines.iter().filter(|line| line.first() == Some(&sign)).count() as u64;
            let (x, y) = (of(&old), of(&new));
            counts.changed += x.min(y);
            counts.dropped += x - x.min(y);
            counts.new += y - x.min(y);
        }
        if old.is_empty() && new.is_empty() {
            continue;
        }
        let lead = hunk.before.start.saturating_sub(CONTEXT).max(at);
        let place = |all: &[Signed], at: usize| all.get(at).or(all.last()).map_or(0, |line| line.at);
        proof.text.push_str(&format!(
            "@@ reviewed from line {}, replayed from line {} @@\n",
            place(reviewed, lead),
            place(replayed, hunk.after.start - (hunk.before.start - lead))
        ));
        show(&mut proof.text, "  ", a.get(lead..hunk.before.start).unwrap_or_default());
        show(&mut proof.text, "< ", &old);
        show(&mut proof.text, "> ", &new);
        let next = all.iter().find(|next| next.before.start > hunk.before.start);
        let end = (hunk.before.end + CONTEXT).min(next.map_or(a.len(), |next| next.before.start));
        show(&mut proof.text, "  ", a.get(hunk.before.end..end).unwrap_or_default());
        at = end;
    }
    proof.counts = counts;
}

/// Lines that both have, but not below the same lines.
fn compare_places(reviewed: &[Signed], replayed: &[Signed], proof: &mut FileProof) {
    let mut lines: BTreeMap<&[u8], [BTreeMap<&str, u64>; 2]> = BTreeMap::new();
    for (side, all) in [reviewed, replayed].into_iter().enumerate() {
        for line in all {
            if let Some(places) = lines.entry(&line.text).or_default().get_mut(side) {
                *places.entry(&line.place).or_default() += 1;
            }
        }
    }
    for (text, [there, here]) in lines {
        let left = |mine: &BTreeMap<&str, u64>, other: &BTreeMap<&str, u64>| -> Vec<String> {
            let left = mine.iter().flat_map(|(place, count)| {
                let more = count.saturating_sub(other.get(place).copied().unwrap_or(0));
                std::iter::repeat_n((*place).to_owned(), usize::try_from(more).unwrap_or(0))
            });
            left.collect()
        };
        for (was, is) in left(&there, &here).into_iter().zip(left(&here, &there)) {
            proof.counts.elsewhere += 1;
            proof.counts.same = proof.counts.same.saturating_sub(1);
            let named =
                |place: &str| if place.is_empty() { "the top".to_owned() } else { format!("{place:?}") };
            proof.text.push_str(&format!(
                "@@ reviewed below {}, replayed below {} @@\n",
                named(&was),
                named(&is)
            ));
            show(&mut proof.text, "> ", &[text]);
        }
    }
}

/// The lines of a hunk that are not found elsewhere on the other side.
fn alone<'a>(
    all: &[&'a [u8]],
    range: &std::ops::Range<usize>,
    moved: &mut BTreeMap<&'a [u8], u64>,
) -> Vec<&'a [u8]> {
    let is_alone = |line: &&&'a [u8]| match moved.get_mut(**line) {
        Some(left) if *left > 0 => {
            *left -= 1;
            false
        }
        _ => true,
    };
    all.get(range.clone()).unwrap_or_default().iter().filter(is_alone).copied().collect()
}

fn show(out: &mut String, mark: &str, lines: &[&[u8]]) {
    for line in lines {
        out.push_str(mark);
        // A terminal obeys control characters.
        out.extend(String::from_utf8_lossy(line).chars().map(|c| match c {
            '\t' => c,
            c if c.is_control() => '\u{fffd}',
            c => c,
        }));
        out.push('\n');
    }
}

/// Cuts the texts to their limits and says so.
fn bound(files: &mut [FileProof]) {
    let mut left = PROOF_BYTES_MAX / 2;
    for file in files {
        let most = left.min(PROOF_FILE_BYTES_MAX);
        if file.text.len() > most {
            let all = file.text.lines().count();
            let short = cut(&file.text, most);
            let short = short.rfind('\n').map_or("", |end| short.get(..=end).unwrap_or_default()).to_owned();
            let rest = all - short.lines().count();
            file.text = format!("{short}({rest} further lines of this comparison are not shown)\n");
        }
        left = left.saturating_sub(file.text.len());
    }
}

#[cfg(test)]
mod tests;
