//! What a line stands below: in code and data the nearest line before it that is indented less, and so on
//! outwards; in prose its heading, in ini files and TOML its section.

use yard_common::RepoPath;

use crate::text::lines;

/// Columns of a tab.
const TAB: usize = 8;
/// Lines that are named, from the innermost outwards.
const DEPTH_MAX: usize = 6;
/// Characters of each.
const CHARS_MAX: usize = 80;

/// The places of a text's lines.
pub(super) struct Places {
    /// Of each line that opens something: its depth and the line of the one around it.
    lines: Vec<(usize, Option<usize>, String)>,
}

impl Places {
    /// Of a file's text.
    pub(super) fn of(path: &RepoPath, text: &[u8]) -> Self {
        let heading = heading_of(path);
        let mut open: Vec<(usize, usize)> = Vec::new();
        let mut all = Vec::new();
        for (number, line) in lines(text).into_iter().enumerate() {
            let line = String::from_utf8_lossy(line).into_owned();
            let words = line.trim();
            // A bracket of its own opens nothing by itself: the line before it does.
            let is_named = words.chars().any(char::is_alphanumeric);
            let depth = match heading(&line) {
                Some(level) => level,
                None if words.is_empty() => usize::MAX,
                None => 10 + columns(&line),
            };
            let around = |open: &[(usize, usize)]| {
                open.iter().rev().find(|(other, _)| *other < depth).map(|(_, number)| *number)
            };
            all.push((depth, around(&open), words.chars().take(CHARS_MAX).collect()));
            if is_named && depth < usize::MAX {
                open.retain(|(other, _)| *other < depth);
                open.push((depth, number));
            }
        }
        Self { lines: all }
    }

    /// The lines that a line stands below, outermost first; empty at the top, and for a line of white space.
    pub(super) fn at(&self, line: usize) -> String {
        let mut names: Vec<&str> = Vec::new();
        let blank = self.lines.get(line).is_none_or(|(depth, ..)| *depth == usize::MAX);
        let mut next = self.lines.get(line).and_then(|(_, around, _)| *around).filter(|_| !blank);
        while let Some((_, around, name)) = next.and_then(|line| self.lines.get(line)) {
            names.push(name);
            next = around.filter(|_| names.len() < DEPTH_MAX);
        }
        names.reverse();
        names.join(" > ")
    }
}

fn columns(line: &str) -> usize {
    let mut columns = 0;
    for c in line.chars() {
        match c {
            ' ' => columns += 1,
            '\t' => columns += TAB - columns % TAB,
            _ => break,
        }
    }
    columns
}

/// How deep the heading is that a line makes in files of this name; `None`: it is none.
fn heading_of(path: &RepoPath) -> fn(&str) -> Option<usize> {
    let name = path.to_string().to_lowercase();
    match name.rsplit_once('.').map(|(_, end)| end) {
        Some("md" | "markdown") => |line| {
            let level = line.chars().take_while(|c| *c == '#').count();
            let rest = line.get(level..).unwrap_or_default();
            (1..=6).contains(&level).then_some(level).filter(|_| rest.starts_with([' ', '\t']))
        },
        Some("toml" | "ini" | "cfg" | "conf") => |line| line.starts_with('[').then_some(1),
        _ => |_| None,
    }
}
