//! `make bench-landing`: from a full, frozen queue, from the thaw until `git ls-remote`, notes and
//! the index are complete. Public interfaces only.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use yard_cli::Client;
use yard_common::bytes::Base64;
use yard_common::intent::Intent;
use yard_common::{ForkName, RepoName, RepoPath};
use yard_loadtest::figures::{Figures, Target};
use yard_loadtest::{Crew, Platform, Sandbox, Start};
use yard_wire::api::{ApiChange, ApiEdit, NewFork, NewRepo, SubmitChanges, SubmitResult};
use yard_wire::token::Scope;

use crate::baseline;
use crate::corpus::Corpus;
use crate::cpu::{Reading, Split};
use crate::heap::{Peak, Sampler};

/// Changes offered in one request.
const BATCH: usize = 100;
/// The longest that the landing of all may take.
const LAND_MAX: Duration = Duration::from_secs(120);

/// Arguments.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Changes to land
    #[arg(long, default_value_t = 1000)]
    changes: usize,
    /// Changes of one train
    #[arg(long, default_value_t = 500)]
    train: usize,
    /// Changes landed in another repository before, so that the module is compiled; 0: a cold start
    #[arg(long, default_value_t = 500)]
    warm: usize,
    /// Directories of the repository
    #[arg(long, default_value_t = 50)]
    dirs: usize,
    /// Files of each
    #[arg(long, default_value_t = 100)]
    per: usize,
    /// Repeats of fast-import (the median counts)
    #[arg(long, default_value_t = 5)]
    repeats: usize,
    /// Changes of the shell loop of git
    #[arg(long, default_value_t = 100)]
    loop_changes: usize,
    /// Written into the figures; the corpus is the same for all
    #[arg(long, env = "SEED", default_value_t = 1)]
    seed: u64,
}

/// What was measured on the platform's side.
struct Measured {
    seconds: f64,
    requests: u64,
    cpu: Split,
    counts: serde_json::Value,
    wasm_memory_bytes: u64,
    peak: Peak,
    tree: String,
}

/// Runs it and prints the table.
///
/// # Errors
/// When anything is wrong with the result: a benchmark of wrong landings is none.
pub fn run(args: &Args) -> Result<()> {
    let sandbox = Sandbox::new()?;
    let corpus = Corpus { dirs: args.dirs, per: args.per, changes: args.changes };
    let config = format!(
        "[lane]\ntrain_max = {}\n\n[checks]\ncommand = \"true\"\njunit = \"report.xml\"\ntimeout_seconds = 60\n",
        args.train
    );
    let base = corpus.import(&sandbox, &config)?;
    let mut start = Start::at(&sandbox.join("state"));
    start.extra = ["--inspector", "0", "--quiet"].map(str::to_owned).to_vec();
    let platform = Platform::start(&start)?;
    if args.warm > 0 {
        warm_up(&platform, &sandbox, &corpus, &base, args.warm)?;
    }
    let measured = measure(&platform, &sandbox, &corpus, &base)?;
    platform.stop()?;

    eprintln!("git fast-import of the same commits and notes");
    let stream = baseline::stream(&sandbox, "landed.git", &base)?;
    let fast = baseline::fast_import_seconds(&sandbox, &stream, &measured.tree, args.repeats)?;
    eprintln!("a shell loop of git");
    let looped =
        baseline::git_loop_per_second(&sandbox, &corpus, &base, args.loop_changes.min(args.changes))?;
    report(args, &measured, fast, looped)
}

