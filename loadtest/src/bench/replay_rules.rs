//! `yard-bench replay-rules`: generated collisions through the rules, beside git's union driver.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context as _, Result};
use yard_cli::output;
use yard_common::RepoPath;
use yard_loadtest::collisions::{Case, Verdict, generate};
use yard_loadtest::figures::{Figures, Target};
use yard_merge::text::Guarded;
use yard_rules::Rule;

/// Arguments.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Collisions
    #[arg(long, default_value_t = 2400)]
    cases: usize,
    /// The seed of the collisions
    #[arg(long, env = "SEED", default_value_t = 1)]
    seed: u64,
}

/// Cases by verdict, of the rule and of git's union driver.
#[derive(Debug, Default, Clone, Copy)]
struct Count {
    cases: usize,
    covered: usize,
    /// Of those covered: the right bytes.
    merged: usize,
    right: usize,
    left: usize,
    wrong: usize,
    union_right: usize,
    union_wrong: usize,
}

/// Runs it.
///
/// # Errors
/// When git cannot be run, or the figures cannot be written.
pub fn run(args: &Args) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let mut kinds: BTreeMap<(&str, &str), Count> = BTreeMap::new();
    let mut all = Count::default();
    let mut without = 0;
    for case in generate(args.seed, args.cases) {
        let Some(rule) = Rule::from_name(case.rule) else {
            without += 1;
            continue;
        };
        let path = RepoPath::new(case.path)?;
        let [base, ours, theirs] = [&case.base, &case.ours, &case.theirs].map(|text| Some(text.as_bytes()));
        let answer = rule.apply(base, ours, theirs, &path, &Guarded);
        let verdict = case.judge(answer.as_deref().ok());
        let union = case.judge(Some(&union(folder.path(), &case)?));
        for count in [kinds.entry((case.rule, case.kind)).or_default(), &mut all] {
            count.take(&case, verdict, union);
        }
    }
    if without > 0 {
        eprintln!("bench: {without} cases are of rules that do not exist yet, and are left out");
    }
    print(&kinds, &all);
    figures(args, &all).finish_beside()
}

impl Count {
    fn take(&mut self, case: &Case, verdict: Verdict, union: Verdict) {
        self.cases += 1;
        self.covered += usize::from(case.has_answer());
        self.merged += usize::from(case.has_answer() && verdict == Verdict::Right);
        self.right += usize::from(verdict == Verdict::Right);
        self.left += usize::from(verdict == Verdict::Left);
        self.wrong += usize::from(verdict == Verdict::Wrong);
        self.union_right += usize::from(union == Verdict::Right);
        self.union_wrong += usize::from(union != Verdict::Right);
    }
}

/// git's union driver: it knows no collision.
fn union(folder: &Path, case: &Case) -> Result<Vec<u8>> {
    for (name, text) in [("base", &case.base), ("ours", &case.ours), ("theirs", &case.theirs)] {
        std::fs::write(folder.join(name), text)?;
    }
    let args = ["merge-file", "--union", "-p", "ours", "base", "theirs"];
    yard_cli::git::run_bytes(folder, None, &args, &[]).context("git merge-file")
}

fn print(kinds: &BTreeMap<(&str, &str), Count>, all: &Count) {
    let row = |rule: &str, kind: &str, count: &Count| {
        let numbers =
            [count.cases, count.right, count.left, count.wrong, count.union_right, count.union_wrong];
        let mut row = vec![rule.to_owned(), kind.to_owned()];
        row.extend(numbers.map(|number| number.to_string()));
        row
    };
    let mut rows: Vec<Vec<String>> =
        kinds.iter().map(|((rule, kind), count)| row(rule, kind, count)).collect();
    rows.push(row("all", "", all));
    let header =
        ["rule", "collision", "cases", "right", "left to replay", "wrong", "union right", "union wrong"];
    print!("{}", output::rendered(&output::table(&header, &rows)));
}

fn figures(args: &Args, all: &Count) -> Figures {
    #[allow(clippy::cast_precision_loss, reason = "counts are small")]
    let part = |some: usize, of: usize| some as f64 / of.max(1) as f64;
    let mut figures = Figures::new("replay", args.seed);
    figures.add("rule_cases", all.cases as f64, "collisions", Target::AtLeast(2000.0));
    figures.add("rule_wrong", all.wrong as f64, "collisions", Target::AtMost(0.0));
    figures.add("rule_right", part(all.merged, all.covered), "of those with an answer", Target::AtLeast(0.9));
    figures.add("rule_left", all.left as f64, "collisions", Target::None);
    figures.add("union_right", part(all.union_right, all.cases), "of all", Target::None);
    figures.add("union_wrong", all.union_wrong as f64, "collisions", Target::None);
    figures
}
