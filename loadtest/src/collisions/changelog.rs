//! Changelogs: entries added, removed and reworded while a release is cut.

use fastrand::Rng;

use super::{Case, Maker, Right, sides, word};

pub(super) const MAKERS: &[Maker] = &[
    both_add,
    both_add_on_top,
    cut_against_entry,
    cut_without_a_new_heading,
    cut_against_a_new_heading,
    deleted_against_added,
    same_entry,
    both_reword,
    reworded_against_deleted,
    reworded_against_cut,
    deleted_against_cut,
    two_cuts,
    reworded_against_added,
    new_headings,
    many_edits,
];

#[derive(Debug, Clone)]
struct Section {
    title: String,
    groups: Vec<(&'static str, Vec<String>)>,
}

#[derive(Debug, Clone)]
struct Log {
    sections: Vec<Section>,
    loose: bool,
    mark: &'static str,
}

const GROUPS: [&str; 4] = ["Added", "Changed", "Fixed", "Removed"];

impl Log {
    fn new(rng: &mut Rng, number: &mut u32) -> Self {
        let mark = *rng.choice(["-", "*"].iter()).unwrap_or(&"-");
        let loose = rng.bool();
        let titles = ["[Unreleased]", "[1.4.0] - 2026-03-01", "[1.3.2] - 2026-01-15"];
        let sections = titles.iter().map(|title| {
            let groups = GROUPS.iter().filter(|name| **name != "Changed" && **name != "Removed");
            let groups =
                groups.map(|name| (*name, (0..rng.usize(2..5)).map(|_| entry(rng, number)).collect()));
            Section { title: (*title).to_owned(), groups: groups.collect() }
        });
        Self { sections: sections.collect(), loose, mark }
    }

    fn print(&self) -> String {
        let mut out = "# Changelog\n\nAll that changes.\n\n".to_owned();
        let between = if self.loose { "\n\n" } else { "\n" };
        for section in &self.sections {
            out.push_str(&format!("## {}\n\n", section.title));
            for (name, entries) in &section.groups {
                out.push_str(&format!("### {name}\n\n"));
                let lines: Vec<String> =
                    entries.iter().map(|entry| format!("{} {entry}", self.mark)).collect();
                if !lines.is_empty() {
                    out.push_str(&lines.join(between));
                    out.push_str("\n\n");
                }
            }
        }
        out.truncate(out.trim_end().len());
        out.push('\n');
        out
    }

    /// The entries of a group of the unreleased section, made where it is missing.
    fn group(&mut self, name: &'static str) -> &mut Vec<String> {
        if self.sections.is_empty() {
            self.sections.push(Section { title: "[Unreleased]".to_owned(), groups: Vec::new() });
        }
        let first = self.sections.first_mut();
        let groups = &mut first.unwrap_or_else(|| unreachable!("pushed above")).groups;
        let rank = |name: &str| GROUPS.iter().position(|other| *other == name);
        let at = groups.iter().position(|(other, _)| rank(other) >= rank(name)).unwrap_or(groups.len());
        if groups.get(at).is_none_or(|(other, _)| *other != name) {
            groups.insert(at, (name, Vec::new()));
        }
        let found = groups.get_mut(at);
        &mut found.unwrap_or_else(|| unreachable!("inserted above")).1
    }