fn measure(platform: &Platform, sandbox: &Sandbox, corpus: &Corpus, base: &str) -> Result<Measured> {
    let admin = platform.admin()?;
    let repo = RepoName::new("bench")?;
    let made = admin.new_repo(&NewRepo { name: repo.clone(), default_branch: None })?;
    sandbox.git("base.git", Some(&made.token), &["push", "-q", &made.url, "main:refs/heads/main"])?;
    let fork = admin.new_fork(&repo, &NewFork { name: ForkName::new("agent")? })?;
    admin.act_on_repo(&repo, "freeze", "the benchmark fills the queue")?;
    submit_all(&Client::new(platform.url(), &fork.token), &repo, sandbox, corpus, base)?;
    eprintln!("{} changes queued; thaw", corpus.changes);

    let inspector = platform.ready().inspector.clone().context("the platform has no inspector")?;
    let sampler = Sampler::start(&inspector)?;
    let runner = Client::new(platform.url(), &platform.token(Some(&repo), None, &[Scope::Run])?);
    let crew = Crew::start(&runner, &repo, 2)?;
    std::thread::sleep(Duration::from_millis(500));
    let (before, cpu, sent) = (counts(&admin)?, Reading::take(platform)?, crew.requests());
    let began = Instant::now();
    admin.act_on_repo(&repo, "thaw", "go")?;
    let polls = wait_until_complete(&admin, &repo, &format!("change {}", corpus.changes - 1), began)?;
    let refs = sandbox.git("base.git", Some(&made.token), &["ls-remote", &made.url])?;
    let seconds = began.elapsed().as_secs_f64();
    let used = Reading::take(platform)?;
    let after = counts(&admin)?;
    let wasm_memory_bytes = after.get("wasm_memory_bytes").and_then(serde_json::Value::as_u64).unwrap_or(0);
    let counts = difference(&after, &before);
    let cpu = used.since(&cpu, &counts);
    let requests = crew.requests() - sent + polls + 1;
    crew.stop()?;
    let status = admin.status(&repo)?;
    ensure!(status.open.is_empty(), "{} changes are still open", status.open.len());
    let recorded = recorded(&admin, &repo)?;
    ensure!(recorded == corpus.changes, "{recorded} records of {} changes", corpus.changes);
    let peak = sampler.stop()?;
    ensure!(refs.contains("refs/heads/main") && refs.contains("refs/notes/intent"), "{refs}");
    let tree = verify(sandbox, corpus, &made.url, &made.token, base)?;
    Ok(Measured { seconds, requests, cpu, counts, wasm_memory_bytes, peak, tree })
}

/// Lands a train in another repository first, so that V8 has compiled the module when the clock starts.
fn warm_up(
    platform: &Platform,
    sandbox: &Sandbox,
    corpus: &Corpus,
    base: &str,
    changes: usize,
) -> Result<()> {
    let admin = platform.admin()?;
    let repo = RepoName::new("warm")?;
    let made = admin.new_repo(&NewRepo { name: repo.clone(), default_branch: None })?;
    sandbox.git("base.git", Some(&made.token), &["push", "-q", &made.url, "main:refs/heads/main"])?;
    let fork = admin.new_fork(&repo, &NewFork { name: ForkName::new("agent")? })?;
    let runner = Client::new(platform.url(), &platform.token(Some(&repo), None, &[Scope::Run])?);
    let crew = Crew::start(&runner, &repo, 1)?;
    let corpus = Corpus { changes, ..*corpus };
    submit_all(&Client::new(platform.url(), &fork.token), &repo, sandbox, &corpus, base)?;
    wait_until_complete(&admin, &repo, &format!("change {}", changes - 1), Instant::now())?;
    crew.stop()
}

fn submit_all(
    client: &Client,
    repo: &RepoName,
    sandbox: &Sandbox,
    corpus: &Corpus,
    base: &str,
) -> Result<()> {
    let listing = sandbox.git("base.git", None, &["ls-tree", "-r", "main"])?;
    let blobs: std::collections::BTreeMap<&str, &str> = listing
        .lines()
        .filter_map(|line| {
            let (meta, path) = line.split_once('\t')?;
            Some((path, meta.split(' ').nth(2)?))
        })
        .collect();
    let mut done = 0;
    while done < corpus.changes {
        let count = BATCH.min(corpus.changes - done);
        let changes = (done..done + count)
            .map(|i| {
                let (path, text) = corpus.change(i);
                let seen = blobs.get(path.as_str()).context("a file that is not in the base")?;
                one_change(i, &path, text, seen, base)
            })
            .collect::<Result<Vec<_>>>()?;
        let body = SubmitChanges { fork: Some(ForkName::new("agent")?), changes };
        let reply = client.submit(repo, &body, &format!("bench-{done}"))?;
        for result in reply.results {
            if let SubmitResult::Refused(problem) = result {
                bail!("a change was refused: {}", problem.detail);
            }
        }
        done += count;
        eprint!("\r{done} of {} changes offered", corpus.changes);
    }
    eprintln!();
    Ok(())
}

