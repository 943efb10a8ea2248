//! `.switchyard.toml` at the root of main: what a repository says about its own landing.
//!
//! ```toml
//! [lane]
//! isolation = "strict"     # or "paths"
//! train_max = 50           # changes tested together, 1 to 500
//!
//! [checks]
//! command = "npm test"     # run by `sh -c` in a clean checkout
//! junit = "report.xml"     # where it writes JUnit XML
//! timeout_seconds = 600    # 1 to 21600
//! tests = ["test/**"]      # which files are tests; the usual names and folders where nothing is said
//!
//! [[rules]]
//! paths = ["INDEX", "docs/**/*.list"]
//! rule = "sorted-lines"
//! ```
//!
//! [replay]
//! by_model = true          # a change that collides is redone by the platform's model
//! per_change = 5           # replays of one change, 1 to 20
//! usd_per_day = 10         # what the models may cost in a day; 0 stops them
//! review_lines = 20        # a replay that differs in more lines from what was reviewed is approved by an admin
//! contract = "CONTRACT.md" # a file that is shown to the model with every change
//!
//! Every key is optional but `junit` beside `command`; an unknown one is refused. Without a command
//! no change can be tested, so the lane holds everything and says so.

use std::ops::RangeInclusive;

use serde::{Deserialize, Serialize};

use crate::id::{ObjectId, RuleName};
use crate::limits::TRAIN_CHANGES_MAX;
use crate::path::RepoPath;
use crate::policy::{Commutative, Isolation, Policy};
use crate::refusal::Refusal;

/// A configuration's bytes: 64 kB hold 500 rules.
pub const CONFIG_BYTES_MAX: usize = 64 * 1024;
/// Rules in one configuration: each changed path is matched against all of them.
pub const RULES_MAX: usize = 500;
/// One pattern's bytes.
pub const PATTERN_BYTES_MAX: usize = 200;
/// `*` and `**` in one pattern: matching takes at most (length of the path)^4 steps.
pub const PATTERN_WILDCARDS_MAX: usize = 4;
/// Longest time limit of one run of the command: 6 hours.
pub const TIMEOUT_SECONDS_MAX: u32 = 6 * 3600;
/// The time limit where none is given.
pub const TIMEOUT_SECONDS_DEFAULT: u32 = 600;
/// Changes tested together where no number is given: `TRAIN_CHANGES_MAX` / 10.
pub const TRAIN_MAX_DEFAULT: usize = TRAIN_CHANGES_MAX / 10;
/// Which files are tests, where nothing is said.
pub const TESTS_DEFAULT: [&str; 10] = [
    "test/**",
    "tests/**",
    "**/test/**",
    "**/tests/**",
    "**/__tests__/**",
    "**/*_test.*",
    "**/test_*.py",
    "**/*.test.*",
    "**/*.spec.*",
    "**/*Test.java",
];
/// Replays of one change where no number is given.
pub const REPLAYS_DEFAULT: u32 = 5;
/// Replays of one change, at most.
pub const REPLAYS_MAX: u32 = 20;
/// What models may cost in a day where nothing is said, in millionths of a US dollar.
pub const REPLAY_MICRO_USD_DEFAULT: u64 = 10_000_000;
/// The most that models may cost in a day, in US dollars.
pub const REPLAY_USD_MAX: i64 = 100_000;
/// The exact rules, and whether their edits may be re-applied after the test.
pub const RULES: [(&str, bool); 9] = [
    ("sorted-lines", true),
    ("changelog", false),
    ("imports", false),
    ("version-number", false),
    ("union-exact", false),
    ("json", false),
    ("jsonl", false),
    ("toml", false),
    ("yaml", false),
];

/// The test command of a repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Check {
    /// The command, for `sh -c`.
    pub command: String,
    /// Where it writes JUnit XML, relative to the checkout.
    pub junit: RepoPath,
    /// How long it may take, in seconds.
    pub timeout_seconds: u32,
}

