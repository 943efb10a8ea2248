//! Runners: what they print is read while they run, a dead one costs little, and no lane is made by asking.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use yard_cli::{Client, ClientError};
use yard_common::{LaneName, RunId, RunnerId};
use yard_tests::{PATIENCE, Story};
use yard_wire::api::RunLog;
use yard_wire::lane::{Lease, Stage};
use yard_wire::token::Scope;

fn until<T>(what: &str, mut look: impl FnMut() -> Result<Option<T>>) -> Result<T> {
    let began = Instant::now();
    loop {
        if let Some(found) = look()? {
            return Ok(found);
        }
        ensure!(began.elapsed() < PATIENCE, "{what} did not come");
        std::thread::sleep(Duration::from_millis(100));
    }
}

fn main_lane() -> Result<LaneName> {
    Ok(LaneName::new("main")?)
}

/// A suite that prints, waits for a file, and prints again.
fn waiting_suite(token: &Path, gate: &Path) -> String {
    format!(
        "echo first\ncat '{}'\nn=0\nwhile [ ! -e '{}' ] && [ $n -lt 150 ]; do sleep 0.1; n=$((n+1)); done\n\
         echo last\n\
         echo '<testsuites><testsuite name=\"s\"><testcase name=\"t\"/></testsuite></testsuites>' >report.xml\n",
        token.display(),
        gate.display()
    )
}

fn find_train_run(story: &Story) -> Result<RunId> {
    let lane = main_lane()?;
    until("the run of the train", || {
        let runs = story.admin.lane(&story.repo, &lane)?.runs;
        Ok(runs.into_iter().find(|run| run.purpose == "train" && run.runner.is_some()).map(|run| run.run))
    })
}

#[test]
fn what_a_run_prints_is_read_while_it_runs_and_after_it_was_green() -> Result<()> {
    let story = Story::with_files("live-log", &[("a.txt", "a\n")])?;
    let (secret, gate) = (story.sandbox.join("token"), story.sandbox.join("gate"));
    let base = story.git(&["rev-parse", "main"])?;
    let token = story.fork("ann")?;
    let suite = waiting_suite(&secret, &gate);
    let commit = story.commit(&base, &[("tests.sh", Some(&suite))], "a talkative suite")?;
    let (ok, said) = story.offer("ann", &token, &commit, &[])?;
    ensure!(ok, "{said}");
    let runner = story.runner("talks")?;
    let runners_token = runner.client.token().to_owned();
    std::fs::write(&secret, format!("{runners_token}\n"))?;
    std::thread::scope(|scope| {
        let hand = scope.spawn(|| while !gate.exists() && runner.round().is_ok() {});
        let read = (|| {
            let run = find_train_run(&story)?;
            let look = |from: u64| story.admin.run_log(&story.repo, &run, from);
            let live: RunLog =
                until("the first lines", || Ok(Some(look(0)?).filter(|log| log.log.contains("first\n"))))?;
            ensure!(!live.ended && !live.log.contains("last"), "it runs: {live:?}");
            std::fs::write(&gate, "")?;
            let rest: RunLog =
                until("the end of the log", || Ok(Some(look(live.next)?).filter(|log| log.ended)))?;
            ensure!(rest.log.contains("last\n") && !rest.log.contains("first"), "{rest:?}");
            let whole = look(0)?;
            ensure!(whole.log == format!("{}{}", live.log, rest.log), "{whole:?}");
            ensure!(whole.log.contains("[token]") && !whole.log.contains(&runners_token), "{whole:?}");
            Ok(())
        })();
        std::fs::write(&gate, "")?;
        let _ = hand.join();
        read
    })?;
    let changes = story.run_until_settled(1)?;
    ensure!(changes.iter().all(|change| change.stage == Stage::Landed), "{changes:?}");
    Ok(())
}

