use super::*;

const FULL: &str = r#"
[lane]
isolation = "paths"
train_max = 500

[checks]
command = "npm test"
junit = "out/report.xml"
timeout_seconds = 30

[[rules]]
paths = "INDEX"
rule = "sorted-lines"

[[rules]]
paths = ["a/**/*.list", "b?.txt"]
rule = "sorted-lines"
"#;

fn why(text: &str) -> String {
    match Config::parse(text.as_bytes()) {
        Err(Refusal::Invalid { why }) => why,
        other => panic!("{other:?}"),
    }
}

#[test]
fn every_key_is_read() {
    let config = Config::parse(FULL.as_bytes()).unwrap();
    let check = config.check.as_ref().unwrap();
    assert_eq!((check.command.as_str(), check.timeout_seconds), ("npm test", 30));
    assert_eq!(check.junit.as_bytes(), b"out/report.xml");
    assert_eq!((config.isolation, config.train_max), (Isolation::Paths, 500));
    let patterns: Vec<_> = config.rules.iter().map(|rule| rule.pattern.as_str()).collect();
    assert_eq!(patterns, ["INDEX", "a/**/*.list", "b?.txt"]);
    assert_eq!(config.hold_reason(), None);
    let policy = config.policy(Some(ObjectId::EMPTY_TREE));
    assert_eq!((policy.command.as_str(), policy.commutative.len()), ("npm test", 3));
    assert!(
        policy.is_commutative(&RepoPath::new("b1.txt").unwrap(), &RuleName::new("sorted-lines").unwrap())
    );
}

#[test]
fn an_empty_file_is_the_default_and_holds_everything_with_the_reason() {
    let config = Config::parse(b"").unwrap();
    assert_eq!(config, Config::default());
    assert_eq!((config.isolation, config.train_max), (Isolation::Strict, TRAIN_MAX_DEFAULT));
    assert!(config.hold_reason().unwrap().starts_with("main has no .switchyard.toml with a check command"));
}

#[test]
fn an_unknown_key_is_refused_with_its_name_and_line() {
    let text = why("[checks]\ncommand = \"x\"\njunit = \"r.xml\"\ntimeout = 3\n");
    assert!(text.contains("line 4") && text.contains("`timeout`"), "{text}");
    let text = why("\n[[rules]]\npaths = \"a\"\nrule = \"sorted-lines\"\nwhen = 1\n");
    assert!(text.contains("line 5") && text.contains("`when`"), "{text}");
    let text = why("[lanes]\n");
    assert!(text.contains("line 1") && text.contains("`lanes`"), "{text}");
}

#[test]
fn wrong_values_are_refused_with_their_line_and_what_is_expected() {
    for (text, line, part) in [
        ("[lane]\ntrain_max = 0\n", "line 2", "1 to 500"),
        ("[lane]\ntrain_max = 501\n", "line 2", "1 to 500"),
        ("[lane]\nisolation = \"none\"\n", "line 2", "strict"),
        ("[checks]\ncommand = \" \"\njunit = \"r\"\n", "line 2", "must be a command"),
        ("[checks]\ncommand = \"x\"\n", "line 2", "checks.junit"),
        ("[checks]\njunit = \"r\"\n", "line 2", "checks.command"),
        ("[checks]\ncommand = \"x\"\njunit = \"../r\"\n", "line 3", "'..'"),
        ("[checks]\ntimeout_seconds = 21601\n", "line 2", "1 to 21600"),
        ("[[rules]]\npaths = \"a\"\nrule = \"union\"\n", "line 3", "sorted-lines"),
        ("[[rules]]\npaths = \"/a\"\nrule = \"sorted-lines\"\n", "line 2", "root of the repository"),
        ("[[rules]]\npaths = [\"[a]\"]\nrule = \"sorted-lines\"\n", "line 2", "knows *"),
        ("[[rules]]\npaths = \"*a*a*a*a*\"\nrule = \"sorted-lines\"\n", "line 2", "at most 4"),
        ("[lane\n", "line 1", ""),
    ] {
        let text = why(text);
        assert!(text.contains(line) && text.contains(part), "{text}");
    }
}

#[test]
fn odd_bytes_are_refused() {
    assert!(matches!(Config::parse(b"\xff"), Err(Refusal::Invalid { .. })));
    assert!(matches!(Config::parse(&vec![b'#'; CONFIG_BYTES_MAX + 1]), Err(Refusal::TooLarge { .. })));
}

#[test]
fn replays_have_bounds_and_say_what_is_wrong() {
    let read = |text: &str| Config::parse(text.as_bytes()).map(|config| config.replay);
    assert_eq!(read(""), Ok(ReplayPolicy::default()));
    let given = "[replay]\nby_model = false\nper_change = 2\nusd_per_day = 0\nreview_lines = 0\ncontract = \"C.md\"\n";
    let policy = read(given).unwrap();
    assert_eq!((policy.by_model, policy.per_change, policy.micro_usd_per_day), (false, 2, 0));
    assert_eq!((policy.review_lines, policy.contract.unwrap().to_string()), (Some(0), "C.md".to_owned()));
    for (text, part) in [
        ("[replay]\nper_change = 0\n", "line 2: replay.per_change is 0, it must be 1 to 20"),
        ("[replay]\nusd_per_day = -1\n", "line 2: replay.usd_per_day is -1"),
        ("[replay]\ncontract = \"../x\"\n", "line 2: replay.contract"),
        ("[replay]\nmodel = \"x\"\n", "line 2"),
    ] {
        let why = read(text).unwrap_err().to_string();
        assert!(why.contains(part), "{why}");
    }
}
