//! The import block of a file, and both sides' changes of it made on main's.

use std::collections::BTreeSet;

use super::Language;
use super::list;
use super::statement::{self, Statement};
use crate::lines::{blank, name, slice};

/// The import block: lines `start..end` of the file.
#[derive(Debug)]
pub(super) struct Block<'a> {
    pub lines: &'a [&'a str],
    pub side: &'static str,
    pub start: usize,
    pub end: usize,
    pub statements: Vec<Statement<'a>>,
}

/// Lines above the imports that are none: comments, a docstring, a directive.
struct Header {
    until: Option<&'static str>,
}

impl Header {
    fn passes(&mut self, language: Language, line: &str) -> bool {
        if let Some(end) = self.until {
            if line.contains(end) {
                self.until = None;
            }
            return true;
        }
        let text = line.trim();
        let opens: &[(&str, &'static str)] = match language {
            Language::Python => &[("\"\"\"", "\"\"\""), ("'''", "'''"), ("r\"\"\"", "\"\"\"")],
            _ => &[("/*", "*/")],
        };
        if let Some((open, end)) = opens.iter().find(|(open, _)| text.starts_with(open)) {
            if !text.get(open.len()..).unwrap_or_default().contains(end) {
                self.until = Some(end);
            }
            return true;
        }
        let directive = ["'use ", "\"use ", "//", "#!"].iter().any(|head| text.starts_with(head));
        let rust = text.starts_with("extern crate ")
            || ((text.starts_with("mod ") || text.starts_with("pub mod ")) && text.ends_with(';'));
        match language {
            Language::Python => text.is_empty() || text.starts_with('#'),
            Language::JavaScript => text.is_empty() || directive,
            Language::Rust => text.is_empty() || directive || rust,
        }
    }
}

fn is_comment(language: Language, line: &str) -> bool {
    line.starts_with(if language == Language::Python { "#" } else { "//" })
}

impl<'a> Block<'a> {
    /// The first run of imports, if only a header stands above it.
    pub fn find(language: Language, lines: &'a [&'a str], side: &'static str) -> Option<Self> {
        let mut header = Header { until: None };
        let mut at = 0;
        let first = loop {
            let line = lines.get(at)?;
            if header.until.is_none() && statement::end(language, lines, at).is_some() {
                break at;
            }
            if !header.passes(language, line) {
                return None;
            }
            at += 1;
        };
        let mut statements: Vec<Statement<'a>> = Vec::new();
        while let Some(line) = lines.get(at) {
            if let Some(end) = statement::end(language, lines, at) {
                statements.extend(statement::read(language, lines, at, end));
                at = end;
            } else if blank(line) || is_comment(language, line) {
                at += 1;
            } else {
                break;
            }
        }
        let end = statements.last().map_or(first, |last| last.end);
        Some(Self { lines, side, start: first, end, statements })
    }

