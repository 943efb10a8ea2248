//! Imports of Python, TypeScript and Rust: names by module.

use std::collections::{BTreeMap, BTreeSet};

use fastrand::Rng;

use super::{Case, Maker, Right, sides, word};

pub(super) const MAKERS: &[Maker] =
    &[python, python_lines, typescript, rust, one_name_twice, used_and_taken_out, star, effects, comment];

type Modules = BTreeMap<String, BTreeSet<String>>;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Print {
    Python,
    PythonLines,
    TypeScript,
    Rust,
}

impl Print {
    fn path(self) -> &'static str {
        match self {
            Self::Python | Self::PythonLines => "a/module.py",
            Self::TypeScript => "a/module.ts",
            Self::Rust => "a/module.rs",
        }
    }

    fn block(self, modules: &Modules) -> String {
        let mut out = String::new();
        for (module, names) in modules {
            let list = names.iter().cloned().collect::<Vec<_>>();
            out.push_str(&match self {
                Self::Python => format!("from {module} import {}\n", list.join(", ")),
                Self::PythonLines => format!("from {module} import (\n    {},\n)\n", list.join(",\n    ")),
                Self::TypeScript => format!("import {{ {} }} from \"./{module}\";\n", list.join(", ")),
                Self::Rust => format!("use crate::{module}::{{{}}};\n", list.join(", ")),
            });
        }
        out
    }

    fn file(self, modules: &Modules, body: &[String]) -> String {
        let head = match self {
            Self::Python | Self::PythonLines => "\"\"\"A module.\"\"\"\n\n",
            Self::TypeScript => "// A module.\n\n",
            Self::Rust => "//! A module.\n\n",
        };
        format!("{head}{}\n\n{}\n", self.block(modules), body.join("\n\n"))
    }
}

fn names(rng: &mut Rng, number: &mut u32, count: usize) -> BTreeSet<String> {
    (0..count).map(|_| word(rng, number)).collect()
}

fn modules(rng: &mut Rng, number: &mut u32) -> Modules {
    // Two or more names: a list of one may be written without brackets.
    (0..rng.usize(3..6))
        .map(|_| {
            let count = rng.usize(2..4);
            (word(rng, number), names(rng, number, count))
        })
        .collect()
}

/// Adds names and modules, and says what it added.
fn grow(rng: &mut Rng, number: &mut u32, side: &mut Modules) {
    let known: Vec<String> = side.keys().cloned().collect();
    if let Some(module) = rng.choice(known) {
        let new = word(rng, number);
        side.entry(module).or_default().insert(new);
    }
    if rng.bool() {
        let module = word(rng, number);
        side.insert(module, names(rng, number, 2));
    }
}

fn body(rng: &mut Rng, number: &mut u32) -> Vec<String> {
    (0..5).map(|_| format!("{} = 1", word(rng, number))).collect()
}

fn grown(rng: &mut Rng, kind: &'static str, print: Print) -> Case {
    let number = &mut 0;
    let base = modules(rng, number);
    let (mut ours, mut theirs) = (base.clone(), base.clone());
    grow(rng, number, &mut ours);
    grow(rng, number, &mut theirs);
    if rng.bool() {
        // The same name on both sides.
        let same = word(rng, number);
        for side in [&mut ours, &mut theirs] {
            if let Some(mut first) = side.first_entry() {
                first.get_mut().insert(same.clone());
            }
        }
    }
    let mut right = ours.clone();
    for (module, names) in &theirs {
        right.entry(module.clone()).or_default().extend(names.iter().cloned());
    }
    let lines = body(rng, number);
    let (mut our_body, mut their_body, mut both) = (lines.clone(), lines.clone(), lines.clone());
    if rng.bool() {
        for (at, side) in [(1, &mut our_body), (3, &mut their_body)] {
            let new = format!("{} = 2", word(rng, number));
            side.splice(at..=at, [new.clone()]);
            both.splice(at..=at, [new]);
        }
    }
    let case = Case {
        kind,
        rule: "imports",
        path: print.path(),
        base: print.file(&base, &lines),
        ours: print.file(&ours, &our_body),
        theirs: print.file(&theirs, &their_body),
        right: Right::Bytes(vec![print.file(&right, &both)]),
    };
    sides(rng, case)
}

fn python(rng: &mut Rng) -> Case {
    grown(rng, "C5 imports, Python", Print::Python)
}

