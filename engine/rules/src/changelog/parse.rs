//! A changelog as release sections, their groups, and the entries of each group.

use crate::lines::{blank, name, slice};

/// A changelog; all places are line indices, ends exclusive.
#[derive(Debug)]
pub(super) struct Log<'a> {
    pub lines: &'a [&'a str],
    pub side: &'static str,
    pub sections: Vec<Section<'a>>,
}

/// What stands under one release heading.
#[derive(Debug)]
pub(super) struct Section<'a> {
    pub title: &'a str,
    pub unreleased: bool,
    pub start: usize,
    /// After the heading's own lines.
    pub head_end: usize,
    pub end: usize,
    /// The first one has no head: what stands right under the heading.
    pub groups: Vec<Group<'a>>,
}

/// Entries under one deeper heading, or under one paragraph.
#[derive(Debug)]
pub(super) struct Group<'a> {
    /// The head's lines; none for the first group of a section.
    pub head: &'a [&'a str],
    pub start: usize,
    pub head_end: usize,
    pub items: Vec<Item<'a>>,
}

/// One entry: a list item with all that belongs to it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Item<'a> {
    pub text: &'a [&'a str],
    pub start: usize,
    pub end: usize,
}

impl Group<'_> {
    /// After the last entry, or after the head.
    pub fn end(&self) -> usize {
        self.items.last().map_or(self.head_end, |item| item.end)
    }
}

struct Heading<'a> {
    title: &'a str,
    level: usize,
    start: usize,
    end: usize,
}

fn atx(line: &str) -> Option<(usize, &str)> {
    let rest = line.trim_start_matches('#');
    let level = line.len() - rest.len();
    let title = rest.strip_prefix([' ', '\t'])?.trim().trim_end_matches('#').trim_end();
    (1..=6).contains(&level).then_some((level, title))
}

/// The level of a line that underlines a title.
fn underline(line: &str) -> Option<usize> {
    let line = line.trim_end();
    let first = line.chars().next()?;
    let level = ['=', '-', '~', '^', '"'].iter().position(|mark| *mark == first)? + 1;
    (line.len() >= 3 && line.chars().all(|c| c == first)).then_some(level)
}

pub(super) fn is_entry(line: &str) -> bool {
    ["- ", "* ", "+ "].iter().any(|mark| line.starts_with(mark)) || matches!(line, "-" | "*" | "+")
}

fn fence(line: &str) -> Option<&str> {
    ["```", "~~~"].into_iter().find(|mark| line.starts_with(mark))
}

fn headings<'a>(lines: &'a [&'a str]) -> Vec<Heading<'a>> {
    let mut out = Vec::new();
    let mut open: Option<&str> = None;
    let mut after_blank = true;
    for (index, line) in lines.iter().enumerate() {
        match (open, fence(line)) {
            (None, Some(mark)) => open = Some(mark),
            (Some(mark), Some(found)) if found == mark => open = None,
            _ => {}
        }
        if open.is_none() {
            let title_alone =
                after_blank && !blank(line) && !line.starts_with([' ', '\t']) && !is_entry(line);
            let under = lines.get(index + 1).and_then(|next| underline(next));
            if let Some((level, title)) = atx(line) {
                out.push(Heading { title, level, start: index, end: index + 1 });
            } else if let (true, Some(level), None) = (title_alone, under, underline(line)) {
                out.push(Heading { title: line.trim(), level, start: index, end: index + 2 });
            }
        }
        after_blank = blank(line);
    }
    out
}

fn is_unreleased(title: &str) -> bool {
    let title = title.to_lowercase();
    let title = title.trim_matches(|c: char| !c.is_alphanumeric());
    ["unreleased", "upcoming", "next release", "development version", "in development"]
        .iter()
        .any(|word| title.contains(word))
        || title == "next"
}

/// Does the title hold a number such as 1.2?
pub(super) fn has_version(title: &str) -> bool {
    let bytes = title.as_bytes();
    bytes.windows(3).any(|three| match three {
        [a, b'.', c] => a.is_ascii_digit() && c.is_ascii_digit(),
        _ => false,
    })
}

impl<'a> Log<'a> {
    /// Reads a changelog.
    pub fn parse(lines: &'a [&'a str], side: &'static str) -> Result<Self, String> {
        let headings = headings(lines);
        let release = |heading: &&Heading<'_>| is_unreleased(heading.title) || has_version(heading.title);
        let Some(first) = headings.iter().find(release) else {
            return Err(format!("{side} has no heading of a release or of unreleased changes"));
        };
        let (level, from) = (first.level, first.start);
        let tops: Vec<&Heading<'_>> =
            headings.iter().filter(|heading| heading.level <= level && heading.start >= from).collect();
        let mut sections: Vec<Section<'a>> = Vec::new();
        for (index, top) in tops.iter().enumerate() {
            let end = tops.get(index + 1).map_or(lines.len(), |next| next.start);
            let inner = headings.iter().filter(|heading| heading.start > top.start && heading.start < end);
            let groups = groups(lines, top.end, end, &inner.collect::<Vec<_>>());
            if let Some(twin) = sections.iter().find(|section| section.title == top.title) {
                let line = name(side, top.start, top.title);
                return Err(format!("{line} repeats the heading of line {}", twin.start + 1));
            }
            let says_so =
                |group: &Group<'_>| matches!(group.head, [only] if is_unreleased(only) && only.len() < 40);
            let unreleased = is_unreleased(top.title) || groups.iter().take(2).any(says_so);
            let (title, start, head_end) = (top.title, top.start, top.end);
            sections.push(Section { title, unreleased, start, head_end, end, groups });
        }
        Ok(Self { lines, side, sections })
    }

    /// What cutting a release changes.
    pub fn headings(&self) -> Vec<(&'a str, bool)> {
        self.sections.iter().map(|section| (section.title, section.unreleased)).collect()
    }

    pub fn preamble(&self) -> &'a [&'a str] {
        slice(self.lines, 0, self.sections.first().map_or(self.lines.len(), |first| first.start))
    }

    pub fn section(&self, title: &str) -> Option<&Section<'a>> {
        self.sections.iter().find(|section| section.title == title)
    }

    pub fn raw(&self, section: &Section<'_>) -> &'a [&'a str] {
        slice(self.lines, section.start, section.end)
    }

    /// How often an entry stands anywhere.
    pub fn count(&self, text: &[&str]) -> usize {
        self.sections.iter().map(|section| section.count(text)).sum()
    }
}