    fn cut(&mut self, version: &str, leave: Leave) {
        if let Some(first) = self.sections.first_mut() {
            let groups = match leave {
                Leave::Nothing | Leave::NoHeading => Vec::new(),
                Leave::Empty => first.groups.iter().map(|(name, _)| (*name, Vec::new())).collect(),
            };
            let old = std::mem::replace(&mut first.title, format!("[{version}] - 2026-05-01"));
            if leave != Leave::NoHeading {
                self.sections.insert(0, Section { title: old, groups });
            }
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Leave {
    Nothing,
    Empty,
    NoHeading,
}

fn entry(rng: &mut Rng, number: &mut u32) -> String {
    let (a, b) = (word(rng, number), word(rng, number));
    match rng.u8(..4) {
        0 => format!("The {a} no longer drops its {b}\n  when it is empty."),
        1 => format!("New: {a}, see the {b} ([#{number}](https://example.org/{number}))."),
        _ => format!("Fix the {b} of {a}."),
    }
}

fn group(rng: &mut Rng) -> &'static str {
    if rng.bool() { "Added" } else { "Fixed" }
}

fn make(kind: &'static str, logs: [&Log; 3], right: Right) -> Case {
    let [base, ours, theirs] = logs.map(Log::print);
    Case { kind, rule: "changelog", path: "CHANGELOG.md", base, ours, theirs, right }
}

fn bytes(logs: &[&Log]) -> Right {
    Right::Bytes(logs.iter().map(|log| log.print()).collect())
}

/// A base and two copies of it.
fn three(rng: &mut Rng, number: &mut u32) -> [Log; 3] {
    let base = Log::new(rng, number);
    [base.clone(), base.clone(), base]
}

fn both_add(rng: &mut Rng) -> Case {
    let number = &mut 0;
    let [base, mut ours, mut theirs] = three(rng, number);
    let (name, a, b) = (group(rng), entry(rng, number), entry(rng, number));
    let (mut one, mut other) = (base.clone(), base.clone());
    ours.group(name).push(a.clone());
    theirs.group(name).push(b.clone());
    one.group(name).extend([a.clone(), b.clone()]);
    other.group(name).extend([b, a]);
    sides(rng, make("C2 both add an entry", [&base, &ours, &theirs], bytes(&[&one, &other])))
}

fn both_add_on_top(rng: &mut Rng) -> Case {
    let number = &mut 0;
    let [base, mut ours, mut theirs] = three(rng, number);
    let (name, a, b) = (group(rng), entry(rng, number), entry(rng, number));
    let (mut one, mut other) = (base.clone(), base.clone());
    ours.group(name).insert(0, a.clone());
    theirs.group(name).insert(0, b.clone());
    one.group(name).splice(0..0, [a.clone(), b.clone()]);
    other.group(name).splice(0..0, [b, a]);
    sides(rng, make("C2 both add an entry on top", [&base, &ours, &theirs], bytes(&[&one, &other])))
}

fn cut_against_entry(rng: &mut Rng) -> Case {
    let number = &mut 0;
    let [base, mut ours, mut theirs] = three(rng, number);
    let leave = if rng.bool() { Leave::Nothing } else { Leave::Empty };
    ours.cut("1.5.0", leave);
    let mut right = ours.clone();
    let names = if rng.bool() { vec![group(rng)] } else { vec!["Added", "Fixed"] };
    for name in names {
        let new = entry(rng, number);
        let on_top = rng.bool();
        let entries = theirs.group(name);
        entries.insert(if on_top { 0 } else { entries.len() }, new.clone());
        right.group(name).push(new);
    }
    sides(rng, make("C2 a release is cut, an entry is added", [&base, &ours, &theirs], bytes(&[&right])))
}

fn cut_without_a_new_heading(rng: &mut Rng) -> Case {
    let number = &mut 0;
    let [base, mut ours, mut theirs] = three(rng, number);
    ours.cut("1.5.0", Leave::NoHeading);
    let (name, new) = (group(rng), entry(rng, number));
    theirs.group(name).push(new.clone());
    let mut right = ours.clone();
    let groups = vec![(name, vec![new])];
    right.sections.insert(0, Section { title: "[Unreleased]".to_owned(), groups });
    sides(rng, make("C2 a release leaves no unreleased heading", [&base, &ours, &theirs], bytes(&[&right])))
}

fn cut_against_a_new_heading(rng: &mut Rng) -> Case {
    let number = &mut 0;
    let [base, mut ours, mut theirs] = three(rng, number);
    ours.cut("2.0.0", if rng.bool() { Leave::Nothing } else { Leave::Empty });
    let new = entry(rng, number);
    let name = if rng.bool() { "Changed" } else { "Removed" };
    theirs.group(name).push(new.clone());
    let mut right = ours.clone();
    right.group(name).push(new);
    sides(rng, make("C2 a release is cut, a heading is added", [&base, &ours, &theirs], bytes(&[&right])))
}

fn deleted_against_added(rng: &mut Rng) -> Case {
    let number = &mut 0;
    let [base, mut ours, mut theirs] = three(rng, number);
    let (name, new) = (group(rng), entry(rng, number));
    let at = rng.usize(..theirs.group(name).len());
    ours.group(name).remove(at);
    theirs.group(name).insert(at + 1, new.clone());
    let mut right = ours.clone();
    right.group(name).insert(at, new);
    sides(rng, make("C3 one deletes an entry, one adds after it", [&base, &ours, &theirs], bytes(&[&right])))
}

fn same_entry(rng: &mut Rng) -> Case {
    let number = &mut 0;
    let [base, mut ours, mut theirs] = three(rng, number);
    let (name, same, more) = (group(rng), entry(rng, number), entry(rng, number));
    ours.group(name).push(same.clone());
    if rng.bool() {
        ours.group(name).push(more);
    } else {
        let len = ours.group(name).len();
        ours.group(name).insert(len - 1, more);
    }
    theirs.group(name).push(same);
    sides(rng, make("C5 both add one entry, one of them another", [&base, &ours, &theirs], bytes(&[&ours])))
}

fn both_reword(rng: &mut Rng) -> Case {
    let number = &mut 0;
    let [base, mut ours, mut theirs] = three(rng, number);
    let name = group(rng);
    let at = rng.usize(..ours.group(name).len());
    for log in [&mut ours, &mut theirs] {
        let new = entry(rng, number);
        log.group(name).splice(at..=at, [new]);
        if rng.bool() {
            let more = entry(rng, number);
            log.group(name).push(more);
        }
    }
    sides(rng, make("C1 both reword an entry", [&base, &ours, &theirs], Right::Collision))
}

fn reworded_against_deleted(rng: &mut Rng) -> Case {
    let number = &mut 0;
    let [base, mut ours, mut theirs] = three(rng, number);
    let (name, new) = (group(rng), entry(rng, number));
    let at = rng.usize(..ours.group(name).len());
    ours.group(name).splice(at..=at, [new]);
    theirs.group(name).remove(at);
    sides(rng, make("C1 one rewords an entry, one deletes it", [&base, &ours, &theirs], Right::Collision))
}

fn reworded_against_cut(rng: &mut Rng) -> Case {
    let number = &mut 0;
    let [base, mut ours, mut theirs] = three(rng, number);
    let (name, new) = (group(rng), entry(rng, number));
    ours.cut("1.5.0", Leave::Nothing);
    let at = rng.usize(..theirs.group(name).len());
    theirs.group(name).splice(at..=at, [new]);
    sides(rng, make("C2 one rewords what is released", [&base, &ours, &theirs], Right::Collision))
}

fn deleted_against_cut(rng: &mut Rng) -> Case {
    let number = &mut 0;
    let [base, mut ours, mut theirs] = three(rng, number);
    let name = group(rng);
    ours.cut("1.5.0", if rng.bool() { Leave::Empty } else { Leave::NoHeading });
    let at = rng.usize(..theirs.group(name).len());
    theirs.group(name).remove(at);
    sides(rng, make("C3 one deletes what is released", [&base, &ours, &theirs], Right::Collision))
}

fn two_cuts(rng: &mut Rng) -> Case {
    let number = &mut 0;
    let [base, mut ours, mut theirs] = three(rng, number);
    ours.cut("1.5.0", Leave::Nothing);
    theirs.cut("2.0.0", Leave::Nothing);
    sides(rng, make("C2 both cut a release", [&base, &ours, &theirs], Right::Collision))
}

fn reworded_against_added(rng: &mut Rng) -> Case {
    let number = &mut 0;
    let [base, mut ours, mut theirs] = three(rng, number);
    let (name, new, old) = (group(rng), entry(rng, number), entry(rng, number));
    ours.group(name).splice(0..1, [old.clone()]);
    theirs.group(name).push(new.clone());
    let mut right = ours.clone();
    right.group(name).push(new);
    sides(rng, make("C1 one rewords, one adds", [&base, &ours, &theirs], bytes(&[&right])))
}

fn new_headings(rng: &mut Rng) -> Case {
    let number = &mut 0;
    let [base, mut ours, mut theirs] = three(rng, number);
    let (a, b) = (entry(rng, number), entry(rng, number));
    let same = rng.bool();
    let (first, second) = if same { ("Changed", "Changed") } else { ("Changed", "Removed") };
    ours.group(first).push(a.clone());
    theirs.group(second).push(b.clone());
    let (mut one, mut other) = (ours.clone(), theirs.clone());
    one.group(second).push(b);
    other.group(first).push(a);
    sides(rng, make("C5 both add a heading", [&base, &ours, &theirs], bytes(&[&one, &other])))
}

/// Each side removes, rewords and adds; an entry that both touch in different ways collides.
fn many_edits(rng: &mut Rng) -> Case {
    let number = &mut 0;
    let [base, mut ours, mut theirs] = three(rng, number);
    let name = "Fixed";
    let entries = ours.group(name).clone();
    let mut touch = |rng: &mut Rng| -> Vec<Option<String>> {
        let choose = |old: &String| match rng.u8(..6) {
            0 => None,
            1 => Some(entry(rng, number)),
            _ => Some(old.clone()),
        };
        entries.iter().map(choose).collect()
    };
    let (our, their) = (touch(rng), touch(rng));
    let (a, b) = (entry(rng, number), entry(rng, number));
    let full = |kept: &[Option<String>], more: &[&String]| -> Vec<String> {
        kept.iter().flatten().chain(more.iter().copied()).cloned().collect()
    };
    *ours.group(name) = full(&our, &[&a]);
    *theirs.group(name) = full(&their, &[&b]);
    let mut merged = Vec::new();
    let mut collides = false;
    for ((old, our), their) in entries.iter().zip(&our).zip(&their) {
        let (left, right) = (our.as_ref() != Some(old), their.as_ref() != Some(old));
        collides |= left && right && our != their;
        merged.push(if left { our.clone() } else { their.clone() });
    }
    let (mut one, mut other) = (base.clone(), base.clone());
    *one.group(name) = full(&merged, &[&a, &b]);
    *other.group(name) = full(&merged, &[&b, &a]);
    let right = if collides { Right::Collision } else { bytes(&[&one, &other]) };
    sides(rng, make("C1 C3 many edits of both", [&base, &ours, &theirs], right))
}
