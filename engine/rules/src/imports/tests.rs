use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use crate::{LineMerge, Rule};
use yard_common::RepoPath;

/// A merge of lines for files of equal length: each line by its three values.
struct ByLine;

impl LineMerge for ByLine {
    fn merge(&self, base: &[u8], ours: &[u8], theirs: &[u8]) -> Result<Vec<u8>, String> {
        let lines = |bytes: &[u8]| -> Vec<Vec<u8>> {
            bytes.split_inclusive(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect()
        };
        let (base, ours, theirs) = (lines(base), lines(ours), lines(theirs));
        if base.len() != ours.len() || base.len() != theirs.len() {
            return Err("other lengths".to_owned());
        }
        let mut out = Vec::new();
        for ((base, ours), theirs) in base.iter().zip(&ours).zip(&theirs) {
            out.extend(match () {
                () if ours == base => theirs.clone(),
                () if theirs == base || ours == theirs => ours.clone(),
                () => return Err("main and the change both changed the same lines".to_owned()),
            });
        }
        Ok(out)
    }
}

fn apply(path: &str, base: &str, ours: &str, theirs: &str) -> Result<String, String> {
    let [base, ours, theirs] = [base, ours, theirs].map(|text| Some(text.as_bytes()));
    let merged = Rule::Imports.apply(base, ours, theirs, &RepoPath::new(path).unwrap(), &ByLine);
    merged.map(|bytes| String::from_utf8(bytes).unwrap())
}

fn python(base: &str, ours: &str, theirs: &str) -> Result<String, String> {
    let file = |block: &str| format!("\"\"\"Doc.\n\nimport nothing\n\"\"\"\n\n{block}\nx = 1\n");
    let merged = apply("a.py", &file(base), &file(ours), &file(theirs))?;
    let again = apply("a.py", &file(base), &merged, &file(theirs))?;
    assert_eq!(again, merged, "applied again");
    let inner = merged.strip_prefix(&file("")[..file("").len() - 7]).unwrap();
    Ok(inner.strip_suffix("\nx = 1\n").unwrap().to_owned())
}

#[test]
fn modules_of_both_stand_once_in_order() {
    let merged = python("import os\n", "import abc\nimport os\n", "import os\nimport sys\n").unwrap();
    assert_eq!(merged, "import abc\nimport os\nimport sys\n");
    let merged =
        python("import os\n", "import os\nimport re\n", "import os\nimport re\nimport sys\n").unwrap();
    assert_eq!(merged, "import os\nimport re\nimport sys\n");
}

#[test]
fn names_of_one_module_are_a_set() {
    let base = "from m import b\n";
    assert_eq!(
        python(base, "from m import a, b\n", "from m import b, c\n").unwrap(),
        "from m import a, b, c\n"
    );
    assert_eq!(
        python("from m import a, b\n", "from m import b\n", "from m import a, b, c\n").unwrap(),
        "from m import b, c\n"
    );
    let long = "from m import (\n    a,\n    c,\n)\n";
    let ours = "from m import (\n    a,\n    b,\n    c,\n)\n";
    let theirs = "from m import (\n    a,\n    c,\n    d as e,\n)\n";
    let merged = python(long, ours, theirs).unwrap();
    assert_eq!(merged, "from m import (\n    a,\n    b,\n    c,\n    d as e,\n)\n");
}

#[test]
fn both_new_imports_of_one_module_become_one() {
    let base = "import os\n";
    let ours = "import os\nfrom m import a\n";
    let theirs = "import os\nfrom m import b\n";
    assert_eq!(python(base, ours, theirs).unwrap(), "import os\nfrom m import a, b\n");
}

#[test]
fn a_new_group_stays_a_group() {
    let base = "import os\n";
    let ours = "import os\nimport re\n";
    let theirs = "import os\n\nfrom . import a\n";
    assert_eq!(python(base, ours, theirs).unwrap(), "import os\nimport re\n\nfrom . import a\n");
}

#[test]
fn one_name_from_two_modules_collides() {
    let why =
        python("import os\n", "import os\nfrom a import x\n", "import os\nfrom b import x\n").unwrap_err();
    assert!(why.contains("\"x\""), "{why}");
    let why =
        python("import os\n", "import os\nimport x\n", "import os\nfrom b import y as x\n").unwrap_err();
    assert!(why.contains("bind"), "{why}");
}

#[test]
fn stars_comments_and_lists_with_comments_collide_with_side_and_line() {
    let base = "from a import *\nimport os\n";
    assert!(
        python(base, &format!("{base}import re\n"), &format!("{base}import sys\n"))
            .unwrap_err()
            .contains("star")
    );
    let why = python("import os\n", "import os\nimport re\n", "import os\n# why\nimport sys\n").unwrap_err();
    assert!(why.contains("comments"), "{why}");
    assert!(python("import os\n", "import abc\nimport os\n", "# why\nimport os\n").is_err());
    let base = "from m import a  # noqa\n";
    let why = python(base, "from m import a, b  # noqa\n", "from m import a, c  # noqa\n").unwrap_err();
    assert!(why.contains("the change's file, line 6"), "{why}");
}

#[test]
fn from_future_stays_on_top() {
    let base = "import os\n";
    let theirs = "from __future__ import annotations\n\nimport os\n";
    let merged = python(base, "import abc\nimport os\n", theirs).unwrap();
    assert_eq!(merged, "from __future__ import annotations\n\nimport abc\nimport os\n");
}

#[test]
fn an_import_that_the_other_side_uses_or_defines_collides() {
    let file = |block: &str, rest: &str| format!("{block}\nx = 1\n{rest}\ny = 2\n");
    let base = file("import os\nimport re\n", "pass");
    let ours = file("import os\nimport re\n", "re.compile('')");
    let theirs = file("import os\n", "pass");
    assert!(apply("a.py", &base, &ours, &theirs).unwrap_err().contains("takes out the import of \"re\""));
    let ours = file("import os\nimport re\nimport abc\n", "pass");
    assert_eq!(apply("a.py", &base, &ours, &theirs).unwrap(), file("import os\nimport abc\n", "pass"));
    let ours = file("import os\nimport re\n", "def help(): pass");
    let theirs = file("import os\nimport re\nfrom h import help\n", "pass");
    assert!(apply("a.py", &base, &ours, &theirs).unwrap_err().contains("\"help\""));
}

#[test]
fn the_rest_is_merged_as_lines_or_collides() {
    let file = |block: &str, a: &str, b: &str| format!("import os\n{block}\n{a}\nz = 0\n{b}\n");
    let base = file("", "a = 1", "b = 1");
    let merged =
        apply("a.py", &base, &file("import re\n", "a = 2", "b = 1"), &file("import abc\n", "a = 1", "b = 3"));
    let (ours, theirs) = ("import os\nimport re\n", "import os\nimport abc\n");
    assert!(
        merged.as_ref().is_ok_and(|text| text.ends_with("\na = 2\nz = 0\nb = 3\n")),
        "{ours}{theirs}{merged:?}"
    );
    let why =
        apply("a.py", &base, &file("import re\n", "a = 2", "b = 1"), &file("import abc\n", "a = 3", "b = 1"));
    assert!(why.unwrap_err().contains("besides the imports"));
}

fn script(base: &str, ours: &str, theirs: &str) -> Result<String, String> {
    let file = |block: &str| format!("'use strict';\n// a file\n{block}\nrun();\n");
    let merged = apply("a.ts", &file(base), &file(ours), &file(theirs))?;
    assert_eq!(apply("a.ts", &file(base), &merged, &file(theirs))?, merged, "applied again");
    Ok(merged
        .strip_prefix("'use strict';\n// a file\n")
        .unwrap()
        .strip_suffix("\nrun();\n")
        .unwrap()
        .to_owned())
}

#[test]
fn scripts_merge_names_defaults_and_types() {
    let base = "import { b } from 'm';\n";
    let merged = script(base, "import { a, b } from 'm';\n", "import { b, c as d } from 'm';\n").unwrap();
    assert_eq!(merged, "import { a, b, c as d } from 'm';\n");
    let ours = "import { b } from 'm';\nimport type { T } from 'm';\n";
    let theirs = "import { b } from 'm';\nimport type { U } from 'm';\nimport fs from 'fs';\n";
    let merged = script(base, ours, theirs).unwrap();
    assert_eq!(merged, "import { b } from 'm';\nimport type { T, U } from 'm';\nimport fs from 'fs';\n");
    let why =
        script(base, "import { b, T } from 'm';\n", "import { b } from 'm';\nimport type { T } from 'm';\n");
    assert!(why.unwrap_err().contains("\"T\""));
}

#[test]
fn imports_for_their_effect_keep_their_place_or_collide() {
    let base = "import './a.css';\nimport { b } from 'm';\n";
    let ours = "import './a.css';\nimport { b } from 'm';\nimport './z.css';\n";
    let theirs = "import './a.css';\nimport { b, c } from 'm';\n";
    assert_eq!(
        script(base, ours, theirs).unwrap(),
        "import './a.css';\nimport { b, c } from 'm';\nimport './z.css';\n"
    );
    let theirs = "import './b.css';\nimport './a.css';\nimport { b } from 'm';\n";
    assert!(script(base, ours, theirs).unwrap_err().contains("order"));
}

fn crab(base: &str, ours: &str, theirs: &str) -> Result<String, String> {
    let file = |block: &str| format!("//! A file.\n\nmod a;\n\n{block}\nfn f() {{}}\n");
    let merged = apply("a.rs", &file(base), &file(ours), &file(theirs))?;
    assert_eq!(apply("a.rs", &file(base), &merged, &file(theirs))?, merged, "applied again");
    let head = "//! A file.\n\nmod a;\n\n";
    Ok(merged.strip_prefix(head).unwrap().strip_suffix("\nfn f() {}\n").unwrap().to_owned())
}

#[test]
fn uses_merge_and_nested_or_conditional_ones_collide_when_both_change_them() {
    let base = "use std::fmt;\n";
    let merged =
        crab(base, "use std::env;\nuse std::fmt;\n", "use std::fmt;\nuse std::io::{self, Read};\n").unwrap();
    assert_eq!(merged, "use std::env;\nuse std::fmt;\nuse std::io::{self, Read};\n");
    let base = "use a::{b, c};\n";
    assert_eq!(crab(base, "use a::{b, c, d};\n", "use a::{b, c, e};\n").unwrap(), "use a::{b, c, d, e};\n");
    let base = "use a::{b::{c, d}, e};\n";
    assert!(
        crab(base, "use a::{b::{c, d, x}, e};\n", "use a::{b::{c, d}, e, y};\n")
            .unwrap_err()
            .contains("no plain list")
    );
    let base = "#[cfg(unix)]\nuse a::b;\nuse std::fmt;\n";
    let ours = "#[cfg(unix)]\nuse a::b;\nuse std::fmt;\nuse std::io;\n";
    let theirs = "#[cfg(unix)]\nuse a::b;\nuse std::env;\nuse std::fmt;\n";
    assert_eq!(
        crab(base, ours, theirs).unwrap(),
        "#[cfg(unix)]\nuse a::b;\nuse std::env;\nuse std::fmt;\nuse std::io;\n"
    );
    let theirs = "#[cfg(windows)]\nuse a::b;\nuse std::fmt;\n";
    let ours = "#[cfg(all())]\nuse a::b;\nuse std::fmt;\n";
    assert!(crab(base, ours, theirs).is_err());
}

#[test]
fn other_files_are_refused() {
    assert!(apply("a.c", "a\n", "b\n", "c\n").unwrap_err().contains("Python"));
}

#[test]
fn crlf_and_a_missing_final_newline_stay() {
    let crlf = |text: &str| text.replace('\n', "\r\n");
    let merged = apply(
        "a.py",
        &crlf("import os\n"),
        &crlf("import os\nimport re\n"),
        &crlf("import abc\nimport os\n"),
    );
    assert_eq!(merged.unwrap(), crlf("import abc\nimport os\nimport re\n"));
    assert_eq!(
        apply("a.py", "import os", "import os\nimport re", "import abc\nimport os").unwrap(),
        "import abc\nimport os\nimport re"
    );
}

#[test]
fn a_name_a_line_stays_so() {
    let base = "from m import a\nfrom m import c\n";
    let ours = "from m import a\nfrom m import b\nfrom m import c\n";
    let theirs = "from m import a\nfrom m import c\nfrom m import d\n";
    let merged = python(base, ours, theirs).unwrap();
    assert_eq!(merged, "from m import a\nfrom m import b\nfrom m import c\nfrom m import d\n");
    assert_eq!(python(base, theirs, ours).unwrap(), merged);
    assert!(python(base, ours, &format!("{base}from n import b\n")).unwrap_err().contains("bind"));
    assert!(python(base, ours, &format!("{theirs}{theirs}")).unwrap_err().contains("twice"));
}

type Set = BTreeSet<(u8, u8)>;

/// Names by module as imports; each name of a module is its own.
fn block(names: &Set) -> String {
    let mut modules: BTreeMap<u8, Vec<String>> = BTreeMap::new();
    for (module, name) in names {
        modules.entry(*module).or_default().push(format!("n{module}{name}"));
    }
    modules.iter().map(|(module, names)| format!("from m{module} import {}\n", names.join(", "))).collect()
}

fn names(text: &str) -> Vec<(u8, u8)> {
    let of = |name: &str| -> (u8, u8) {
        let digits: Vec<u8> = name.bytes().filter(u8::is_ascii_digit).map(|digit| digit - b'0').collect();
        (digits[0], digits[1])
    };
    let imports = text.lines().filter_map(|line| line.split_once(" import "));
    imports.flat_map(|(_, names)| names.split(", ").map(of).collect::<Vec<_>>()).collect()
}

proptest! {
    /// Every name that one added stands once, every one that one removed is gone; sides may be swapped.
    #[test]
    fn names_are_a_set(
        base in prop::collection::btree_set((0_u8..4, 0_u8..6), 0..12),
        ours in prop::collection::btree_set((0_u8..4, 0_u8..6), 1..12),
        theirs in prop::collection::btree_set((0_u8..4, 0_u8..6), 1..12),
    ) {
        let head = |set: &Set| format!("import os\n\n{}", block(set));
        let right: Set = base.intersection(&ours).filter(|name| theirs.contains(*name)).copied()
            .chain(ours.difference(&base).copied())
            .chain(theirs.difference(&base).copied())
            .collect();
        let merged = python(&head(&base), &head(&ours), &head(&theirs)).unwrap();
        let found = names(&merged);
        let set: Set = found.iter().copied().collect();
        prop_assert_eq!(set.len(), found.len(), "twice: {}", &merged);
        prop_assert_eq!(&set, &right, "{}", &merged);
        let swapped = python(&head(&base), &head(&theirs), &head(&ours)).unwrap();
        prop_assert_eq!(names(&swapped).into_iter().collect::<Set>(), right);
    }
}

#[test]
fn a_block_or_a_file_that_would_take_long_collides_at_once() {
    let many = |n: usize| (0..n).map(|n| format!("import m{n}\n")).collect::<String>();
    let began = std::time::Instant::now();
    let base = many(20_000);
    let why = python(&base, &format!("{base}import a\n"), &format!("{base}import b\n")).unwrap_err();
    assert!(why.contains("1000 imports"), "{why}");
    let (base, rest) = (many(400), "x = 1\n".repeat(40_000));
    let why =
        python(&format!("{base}{rest}"), &format!("import a\n{rest}"), &format!("{base}import b\n{rest}"));
    assert!(why.unwrap_err().contains("so large a file"));
    assert!(began.elapsed().as_secs() < 20, "{:?}", began.elapsed());
}
