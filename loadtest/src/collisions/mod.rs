//! Generated collisions, each with its right answer by construction.
//!
//! A generator keeps a small model (entries under headings, a set of lines, names by module), lets
//! two sides change it, and writes all versions and the right answer with one printer. No rule is
//! asked. Kinds are named after the cases from the field that they come from.

mod changelog;
mod data;
mod imports;
mod lists;
mod version;

use fastrand::Rng;

/// What a merge of a case must give.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Right {
    /// One of these, byte for byte: where two additions meet, their order is free.
    Bytes(Vec<String>),
    /// A collision: nobody can tell.
    Collision,
}

/// Two changes of one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Case {
    /// The kind: a case from the field, and what happens.
    pub kind: &'static str,
    /// The rule that the path would have.
    pub rule: &'static str,
    /// The path.
    pub path: &'static str,
    /// The base.
    pub base: String,
    /// Main's file.
    pub ours: String,
    /// The change's file.
    pub theirs: String,
    /// The right answer.
    pub right: Right,
}

/// What an answer is worth.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// The right bytes, or a collision where that is right.
    Right,
    /// A collision where there is an answer: costs a replay.
    Left,
    /// Other bytes.
    Wrong,
}

impl Case {
    /// Judges an answer; `None` is a collision.
    #[must_use]
    pub fn judge(&self, answer: Option<&[u8]>) -> Verdict {
        match (&self.right, answer) {
            (Right::Collision, None) => Verdict::Right,
            (Right::Collision, Some(_)) => Verdict::Wrong,
            (Right::Bytes(_), None) => Verdict::Left,
            (Right::Bytes(all), Some(answer)) => {
                if all.iter().any(|right| right.as_bytes() == answer) {
                    Verdict::Right
                } else {
                    Verdict::Wrong
                }
            }
        }
    }

    /// Has the case an answer besides a collision?
    #[must_use]
    pub fn has_answer(&self) -> bool {
        matches!(self.right, Right::Bytes(_))
    }
}

/// Makes one case of one kind.
type Maker = fn(&mut Rng) -> Case;

/// At least `count` cases, equally many of each kind; the same for the same seed.
///
/// Versions where a side did nothing or both did the same are no collisions and left out.
#[must_use]
pub fn generate(seed: u64, count: usize) -> Vec<Case> {
    let makers: Vec<Maker> =
        [changelog::MAKERS, lists::MAKERS, imports::MAKERS, version::MAKERS, data::MAKERS].concat();
    let each = count.div_ceil(makers.len());
    let mut out = Vec::new();
    for (number, make) in makers.iter().enumerate() {
        let mut rng = Rng::with_seed(seed.wrapping_mul(1_000_003).wrapping_add(number as u64));
        let mut made = 0;
        while made < each {
            let case = make(&mut rng);
            if case.base != case.ours && case.base != case.theirs && case.ours != case.theirs {
                out.push(case);
                made += 1;
            }
        }
    }
    out
}

const SYLLABLES: [&str; 16] =
    ["ka", "lo", "mi", "ne", "pu", "ra", "so", "ti", "vu", "za", "be", "do", "fi", "go", "hu", "ja"];

/// A word that no other call of this generator gives: its number is a part of it.
fn word(rng: &mut Rng, number: &mut u32) -> String {
    *number += 1;
    let mut word: String = (0..2).map(|_| *rng.choice(SYLLABLES.iter()).unwrap_or(&"ka")).collect();
    let mut rest = *number;
    while rest > 0 {
        word.push_str(SYLLABLES.get((rest % 16) as usize).unwrap_or(&"ka"));
        rest /= 16;
    }
    word
}

/// The text with other line ends, in one of three cases.
fn line_ends(rng: &mut Rng, mut case: Case) -> Case {
    if rng.u8(..3) == 0 {
        let crlf = |text: &mut String| *text = text.replace('\n', "\r\n");
        [&mut case.base, &mut case.ours, &mut case.theirs].into_iter().for_each(crlf);
        if let Right::Bytes(all) = &mut case.right {
            all.iter_mut().for_each(crlf);
        }
    }
    case
}

/// The two sides swapped, in half of the cases.
fn sides(rng: &mut Rng, mut case: Case) -> Case {
    if rng.bool() {
        std::mem::swap(&mut case.ours, &mut case.theirs);
    }
    line_ends(rng, case)
}

#[cfg(test)]
mod tests;
