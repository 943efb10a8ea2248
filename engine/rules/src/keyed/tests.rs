//! Random files, random edits of both sides, against a model that knows values only.

mod random;

use std::collections::BTreeMap;

use super::value::Value;
use crate::{Rule, json, jsonl, toml, yaml};
use random::{Format as Written, Random, Tree, edited, tree, written};

/// What a file says where no order counts: records by their id.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Said {
    Scalar(String),
    Members(BTreeMap<String, Said>),
}

/// The model's own three-way merge; `None` is a collision.
fn model(base: Option<&Said>, ours: Option<&Said>, theirs: Option<&Said>) -> Option<Option<Said>> {
    if ours == theirs || theirs == base {
        return Some(ours.cloned());
    }
    if ours == base {
        return Some(theirs.cloned());
    }
    let (Some(Said::Members(b)), Some(Said::Members(o)), Some(Said::Members(t))) = (base, ours, theirs)
    else {
        return None;
    };
    let mut merged = BTreeMap::new();
    for key in b.keys().chain(o.keys()).chain(t.keys()) {
        if let Some(value) = model(b.get(key), o.get(key), t.get(key))? {
            merged.insert(key.clone(), value);
        }
    }
    Some(Some(Said::Members(merged)))
}

fn said(tree: &Tree) -> Said {
    match tree {
        Tree::Scalar(number) => Said::Scalar(number.to_string()),
        Tree::Map(members) | Tree::Records(members) => {
            Said::Members(members.iter().map(|(key, tree)| (key.clone(), said(tree))).collect())
        }
    }
}

/// The same of what the product's reader says; a record's id is its key.
fn read(value: &Value) -> Said {
    match value {
        Value::Scalar(text) => {
            let text = text.get(1..).unwrap();
            Said::Scalar(text.strip_prefix("10 ").unwrap_or(text).to_owned())
        }
        Value::Map(map) => Said::Members(map.iter().map(|(key, value)| (key.clone(), read(value))).collect()),
        Value::List(list) => Said::Members(
            list.iter()
                .map(|value| match read(value) {
                    Said::Members(mut fields) => match fields.remove("id") {
                        Some(Said::Scalar(id)) => (id, Said::Members(fields)),
                        id => panic!("a record with the id {id:?}"),
                    },
                    Said::Scalar(text) => panic!("{text} is no record"),
                })
                .collect(),
        ),
    }
}

fn merge(format: Written, base: &str, ours: &str, theirs: &str) -> Result<String, String> {
    let (base, ours, theirs) = (Some(base.as_bytes()), ours.as_bytes(), theirs.as_bytes());
    let merged = match format {
        Written::Json => json::merge(base, ours, theirs),
        Written::Jsonl => jsonl::merge(base, ours, theirs),
        Written::Toml => toml::merge(base, ours, theirs),
        Written::Yaml => yaml::merge(base, ours, theirs),
    };
    merged.map(|bytes| String::from_utf8(bytes).unwrap())
}

fn value(format: Written, text: &str) -> Said {
    let value = match format {
        Written::Json => json::value(text),
        Written::Jsonl => jsonl::value(text),
        Written::Toml => toml::value(text),
        Written::Yaml => yaml::value(text),
    };
    read(&value.unwrap_or_else(|fault| panic!("{fault}\n{text}")))
}

/// Every line of the result stands on one of the sides, but for a comma.
fn lines_are_known(result: &str, ours: &str, theirs: &str) -> Result<(), String> {
    let bare = |line: &str| line.trim_end_matches(['\r', ',']).to_owned();
    let known: Vec<String> = ours.lines().chain(theirs.lines()).map(bare).collect();
    match result.lines().find(|line| !known.contains(&bare(line))) {
        Some(line) => Err(line.to_owned()),
        None => Ok(()),
    }
}