/// One merge rule on the paths that a pattern covers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathRule {
    /// The pattern, as [`crate::policy::glob_matches`] reads it.
    pub pattern: String,
    /// One of [`RULES`].
    pub rule: RuleName,
}

/// When and how far a model redoes changes that collide.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReplayPolicy {
    /// Is a model asked at all?
    pub by_model: bool,
    /// Replays of one change, at most.
    pub per_change: u32,
    /// What the models may cost in a day, in millionths of a US dollar.
    pub micro_usd_per_day: u64,
    /// A replay that differs in more lines from what was reviewed needs an admin's approval.
    pub review_lines: Option<u32>,
    /// A file of main that is shown to the model with every change.
    pub contract: Option<RepoPath>,
}

impl Default for ReplayPolicy {
    fn default() -> Self {
        Self {
            by_model: true,
            per_change: REPLAYS_DEFAULT,
            micro_usd_per_day: REPLAY_MICRO_USD_DEFAULT,
            review_lines: None,
            contract: None,
        }
    }
}

/// A repository's configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// The test command; nothing is tested or landed without one.
    pub check: Option<Check>,
    /// Patterns of test files.
    pub tests: Vec<String>,
    /// The merge rules; the first that covers a path is its rule.
    pub rules: Vec<PathRule>,
    /// How far lanes keep out of each other's way.
    pub isolation: Isolation,
    /// Changes tested together.
    pub train_max: usize,
    /// Replays by a model.
    pub replay: ReplayPolicy,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            check: None,
            tests: Reader::default_tests(),
            rules: Vec::new(),
            isolation: Isolation::default(),
            train_max: TRAIN_MAX_DEFAULT,
            replay: ReplayPolicy::default(),
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    lane: LaneTable,
    #[serde(default)]
    checks: ChecksTable,
    #[serde(default)]
    rules: Vec<RuleTable>,
    #[serde(default)]
    replay: ReplayTable,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
struct ReplayTable {
    by_model: Option<bool>,
    per_change: Option<toml::Spanned<i64>>,
    usd_per_day: Option<toml::Spanned<i64>>,
    review_lines: Option<toml::Spanned<i64>>,
    contract: Option<toml::Spanned<String>>,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
struct LaneTable {
    #[serde(default)]
    isolation: Isolation,
    train_max: Option<toml::Spanned<i64>>,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
struct ChecksTable {
    command: Option<toml::Spanned<String>>,
    junit: Option<toml::Spanned<String>>,
    timeout_seconds: Option<toml::Spanned<i64>>,
    tests: Option<toml::Spanned<Patterns>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RuleTable {
    paths: toml::Spanned<Patterns>,
    rule: toml::Spanned<String>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Patterns {
    One(String),
    Many(Vec<String>),
}

impl Config {
    /// Reads the bytes of a `.switchyard.toml`.
    ///
    /// # Errors
    /// [`Refusal::Invalid`] with the line, the key and what is expected; [`Refusal::TooLarge`].
    pub fn parse(bytes: &[u8]) -> Result<Self, Refusal> {
        if bytes.len() > CONFIG_BYTES_MAX {
            return Err(Refusal::TooLarge {
                what: ".switchyard.toml".to_owned(),
                size: bytes.len() as u64,
                limit: CONFIG_BYTES_MAX as u64,
            });
        }
        let text = std::str::from_utf8(bytes).map_err(|_| refuse("", None, "it is not UTF-8"))?;
        let file: File = toml::from_str(text)
            .map_err(|error| refuse(text, error.span().map(|span| span.start), error.message()))?;
        let read = Reader { text };
        Ok(Self {
            check: read.check(&file.checks)?,
            tests: read.tests(&file.checks)?,
            rules: read.rules(&file.rules)?,
            isolation: file.lane.isolation,
            train_max: read
                .number("lane.train_max", file.lane.train_max.as_ref(), TRAIN_CHANGES_MAX as i64)?
                .and_then(|number| usize::try_from(number).ok())
                .unwrap_or(TRAIN_MAX_DEFAULT),
            replay: read.replay(&file.replay)?,
        })
    }

    /// Why nothing can be tested under this configuration; `None` when it can.
    #[must_use]
    pub fn hold_reason(&self) -> Option<&'static str> {
        match self.check {
            None => Some("main has no .switchyard.toml with a check command ([checks] command = ...)"),
            Some(_) => None,
        }
    }

    /// The part that the landing kernel decides by; `blob` is the configuration's own id.
    #[must_use]
    pub fn policy(&self, blob: Option<ObjectId>) -> Policy {
        let commutative = self
            .rules
            .iter()
            .filter(|entry| RULES.contains(&(entry.rule.as_str(), true)))
            .map(|entry| Commutative { paths: entry.pattern.clone(), rule: entry.rule.clone() });
        Policy {
            config: blob,
            command: self.check.as_ref().map(|check| check.command.clone()).unwrap_or_default(),
            isolation: self.isolation,
            commutative: commutative.collect(),
            review_lines: self.replay.review_lines,
        }
    }
}

fn refuse(text: &str, at: Option<usize>, why: &str) -> Refusal {
    let why = why.lines().collect::<Vec<_>>().join(" ");
    let line = at.map(|at| text.bytes().take(at).filter(|byte| *byte == b'\n').count() + 1);
    Refusal::Invalid {
        why: line.map_or_else(
            || format!(".switchyard.toml: {why}"),
            |line| format!(".switchyard.toml, line {line}: {why}"),
        ),
    }
}

/// Checks values and names their lines.
struct Reader<'a> {
    text: &'a str,
}

impl Reader<'_> {
    fn refuse<T>(&self, at: &toml::Spanned<T>, why: &str) -> Refusal {
        refuse(self.text, Some(at.span().start), why)
    }

