//! The exact merge rules by path: deterministic, and a collision where they are not sure.
//!
//! A rule is named per path glob in `.switchyard.toml` and merges a file that both main and a change
//! changed. It answers with bytes that are right by what the file means, or with a sentence that
//! names the side and the line it does not take. What it has no reason to touch stays byte for byte.
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic))]

mod changelog;
mod imports;
mod json;
mod jsonl;
mod keyed;
mod lines;
mod paths;
mod sorted_lines;
mod toml;
mod union_exact;
mod version_number;
mod yaml;

use yard_common::{RepoPath, RuleName};

pub use paths::Rules;

/// A three-way merge of lines, for rules that leave a part of a file to it.
///
/// A trait, because the merge of text lives in a room above this one.
pub trait LineMerge {
    /// Merges the changes base -> ours and base -> theirs.
    ///
    /// # Errors
    /// A sentence when the merge is not clean or not the same under every reading.
    fn merge(&self, base: &[u8], ours: &[u8], theirs: &[u8]) -> Result<Vec<u8>, String>;
}

/// An exact rule: how a path that both sides changed is merged instead of as text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Rule {
    /// A set of lines in byte order: lines that theirs added are inserted, lines that it removed go.
    SortedLines,
    /// Entries under headings: one that theirs added goes under the newest unreleased heading.
    Changelog,
    /// The import block as a set, over the merged rest of the file.
    Imports,
    /// Both bumped the version: the higher one by semver.
    VersionNumber,
    /// Both only added lines: all of them, ours first at one place.
    UnionExact,
    /// A JSON file: objects by key, lists of records by id.
    Json,
    /// One JSON record a line, by id or as a whole.
    Jsonl,
    /// A TOML file: tables and keys by name, comments and order kept.
    Toml,
    /// A YAML file: block mappings by key, block sequences by id.
    Yaml,
}

/// What a rule is asked: three versions of one file, of which neither side's is the base's.
#[derive(Clone, Copy)]
struct Sides<'a> {
    /// `None`: both sides added the file.
    base: Option<&'a [u8]>,
    /// Main's file.
    ours: &'a [u8],
    /// The change's file.
    theirs: &'a [u8],
    /// Where it lies.
    path: &'a RepoPath,
    /// The merge of what a rule leaves to the lines.
    text: &'a dyn LineMerge,
}

impl Rule {
    /// Every rule there is.
    pub const ALL: [Self; 9] = [
        Self::SortedLines,
        Self::Changelog,
        Self::Imports,
        Self::VersionNumber,
        Self::UnionExact,
        Self::Json,
        Self::Jsonl,
        Self::Toml,
        Self::Yaml,
    ];

    /// The name in `.switchyard.toml` and in a landed edit.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::SortedLines => "sorted-lines",
            Self::Changelog => "changelog",
            Self::Imports => "imports",
            Self::VersionNumber => "version-number",
            Self::UnionExact => "union-exact",
            Self::Json => "json",
            Self::Jsonl => "jsonl",
            Self::Toml => "toml",
            Self::Yaml => "yaml",
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
            // Where two entries stand depends on which came first.
            Self::Changelog | Self::Imports | Self::VersionNumber | Self::UnionExact => false,
            Self::Json | Self::Jsonl | Self::Toml | Self::Yaml => false,
        }
    }

    /// Puts the change base -> theirs on ours; `None` is a file that is not there, unlike an empty one.
    ///
    /// Where one side did nothing, the answer is the other side's bytes; where both did the same,
    /// it is those. Only then does the rule itself look.
    ///
    /// # Errors
    /// A sentence that names the side and the line which the rule does not take; also where the
    /// answer is a deletion, or a deletion against an edit.
    pub fn apply(
        self,
        base: Option<&[u8]>,
        ours: Option<&[u8]>,
        theirs: Option<&[u8]>,
        path: &RepoPath,
        text: &dyn LineMerge,
    ) -> Result<Vec<u8>, String> {
        let (ours, theirs) = match (base, ours, theirs) {
            (_, Some(ours), Some(theirs)) => (ours, theirs),
            (None, Some(only), None) | (None, None, Some(only)) => return Ok(only.to_owned()),
            (_, _, None) => return Err("the change deletes the file, and a rule deletes none".to_owned()),
            (Some(_), None, Some(_)) => return Err("main deleted the file that the change edits".to_owned()),
        };
        if ours == theirs || base == Some(theirs) {
            return Ok(ours.to_owned());
        }
        if base == Some(ours) {
            return Ok(theirs.to_owned());
        }
        let sides = Sides { base, ours, theirs, path, text };
        match self {
            Self::SortedLines => sorted_lines::merge(sides),
            Self::Changelog => changelog::merge(sides),
            Self::Imports => imports::merge(sides),
            Self::VersionNumber => version_number::merge(sides),
            Self::UnionExact => union_exact::merge(sides),
            Self::Json => json::merge(base, ours, theirs),
            Self::Jsonl => jsonl::merge(base, ours, theirs),
            Self::Toml => toml::merge(base, ours, theirs),
            Self::Yaml => yaml::merge(base, ours, theirs),
        }
    }
}

#[cfg(test)]
mod tests;
