//! The three files as lines, where all three agree on what lines are.

use crate::Sides;

pub(crate) const BASE: &str = "the change's base";
pub(crate) const OURS: &str = "main's file";
pub(crate) const THEIRS: &str = "the change's file";

const BOM: &str = "\u{feff}";

/// How the bytes of a file are made of its lines; the same in all three.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Shape {
    bom: bool,
    end: &'static str,
    ended: bool,
}

/// Three versions as lines without their ends.
#[derive(Debug, Clone)]
pub(crate) struct Three<'a> {
    pub base: Vec<&'a str>,
    pub ours: Vec<&'a str>,
    pub theirs: Vec<&'a str>,
    pub shape: Shape,
}

struct One<'a> {
    lines: Vec<&'a str>,
    bom: bool,
    end: Option<&'static str>,
    ended: bool,
}

fn one<'a>(bytes: &'a [u8], side: &str) -> Result<Option<One<'a>>, String> {
    let text = std::str::from_utf8(bytes).map_err(|bad| {
        let line = bytes.iter().take(bad.valid_up_to()).filter(|byte| **byte == b'\n').count() + 1;
        format!("{side} is not UTF-8 at line {line}")
    })?;
    let (bom, text) = text.strip_prefix(BOM).map_or((false, text), |rest| (true, rest));
    if text.is_empty() {
        return Ok(None);
    }
    let (body, ended) = text.strip_suffix('\n').map_or((text, false), |body| (body, true));
    let last = body.split('\n').count();
    let mut lines = Vec::new();
    let mut end = None;
    for (index, line) in body.split('\n').enumerate() {
        if index + 1 == last && !ended {
            lines.push(line);
            continue;
        }
        let (line, own) = line.strip_suffix('\r').map_or((line, "\n"), |line| (line, "\r\n"));
        if end.is_some_and(|end| end != own) {
            return Err(format!("{side} mixes LF and CRLF line ends, from line {}", index + 1));
        }
        end = Some(own);
        lines.push(line);
    }
    Ok(Some(One { lines, bom, end, ended }))
}

/// Reads the three files.
///
/// # Errors
/// When one is not UTF-8, or they differ in line ends, byte order mark or final newline: which of
/// them the result should have is not for a rule to choose.
pub(crate) fn read<'a>(sides: &Sides<'a>) -> Result<Three<'a>, String> {
    let base = one(sides.base.unwrap_or_default(), BASE)?;
    let ours = one(sides.ours, OURS)?;
    let theirs = one(sides.theirs, THEIRS)?;
    let all = || [&base, &ours, &theirs].into_iter().flatten();
    let differ = |what: &str| Err(format!("some versions of the file {what} and some do not"));
    let agree = |is: &dyn Fn(&One<'_>) -> bool| all().all(is) || !all().any(is);
    if !agree(&|one| one.bom) {
        return differ("begin with a byte order mark");
    }
    if !agree(&|one| one.ended) {
        return differ("end in a newline");
    }
    let end = all().find_map(|one| one.end).unwrap_or("\n");
    if all().filter_map(|one| one.end).any(|other| other != end) {
        return differ("end their lines in CRLF");
    }
    let shape = Shape { bom: all().any(|one| one.bom), end, ended: all().all(|one| one.ended) };
    let lines = |one: Option<One<'a>>| one.map(|one| one.lines).unwrap_or_default();
    Ok(Three { base: lines(base), ours: lines(ours), theirs: lines(theirs), shape })
}

impl Shape {
    /// The bytes of these lines.
    pub fn write<T: AsRef<str>>(self, lines: &[T]) -> Vec<u8> {
        let mut out = if self.bom { BOM.to_owned() } else { String::new() };
        for (index, line) in lines.iter().enumerate() {
            out.push_str(line.as_ref());
            if self.ended || index + 1 < lines.len() {
                out.push_str(self.end);
            }
        }
        out.into_bytes()
    }
}

/// A line as a sentence names it, by its index.
pub(crate) fn name(side: &str, index: usize, line: &str) -> String {
    let short: String = line.chars().take(60).collect();
    format!("{side}, line {} ({short:?})", index + 1)
}

/// Lines `from..to`, none where there are none.
pub(crate) fn slice<'a, 'b>(lines: &'a [&'b str], from: usize, to: usize) -> &'a [&'b str] {
    lines.get(from..to).unwrap_or_default()
}

pub(crate) fn blank(line: &str) -> bool {
    line.trim().is_empty()
}

/// The longest common subsequence, as pairs of indices.
///
/// Quadratic: at most 4 million cells, so two lists of 2,000; `None` above.
pub(crate) fn common<T: PartialEq>(a: &[T], b: &[T]) -> Option<Vec<(usize, usize)>> {
    let head = a.iter().zip(b).take_while(|(x, y)| x == y).count();
    let (mid_a, mid_b) = (a.get(head..).unwrap_or_default(), b.get(head..).unwrap_or_default());
    let tail = mid_a.iter().rev().zip(mid_b.iter().rev()).take_while(|(x, y)| x == y).count();
    let (rows, columns) = (mid_a.len() - tail, mid_b.len() - tail);
    if rows.saturating_mul(columns) > 4_000_000 {
        return None;
    }
    let width = columns + 1;
    let mut best = vec![0_u32; (rows + 1) * width];
    let same = |i: usize, j: usize| mid_a.get(i).zip(mid_b.get(j)).is_some_and(|(x, y)| x == y);
    let at = |best: &[u32], i: usize, j: usize| best.get(i * width + j).copied().unwrap_or(0);
    for i in (0..rows).rev() {
        for j in (0..columns).rev() {
            let value = if same(i, j) {
                at(&best, i + 1, j + 1) + 1
            } else {
                at(&best, i + 1, j).max(at(&best, i, j + 1))
            };
            if let Some(cell) = best.get_mut(i * width + j) {
                *cell = value;
            }
        }
    }
    let mut pairs: Vec<(usize, usize)> = (0..head).map(|index| (index, index)).collect();
    let (mut i, mut j) = (0, 0);
    while i < rows && j < columns {
        if same(i, j) {
            pairs.push((head + i, head + j));
            (i, j) = (i + 1, j + 1);
        } else if at(&best, i + 1, j) >= at(&best, i, j + 1) {
            i += 1;
        } else {
            j += 1;
        }
    }
    pairs.extend((0..tail).map(|index| (head + rows + index, head + columns + index)));
    Some(pairs)
}
