//! `yard rules`: what a merge rule would have made of the repository's own past merges.

mod history;

use std::collections::BTreeMap;
use std::io::{IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use serde::Serialize;
use yard_common::config::{Config, RULES};
use yard_merge::text::Guarded;
use yard_rules::{LineMerge as _, Rule, Rules};

use crate::git;
use crate::output::{self, Colour, paint};
use crate::place::Place;
use history::{Case, History};

/// Arguments.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// What to do
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Try the rules on the repository's own past merges: right, left to replay, wrong
    Test(TestArgs),
}

#[derive(Debug, clap::Args)]
struct TestArgs {
    /// Try this rule instead of those in .switchyard.toml
    #[arg(long, requires = "paths")]
    rule: Option<String>,
    /// On the paths of this pattern (*, ** and ?); may be given several times
    #[arg(long, requires = "rule")]
    paths: Vec<String>,
    /// The history to go through
    #[arg(long, default_value = "HEAD")]
    from: String,
    /// At most this many merges, newest first
    #[arg(short = 'n', long)]
    limit: Option<usize>,
    /// Where the rules' answers that differ from main's are written
    #[arg(long)]
    keep: Option<PathBuf>,
}

/// What a rule made of one file of one past merge.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
enum Outcome {
    /// The bytes that the merge has.
    Right,
    /// A collision: left to replay.
    Left,
    /// Other bytes.
    Wrong,
}

/// One file that both sides of a past merge changed.
#[derive(Debug, Serialize)]
struct Tried {
    commit: String,
    path: String,
    rule: &'static str,
    outcome: Outcome,
    /// Would the lines alone have merged to what the merge has?
    right_as_text: bool,
    /// Why it was left.
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<String>,
    /// How to see the difference.
    #[serde(skip_serializing_if = "Option::is_none")]
    show: Option<String>,
}

#[derive(Debug, Default, Clone, Serialize)]
struct Count {
    right: usize,
    left: usize,
    wrong: usize,
    right_as_text: usize,
}

#[derive(Debug, Serialize)]
struct Report {
    merges: usize,
    rules: BTreeMap<&'static str, Count>,
    files: Vec<Tried>,
}

/// Runs it.
///
/// # Errors
/// When no rule is named, or git fails.
pub fn run(place: &Place, args: &Args) -> Result<()> {
    let Command::Test(args) = &args.command;
    let folder = Path::new(".");
    let rules = rules(folder, args)?;
    let history = History::new(folder, &args.from, args.limit)?;
    let keep = args.keep.clone();
    let keep =
        keep.unwrap_or_else(|| std::env::temp_dir().join(format!("yard-rules-{}", std::process::id())));
    let report = test(history, &rules, &keep)?;
    if place.json {
        return output::json(&report);
    }
    print(&report)
}

fn rules(folder: &Path, args: &TestArgs) -> Result<Rules> {
    if let Some(name) = &args.rule {
        let known = RULES.map(|(known, _)| known).join(", ");
        let rule = Rule::from_name(name)
            .with_context(|| format!("there is no rule {name:?}: use one of {known}"))?;
        return Ok(Rules::new(args.paths.iter().map(|pattern| (pattern.clone(), rule)).collect()));
    }
    let file = format!("{}:.switchyard.toml", args.from);
    let Ok(bytes) = git::run_bytes(folder, None, &["cat-file", "blob", &file], &[]) else {
        bail!("{} has no .switchyard.toml: name a rule by --rule NAME --paths PATTERN", args.from);
    };
    let config = Config::parse(&bytes).map_err(|refusal| anyhow::anyhow!("{refusal}"))?;
    if config.rules.is_empty() {
        bail!("its .switchyard.toml has no [[rules]]: add one, or pass --rule NAME --paths PATTERN");
    }
    Ok(Rules::from_config(&config.rules))
}