fn one_change(i: usize, path: &str, text: String, seen: &str, base: &str) -> Result<ApiChange> {
    Ok(ApiChange {
        change: None,
        new_change: true,
        base: Some(base.parse()?),
        edits: vec![ApiEdit {
            path: RepoPath::new(path.as_bytes())?,
            base: Some(seen.parse()?),
            content: None,
            content_base64: Some(Base64(text.into_bytes())),
            mode: None,
            keep: false,
        }],
        intent: Intent { title: format!("change {i}"), task: format!("task {i}"), ..Intent::default() },
        author: Some("bench <bench@example.org>".to_owned()),
        reverts: Vec::new(),
    })
}

/// Polls until everything has landed and is in the index; how many requests that took.
///
/// The last change offered lands last, and records are written in the order of landing, so its record is
/// waited for by the cheapest request there is.
fn wait_until_complete(admin: &Client, repo: &RepoName, last: &str, began: Instant) -> Result<u64> {
    let mut polls = 0;
    loop {
        polls += 1;
        let newest = admin.records(repo, "limit=1")?;
        if newest.first().is_some_and(|record| record.title == last) {
            return Ok(polls);
        }
        if began.elapsed() > LAND_MAX {
            let open = admin.status(repo)?.open;
            let first: Vec<String> = open.iter().take(5).map(|change| change.reason.clone()).collect();
            bail!("{} changes are still open after {} s: {first:?}", open.len(), LAND_MAX.as_secs());
        }
        std::thread::sleep(Duration::from_millis(25));
    }
}

/// How many different changes the index has records of.
fn recorded(admin: &Client, repo: &RepoName) -> Result<usize> {
    let mut changes = std::collections::BTreeSet::new();
    let mut query = "limit=500".to_owned();
    loop {
        let page = admin.records(repo, &query)?;
        let Some(last) = page.last() else { return Ok(changes.len()) };
        query = format!("limit=500&before={}", last.cursor);
        changes.extend(page.into_iter().map(|record| record.change));
    }
}

/// The platform's own counts of its operations.
fn counts(admin: &Client) -> Result<serde_json::Value> {
    Ok(admin.get("/api/metrics")?)
}

fn difference(after: &serde_json::Value, before: &serde_json::Value) -> serde_json::Value {
    let map = after
        .as_object()
        .into_iter()
        .flatten()
        .map(|(name, value)| {
            let old = before.get(name).and_then(serde_json::Value::as_u64).unwrap_or(0);
            (name.clone(), serde_json::Value::from(value.as_u64().unwrap_or(0).saturating_sub(old)))
        })
        .collect::<serde_json::Map<_, _>>();
    serde_json::Value::Object(map)
}

/// Everything landed, each with its own edit and note; main's tree.
fn verify(sandbox: &Sandbox, corpus: &Corpus, url: &str, token: &str, base: &str) -> Result<String> {
    sandbox.git(".", Some(token), &["clone", "-q", "--bare", url, "landed.git"])?;
    sandbox.git("landed.git", Some(token), &["fetch", "-q", url, "+refs/notes/*:refs/notes/*"])?;
    sandbox.git("landed.git", None, &["fsck", "--strict"])?;
    let commits = sandbox.git("landed.git", None, &["rev-list", "--count", &format!("{base}..main")])?;
    let notes = sandbox.git("landed.git", None, &["notes", "--ref=intent", "list"])?.lines().count();
    ensure!(
        commits == corpus.changes.to_string() && notes == corpus.changes,
        "{commits} commits, {notes} notes"
    );
    for i in (0..corpus.changes).step_by((corpus.changes / 50).max(1)) {
        let (path, text) = corpus.change(i);
        let found = sandbox.git("landed.git", None, &["show", &format!("main:{path}")])?;
        ensure!(found == text.trim_end(), "{path} on main is not change {i}'s");
    }
    sandbox.git("landed.git", None, &["rev-parse", "main^{tree}"])
}