#[test]
fn a_runner_that_dies_with_its_lease_costs_seconds() -> Result<()> {
    let story = Story::with_files("dead-runner", &[("a.txt", "a\n")])?;
    let base = story.git(&["rev-parse", "main"])?;
    let token = story.fork("ann")?;
    story.run_until_settled(0)?;
    story.offer_by_api("ann", &token, &base, &[("a.txt", Some("A\n"))], "edit a")?;
    let client = Client::new(&story.url, &story.token_for(None, &[Scope::Run])?);
    let lease = Lease {
        repo: story.repo.clone(),
        lane: main_lane()?,
        runner: RunnerId::new("dead")?,
        environment: "0".repeat(40),
        wait_ms: 5_000,
        token: None,
    };
    until("a run", || Ok(client.lease(&lease)?))?;
    let began = Instant::now();
    let changes = story.run_until_settled(1)?;
    ensure!(changes.iter().all(|change| change.stage == Stage::Landed), "{changes:?}");
    ensure!(began.elapsed() < Duration::from_secs(40), "{:?}", began.elapsed());
    Ok(())
}

#[test]
fn asking_makes_no_lane_and_no_log() -> Result<()> {
    let story = Story::with_files("no-lane", &[("a.txt", "a\n")])?;
    let client = Client::new(&story.url, &story.token_for(None, &[Scope::Run])?);
    let missing = |answer: Result<String, ClientError>, what: &str| match answer {
        Err(ClientError::Refused(problem)) => {
            ensure!(problem.status == 404 && problem.detail.contains(what), "{problem:?}");
            Ok(())
        }
        other => Err(anyhow::anyhow!("{what}: {other:?}")),
    };
    let other = LaneName::new("other")?;
    let lease = Lease {
        repo: story.repo.clone(),
        lane: other.clone(),
        runner: RunnerId::new("r")?,
        environment: "0".repeat(40),
        wait_ms: 0,
        token: None,
    };
    missing(client.lease(&lease).map(|work| format!("{work:?}")), "lane \"other\"")?;
    missing(client.lane(&story.repo, &other).map(|lane| format!("{lane:?}")), "lane \"other\"")?;
    for run in ["other-1-1", "main-99-1", "run"] {
        let log = client.run_log(&story.repo, &RunId::new(run)?, 0);
        missing(log.map(|log| format!("{log:?}")), run)?;
    }
    Ok(())
}

/// Counts a file's `bad` as red, then runs a script of the tree.
const LEAVING: &str = "if grep -q bad a.txt; then t='<testcase name=\"a\"><failure/></testcase>'; r=1\n\
    else t='<testcase name=\"a\"/>'; r=0; fi\n\
    echo \"<testsuites><testsuite name=\\\"s\\\">$t</testsuite></testsuites>\" >report.xml\n\
    [ -e extra.sh ] && sh ./extra.sh\nexit $r\n";

#[test]
fn what_one_run_leaves_behind_has_no_part_in_the_next() -> Result<()> {
    let hook = "printf '#!/bin/sh\\necho good >a.txt\\n' >.git/hooks/post-checkout";
    let leave = format!(
        "mkdir -p .git/hooks\n{hook}\nchmod +x .git/hooks/post-checkout\n\
         git config core.hooksPath .git/hooks\ngit update-index --skip-worktree --assume-unchanged a.txt\n\
         mkdir nested; git init -q nested; touch nested/left left\n"
    );
    let story = Story::with_files("leaving", &[("a.txt", "good\n"), ("tests.sh", LEAVING)])?;
    let base = story.git(&["rev-parse", "main"])?;
    let (ann, bob) = (story.fork("ann")?, story.fork("bob")?);
    story.offer_by_api("ann", &ann, &base, &[("extra.sh", Some(&leave))], "leaves")?;
    let first = story.run_until_settled(1)?;
    ensure!(first.iter().all(|change| change.stage == Stage::Landed), "{first:?}");
    story.offer_by_api("bob", &bob, &base, &[("a.txt", Some("bad\n"))], "breaks")?;
    let changes = story.run_until_settled(2)?;
    ensure!(changes.iter().any(|change| change.stage == Stage::NeedsAuthor), "{changes:?}");
    ensure!(story.on_main("a.txt")? == "good");
    Ok(())
}
