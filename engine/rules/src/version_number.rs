//! `version-number`: both sides bump the version, and the higher one by semver wins.
//!
//! The version's line is found by what the file is; the rest of the file is merged as lines.

use semver::Version;

use crate::Sides;
use crate::lines::{self, BASE, OURS, THEIRS};

/// Stands for the version's line in the merge of the rest.
const MARK: &str = "\u{0001}the version's line\u{0001}";

/// The line of the version: its index, and its parts around the number.
struct Found<'a> {
    index: usize,
    before: &'a str,
    number: &'a str,
    after: &'a str,
    side: &'static str,
}

/// The higher of two bumps, in the merged rest.
pub(crate) fn merge(sides: Sides<'_>) -> Result<Vec<u8>, String> {
    let three = lines::read(&sides)?;
    if three.base.is_empty() {
        return Err("both sides added the file, so there is no version that they bump".to_owned());
    }
    let file = sides.path.as_bytes().rsplit(|byte| *byte == b'/').next().unwrap_or_default();
    let file = String::from_utf8_lossy(file);
    let base = find(&file, &three.base, BASE)?;
    let ours = find(&file, &three.ours, OURS)?;
    let theirs = find(&file, &three.theirs, THEIRS)?;
    if [&ours, &theirs].into_iter().any(|found| (found.before, found.after) != (base.before, base.after)) {
        return Err("the version's line changed beside the number itself".to_owned());
    }
    let number = choose(&base, &ours, &theirs)?;
    let rest = |lines: &[&str], found: &Found<'_>| {
        let mut lines = lines.to_vec();
        if let Some(line) = lines.get_mut(found.index) {
            *line = MARK;
        }
        three.shape.write(&lines)
    };
    let (from, our, their) =
        (rest(&three.base, &base), rest(&three.ours, &ours), rest(&three.theirs, &theirs));
    let merged = if from == our {
        their
    } else if from == their || our == their {
        our
    } else {
        sides.text.merge(&from, &our, &their).map_err(|why| format!("besides the version, {why}"))?
    };
    let merged = String::from_utf8(merged).map_err(|_| "the merged file is not UTF-8".to_owned())?;
    if merged.matches(MARK).count() != 1 {
        return Err("the version's line moved".to_owned());
    }
    Ok(merged.replace(MARK, &format!("{}{number}{}", base.before, base.after)).into_bytes())
}

fn choose<'a>(base: &Found<'a>, ours: &Found<'a>, theirs: &Found<'a>) -> Result<&'a str, String> {
    if ours.number == theirs.number || theirs.number == base.number {
        return Ok(ours.number);
    }
    if ours.number == base.number {
        return Ok(theirs.number);
    }
    let (from, our, their) = (parse(base)?, parse(ours)?, parse(theirs)?);
    for (found, version) in [(ours, &our), (theirs, &their)] {
        if version.cmp_precedence(&from).is_le() {
            return Err(format!(
                "{} sets the version {} which is not above {}",
                place(found),
                found.number,
                base.number
            ));
        }
    }
    match our.cmp_precedence(&their) {
        std::cmp::Ordering::Greater => Ok(ours.number),
        std::cmp::Ordering::Less => Ok(theirs.number),
        std::cmp::Ordering::Equal => Err(format!(
            "{} and {} differ in build metadata alone, so neither is higher",
            ours.number, theirs.number
        )),
    }
}

fn place(found: &Found<'_>) -> String {
    format!("{}, line {},", found.side, found.index + 1)
}

fn parse(found: &Found<'_>) -> Result<Version, String> {
    let number = found.number;
    Version::parse(number).map_err(|bad| format!("{} has no semver version {number:?}: {bad}", place(found)))
}

/// The one line of a file that holds its version.
fn find<'a>(file: &str, lines: &[&'a str], side: &'static str) -> Result<Found<'a>, String> {
    let lower = file.to_ascii_lowercase();
    let wanted: Vec<usize> = match lower.rsplit_once('.') {
        _ if lower == "version" || lower == "version.txt" || lower == ".version" => (0..lines.len())
            .filter(|index| lines.get(*index).is_some_and(|line| !lines::blank(line)))
            .collect(),
        Some((_, "json")) => json(lines),
        Some((_, "toml")) => {
            in_tables(lines, &["[package]", "[workspace.package]", "[project]", "[tool.poetry]"])
        }
        Some((_, "cfg")) => in_tables(lines, &["[metadata]"]),
        Some((_, "py")) => by_key(lines, &["__version__", "VERSION", "version"]),
        _ => by_key(lines, &["version", "Version", "VERSION", "__version__"]),
    };
    let [index] = wanted.as_slice() else {
        let lines: Vec<String> = wanted.iter().take(4).map(|index| (index + 1).to_string()).collect();
        let found = if lines.is_empty() { "none".to_owned() } else { format!("lines {}", lines.join(", ")) };
        return Err(format!("{side} must have one line with the version, it has {found}"));
    };
    let line = lines.get(*index).copied().unwrap_or_default();
    let bad = || format!("{} holds no version number", lines::name(side, *index, line));
    // The number follows the key's sign; in a VERSION file it is the line.
    let key_end = line.find(['=', ':']).map_or(0, |at| at + 1);
    let rest = line.get(key_end..).unwrap_or_default();
    let start = key_end + rest.find(|c: char| c.is_ascii_digit()).ok_or_else(bad)?;
    let tail = line.get(start..).unwrap_or_default();
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '+');
    let end = start + tail.find(|c: char| !is_part(c)).unwrap_or(tail.len());
    let part = |from: usize, to: usize| line.get(from..to).unwrap_or_default();
    Ok(Found {
        index: *index,
        before: part(0, start),
        number: part(start, end),
        after: part(end, line.len()),
        side,
    })
}

/// Lines that set one of these keys at the start of the line.
fn by_key(lines: &[&str], keys: &[&str]) -> Vec<usize> {
    let sets = |line: &str| {
        keys.iter().any(|key| {
            let rest = line.strip_prefix(key).map(str::trim_start);
            rest.is_some_and(|rest| rest.starts_with(['=', ':']) && !rest.starts_with("=="))
        })
    };
    lines.iter().enumerate().filter(|(_, line)| sets(line)).map(|(index, _)| index).collect()
}

fn in_tables(lines: &[&str], tables: &[&str]) -> Vec<usize> {
    let mut inside = false;
    let mut out = Vec::new();
    for (index, line) in lines.iter().enumerate() {
        if line.trim_start().starts_with('[') {
            inside = tables.contains(&line.trim());
        } else if inside && !by_key(&[line], &["version"]).is_empty() {
            out.push(index);
        }
    }
    out
}

/// Lines with the key `version` of the outermost object.
fn json(lines: &[&str]) -> Vec<usize> {
    let mut depth = 0_i32;
    let mut out = Vec::new();
    for (index, line) in lines.iter().enumerate() {
        if depth == 1 && line.trim_start().starts_with("\"version\"") {
            out.push(index);
        }
        let (mut inside, mut escaped) = (false, false);
        for c in line.chars() {
            match c {
                _ if escaped => escaped = false,
                '\\' if inside => escaped = true,
                '"' => inside = !inside,
                '{' | '[' if !inside => depth += 1,
                '}' | ']' if !inside => depth -= 1,
                _ => {}
            }
        }
    }
    out
}

#[cfg(test)]
mod tests;