#[allow(clippy::cast_precision_loss, reason = "counts and milliseconds are far below 2^52")]
fn report(args: &Args, measured: &Measured, fast: f64, looped: f64) -> Result<()> {
    let n = args.changes as f64;
    let rate = n / measured.seconds;
    let per = |name: &str| {
        measured.counts.get(name).and_then(serde_json::Value::as_u64).map(|value| value as f64 / n)
    };
    let mut figures = Figures::new("landing", args.seed);
    figures.add("landed_per_second", rate, "changes/s", Target::None);
    figures.add("fast_import_per_second", n / fast, "commits/s", Target::None);
    figures.add("landing_vs_fast_import", rate * fast / n, "ratio", Target::AtLeast(0.3));
    figures.add("git_loop_per_second", looped, "landings/s", Target::None);
    figures.add("landing_vs_git_loop", rate / looped, "ratio", Target::None);
    figures.add("requests_per_change", measured.requests as f64 / n, "requests", Target::None);
    for (name, unit, target) in [
        ("object_calls", "calls", Target::None),
        ("r2_writes", "writes", Target::AtMost(0.1)),
        ("r2_reads", "reads", Target::None),
        ("d1_calls", "calls", Target::AtMost(0.1)),
    ] {
        if let Some(value) = per(name) {
            figures.add(&format!("{name}_per_change"), value, unit, target);
        }
    }
    let cpu = &measured.cpu;
    figures.add("cpu_ms_per_change", cpu.process_ms / n, "ms", Target::None);
    for (name, ms) in &cpu.classes {
        figures.add(&format!("cpu_ms_per_change_{name}"), ms / n, "ms", Target::None);
    }
    figures.add("cpu_ms_per_change_rest", cpu.rest_ms() / n, "ms", Target::None);
    figures.add("cpu_runtime_factor", cpu.runtime_factor(), "ratio", Target::None);
    let calls = (per("object_calls").unwrap_or(0.0), per("d1_calls").unwrap_or(0.0));
    let (object, polled) = cpu.busiest_object();
    let own = format!("CPU of one object, the {object}");
    let (limit, name) = saturation((polled * cpu.runtime_factor() / n, &own), calls);
    figures.add("saturating_changes_per_second", limit, "changes/s", Target::AtLeast(350.0));
    for (name, ms) in [("own_polls", polled), ("whole_workerd", cpu.process_ms)] {
        let (limit, _) = saturation((ms / n, name), calls);
        figures.add(&format!("saturating_changes_per_second_{name}"), limit, "changes/s", Target::None);
    }
    // The heap's peak and the linear memory's end, which is its peak: an upper bound of both at one moment.
    let wasm = measured.wasm_memory_bytes as f64 / 1_048_576.0;
    figures.add("js_heap_mib", measured.peak.heap_mib, "MiB", Target::None);
    figures.add("wasm_memory_mib", wasm, "MiB", Target::None);
    figures.add("isolate_heap_mib", measured.peak.heap_mib + wasm, "MiB", Target::AtMost(64.0));
    figures.finish()?;
    println!(
        "saturates first: {name}; the isolate's thread had a core {:.0} % of its time; memory: {} samples",
        100.0 * cpu.on_core,
        measured.peak.samples
    );
    Ok(())
}

/// The smallest of limit / use per change, and the resource that it is.
///
/// The limits: 1,000 ms of CPU a second for each object, at ten times what is charged to it here (`cpu`:
/// milliseconds a change, and whose); 1,000 requests a second for one object, to which all calls of objects
/// are charged; 1,000 queries a second for D1.
///
/// The figure with the target charges the busiest object with its own polls and its share of what the
/// runtime did on the thread ([`Split::runtime_factor`]). `_own_polls` charges the polls alone, which is
/// too little; `_whole_workerd` charges the whole process to one object, which is too much.
fn saturation((cpu_ms, whose): (f64, &str), (object_calls, d1_calls): (f64, f64)) -> (f64, String) {
    [
        (1000.0 / (10.0 * cpu_ms).max(1e-9), whose),
        (1000.0 / object_calls.max(1e-9), "requests of one object"),
        (1000.0 / d1_calls.max(1e-9), "queries of D1"),
    ]
    .into_iter()
    .min_by(|a, b| a.0.total_cmp(&b.0))
    .map(|(limit, name)| (limit, name.to_owned()))
    .unwrap_or_default()
}
