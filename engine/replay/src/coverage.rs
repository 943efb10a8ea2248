//! Which lines of a change no test ran, from an LCOV report (the `geninfo` format: `SF:`, `DA:`).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use yard_common::RepoPath;

use crate::limits::COVERAGE_BYTES_MAX;
use crate::text::{hunks, lines, quote};

/// Runs of lines that a sentence names.
const RUNS_SHOWN_MAX: usize = 20;

/// How often each line of each file ran.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Coverage {
    files: BTreeMap<String, BTreeMap<u32, u64>>,
}

impl Coverage {
    /// Reads an LCOV report; records of other kinds are passed over, reports of several runs add up.
    ///
    /// # Errors
    /// A sentence: the report is too large, or which line of it is none.
    pub fn parse(report: &[u8]) -> Result<Self, String> {
        if report.len() > COVERAGE_BYTES_MAX {
            return Err(format!(
                "the coverage report has {} bytes, and at most {COVERAGE_BYTES_MAX} are read",
                report.len()
            ));
        }
        let mut files: BTreeMap<String, BTreeMap<u32, u64>> = BTreeMap::new();
        let mut file: Option<&mut BTreeMap<u32, u64>> = None;
        for (number, line) in report.split(|byte| *byte == b'\n').enumerate() {
            let line = String::from_utf8_lossy(line);
            let line = line.trim_end();
            if let Some(name) = line.strip_prefix("SF:") {
                file = Some(files.entry(name.replace('\\', "/")).or_default());
            } else if line == "end_of_record" {
                file = None;
            } else if let Some(data) = line.strip_prefix("DA:") {
                let read = || -> Option<(u32, u64)> {
                    let mut fields = data.split(',');
                    let line = fields.next()?.trim().parse().ok()?;
                    // Some tools write counts beyond all bounds, or as negative numbers after an overflow.
                    let count: f64 = fields.next()?.trim().parse().ok()?;
                    Some((line, if count >= 1.0 { count as u64 } else { 0 }))
                };
                let (Some((at, count)), Some(file)) = (read(), file.as_mut()) else {
                    return Err(format!(
                        "line {} of the coverage report is no LCOV record in its place: {:?}",
                        number + 1,
                        quote(line)
                    ));
                };
                let sum = file.entry(at).or_default();
                *sum = sum.saturating_add(count);
            }
        }
        Ok(Self { files })
    }

    /// The counts of a path; reports name it as it is, or below the folder of the checkout.
    fn of(&self, path: &RepoPath) -> Option<&BTreeMap<u32, u64>> {
        let path = path.to_string();
        let below = format!("/{path}");
        self.files.get(&path).or_else(|| {
            self.files
                .iter()
                .find(|(name, _)| name.ends_with(&below) || name.strip_prefix("./") == Some(&path))
                .map(|(_, counts)| counts)
        })
    }
}

/// Lines that a change adds and no test ran, of one file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileNotRun {
    /// The path.
    pub path: RepoPath,
    /// First and last line of each run of them, from 1.
    pub runs: Vec<(u32, u32)>,
}

/// Lines that a change adds, and whether tests ran them.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct NotRun {
    /// Added lines that some test ran.
    pub run: u64,
    /// Added lines that none ran.
    pub not_run: u64,
    /// Where, in path order.
    pub files: Vec<FileNotRun>,
    /// Changed files that the report does not know.
    pub unknown: Vec<RepoPath>,
}

impl NotRun {
    /// One sentence for the record.
    #[must_use]
    pub fn sentence(&self) -> String {
        let mut places = Vec::new();
        for file in &self.files {
            places.extend(file.runs.iter().map(|(from, to)| {
                if from == to {
                    format!("{}:{from}", file.path)
                } else {
                    format!("{}:{from}-{to}", file.path)
                }
            }));
        }
        let more = places.len().saturating_sub(RUNS_SHOWN_MAX);
        places.truncate(RUNS_SHOWN_MAX);
        if more > 0 {
            places.push(format!("and {more} more places"));
        }
        let unknown = match self.unknown.len() {
            0 => String::new(),
            1 => "; 1 changed file is not in the report".to_owned(),
            count => format!("; {count} changed files are not in the report"),
        };
        match (self.not_run, self.run) {
            (0, 0) => format!("no added line is code that the report knows{unknown}"),
            (0, run) => format!("tests ran all {run} added lines that the report knows{unknown}"),
            (count, _) => format!("no test ran {count} of the added lines: {}{unknown}", places.join(", ")),
        }
    }
}

/// The lines that a change adds (`before` -> `after`, path by path) and no test ran. Lines that the report does
/// not name are no code.
#[must_use]
pub fn lines_no_test_ran(changes: &[(&RepoPath, &[u8], &[u8])], coverage: &Coverage) -> NotRun {
    let mut found = NotRun::default();
    for (path, before, after) in changes {
        let Some(counts) = coverage.of(path) else {
            found.unknown.push((*path).clone());
            continue;
        };
        let mut runs: Vec<(u32, u32)> = Vec::new();
        for hunk in hunks(&lines(before), &lines(after)) {
            for line in hunk.after {
                let number = u32::try_from(line + 1).unwrap_or(u32::MAX);
                match counts.get(&number) {
                    None => {}
                    Some(0) => {
                        found.not_run += 1;
                        match runs.last_mut() {
                            Some((_, to)) if *to + 1 == number => *to = number,
                            _ => runs.push((number, number)),
                        }
                    }
                    Some(_) => found.run += 1,
                }
            }
        }
        if !runs.is_empty() {
            found.files.push(FileNotRun { path: (*path).clone(), runs });
        }
    }
    found.files.sort_by(|a, b| a.path.cmp(&b.path));
    found.unknown.sort();
    found
}

#[cfg(test)]
mod tests;
