//! `sorted-lines`: a file as a set of lines in byte order.

use crate::Sides;

/// A file as a set of lines, and whether its last line ends in a newline (`None`: it has no line).
struct Lines<'a> {
    /// In byte order, each once.
    set: Vec<&'a [u8]>,
    ended: Option<bool>,
    /// Has it a line that ends in a carriage return, has it one that does not?
    returns: (bool, bool),
}

fn read<'a>(bytes: &'a [u8], side: &str) -> Result<Lines<'a>, String> {
    if bytes.is_empty() {
        return Ok(Lines { set: Vec::new(), ended: None, returns: (false, false) });
    }
    let (body, ended) = match bytes.strip_suffix(b"\n") {
        Some(body) => (body, true),
        None => (bytes, false),
    };
    let mut set = Vec::new();
    let mut last: Option<&[u8]> = None;
    for (number, line) in body.split(|byte| *byte == b'\n').enumerate() {
        if let Some(last) = last
            && last >= line
        {
            let fault = if last == line { "stands there twice" } else { "is not in byte order" };
            let line = String::from_utf8_lossy(line).chars().take(60).collect::<String>();
            return Err(format!("{side} is no sorted set of lines: line {} ({line:?}) {fault}", number + 1));
        }
        set.push(line);
        last = Some(line);
    }
    let returns = set
        .iter()
        .map(|line| line.ends_with(b"\r"))
        .fold((false, false), |(with, without), one| (with || one, without || !one));
    Ok(Lines { set, ended: Some(ended), returns })
}

/// The lines of one set that another has not.
fn without<'a>(set: &[&'a [u8]], other: &[&'a [u8]]) -> Vec<&'a [u8]> {
    set.iter().filter(|line| other.binary_search(line).is_err()).copied().collect()
}

/// The set that ours is, with the lines that theirs added and without those that it removed.
///
/// A file that is absent is an empty one.
pub(crate) fn merge(sides: Sides<'_>) -> Result<Vec<u8>, String> {
    let base = read(sides.base.unwrap_or_default(), "the change's base")?;
    let ours = read(sides.ours, "main's file")?;
    let theirs = read(sides.theirs, "the change's file")?;
    let mut ends: Vec<bool> = [base.ended, ours.ended, theirs.ended].into_iter().flatten().collect();
    ends.dedup();
    if ends.len() > 1 {
        return Err("some versions of the file end in a newline and some do not".to_owned());
    }
    let all = [base.returns, ours.returns, theirs.returns];
    if all.iter().any(|(with, _)| *with) && all.iter().any(|(_, without)| *without) {
        // A line would be another one with and without it: a removal would miss, an addition stand twice.
        return Err("some lines of the file's versions end in CRLF and some do not".to_owned());
    }
    let mut lines = ours.set;
    for new in without(&theirs.set, &base.set) {
        if let Err(at) = lines.binary_search(&new) {
            lines.insert(at, new);
        }
    }
    for gone in without(&base.set, &theirs.set) {
        if let Ok(at) = lines.binary_search(&gone) {
            lines.remove(at);
        }
    }
    let ended = ends.first().copied().unwrap_or(true);
    let mut out = lines.join(&b'\n');
    if ended && !lines.is_empty() {
        out.push(b'\n');
    }
    Ok(out)
}

#[cfg(test)]
mod tests;
