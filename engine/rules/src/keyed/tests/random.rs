//! Random trees, their edits, and how the formats write them.

use std::fmt::Write;

/// SplitMix64 (Steele, Lea, Flood 2014).
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(1))
    }

    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut x = self.0;
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (x ^ (x >> 31)) % end
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    Json,
    Jsonl,
    Toml,
    Yaml,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Tree {
    Scalar(u64),
    Map(Vec<(String, Tree)>),
    /// A list of maps, by their id.
    Records(Vec<(String, Tree)>),
}

fn key(random: &mut Random) -> String {
    let letters = ["a", "b", "c", "d", "k", "m", "x", "left-pad", "z_1", "q9"];
    format!("{}{}", letters[random.below(10) as usize], random.below(9))
}

fn members(random: &mut Random, depth: u64, records: bool) -> Vec<(String, Tree)> {
    let mut members: Vec<(String, Tree)> = Vec::new();
    for _ in 0..=random.below(5) {
        let key = if records { random.below(90).to_string() } else { key(random) };
        if members.iter().all(|(known, _)| *known != key) {
            members.push((key, if records { fields(random) } else { node(random, depth + 1) }));
        }
    }
    if random.below(2) == 0 {
        members.sort_by(|a, b| a.0.cmp(&b.0));
    }
    members
}

fn fields(random: &mut Random) -> Tree {
    Tree::Map(
        (0..=random.below(3)).map(|place| (format!("f{place}"), Tree::Scalar(random.below(50)))).collect(),
    )
}

fn node(random: &mut Random, depth: u64) -> Tree {
    match random.below(6 + 3 * depth) {
        0 | 1 => Tree::Map(members(random, depth, false)),
        2 | 3 => Tree::Records(members(random, depth, true)),
        _ => Tree::Scalar(random.below(50)),
    }
}

pub(crate) fn tree(random: &mut Random, format: Format) -> Tree {
    if format == Format::Jsonl {
        return Tree::Records(members(random, 0, true));
    }
    let mut root = members(random, 0, false);
    root.push(("root".to_owned(), node(random, 0)));
    Tree::Map(root)
}

/// One to three edits.
pub(crate) fn edited(base: &Tree, random: &mut Random, format: Format) -> Tree {
    let mut tree = base.clone();
    for _ in 0..=random.below(3) {
        edit(&mut tree, random, 0);
    }
    if let (Tree::Map(members), Format::Yaml) = (&mut tree, format)
        && members.is_empty()
    {
        members.push(("root".to_owned(), Tree::Scalar(1)));
    }
    tree
}

fn edit(tree: &mut Tree, random: &mut Random, depth: u64) {
    let records = matches!(tree, Tree::Records(_));
    let list = match tree {
        Tree::Scalar(number) => {
            *number = random.below(50);
            return;
        }
        Tree::Map(list) | Tree::Records(list) => list,
    };
    let count = list.len() as u64;
    match random.below(6) {
        0 if count > 1 => drop(list.remove(random.below(count) as usize)),
        1 | 2 => {
            let name = if records { random.below(90).to_string() } else { key(random) };
            if list.iter().any(|(known, _)| *known == name) {
                return;
            }
            let value = if records { fields(random) } else { node(random, depth + 1) };
            let sorted = count > 1 && list.is_sorted_by(|a, b| a.0 < b.0);
            let place = if sorted {
                list.iter().position(|(known, _)| *known > name).unwrap_or(list.len())
            } else {
                random.below(count + 1) as usize
            };
            list.insert(place, (name, value));
        }
        _ if count > 0 => edit(&mut list[random.below(count) as usize].1, random, depth + 1),
        _ => {}
    }
}

/// The text of a tree; the style moves brackets, comments and indentation, the same on all sides.
pub(crate) fn written(tree: &Tree, format: Format, style: u64) -> String {
    let mut out = String::new();
    match (format, tree) {
        (Format::Json, _) => {
            json(&mut out, tree, style, 0);
            if style != 1 {
                out.push('\n');
            }
        }
        (Format::Jsonl, Tree::Records(records)) => {
            for (id, record) in records {
                json_record(&mut out, id, record, 1, 0);
                out.push('\n');
            }
        }
        (Format::Toml, Tree::Map(members)) => toml(&mut out, members, style, ""),
        (Format::Yaml, Tree::Map(_)) => yaml(&mut out, tree, style, 0),
        _ => panic!("no file is {tree:?}"),
    }
    if style == 3 { out.replace('\n', "\r\n") } else { out }
}

fn json_record(out: &mut String, id: &str, record: &Tree, style: u64, depth: usize) {
    let Tree::Map(fields) = record else { panic!("no record is {record:?}") };
    let mut all = vec![("id".to_owned(), Tree::Scalar(id.parse().unwrap()))];
    all.extend(fields.iter().cloned());
    json(out, &Tree::Map(all), style, depth);
}

