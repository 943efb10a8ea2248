//! What the configuration on main (`.switchyard.toml`) says to the landing kernel.

use serde::{Deserialize, Serialize};

use crate::id::{ObjectId, RuleName};
use crate::path::RepoPath;

/// The path of the configuration, at the root of main.
pub const CONFIG_PATH: &str = ".switchyard.toml";

/// How far lanes keep out of each other's way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Isolation {
    /// Main's tip is always a tree that was tested as a whole.
    #[default]
    Strict,
    /// Other lanes' tested changes of disjoint paths may come in between.
    Paths,
}

/// An exact rule whose edits travel as operations on some paths.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Commutative {
    /// The paths: an exact path, or one with `*`, `?` (within a component) and `**` (any components).
    pub paths: String,
    /// The rule.
    pub rule: RuleName,
}

/// The part of a configuration that decides what may land.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Policy {
    /// The configuration's blob; `None` where main has none.
    pub config: Option<ObjectId>,
    /// The test command; where it is empty nothing lands.
    pub command: String,
    /// How far lanes keep out of each other's way.
    pub isolation: Isolation,
    /// The commutative rules.
    pub commutative: Vec<Commutative>,
    /// A model's replay that differs in more lines from what was reviewed needs an admin's approval.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub review_lines: Option<u32>,
}

impl Policy {
    /// May an edit of `path` under `rule` be applied anew after the test?
    #[must_use]
    pub fn is_commutative(&self, path: &RepoPath, rule: &RuleName) -> bool {
        self.commutative
            .iter()
            .any(|entry| entry.rule == *rule && matches(entry.paths.as_bytes(), path.as_bytes()))
    }
}

/// Does the path match the pattern (`*`, `?` within a component, `**` across components)?
#[must_use]
pub fn glob_matches(pattern: &[u8], path: &[u8]) -> bool {
    matches(pattern, path)
}

fn matches(pattern: &[u8], path: &[u8]) -> bool {
    match pattern {
        [] => path.is_empty(),
        [b'*', b'*', b'/', rest @ ..] if matches(rest, path) => true,
        [b'*', b'*', rest @ ..] => (0..=path.len()).any(|n| matches(rest, path.get(n..).unwrap_or_default())),
        [b'*', rest @ ..] => {
            let end = path.iter().position(|byte| *byte == b'/').unwrap_or(path.len());
            (0..=end).any(|n| matches(rest, path.get(n..).unwrap_or_default()))
        }
        [b'?', rest @ ..] => {
            path.split_first().is_some_and(|(byte, tail)| *byte != b'/' && matches(rest, tail))
        }
        [first, rest @ ..] => path.split_first().is_some_and(|(byte, tail)| byte == first && matches(rest, tail)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_commutative_rule_holds_on_its_paths_alone() {
        let policy = |paths: &str| Policy {
            commutative: vec![Commutative { paths: paths.into(), rule: RuleName::new("sorted-lines").unwrap() }],
            ..Policy::default()
        };
        let is = |paths: &str, path: &str, rule: &str| {
            policy(paths).is_commutative(&RepoPath::new(path).unwrap(), &RuleName::new(rule).unwrap())
        };
        assert!(is("INDEX", "INDEX", "sorted-lines"));
        assert!(!is("INDEX", "INDEX", "union"));
        assert!(!is("INDEX", "a/INDEX", "sorted-lines"));
        assert!(is("*.idx", "a.idx", "sorted-lines"));
        assert!(!is("*.idx", "a/b.idx", "sorted-lines"));
        assert!(is("**/*.idx", "a/b/c.idx", "sorted-lines"));
        assert!(is("**/*.idx", "c.idx", "sorted-lines"));
        assert!(is("a/**", "a/b/c", "sorted-lines"));
    }
}