    /// Keys of several statements: a name a line, as some sort their imports.
    pub fn repeated(&self) -> impl Iterator<Item = String> + '_ {
        let earlier = |index: usize, key: &str| self.statements.iter().take(index).any(|one| one.key == key);
        let repeated =
            self.statements.iter().enumerate().filter(move |(index, one)| earlier(*index, &one.key));
        repeated.map(|(_, one)| one.key.clone())
    }

    /// Takes the statements of these keys each for itself.
    ///
    /// # Errors
    /// When a statement stands there twice.
    pub fn single(&mut self, keys: &BTreeSet<String>) -> Result<(), String> {
        for one in self.statements.iter_mut().filter(|one| keys.contains(&one.key)) {
            one.key = one.text.join(" ");
            one.sort.1 = format!("{} {}", one.sort.1, one.key);
            one.list = None;
        }
        let twin = self
            .statements
            .iter()
            .enumerate()
            .find(|(index, one)| self.statements.iter().take(*index).any(|other| other.key == one.key));
        twin.map_or(Ok(()), |(_, one)| Err(format!("{} stands there twice", self.told(one))))
    }

    /// The file with a mark in place of the block.
    pub fn rest(&self, mark: &'a str) -> Vec<&'a str> {
        let mut out = slice(self.lines, 0, self.start).to_vec();
        out.push(mark);
        out.extend_from_slice(self.lines.get(self.end..).unwrap_or_default());
        out
    }

    pub fn get(&self, key: &str) -> Option<&Statement<'a>> {
        self.statements.iter().find(|one| one.key == key)
    }

    fn told(&self, one: &Statement<'_>) -> String {
        name(self.side, one.start, one.text.first().copied().unwrap_or_default())
    }

    /// Lines of the block that are part of no statement, blank ones left out.
    fn comments(&self) -> Vec<&'a str> {
        let inside = |at: usize| self.statements.iter().any(|one| (one.start..one.end).contains(&at));
        let all = self.lines.iter().enumerate().take(self.end).skip(self.start);
        all.filter(|(at, line)| !inside(*at) && !blank(line)).map(|(_, line)| *line).collect()
    }

    /// The line right above the block, if it says something.
    fn above(&self) -> Option<&'a str> {
        let above = self.start.checked_sub(1).and_then(|at| self.lines.get(at));
        above.copied().filter(|line| !blank(line))
    }

    fn placed(&self) -> Vec<&str> {
        self.statements.iter().filter(|one| one.placed).map(|one| one.key.as_str()).collect()
    }

    fn touches(&self, a: usize, b: usize) -> bool {
        let (Some(a), Some(b)) = (self.statements.get(a), self.statements.get(b)) else { return false };
        a.end == b.start
    }

    /// Statements around the one at `at` with no line between them.
    fn run(&self, at: usize) -> std::ops::Range<usize> {
        let mut from = at;
        while from > 0 && self.touches(from - 1, from) {
            from -= 1;
        }
        let mut to = at + 1;
        while to < self.statements.len() && self.touches(to - 1, to) {
            to += 1;
        }
        from..to
    }
}

/// The merged block's lines.
pub(super) fn merge(base: &Block<'_>, ours: &Block<'_>, theirs: &Block<'_>) -> Result<Vec<String>, String> {
    let text = |block: &Block<'_>| -> Vec<String> {
        slice(block.lines, block.start, block.end).iter().map(|line| (*line).to_owned()).collect()
    };
    let (was, our, their) = (text(base), text(ours), text(theirs));
    if (theirs.above() != base.above() && our != was) || (ours.above() != base.above() && their != was) {
        return Err("one side changes the comment right above the imports, the other the imports".to_owned());
    }
    if was == their || our == their {
        return Ok(our);
    }
    if was == our {
        return Ok(their);
    }
    guard(base, ours, theirs)?;
    let mut canvas = Canvas { ours, theirs, lines: our.into_iter().map(Some).collect(), put: Vec::new() };
    canvas.put = vec![Vec::new(); canvas.lines.len() + 1];
    for one in &base.statements {
        if theirs.get(&one.key).is_none()
            && let Some(our) = ours.get(&one.key)
        {
            canvas.removed(one, our)?;
        }
    }
    for (at, one) in theirs.statements.iter().enumerate() {
        canvas.offered(base.get(&one.key), at, one)?;
    }
    Ok(canvas.finish())
}

/// What makes the order or the neighbourhood of imports matter is no set.
fn guard(base: &Block<'_>, ours: &Block<'_>, theirs: &Block<'_>) -> Result<(), String> {
    if theirs.comments() != base.comments() && theirs.comments() != ours.comments() {
        return Err(format!("{} changes comments among the imports", theirs.side));
    }
    let star = |block: &Block<'_>| block.statements.iter().find(|one| one.star).map(|one| block.told(one));
    if let Some(told) = star(base).or_else(|| star(ours)).or_else(|| star(theirs)) {
        return Err(format!("both sides change imports beside a star import: {told}"));
    }
    if ours.placed() != base.placed() && theirs.placed() != base.placed() {
        return Err("both sides change imports whose order matters".to_owned());
    }
    let common = |a: &Block<'_>, b: &Block<'_>| -> Vec<String> {
        a.statements.iter().map(|one| one.key.clone()).filter(|key| b.get(key).is_some()).collect()
    };
    if common(base, theirs) != common(theirs, base) {
        return Err(format!("{} sorts its imports anew", theirs.side));
    }
    Ok(())
}

