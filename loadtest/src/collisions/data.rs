//! Objects by key and records by id: JSON, JSON lines, TOML, YAML.

use fastrand::Rng;

use super::{Case, Maker, Right, word};

pub(super) const MAKERS: &[Maker] = &[
    json_keys,
    json_one_value,
    jsonl_records,
    jsonl_one_record,
    toml_keys,
    toml_one_value,
    yaml_keys,
    yaml_one_value,
];

type Pairs = Vec<(String, String)>;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Print {
    Json,
    Toml,
    Yaml,
}

impl Print {
    fn file(self, pairs: &Pairs) -> String {
        let lines = pairs.iter().map(|(key, value)| match self {
            Self::Json => format!("    \"{key}\": \"{value}\""),
            Self::Toml => format!("{key} = \"{value}\"\n"),
            Self::Yaml => format!("  {key}: {value}\n"),
        });
        let lines: Vec<String> = lines.collect();
        match self {
            Self::Json => format!("{{\n  \"name\": \"x\",\n  \"map\": {{\n{}\n  }}\n}}\n", lines.join(",\n")),
            Self::Toml => format!("name = \"x\"\n\n[map]\n{}", lines.concat()),
            Self::Yaml => format!("name: x\nmap:\n{}", lines.concat()),
        }
    }

    fn rule(self) -> (&'static str, &'static str) {
        match self {
            Self::Json => ("json", "data/map.json"),
            Self::Toml => ("toml", "data/map.toml"),
            Self::Yaml => ("yaml", "data/map.yaml"),
        }
    }
}

fn pairs(rng: &mut Rng, number: &mut u32, count: usize) -> Pairs {
    (0..count).map(|_| (word(rng, number), word(rng, number))).collect()
}

fn case(kind: &'static str, print: Print, three: [&Pairs; 3], right: Right) -> Case {
    let [base, ours, theirs] = three.map(|pairs| print.file(pairs));
    let (rule, path) = print.rule();
    Case { kind, rule, path, base, ours, theirs, right }
}

fn keys(rng: &mut Rng, kind: &'static str, print: Print) -> Case {
    let number = &mut 0;
    let base = pairs(rng, number, 4);
    let (a, b) = (pairs(rng, number, 1), pairs(rng, number, 2));
    let put = |parts: &[&Pairs]| -> Pairs {
        std::iter::once(&base).chain(parts.iter().copied()).flatten().cloned().collect()
    };
    let right = [put(&[&a, &b]), put(&[&b, &a])].map(|pairs| print.file(&pairs));
    case(kind, print, [&base, &put(&[&a]), &put(&[&b])], Right::Bytes(right.to_vec()))
}

fn one_value(rng: &mut Rng, kind: &'static str, print: Print) -> Case {
    let number = &mut 0;
    let base = pairs(rng, number, 4);
    let at = rng.usize(..4);
    let mut one = || {
        let mut side = base.clone();
        if let Some((_, value)) = side.get_mut(at) {
            *value = word(rng, number);
        }
        side
    };
    let (ours, theirs) = (one(), one());
    case(kind, print, [&base, &ours, &theirs], Right::Collision)
}

fn json_keys(rng: &mut Rng) -> Case {
    keys(rng, "C4 both add a key, JSON", Print::Json)
}

fn json_one_value(rng: &mut Rng) -> Case {
    one_value(rng, "C1 both set one value, JSON", Print::Json)
}

fn toml_keys(rng: &mut Rng) -> Case {
    keys(rng, "C4 both add a key, TOML", Print::Toml)
}

fn toml_one_value(rng: &mut Rng) -> Case {
    one_value(rng, "C1 both set one value, TOML", Print::Toml)
}

fn yaml_keys(rng: &mut Rng) -> Case {
    keys(rng, "C4 both add a key, YAML", Print::Yaml)
}

fn yaml_one_value(rng: &mut Rng) -> Case {
    one_value(rng, "C1 both set one value, YAML", Print::Yaml)
}

fn record(id: u32, text: &str) -> String {
    format!("{{\"id\": {id}, \"text\": \"{text}\"}}\n")
}

fn records(rng: &mut Rng, number: &mut u32) -> Vec<String> {
    (1..=9).map(|id| record(id, &word(rng, number))).collect()
}

fn jsonl(kind: &'static str, three: [&[String]; 3], right: Right) -> Case {
    let [base, ours, theirs] = three.map(|lines| lines.concat());
    Case { kind, rule: "jsonl", path: "data/records.jsonl", base, ours, theirs, right }
}

fn jsonl_records(rng: &mut Rng) -> Case {
    let number = &mut 0;
    let base = records(rng, number);
    let (a, b) = (record(10, &word(rng, number)), record(11, &word(rng, number)));
    let put = |more: &[&String]| {
        [base.as_slice(), &more.iter().map(|one| (*one).clone()).collect::<Vec<_>>()].concat()
    };
    let right = Right::Bytes(vec![put(&[&a, &b]).concat(), put(&[&b, &a]).concat()]);
    jsonl("C6 both add a record", [&base, &put(&[&a]), &put(&[&b])], right)
}

fn jsonl_one_record(rng: &mut Rng) -> Case {
    let number = &mut 0;
    let base = records(rng, number);
    let mut one = || {
        let mut side = base.clone();
        side.splice(6..7, [record(7, &word(rng, number))]);
        side
    };
    let (ours, theirs) = (one(), one());
    jsonl("C6 both edit the record with id 7", [&base, &ours, &theirs], Right::Collision)
}