/// How many of the mergeable cases were merged; panics on the first wrong answer.
fn run(format: Written, seeds: std::ops::Range<u64>) -> (usize, usize) {
    let (mut mergeable, mut right) = (0, 0);
    for seed in seeds {
        let mut random = Random::new(seed);
        let base = tree(&mut random, format);
        let (ours, theirs) = (edited(&base, &mut random, format), edited(&base, &mut random, format));
        let style = random.below(4);
        let texts = [&base, &ours, &theirs].map(|tree| written(tree, format, style));
        let [b, o, t] = &texts;
        let expected = model(Some(&said(&base)), Some(&said(&ours)), Some(&said(&theirs))).flatten();
        mergeable += usize::from(expected.is_some());
        let case = || format!("{format:?} seed {seed}\n--- base\n{b}\n--- ours\n{o}\n--- theirs\n{t}");
        for (side, text) in [(&base, b), (&ours, o), (&theirs, t)] {
            assert_eq!(value(format, text), said(side), "the generator\n{}", case());
        }
        // Through the splicing, without the short cuts of `Rule::apply`.
        assert_eq!(merge(format, b, b, t).as_ref(), Ok(t), "{}", case());
        assert_eq!(merge(format, b, o, b).as_ref(), Ok(o), "{}", case());
        assert_eq!(merge(format, b, o, o).as_ref(), Ok(o), "{}", case());
        let Ok(merged) = merge(format, b, o, t) else { continue };
        let Some(expected) = expected else { panic!("merged a collision\n{}\n--- merged\n{merged}", case()) };
        assert_eq!(value(format, &merged), expected, "{}\n--- merged\n{merged}", case());
        let whole_lines = format == Written::Yaml || format == Written::Json && style != 1;
        if let (true, Err(line)) = (whole_lines, lines_are_known(&merged, o, t)) {
            panic!("the line {line:?} stands on no side\n{}\n--- merged\n{merged}", case());
        }
        // Once more: the change is there already.
        if let Ok(again) = merge(format, b, &merged, t) {
            assert_eq!(again, merged, "applied twice\n{}", case());
        }
        right += 1;
    }
    (mergeable, right)
}

fn measured(format: Written) {
    let (mergeable, right) = run(format, 0..500);
    eprintln!("{format:?}: {right} of {mergeable}");
    assert!(mergeable > 200, "too few of the cases have an answer: {mergeable}");
    assert!(right * 100 >= mergeable * 85, "{format:?}: {right} of {mergeable} merged");
}

#[test]
fn json_is_merged_as_the_model_or_refused() {
    measured(Written::Json);
}

#[test]
fn jsonl_is_merged_as_the_model_or_refused() {
    measured(Written::Jsonl);
}

#[test]
fn toml_is_merged_as_the_model_or_refused() {
    measured(Written::Toml);
}

#[test]
fn yaml_is_merged_as_the_model_or_refused() {
    measured(Written::Yaml);
}

/// Torn files: cut, doubled, with bytes changed. Nothing panics, and what merges can be read again.
#[test]
fn torn_files_are_refused_and_never_panic() {
    for seed in 0..800 {
        let mut random = Random::new(seed);
        let format = [Written::Json, Written::Jsonl, Written::Toml, Written::Yaml][random.below(4) as usize];
        let base = tree(&mut random, format);
        let mut sides =
            [0, 1, 2].map(|_| written(&edited(&base, &mut random, format), format, 0).into_bytes());
        let torn = random.below(3) as usize;
        for _ in 0..=random.below(3) {
            let side = &mut sides[torn];
            if side.is_empty() {
                break;
            }
            let place = random.below(side.len() as u64) as usize;
            match random.below(4) {
                0 => side.truncate(place),
                1 => side[place] = b"{}[]:,\"'#\\\n -&*!|>=\xff\0"[random.below(21) as usize],
                2 => side.insert(place, b"{}[]:,\"'#\\\n -&*!|>=\xff\0"[random.below(21) as usize]),
                _ => drop(side.remove(place)),
            }
        }
        let [b, o, t] = &sides;
        let merged = match format {
            Written::Json => json::merge(Some(b), o, t),
            Written::Jsonl => jsonl::merge(Some(b), o, t),
            Written::Toml => toml::merge(Some(b), o, t),
            Written::Yaml => yaml::merge(Some(b), o, t),
        };
        if let Ok(merged) = merged {
            std::str::from_utf8(&merged).unwrap();
        }
    }
}

/// The rules stand in `Rule` under their names.
#[test]
fn the_rules_answer_by_name() {
    let three = ["{\"a\":1,\"z\":1}", "{\"a\":2,\"z\":1}", "{\"a\":1,\"z\":2}"];
    let both = crate::tests::apply(Rule::Json, "package.json", three);
    assert_eq!(both.as_deref(), Ok("{\"a\":2,\"z\":2}"));
    let yaml = crate::tests::apply(Rule::Yaml, "a.yml", ["a: 1\nb: 1\n", "a: 2\nb: 1\n", "a: 1\nb: 2\n"]);
    assert_eq!(yaml.as_deref(), Ok("a: 2\nb: 2\n"));
    let toml =
        crate::tests::apply(Rule::Toml, "a.toml", ["a = 1\nb = 1\n", "a = 2\nb = 1\n", "a = 1\nb = 2\n"]);
    assert_eq!(toml.as_deref(), Ok("a = 2\nb = 2\n"));
    let jsonl = crate::tests::apply(Rule::Jsonl, "a.jsonl", ["1\n", "1\n2\n", "1\n3\n"]);
    assert_eq!(jsonl.as_deref(), Ok("1\n2\n3\n"));
}