    fn number(
        &self,
        key: &str,
        value: Option<&toml::Spanned<i64>>,
        max: i64,
    ) -> Result<Option<i64>, Refusal> {
        self.number_in(key, value, 1..=max)
    }

    fn number_in(
        &self,
        key: &str,
        value: Option<&toml::Spanned<i64>>,
        range: RangeInclusive<i64>,
    ) -> Result<Option<i64>, Refusal> {
        let Some(value) = value else { return Ok(None) };
        let number = *value.get_ref();
        if range.contains(&number) {
            return Ok(Some(number));
        }
        let (from, to) = (range.start(), range.end());
        Err(self.refuse(value, &format!("{key} is {number}, it must be {from} to {to}")))
    }

    fn tests(&self, table: &ChecksTable) -> Result<Vec<String>, Refusal> {
        let Some(given) = &table.tests else { return Ok(Self::default_tests()) };
        let patterns = match given.get_ref() {
            Patterns::One(pattern) => std::slice::from_ref(pattern),
            Patterns::Many(patterns) => patterns.as_slice(),
        };
        patterns.iter().try_for_each(|pattern| self.pattern("checks.tests", given, pattern))?;
        Ok(patterns.to_vec())
    }

    fn default_tests() -> Vec<String> {
        TESTS_DEFAULT.iter().map(|pattern| (*pattern).to_owned()).collect()
    }

    fn replay(&self, table: &ReplayTable) -> Result<ReplayPolicy, Refusal> {
        let number = |key, value: &Option<toml::Spanned<i64>>, range: RangeInclusive<i64>| {
            self.number_in(key, value.as_ref(), range)
        };
        let plain = ReplayPolicy::default();
        let per_change = number("replay.per_change", &table.per_change, 1..=REPLAYS_MAX.into())?;
        let usd = number("replay.usd_per_day", &table.usd_per_day, 0..=REPLAY_USD_MAX)?;
        let lines = number("replay.review_lines", &table.review_lines, 0..=1_000_000)?;
        let contract = table.contract.as_ref().map(|path| {
            RepoPath::new(path.get_ref().as_bytes())
                .map_err(|bad| self.refuse(path, &format!("replay.contract: {}", bad.rule)))
        });
        Ok(ReplayPolicy {
            by_model: table.by_model.unwrap_or(plain.by_model),
            per_change: per_change.and_then(|n| u32::try_from(n).ok()).unwrap_or(plain.per_change),
            micro_usd_per_day: usd
                .and_then(|n| u64::try_from(n).ok())
                .map_or(plain.micro_usd_per_day, |usd| usd * 1_000_000),
            review_lines: lines.and_then(|n| u32::try_from(n).ok()),
            contract: contract.transpose()?,
        })
    }

