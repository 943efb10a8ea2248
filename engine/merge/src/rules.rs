//! Exact merge rules by path: deterministic, and a collision where they do not apply.

use std::collections::BTreeSet;

use yard_common::config::PathRule;
use yard_common::policy::glob_matches;
use yard_common::{RepoPath, RuleName};

/// An exact rule: how a path that both sides changed is merged instead of as text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Rule {
    /// A set of lines in byte order: lines that theirs added are inserted, lines that it removed go.
    SortedLines,
}

impl Rule {
    /// Every rule there is.
    pub const ALL: [Self; 1] = [Self::SortedLines];

    /// The name in `.switchyard.toml` and in a landed edit.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::SortedLines => "sorted-lines",
        }
    }

    /// The name as an id.
    ///
    /// # Errors
    /// Never: every name above is a rule name.
    pub fn name(self) -> Result<RuleName, yard_common::BadId> {
        RuleName::new(self.as_str())
    }

    /// The rule of this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|rule| rule.as_str() == name)
    }

    /// May changes of one base be applied in any order with the same result?
    ///
    /// Two changes whose bases differ may name one line in opposite ways (one adds it anew, one
    /// removes it); then the later one decides.
    #[must_use]
    pub fn commutative(self) -> bool {
        match self {
            Self::SortedLines => true,
        }
    }

    /// Puts the change base -> theirs on ours; a file that is absent is an empty one.
    ///
    /// # Errors
    /// A sentence that names the side and the line which the rule does not take.
    pub fn apply(self, base: &[u8], ours: &[u8], theirs: &[u8]) -> Result<Vec<u8>, String> {
        match self {
            Self::SortedLines => sorted_lines(base, ours, theirs),
        }
    }
}

/// A file as a set of lines, and whether its last line ends in a newline (`None`: it has no line).
struct Lines<'a> {
    set: BTreeSet<&'a [u8]>,
    ended: Option<bool>,
}

fn read<'a>(bytes: &'a [u8], side: &str) -> Result<Lines<'a>, String> {
    if bytes.is_empty() {
        return Ok(Lines { set: BTreeSet::new(), ended: None });
    }
    let (body, ended) = match bytes.strip_suffix(b"\n") {
        Some(body) => (body, true),
        None => (bytes, false),
    };
    let mut set = BTreeSet::new();
    let mut last: Option<&[u8]> = None;
    for (number, line) in body.split(|byte| *byte == b'\n').enumerate() {
        if let Some(last) = last
            && last >= line
        {
            let fault = if last == line { "stands there twice" } else { "is not in byte order" };
            let line = String::from_utf8_lossy(line).chars().take(60).collect::<String>();
            return Err(format!("{side} is no sorted set of lines: line {} ({line:?}) {fault}", number + 1));
        }
        set.insert(line);
        last = Some(line);
    }
    Ok(Lines { set, ended: Some(ended) })
}

fn sorted_lines(base: &[u8], ours: &[u8], theirs: &[u8]) -> Result<Vec<u8>, String> {
    let base = read(base, "the change's base")?;
    let ours = read(ours, "main's file")?;
    let theirs = read(theirs, "the change's file")?;
    let mut ends: Vec<bool> = [base.ended, ours.ended, theirs.ended].into_iter().flatten().collect();
    ends.dedup();
    if ends.len() > 1 {
        return Err("some versions of the file end in a newline and some do not".to_owned());
    }
    let mut set = ours.set;
    set.extend(theirs.set.difference(&base.set));
    for gone in base.set.difference(&theirs.set) {
        set.remove(gone);
    }
    let ended = ends.first().copied().unwrap_or(true);
    let lines: Vec<&[u8]> = set.into_iter().collect();
    let mut out = lines.join(&b'\n');
    if ended && !lines.is_empty() {
        out.push(b'\n');
    }
    Ok(out)
}

/// Which rule holds on which paths; the first that matches decides.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Rules(Vec<(String, Rule)>);

impl Rules {
    /// Rules by pattern, first match first; patterns as [`yard_common::policy::glob_matches`] reads them.
    #[must_use]
    pub fn new(rules: Vec<(String, Rule)>) -> Self {
        Self(rules)
    }

    /// The rules of a configuration, whose names were checked when it was read.
    #[must_use]
    pub fn from_config(rules: &[PathRule]) -> Self {
        let known = |rule: &PathRule| Some((rule.pattern.clone(), Rule::from_name(rule.rule.as_str())?));
        Self(rules.iter().filter_map(known).collect())
    }

    /// The rule for a path.
    #[must_use]
    pub fn of(&self, path: &RepoPath) -> Option<Rule> {
        let found = self.0.iter().find(|(pattern, _)| glob_matches(pattern.as_bytes(), path.as_bytes()));
        found.map(|(_, rule)| *rule)
    }
}

#[cfg(test)]
mod tests;