impl<'a> Section<'a> {
    pub fn count(&self, text: &[&str]) -> usize {
        let items = self.groups.iter().flat_map(|group| &group.items);
        items.filter(|item| item.text == text).count()
    }

    pub fn group(&self, head: &[&str]) -> Option<&Group<'a>> {
        self.groups.iter().find(|group| group.head == head)
    }
}

fn groups<'a>(lines: &'a [&'a str], from: usize, end: usize, inner: &[&Heading<'_>]) -> Vec<Group<'a>> {
    let mut out = vec![Group { head: &[], start: from, head_end: from, items: Vec::new() }];
    let mut at = from;
    while at < end {
        let Some(line) = lines.get(at) else { break };
        let heading = inner.iter().find(|heading| heading.start == at);
        if blank(line) {
            at += 1;
        } else if let (None, true) = (heading, is_entry(line)) {
            let stop = entry_end(lines, at, end, inner);
            let item = Item { text: slice(lines, at, stop), start: at, end: stop };
            if let Some(group) = out.last_mut() {
                group.items.push(item);
            }
            at = stop;
        } else {
            let stop = heading.map_or_else(|| prose_end(lines, at, end, inner), |heading| heading.end);
            out.push(Group { head: slice(lines, at, stop), start: at, head_end: stop, items: Vec::new() });
            at = stop;
        }
    }
    out
}

/// An entry goes on over lines that are not blank and over indented ones.
fn entry_end(lines: &[&str], start: usize, end: usize, inner: &[&Heading<'_>]) -> usize {
    let mut stop = start + 1;
    let mut at = stop;
    let mut after_blank = false;
    while at < end {
        let Some(line) = lines.get(at) else { break };
        let indented = line.starts_with([' ', '\t']);
        if blank(line) {
            after_blank = true;
        } else if inner.iter().any(|heading| heading.start == at)
            || is_entry(line)
            || (after_blank && !indented)
        {
            break;
        } else {
            after_blank = false;
            stop = at + 1;
        }
        at += 1;
    }
    stop
}

fn prose_end(lines: &[&str], start: usize, end: usize, inner: &[&Heading<'_>]) -> usize {
    let mut open = lines.get(start).and_then(|line| fence(line));
    let mut at = start + 1;
    while at < end {
        let Some(line) = lines.get(at) else { break };
        match (open, fence(line)) {
            (Some(mark), Some(found)) if found == mark => return at + 1,
            (Some(_), _) => {}
            (None, Some(mark)) => open = Some(mark),
            (None, None) => {
                if blank(line) || is_entry(line) || inner.iter().any(|heading| heading.start == at) {
                    break;
                }
            }
        }
        at += 1;
    }
    at
}