/// Main's block, being changed.
struct Canvas<'g, 'a> {
    ours: &'g Block<'a>,
    theirs: &'g Block<'a>,
    lines: Vec<Option<String>>,
    put: Vec<Vec<String>>,
}

fn owned(text: &[&str]) -> Vec<String> {
    text.iter().map(|line| (*line).to_owned()).collect()
}

impl Canvas<'_, '_> {
    /// Theirs has the base's statement no longer.
    fn removed(&mut self, was: &Statement<'_>, our: &Statement<'_>) -> Result<(), String> {
        if was.text == our.text {
            self.take_out(our);
            return Ok(());
        }
        let told = || format!("{} takes out what main changed: {}", self.theirs.side, self.ours.told(our));
        let (Some(old), Some(new)) = (&was.list, &our.list) else { return Err(told()) };
        match list::merge(Some(old), Some(new), None)? {
            Some(list) => self.replace(our, list.write()),
            None => {
                self.take_out(our);
                Ok(())
            }
        }
    }

    /// Theirs has this statement.
    fn offered(
        &mut self,
        was: Option<&Statement<'_>>,
        at: usize,
        their: &Statement<'_>,
    ) -> Result<(), String> {
        let our = self.ours.get(&their.key).cloned();
        if was.is_some_and(|was| was.text == their.text)
            || our.as_ref().is_some_and(|our| our.text == their.text)
        {
            return Ok(());
        }
        let text = |one: Option<&Statement<'_>>| one.map(|one| owned(one.text));
        if text(our.as_ref()) == text(was) {
            return match &our {
                Some(our) => self.replace(our, owned(their.text)),
                None => {
                    self.insert(at, their, owned(their.text));
                    Ok(())
                }
            };
        }
        let told =
            || format!("both sides change an import that is no plain list: {}", self.theirs.told(their));
        let plain = |one: Option<&Statement<'_>>| one.is_none_or(|one| one.list.is_some());
        if !plain(was) || !plain(our.as_ref()) || their.list.is_none() {
            return Err(told());
        }
        let list_of = |one: Option<&Statement<'_>>| one.and_then(|one| one.list.clone());
        let merged = list::merge(list_of(was).as_ref(), list_of(our.as_ref()).as_ref(), their.list.as_ref());
        let merged = merged.map_err(|why| format!("{why}: {}", self.theirs.told(their)))?;
        match (merged, &our) {
            (Some(list), Some(our)) => self.replace(our, list.write()),
            (Some(list), None) => {
                let lines = list.write();
                self.insert(at, their, lines);
                Ok(())
            }
            (None, Some(our)) => {
                self.take_out(our);
                Ok(())
            }
            (None, None) => Ok(()),
        }
    }

    fn line(&mut self, at: usize) -> Option<&mut Option<String>> {
        self.lines.get_mut(at.checked_sub(self.ours.start)?)
    }

    fn take_out(&mut self, one: &Statement<'_>) {
        for at in one.start..one.end {
            if let Some(line) = self.line(at) {
                *line = None;
            }
        }
        let empty =
            |line: Option<&mut Option<String>>| line.is_some_and(|line| line.as_deref().is_none_or(blank));
        let above = one.start == self.ours.start || empty(self.line(one.start - 1));
        let below = self.line(one.end).is_some_and(|line| line.as_deref().is_some_and(blank));
        if above
            && below
            && let Some(line) = self.line(one.end)
        {
            *line = None;
        }
    }

