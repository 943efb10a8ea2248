//! `yard-bench replay-index`: many changes of one index and one changelog, beside as many that touch nothing in
//! common; no model may be asked.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::{Duration, Instant};

use anyhow::{Result, bail, ensure};
use yard_cli::Client;
use yard_common::RepoName;
use yard_loadtest::figures::{Figures, Target, median};
use yard_loadtest::scripted::Act;
use yard_loadtest::{Crew, Platform, Progress, Sandbox, Scripted, Start};
use yard_wire::lane::Stage;
use yard_wire::token::Scope;

use crate::offers::{Edit, Ground, Main, Offer};

/// The longest that the landing of all may take.
const LAND_MAX: Duration = Duration::from_secs(300);
const INDEX: &str = "index.txt";
const CHANGELOG: &str = "CHANGELOG.md";
const LOG: &str = "# Changelog\n\n## Unreleased\n\n- The beginning.\n\n## 1.0.0\n\n- The first stone.\n";

/// Arguments.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Changes of each kind
    #[arg(long, default_value_t = 1000)]
    changes: usize,
    /// Changes of one train
    #[arg(long, default_value_t = 500)]
    train: usize,
    /// Both kinds are measured so often, side by side; the median of what they take of each other counts
    #[arg(long, default_value_t = 5)]
    repeats: usize,
    /// Written into the figures
    #[arg(long, env = "SEED", default_value_t = 1)]
    seed: u64,
}

/// What the landing of all took: from the thaw, and of workerd's CPU.
#[derive(Debug, Clone, Copy)]
struct Took {
    seconds: f64,
    cpu_ms: f64,
}

/// Entries that main lacks, or has more than once.
#[derive(Debug, Default, Clone, Copy)]
struct Faults {
    missing: usize,
    twice: usize,
}

fn line(i: usize) -> String {
    format!("entry {i:05}")
}

fn own(kind: &str, i: usize) -> String {
    format!("{kind}/{:02}/{i:05}.txt", i % 50)
}

/// A change of both shared files, or of two files that nobody else touches, of the same size.
fn offer(i: usize, shared: bool) -> Offer {
    let index = format!("base\n{}\n", line(i));
    let log = LOG.replace("- The beginning.\n", &format!("- The beginning.\n- {}.\n", line(i)));
    let edits = if shared {
        vec![Edit::of(INDEX, &index), Edit::of(CHANGELOG, &log)]
    } else {
        vec![Edit::of(&own("index", i), &index), Edit::of(&own("log", i), &log)]
    };
    Offer { title: format!("change {i}"), edits }
}

/// Runs it.
///
/// # Errors
/// When anything else than what is measured goes wrong.
pub fn run(args: &Args) -> Result<()> {
    let sandbox = Sandbox::new()?;
    let model = Scripted::start(0, Duration::ZERO, false, |_| Act::Right)?;
    let mut start = Start::at(&sandbox.join("state"));
    start.extra = model.arguments(30);
    start.extra.push("--quiet".to_owned());
    let platform = Platform::start(&start)?;
    let bench = Bench { args, platform: &platform, sandbox: &sandbox };
    // The module is compiled when the clock starts, by either kind of work.
    for shared in [false, true] {
        bench.once(&format!("warm-{shared}"), shared)?;
    }
    let (mut apart, mut together) = (Vec::new(), Vec::new());
    let mut faults = Faults::default();
    for turn in 0..args.repeats.max(1) {
        // The first of a pair may find another machine than the second: they take turns in that as well.
        for shared in [turn % 2 == 1, turn % 2 == 0] {
            let name = format!("{}-{turn}", if shared { "shared" } else { "apart" });
            let (took, found) = bench.once(&name, shared)?;
            if shared { &mut together } else { &mut apart }.push(took);
            faults = Faults { missing: faults.missing + found.missing, twice: faults.twice + found.twice };
        }
    }
    platform.stop()?;
    figures(args, faults, model.asked().len(), (&apart, &together)).finish_beside()
}

#[allow(clippy::cast_precision_loss, reason = "counts are small")]
fn figures(args: &Args, faults: Faults, calls: usize, (apart, together): (&[Took], &[Took])) -> Figures {
    let rate = |took: &[Took]| {
        let seconds: Vec<f64> = took.iter().map(|took| took.seconds).collect();
        args.changes as f64 / median(&seconds)
    };
    let pairs = |of: fn(&Took) -> f64| {
        let ratios: Vec<f64> = together.iter().zip(apart).map(|(a, b)| of(a) / of(b)).collect();
        median(&ratios)
    };
    let mut figures = Figures::new("replay", args.seed);
    figures.add("index_missing", faults.missing as f64, "entries", Target::AtMost(0.0));
    figures.add("index_twice", faults.twice as f64, "entries", Target::AtMost(0.0));
    figures.add("index_model_calls", calls as f64, "calls", Target::AtMost(0.0));
    let slowdown = pairs(|took| took.seconds);
    figures.add("index_slowdown", slowdown, "of the time apart", Target::AtMost(1.3));
    figures.add("index_cpu", pairs(|took| took.cpu_ms), "of the CPU apart", Target::None);
    figures.add("index_changes_per_second", rate(together), "changes/s", Target::None);
    figures.add("apart_changes_per_second", rate(apart), "changes/s", Target::None);
    figures
}

