//! The little project that the agents change, and its test suite: a pure function of the files.

use std::collections::{BTreeMap, BTreeSet};

use yard_common::landing::RunResult;

use crate::god::Files;

/// What a change does, as its author means it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Op {
    /// A line more, after the line with this number (0: at the beginning).
    Add(String, usize, String),
    /// A line less.
    Remove(String, String),
    /// A new file.
    Create(String, String),
}

/// The files at the beginning: some with lines to change, an index, and words that others may need.
#[must_use]
pub fn project() -> Files {
    let mut files = Files::new();
    for n in 0..4 {
        let text: String = (0..5).map(|line| format!("filler {n} {line}\n")).collect();
        files.insert(format!("src/f{n}.txt"), text);
    }
    files.insert("index.txt".into(), "base\n".into());
    files.insert("words.txt".into(), "word amber\n\nword birch\n\nword cedar\n".into());
    files.insert(".switchyard.toml".into(), CONFIG.into());
    files
}

const CONFIG: &str = "[lane]\ntrain_max = 6\n\n[checks]\ncommand = \"test\"\njunit = \"report.xml\"\n\n\
    [replay]\nby_model = true\nper_change = 2\n\n[[rules]]\npaths = \"index.txt\"\nrule = \"sorted-lines\"\n";

/// The files after the ops; `None` where one does not fit.
#[must_use]
pub fn apply(files: &Files, ops: &[Op]) -> Option<Files> {
    let mut files = files.clone();
    for op in ops {
        match op {
            Op::Add(path, place, line) => {
                let text = files.get_mut(path)?;
                let mut lines: Vec<&str> = text.lines().collect();
                if path == "index.txt" {
                    lines.push(line);
                    lines.sort_unstable();
                } else {
                    lines.insert((*place).min(lines.len()), line);
                }
                *text = lines.into_iter().flat_map(|line| [line, "\n"]).collect();
            }
            Op::Remove(path, line) => {
                let text = files.get_mut(path)?;
                let lines: Vec<&str> = text.lines().collect();
                let at = lines.iter().position(|there| there == line)?;
                let left = lines.iter().enumerate().filter(|(n, _)| *n != at);
                *text = left.flat_map(|(_, line)| [*line, "\n"]).collect();
            }
            Op::Create(path, text) => {
                if files.insert(path.clone(), text.clone()).is_some() {
                    return None;
                }
            }
        }
    }
    Some(files)
}

/// The lines of every file, counted, whatever their order.
pub type Bag = BTreeMap<String, BTreeMap<String, u32>>;

/// The files as bags of lines.
#[must_use]
pub fn bag(files: &Files) -> Bag {
    let lines = |text: &String| {
        let mut lines = BTreeMap::new();
        text.lines().for_each(|line| *lines.entry(line.to_owned()).or_insert(0) += 1);
        lines
    };
    files.iter().map(|(path, text)| (path.clone(), lines(text))).collect()
}

/// What the ops make of the bags, for a change that lands: nothing else may happen.
pub fn change(bag: &mut Bag, ops: &[Op]) {
    for op in ops {
        match op {
            Op::Add(path, _, line) => {
                let count = bag.entry(path.clone()).or_default().entry(line.clone()).or_insert(0);
                // The index is a set.
                *count = if path == "index.txt" { 1 } else { *count + 1 };
            }
            Op::Remove(path, line) => {
                let lines = bag.entry(path.clone()).or_default();
                let count = lines.entry(line.clone()).or_insert(0);
                *count = count.saturating_sub(1);
                if *count == 0 {
                    lines.remove(line);
                }
            }
            Op::Create(path, text) => {
                let mut lines = BTreeMap::new();
                text.lines().for_each(|line| *lines.entry(line.to_owned()).or_insert(0) += 1);
                bag.insert(path.clone(), lines);
            }
        }
    }
}

/// The suite: files in `t/` name lines that must stand in other files; nothing may be broken; every word
/// that is needed is there.
#[must_use]
pub fn judge(files: &Files) -> RunResult {
    let (mut failed, mut ran) = (BTreeSet::new(), 2);
    let mut words = BTreeSet::new();
    let mut needs = BTreeSet::new();
    for (path, text) in files {
        if path.starts_with("t/") {
            ran += 1;
            let stands = |line: &str| {
                let (file, wanted) = line.split_once('|').unwrap_or_default();
                files.get(file).is_some_and(|text| text.lines().any(|line| line == wanted))
            };
            if !text.lines().all(stands) {
                failed.insert(path.clone());
            }
            continue;
        }
        for line in text.lines() {
            if line.starts_with("BROKEN") {
                failed.insert("sanity".to_owned());
            }
            words.extend(line.strip_prefix("word "));
            needs.extend(line.strip_prefix("need "));
        }
    }
    if !needs.is_subset(&words) {
        failed.insert("words".into());
    }
    let failed: Vec<String> = failed.into_iter().collect();
    RunResult { complete: true, green: failed.is_empty(), ran, failed, skipped: 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_suite_is_red_for_each_kind_of_fault_and_green_for_the_project() {
        let files = project();
        assert!(judge(&files).proves_green());
        let with = |path: &str, text: &str| {
            let mut files = files.clone();
            files.insert(path.into(), text.into());
            judge(&files).failed
        };
        assert_eq!(with("x", "BROKEN\n"), ["sanity"]);
        assert_eq!(with("x", "need birch\n"), Vec::<String>::new());
        assert_eq!(with("x", "need oak\n"), ["words"]);
        assert_eq!(with("t/a", "src/f0.txt|filler 0 1\n"), Vec::<String>::new());
        assert_eq!(with("t/a", "src/f0.txt|gone\n"), ["t/a"]);
    }

    #[test]
    fn bags_follow_the_ops_as_the_files_do() {
        let ops = [
            Op::Add("src/f0.txt".into(), 2, "mine".into()),
            Op::Remove("src/f1.txt".into(), "filler 1 0".into()),
            Op::Add("index.txt".into(), 0, "mine".into()),
            Op::Create("new".into(), "a\na\n".into()),
        ];
        let files = project();
        let mut model = bag(&files);
        change(&mut model, &ops);
        assert_eq!(bag(&apply(&files, &ops).unwrap()), model);
    }
}
