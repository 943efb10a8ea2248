//! `union-exact`: both sides only added lines, and all of them are kept at their places.
//!
//! git's union driver keeps both sides of every conflict, so a line that both reworded stands twice
//! and a deleted one comes back. Here a removed line, and any doubt which line stands where, is a
//! collision. At one place main's lines come first. A line that both added there stands once.

use crate::Sides;
use crate::lines::{self, BASE, OURS, THEIRS, name};

/// Both sides' additions to the base.
pub(crate) fn merge(sides: Sides<'_>) -> Result<Vec<u8>, String> {
    let three = lines::read(&sides)?;
    let (base, ours, theirs) = (&three.base, &three.ours, &three.theirs);
    let mut results = Vec::new();
    // Where an added line equals its neighbour, it may stand before or after it: every reading counts.
    for our_gaps in readings(base, ours, OURS)? {
        for their_gaps in readings(base, theirs, THEIRS)? {
            results.push(join(base, &our_gaps, &their_gaps)?);
        }
    }
    results.dedup();
    match results.as_slice() {
        [only] => Ok(three.shape.write(only)),
        _ => {
            Err("an added line equals one that stood there, so its place can be read in two ways".to_owned())
        }
    }
}

/// The lines that a side added before each line of the base, and at the end.
type Gaps<'a> = Vec<Vec<&'a str>>;

/// The additions as the first and as the last fitting lines of the base give them.
fn readings<'a>(base: &[&'a str], side: &[&'a str], name_of: &str) -> Result<Vec<Gaps<'a>>, String> {
    let first = gaps(base, side, name_of)?;
    let reversed = |lines: &[&'a str]| lines.iter().rev().copied().collect::<Vec<_>>();
    let mut last = gaps(&reversed(base), &reversed(side), name_of)?;
    last.reverse();
    last.iter_mut().for_each(|gap| gap.reverse());
    Ok(if first == last { vec![first] } else { vec![first, last] })
}

fn gaps<'a>(base: &[&'a str], side: &[&'a str], name_of: &str) -> Result<Gaps<'a>, String> {
    let mut out: Gaps<'a> = vec![Vec::new()];
    let mut rest = base.iter().enumerate().peekable();
    for line in side {
        if rest.next_if(|(_, next)| *next == line).is_some() {
            out.push(Vec::new());
        } else if let Some(gap) = out.last_mut() {
            gap.push(line);
        }
    }
    match rest.next() {
        None => Ok(out),
        Some((index, line)) => Err(format!("{name_of} removed or moved {}", name(BASE, index, line))),
    }
}

fn join<'a>(base: &[&'a str], ours: &Gaps<'a>, theirs: &Gaps<'a>) -> Result<Vec<&'a str>, String> {
    for (at, gap) in theirs.iter().enumerate() {
        for line in gap.iter().filter(|line| speaks(line)) {
            let elsewhere = |(place, other): (usize, &Vec<&str>)| place != at && other.contains(line);
            if ours.iter().enumerate().any(elsewhere) {
                return Err(format!("main and the change both add {line:?}, at different places"));
            }
        }
    }
    let mut out = Vec::new();
    let nothing = Vec::new();
    for at in 0..=base.len() {
        let (our, their) = (ours.get(at).unwrap_or(&nothing), theirs.get(at).unwrap_or(&nothing));
        out.extend(gap(our, their)?);
        out.extend(base.get(at));
    }
    Ok(out)
}

/// Does the line say enough to know it again? A brace or a blank line does not.
fn speaks(line: &str) -> bool {
    line.chars().any(char::is_alphanumeric)
}

fn holds(long: &[&str], short: &[&str]) -> bool {
    short.is_empty() || long.windows(short.len()).any(|window| window == short)
}

/// What both added at one place: main's first, what both added once.
fn gap<'a>(ours: &[&'a str], theirs: &[&'a str]) -> Result<Vec<&'a str>, String> {
    if holds(ours, theirs) {
        return Ok(ours.to_vec());
    }
    if holds(theirs, ours) {
        return Ok(theirs.to_vec());
    }
    let shared: Vec<&&str> = theirs.iter().filter(|line| ours.contains(line)).collect();
    for line in shared.iter().copied() {
        let part = !speaks(line) || line.starts_with(char::is_whitespace);
        if part {
            return Err(format!(
                "main and the change both add {line:?} at one place, as a part of other lines"
            ));
        }
        let twice = |lines: &[&str]| lines.iter().filter(|other| *other == line).count() > 1;
        if twice(ours) || twice(theirs) {
            return Err(format!("a side adds {line:?} twice at one place"));
        }
    }
    let pairs = lines::common(ours, theirs).ok_or("the sides add too many lines at one place")?;
    if pairs.len() != shared.len() {
        return Err("main and the change add the same lines in another order".to_owned());
    }
    let mut out = Vec::new();
    let (mut our, mut their) = (0, 0);
    for (i, j) in pairs.into_iter().chain([(ours.len(), theirs.len())]) {
        out.extend_from_slice(lines::slice(ours, our, i));
        out.extend_from_slice(lines::slice(theirs, their, j));
        out.extend(ours.get(i));
        (our, their) = (i + 1, j + 1);
    }
    Ok(out)
}

#[cfg(test)]
mod tests;
