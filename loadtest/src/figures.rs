//! Figures: a table for people, `target/figures/NAME.jsonl` for machines.

use std::io::Write as _;

use anyhow::Result;
use serde::Serialize;
use yard_cli::output::{self, Colour, paint};

/// One measured figure.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Figure {
    /// Its name.
    pub name: String,
    /// Its value.
    pub value: f64,
    /// The unit of the value.
    pub unit: String,
    /// What it must reach: `>= 0.3`, `<= 64`; `None` where nothing was promised.
    pub target: Option<String>,
    /// Does it?
    pub holds: Option<bool>,
    /// The seed of the run.
    pub seed: u64,
    /// The commit that was measured.
    pub commit: String,
}

/// Which side of the target is good.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Target {
    /// No promise.
    None,
    /// At least this.
    AtLeast(f64),
    /// At most this.
    AtMost(f64),
}

/// The middle one of a few times; of an even number, the mean of the middle two; NaN of none.
#[must_use]
pub fn median(times: &[f64]) -> f64 {
    let mut sorted = times.to_vec();
    sorted.sort_by(f64::total_cmp);
    let at = |index: usize| sorted.get(index).copied().unwrap_or(f64::NAN);
    let middle = sorted.len() / 2;
    if sorted.len() % 2 == 1 { at(middle) } else { f64::midpoint(at(middle.wrapping_sub(1)), at(middle)) }
}

/// The figures of one run.
#[derive(Debug)]
pub struct Figures {
    name: String,
    seed: u64,
    commit: String,
    list: Vec<Figure>,
}

impl Figures {
    /// None yet; `name` is the file's.
    #[must_use]
    pub fn new(name: &str, seed: u64) -> Self {
        let commit =
            yard_cli::git::run(std::path::Path::new("."), None, &["rev-parse", "--short=12", "HEAD"])
                .unwrap_or_else(|_| "unknown".to_owned());
        Self { name: name.to_owned(), seed, commit, list: Vec::new() }
    }

    /// Adds one.
    pub fn add(&mut self, name: &str, value: f64, unit: &str, target: Target) {
        let (target, holds) = match target {
            Target::None => (None, None),
            Target::AtLeast(limit) => (Some(format!(">= {limit}")), Some(value >= limit)),
            Target::AtMost(limit) => (Some(format!("<= {limit}")), Some(value <= limit)),
        };
        self.list.push(Figure {
            name: name.to_owned(),
            value,
            unit: unit.to_owned(),
            target,
            holds,
            seed: self.seed,
            commit: self.commit.clone(),
        });
    }

    /// Prints the table and writes the file.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn finish(&self) -> Result<()> {
        self.write("")
    }

    /// As [`Figures::finish`], but figures of other names that the file holds stay: several
    /// benchmarks share it.
    ///
    /// # Errors
    /// As [`Figures::finish`].
    pub fn finish_beside(&self) -> Result<()> {
        let file = crate::platform::root()?.join("target/figures").join(format!("{}.jsonl", self.name));
        let own = |line: &str| {
            self.list.iter().any(|figure| line.contains(&format!("\"name\":\"{}\"", figure.name)))
        };
        let there = std::fs::read_to_string(file).unwrap_or_default();
        let kept: String = there.lines().filter(|line| !own(line)).map(|line| format!("{line}\n")).collect();
        self.write(&kept)
    }

    fn write(&self, kept: &str) -> Result<()> {
        let rows: Vec<Vec<String>> = self
            .list
            .iter()
            .map(|figure| {
                let holds = match figure.holds {
                    Some(true) => paint(Colour::Green, "holds"),
                    Some(false) => paint(Colour::Red, "missed"),
                    None => String::new(),
                };
                vec![
                    figure.name.clone(),
                    format!("{:.3}", figure.value),
                    figure.unit.clone(),
                    figure.target.clone().unwrap_or_default(),
                    holds,
                ]
            })
            .collect();
        output::text(&output::table(&["figure", "value", "unit", "target", ""], &rows))?;
        let folder = crate::platform::root()?.join("target/figures");
        std::fs::create_dir_all(&folder)?;
        let mut file = std::fs::File::create(folder.join(format!("{}.jsonl", self.name)))?;
        file.write_all(kept.as_bytes())?;
        for figure in &self.list {
            writeln!(file, "{}", serde_json::to_string(figure)?)?;
        }
        Ok(())
    }
}
