//! Which rule holds on which paths.

use yard_common::RepoPath;
use yard_common::config::PathRule;
use yard_common::policy::glob_matches;

use crate::Rule;

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