    fn check(&self, table: &ChecksTable) -> Result<Option<Check>, Refusal> {
        let timeout = self.number(
            "checks.timeout_seconds",
            table.timeout_seconds.as_ref(),
            TIMEOUT_SECONDS_MAX.into(),
        )?;
        let Some(command) = &table.command else {
            return match &table.junit {
                Some(junit) => {
                    Err(self.refuse(junit, "checks.junit without checks.command: add the command"))
                }
                None => Ok(None),
            };
        };
        if command.get_ref().trim().is_empty() || command.get_ref().contains('\0') {
            return Err(self.refuse(command, "checks.command must be a command"));
        }
        let Some(junit) = &table.junit else {
            let why = "checks.command without checks.junit: say where it writes JUnit XML, as a run \
                       without a report is never green";
            return Err(self.refuse(command, why));
        };
        let path = RepoPath::new(junit.get_ref().as_bytes())
            .map_err(|bad| self.refuse(junit, &format!("checks.junit: {}", bad.rule)))?;
        Ok(Some(Check {
            command: command.get_ref().clone(),
            junit: path,
            timeout_seconds: timeout.and_then(|n| u32::try_from(n).ok()).unwrap_or(TIMEOUT_SECONDS_DEFAULT),
        }))
    }

    fn rules(&self, tables: &[RuleTable]) -> Result<Vec<PathRule>, Refusal> {
        let mut rules = Vec::new();
        for table in tables {
            let name = table.rule.get_ref();
            if !RULES.iter().any(|(known, _)| known == name) {
                let known: Vec<&str> = RULES.iter().map(|(known, _)| *known).collect();
                let why = format!("there is no rule {name:?}: use one of {}", known.join(", "));
                return Err(self.refuse(&table.rule, &why));
            }
            let rule =
                RuleName::new(name.as_str()).map_err(|bad| self.refuse(&table.rule, &bad.to_string()))?;
            let patterns = match table.paths.get_ref() {
                Patterns::One(pattern) => std::slice::from_ref(pattern),
                Patterns::Many(patterns) => patterns.as_slice(),
            };
            for pattern in patterns {
                self.pattern("rules.paths", &table.paths, pattern)?;
                rules.push(PathRule { pattern: pattern.clone(), rule: rule.clone() });
            }
            if rules.len() > RULES_MAX {
                return Err(self.refuse(&table.paths, &format!("there are more than {RULES_MAX} patterns")));
            }
        }
        Ok(rules)
    }

    fn pattern(&self, key: &str, at: &toml::Spanned<Patterns>, pattern: &str) -> Result<(), Refusal> {
        let wildcards = pattern.replace("**", "*").matches('*').count();
        let why = if pattern.is_empty() || pattern.starts_with('/') || pattern.ends_with('/') {
            "a pattern is a path from the root of the repository, without a slash at either end"
        } else if pattern.len() > PATTERN_BYTES_MAX {
            "a pattern has at most 200 bytes"
        } else if wildcards > PATTERN_WILDCARDS_MAX {
            "a pattern has at most 4 wildcards"
        } else if pattern.contains(['[', ']', '{', '}', '\\']) {
            "a pattern knows *, ** and ? only"
        } else {
            return Ok(());
        };
        Err(self.refuse(at, &format!("{key} {pattern:?}: {why}")))
    }
}

#[cfg(test)]
mod tests;