fn json(out: &mut String, tree: &Tree, style: u64, depth: usize) {
    let (list, open, close) = match tree {
        Tree::Scalar(number) => return write!(out, "{number}").unwrap(),
        Tree::Map(list) => (list, '{', '}'),
        Tree::Records(list) => (list, '[', ']'),
    };
    out.push(open);
    let line = |out: &mut String, depth: usize| {
        if style != 1 {
            write!(out, "\n{}", if style == 2 { "\t" } else { "  " }.repeat(depth)).unwrap();
        }
    };
    for (place, (key, value)) in list.iter().enumerate() {
        if place > 0 {
            out.push_str(if style == 1 { ", " } else { "," });
        }
        line(out, depth + 1);
        if open == '[' {
            json_record(out, key, value, style, depth + 1);
        } else {
            write!(out, "\"{key}\": ").unwrap();
            json(out, value, style, depth + 1);
        }
    }
    if !list.is_empty() {
        line(out, depth);
    }
    out.push(close);
}

fn comment(out: &mut String, key: &str, style: u64, indent: usize) {
    if style == 2 && key.ends_with('1') {
        writeln!(out, "\n{}# about {key}", " ".repeat(indent)).unwrap();
    }
}

fn toml(out: &mut String, members: &[(String, Tree)], style: u64, above: &str) {
    for (key, value) in members {
        if !matches!(value, Tree::Scalar(_)) && above.matches('.').count() < 2 {
            continue;
        }
        comment(out, key, style, 0);
        write!(out, "{key} = ").unwrap();
        inline(out, value, style);
        out.push_str(if style == 2 && key.ends_with('2') { " # two\n" } else { "\n" });
    }
    for (key, value) in members {
        if above.matches('.').count() >= 2 {
            continue;
        }
        match value {
            Tree::Map(inner) => {
                write!(out, "\n[{above}{key}]\n").unwrap();
                toml(out, inner, style, &format!("{above}{key}."));
            }
            Tree::Records(records) if records.is_empty() => {}
            Tree::Records(records) => {
                for (id, record) in records {
                    write!(out, "\n[[{above}{key}]]\nid = {id}\n").unwrap();
                    let Tree::Map(fields) = record else { panic!("no record is {record:?}") };
                    toml(out, fields, style, &format!("{above}{key}."));
                }
            }
            Tree::Scalar(_) => {}
        }
    }
}

fn inline(out: &mut String, tree: &Tree, style: u64) {
    let (list, records) = match tree {
        Tree::Scalar(number) => return write!(out, "{number}").unwrap(),
        Tree::Map(list) => (list, false),
        Tree::Records(list) => (list, true),
    };
    let lines = records && style != 1;
    out.push_str(if !records {
        "{ "
    } else if lines {
        "[\n"
    } else {
        "["
    });
    for (place, (key, value)) in list.iter().enumerate() {
        if place > 0 && !lines {
            out.push_str(", ");
        }
        if records {
            let Tree::Map(fields) = value else { panic!("no record is {value:?}") };
            let mut all = vec![("id".to_owned(), Tree::Scalar(key.parse().unwrap()))];
            all.extend(fields.iter().cloned());
            out.push_str(if lines { "    " } else { "" });
            inline(out, &Tree::Map(all), style);
            out.push_str(if !lines {
                ""
            } else if place == 0 {
                ", # first\n"
            } else {
                ",\n"
            });
        } else {
            write!(out, "{key} = ").unwrap();
            inline(out, value, style);
        }
    }
    out.push_str(if records { "]" } else { " }" });
}

fn yaml(out: &mut String, tree: &Tree, style: u64, indent: usize) {
    let space = " ".repeat(indent);
    match tree {
        Tree::Scalar(number) => write!(out, "{number}").unwrap(),
        Tree::Map(members) => {
            for (key, value) in members {
                comment(out, key, style, indent);
                write!(out, "{space}{key}:").unwrap();
                below(out, value, style, indent);
                if style == 1 && matches!(value, Tree::Scalar(_)) && key.ends_with('3') {
                    out.insert_str(out.len() - 1, "  # three");
                }
            }
        }
        Tree::Records(records) => {
            for (id, record) in records {
                comment(out, id, style, indent);
                writeln!(out, "{space}- id: {id}").unwrap();
                let Tree::Map(fields) = record else { panic!("no record is {record:?}") };
                for (key, value) in fields {
                    write!(out, "{space}  {key}:").unwrap();
                    below(out, value, style, indent + 2);
                }
            }
        }
    }
}

fn below(out: &mut String, value: &Tree, style: u64, indent: usize) {
    match value {
        Tree::Scalar(number) => writeln!(out, " {number}").unwrap(),
        Tree::Map(list) if list.is_empty() => out.push_str(" {}\n"),
        Tree::Records(list) if list.is_empty() => out.push_str(" []\n"),
        Tree::Map(_) => {
            out.push('\n');
            yaml(out, value, style, indent + 2);
        }
        Tree::Records(_) => {
            out.push('\n');
            yaml(out, value, style, indent + if style == 1 { 0 } else { 2 });
        }
    }
}