fn python_lines(rng: &mut Rng) -> Case {
    grown(rng, "C5 imports, Python, a name a line", Print::PythonLines)
}

fn typescript(rng: &mut Rng) -> Case {
    grown(rng, "C5 imports, TypeScript", Print::TypeScript)
}

fn rust(rng: &mut Rng) -> Case {
    grown(rng, "C5 imports, Rust", Print::Rust)
}

fn pick(rng: &mut Rng) -> Print {
    *rng.choice([Print::Python, Print::PythonLines, Print::TypeScript, Print::Rust].iter())
        .unwrap_or(&Print::Python)
}

fn collide(rng: &mut Rng, kind: &'static str, print: Print, [base, ours, theirs]: [String; 3]) -> Case {
    let path = print.path();
    sides(rng, Case { kind, rule: "imports", path, base, ours, theirs, right: Right::Collision })
}

fn one_name_twice(rng: &mut Rng) -> Case {
    let number = &mut 0;
    let (print, base, lines) = (pick(rng), modules(rng, number), body(rng, number));
    let (mut ours, mut theirs) = (base.clone(), base.clone());
    let (name, a, b) = (word(rng, number), word(rng, number), word(rng, number));
    ours.insert(a, [name.clone(), word(rng, number)].into());
    theirs.insert(b, [name, word(rng, number)].into());
    let three = [&base, &ours, &theirs].map(|modules| print.file(modules, &lines));
    collide(rng, "C14 imports of one name from two modules", print, three)
}

fn used_and_taken_out(rng: &mut Rng) -> Case {
    let number = &mut 0;
    let (print, base, mut lines) = (pick(rng), modules(rng, number), body(rng, number));
    let Some((module, names)) = base.first_key_value() else { return python(rng) };
    let name = names.first().cloned().unwrap_or_default();
    let mut theirs = base.clone();
    if let Some(names) = theirs.get_mut(module) {
        names.remove(&name);
    }
    let old = lines.clone();
    lines.push(format!("{} = {name}", word(rng, number)));
    let mut ours = base.clone();
    grow(rng, number, &mut ours);
    let three = [print.file(&base, &old), print.file(&ours, &lines), print.file(&theirs, &old)];
    collide(rng, "C3 one takes out an import that the other uses", print, three)
}

fn star(rng: &mut Rng) -> Case {
    let number = &mut 0;
    let (base, lines) = (modules(rng, number), body(rng, number));
    let star = format!("from {} import *\n", word(rng, number));
    let file = |modules: &Modules| format!("{star}{}", Print::Python.file(modules, &lines).split_off(17));
    let (mut ours, mut theirs) = (base.clone(), base.clone());
    grow(rng, number, &mut ours);
    grow(rng, number, &mut theirs);
    let three = [file(&base), file(&ours), file(&theirs)];
    collide(rng, "C14 imports beside a star", Print::Python, three)
}

fn effects(rng: &mut Rng) -> Case {
    let number = &mut 0;
    let (base, lines) = (modules(rng, number), body(rng, number));
    let file = |effects: &str| format!("{effects}{}", Print::TypeScript.file(&base, &lines).split_off(14));
    let (a, b, c) = (word(rng, number), word(rng, number), word(rng, number));
    let [a, b, c] = [a, b, c].map(|name| format!("import \"./{name}.css\";\n"));
    let three = [file(&a), file(&format!("{a}{b}")), file(&format!("{a}{c}"))];
    collide(rng, "C14 imports for their effect", Print::TypeScript, three)
}

fn comment(rng: &mut Rng) -> Case {
    let number = &mut 0;
    let (base, lines) = (modules(rng, number), body(rng, number));
    let (mut ours, mut theirs) = (base.clone(), base.clone());
    grow(rng, number, &mut ours);
    grow(rng, number, &mut theirs);
    let file = |modules: &Modules, note: &str| {
        let text = Print::Python.file(modules, &lines);
        let first = base.keys().next_back().map_or_else(String::new, |last| format!("from {last} "));
        text.replace(&first, &format!("# {note}\n{first}"))
    };
    let (a, b, c) = (word(rng, number), word(rng, number), word(rng, number));
    let three = [file(&base, &a), file(&ours, &b), file(&theirs, &c)];
    collide(rng, "C1 both reword a comment among imports", Print::Python, three)
}
