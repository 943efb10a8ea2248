use yard_common::config;

use super::*;

/// A merge of lines that merges none.
pub(crate) struct NoLines;

impl LineMerge for NoLines {
    fn merge(&self, _: &[u8], _: &[u8], _: &[u8]) -> Result<Vec<u8>, String> {
        Err("no lines are merged here".to_owned())
    }
}

/// A rule applied to three files at hand, by path.
pub(crate) fn apply(rule: Rule, path: &str, three: [&str; 3]) -> Result<String, String> {
    let [base, ours, theirs] = three.map(|text| Some(text.as_bytes()));
    let merged = rule.apply(base, ours, theirs, &RepoPath::new(path).unwrap(), &NoLines);
    merged.map(|bytes| String::from_utf8(bytes).unwrap())
}

#[test]
fn the_rules_are_those_that_a_configuration_may_name() {
    let known: Vec<_> = Rule::ALL.into_iter().map(|rule| (rule.as_str(), rule.commutative())).collect();
    assert_eq!(known, config::RULES);
    for rule in Rule::ALL {
        assert_eq!(Rule::from_name(rule.name().unwrap().as_str()), Some(rule));
    }
}

#[test]
fn the_first_pattern_decides_and_others_have_no_rule() {
    let rules = Rules::new(vec![("a/**/*.list".to_owned(), Rule::SortedLines)]);
    assert_eq!(rules.of(&RepoPath::new("a/b/c/x.list").unwrap()), Some(Rule::SortedLines));
    assert_eq!(rules.of(&RepoPath::new("b/x.list").unwrap()), None);
}

#[test]
fn a_side_that_did_nothing_leaves_the_bytes_to_the_other_whatever_they_are() {
    let path = RepoPath::new("f").unwrap();
    let odd: &[u8] = b"\xff\xfe z\na\0";
    for rule in Rule::ALL {
        let run = |base, ours, theirs| rule.apply(base, ours, theirs, &path, &NoLines);
        assert_eq!(run(Some(b"b"), Some(b"b"), Some(odd)).unwrap(), odd);
        assert_eq!(run(Some(b"b"), Some(odd), Some(b"b")).unwrap(), odd);
        assert_eq!(run(Some(b"b"), Some(odd), Some(odd)).unwrap(), odd);
        assert_eq!(run(None, None, Some(odd)).unwrap(), odd);
        assert_eq!(run(None, Some(odd), Some(odd)).unwrap(), odd);
    }
}

#[test]
fn a_rule_deletes_no_file() {
    let path = RepoPath::new("f").unwrap();
    for rule in Rule::ALL {
        let run = |base, ours, theirs| rule.apply(base, ours, theirs, &path, &NoLines);
        assert!(run(Some(b"b"), Some(b"b"), None).unwrap_err().contains("the change deletes"));
        assert!(run(Some(b"b"), None, Some(b"c")).unwrap_err().contains("main deleted"));
        assert!(run(Some(b"b"), None, None).is_err());
    }
}