fn test(mut history: History, rules: &Rules, keep: &Path) -> Result<Report> {
    let merges = history.len();
    let mut report = Report { merges, rules: BTreeMap::new(), files: Vec::new() };
    let mut bar = Bar::new(merges);
    for done in 0..merges {
        bar.show(done);
        for case in history.cases(done, |path| rules.of(path))? {
            let tried = try_rule(&case, keep)?;
            let count = report.rules.entry(tried.rule).or_default();
            match tried.outcome {
                Outcome::Right => count.right += 1,
                Outcome::Left => count.left += 1,
                Outcome::Wrong => count.wrong += 1,
            }
            count.right_as_text += usize::from(tried.right_as_text);
            report.files.push(tried);
        }
    }
    bar.end();
    Ok(report)
}

fn try_rule(case: &Case, keep: &Path) -> Result<Tried> {
    let (base, path) = (case.base.as_deref(), &case.path);
    let answer = case.rule.apply(base, Some(&case.ours), Some(&case.theirs), path, &Guarded);
    let text = Guarded.merge(base.unwrap_or_default(), &case.ours, &case.theirs);
    let (mut why, mut show) = (None, None);
    let outcome = match answer {
        Ok(bytes) if case.merged.as_deref() == Some(bytes.as_slice()) => Outcome::Right,
        Ok(bytes) => {
            let file = keep.join(case.commit.get(..12).unwrap_or(&case.commit)).join(path.to_string());
            std::fs::create_dir_all(file.parent().unwrap_or(keep))?;
            std::fs::write(&file, bytes)?;
            show = Some(format!("git show {}:{path} | diff -u - {}", case.commit, file.display()));
            Outcome::Wrong
        }
        Err(sentence) => {
            why = Some(sentence);
            Outcome::Left
        }
    };
    Ok(Tried {
        commit: case.commit.clone(),
        path: path.to_string(),
        rule: case.rule.as_str(),
        outcome,
        right_as_text: base.is_some() && text.ok() == case.merged,
        why,
        show,
    })
}

fn print(report: &Report) -> Result<()> {
    let mut text = String::new();
    for tried in &report.files {
        let commit = tried.commit.get(..12).unwrap_or(&tried.commit);
        match (tried.outcome, &tried.why, &tried.show) {
            (Outcome::Left, Some(why), _) => {
                text.push_str(&format!(
                    "{}  {commit} {}: {why}\n",
                    paint(Colour::Yellow, "left "),
                    tried.path
                ));
            }
            (Outcome::Wrong, _, Some(show)) => {
                text.push_str(&format!(
                    "{}  {commit} {}\n       {show}\n",
                    paint(Colour::Red, "wrong"),
                    tried.path
                ));
            }
            _ => {}
        }
    }
    let rows: Vec<Vec<String>> = report
        .rules
        .iter()
        .map(|(rule, count)| {
            let numbers = [count.right, count.left, count.wrong, count.right_as_text];
            std::iter::once((*rule).to_owned()).chain(numbers.map(|number| number.to_string())).collect()
        })
        .collect();
    if !rows.is_empty() {
        let header = ["rule", "right", "left to replay", "wrong", "right as plain text"];
        text.push_str(&output::table(&header, &rows));
    }
    let files = output::count(report.files.len() as u64, "file");
    let merges = output::count(report.merges as u64, "merge");
    text.push_str(&format!("{files} under a rule that both sides changed, in {merges}\n"));
    output::text(&text)
}

/// A progress bar on a terminal, nothing elsewhere.
struct Bar {
    all: usize,
    on: bool,
    shown: usize,
}

impl Bar {
    fn new(all: usize) -> Self {
        Self { all, on: std::io::stderr().is_terminal() && all > 0, shown: usize::MAX }
    }

    fn show(&mut self, done: usize) {
        let part = done * 100 / self.all.max(1);
        if !self.on || part == self.shown {
            return;
        }
        self.shown = part;
        let full = part * 30 / 100;
        let bar = format!("{}{}", "#".repeat(full), ".".repeat(30 - full));
        let _ = write!(std::io::stderr(), "\r[{bar}] {done} of {} merges ", self.all);
    }

    fn end(&self) {
        if self.on {
            let _ = write!(std::io::stderr(), "\r{}\r", " ".repeat(70));
        }
    }
}

#[cfg(test)]
mod tests;