    fn replace(&mut self, one: &Statement<'_>, lines: Vec<String>) -> Result<(), String> {
        let sides = [self.ours, self.theirs];
        let longest = sides.iter().flat_map(|side| side.lines).map(|line| line.chars().count()).max();
        let width = longest.unwrap_or(0).clamp(79, 120);
        if let Some(long) = lines.iter().find(|line| line.chars().count() > width) {
            return Err(format!("the import would be longer than a line of the file: {long:?}"));
        }
        for at in one.start..one.end {
            if let Some(line) = self.line(at) {
                *line = None;
            }
        }
        let at = one.start - self.ours.start;
        if let Some(put) = self.put.get_mut(at) {
            put.extend(lines);
        }
        Ok(())
    }

    fn insert(&mut self, at: usize, their: &Statement<'_>, lines: Vec<String>) {
        let (place, before, after) = self.place(at, their);
        if let Some(put) = self.put.get_mut(place - self.ours.start) {
            put.extend(before.then(String::new));
            put.extend(lines);
            put.extend(after.then(String::new));
        }
    }

    /// The line in front of which a new statement goes, and whether a blank one goes before or after it.
    fn place(&self, at: usize, their: &Statement<'_>) -> (usize, bool, bool) {
        let statements = &self.theirs.statements;
        let ours = |one: &Statement<'_>| self.ours.statements.iter().position(|other| other.key == one.key);
        let run = self.theirs.run(at);
        let in_run = || statements.get(run.clone()).unwrap_or_default().iter();
        let above = in_run().take(at - run.start).rev().find_map(ours);
        let below = in_run().skip(at + 1 - run.start).find_map(ours);
        if let Some(anchor) = above.or(below) {
            let place = self.in_run(anchor, above.is_some(), their, &run);
            return (place, false, false);
        }
        // A run of its own: after the run of the nearest statement above.
        let nearest = statements.get(..run.start).unwrap_or_default().iter().rev().find_map(ours);
        let first_of_run = at == run.start;
        match nearest {
            Some(nearest) => {
                let last = self.ours.run(nearest).end - 1;
                (self.ours.statements.get(last).map_or(self.ours.end, |one| one.end), first_of_run, false)
            }
            None => (self.ours.start, false, at + 1 == run.end),
        }
    }

    fn in_run(
        &self,
        anchor: usize,
        above: bool,
        their: &Statement<'_>,
        run: &std::ops::Range<usize>,
    ) -> usize {
        let ours = self.ours.run(anchor);
        let list = self.ours.statements.get(ours.clone()).unwrap_or_default();
        let theirs = self.theirs.statements.get(run.clone()).unwrap_or_default();
        type Key = fn(&(u8, String)) -> (u8, String);
        let keys: [Key; 4] = [
            |sort| sort.clone(),
            |sort| (sort.0, sort.1.to_lowercase()),
            |sort| (0, sort.1.clone()),
            |sort| (0, sort.1.to_lowercase()),
        ];
        let sorted = |key: &Key, list: &[Statement<'_>]| {
            list.windows(2).all(|two| matches!(two, [a, b] if key(&a.sort) <= key(&b.sort)))
        };
        if let Some(key) = keys.iter().find(|key| sorted(key, list) && sorted(key, theirs)) {
            let next = list.iter().find(|one| key(&one.sort) > key(&their.sort));
            return next.map_or_else(|| list.last().map_or(self.ours.end, |one| one.end), |one| one.start);
        }
        let anchor = self.ours.statements.get(anchor);
        anchor.map_or(self.ours.end, |one| if above { one.end } else { one.start })
    }

    fn finish(self) -> Vec<String> {
        let mut out = Vec::new();
        let mut lines = self.lines.into_iter();
        for put in self.put {
            out.extend(put);
            out.extend(lines.next().flatten());
        }
        out
    }
}