fn config(train: usize) -> Result<String> {
    let mut config = format!("[lane]\ntrain_max = {train}\n\n");
    config.push_str("[checks]\ncommand = \"true\"\njunit = \"report.xml\"\ntimeout_seconds = 60\n");
    for (path, rule) in [(INDEX, "sorted-lines"), (CHANGELOG, "changelog")] {
        write!(config, "\n[[rules]]\npaths = \"{path}\"\nrule = \"{rule}\"\n")?;
    }
    Ok(config)
}

struct Bench<'a> {
    args: &'a Args,
    platform: &'a Platform,
    sandbox: &'a Sandbox,
}

impl Bench<'_> {
    /// Lands all changes of one kind in a repository of its own: what that took, and what main lacks.
    #[allow(clippy::cast_precision_loss, reason = "milliseconds are far below 2^52")]
    fn once(&self, name: &str, shared: bool) -> Result<(Took, Faults)> {
        let count = self.args.changes;
        let mut files = BTreeMap::from([
            (".switchyard.toml".to_owned(), config(self.args.train)?),
            (INDEX.to_owned(), "base\n".to_owned()),
            (CHANGELOG.to_owned(), LOG.to_owned()),
        ]);
        for i in 0..count {
            files.extend([(own("index", i), "base\n".to_owned()), (own("log", i), LOG.to_owned())]);
        }
        let ground = Ground::new(self.platform, self.sandbox, name, &files)?;
        let admin = self.platform.admin()?;
        admin.act_on_repo(&ground.repo, "freeze", "the benchmark fills the queue")?;
        let offers: Vec<Offer> = (0..count).map(|i| offer(i, shared)).collect();
        ground.offer_all("agent", &offers)?;
        let token = self.platform.token(Some(&ground.repo), None, &[Scope::Run])?;
        let crew = Crew::start(&Client::new(self.platform.url(), &token), &ground.repo, 2)?;
        let (began, cpu) = (Instant::now(), self.platform.cpu_ms()?);
        admin.act_on_repo(&ground.repo, "thaw", "go")?;
        landed(&admin, &ground.repo, count)?;
        let seconds = began.elapsed().as_secs_f64();
        let took = Took { seconds, cpu_ms: self.platform.cpu_ms()?.saturating_sub(cpu) as f64 };
        crew.stop()?;
        let main = ground.fetch()?;
        ensure!(main.notes.len() == count, "{name}: {} of {count} landed", main.notes.len());
        Ok((took, if shared { faults(&main, count) } else { Faults::default() }))
    }
}

/// What git shows of the two files, against what was offered.
fn faults(main: &Main, count: usize) -> Faults {
    let mut faults = Faults::default();
    for (path, wanted) in [
        (INDEX, (0..count).map(line).collect::<Vec<_>>()),
        (CHANGELOG, (0..count).map(|i| format!("- {}.", line(i))).collect()),
    ] {
        let mut there: BTreeMap<&str, usize> = BTreeMap::new();
        let text = main.file(path);
        text.lines().for_each(|line| *there.entry(line).or_default() += 1);
        for line in &wanted {
            let times = there.get(line.as_str()).copied().unwrap_or(0);
            faults.missing += usize::from(times == 0);
            faults.twice += times.saturating_sub(1);
        }
    }
    faults
}

/// Waits until nothing is open, and nothing is on its way to the index.
fn landed(admin: &Client, repo: &RepoName, count: usize) -> Result<()> {
    let mut progress = Progress::new(&format!("{repo}: landed"), count);
    let began = Instant::now();
    loop {
        let status = admin.status(repo)?;
        let open: u64 = status.stages.iter().map(|(_, count)| count).sum();
        progress.at(count.saturating_sub(usize::try_from(open)?), "");
        if open == 0 && status.outbox == 0 {
            return Ok(());
        }
        if began.elapsed() > LAND_MAX {
            let changes = admin.changes(repo, 500)?;
            let open = changes.iter().find(|change| change.stage != Stage::Landed);
            bail!("not landed after {} s; one of them: {open:?}", LAND_MAX.as_secs());
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}
