//! kill -9 of workerd at every named point, then a restart on the same state: every change still
//! ends exactly once.
//!
//! The hosts enumerate their points (before and after every write and every effect). For each, a
//! platform of its own is killed the first time it passes there, and started again, while two
//! authors and a runner go on trying. A point that no kill hit fails the test: it would prove
//! nothing. `YARD_KILL=PART` runs only the points whose names contain PART.

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use yard_cli::Client;
use yard_cli::runner::Runner;
use yard_common::bytes::Base64;
use yard_common::intent::Intent;
use yard_common::{ChangeId, ForkName, LaneName, RepoName, RepoPath};
use yard_loadtest::{Platform, Sandbox, Start};
use yard_objects::points;
use yard_tests::{CONFIG, PATIENCE, SUITE, at_rest};
use yard_wire::api::{ApiChange, ApiEdit, ChangeStatus, NewFork, NewRepo, SubmitChanges, SubmitResult};
use yard_wire::lane::Stage;
use yard_wire::token::Scope;

/// Platforms at once: each has a workerd, a runner and git's processes.
const AT_ONCE: usize = 2;

/// Tries until it works: the platform may be down, or have lost the answer.
fn again<T>(what: &str, mut attempt: impl FnMut() -> Result<T>) -> Result<T> {
    let began = Instant::now();
    loop {
        match attempt() {
            Ok(value) => return Ok(value),
            Err(error) if began.elapsed() > PATIENCE => return Err(error.context(what.to_owned())),
            Err(_) => std::thread::sleep(Duration::from_millis(200)),
        }
    }
}

struct World {
    platform: Platform,
    sandbox: Sandbox,
    admin: Client,
    repo: RepoName,
    base: String,
}

impl World {
    fn start(point: &str) -> Result<Self> {
        let sandbox = Sandbox::new()?;
        let mut start = Start::at(&sandbox.join("state"));
        start.respawn = true;
        start.extra = vec!["--kill-at".into(), format!("{point}#1"), "--tick".into(), "2".into()];
        let platform = Platform::start(&start)?;
        let admin = platform.admin()?;
        let repo = RepoName::new("killed")?;
        again("making the repository", || {
            let made = admin.new_repo(&NewRepo { name: repo.clone(), default_branch: None });
            match made {
                Ok(_) => Ok(()),
                Err(error) if error.problem().is_some_and(|problem| problem.title == "exists already") => {
                    Ok(())
                }
                Err(error) => Err(error.into()),
            }
        })?;
        for (path, content) in
            [(".switchyard.toml", CONFIG), ("tests.sh", SUITE), ("a.txt", "a\n"), ("b.txt", "b\n")]
        {
            sandbox.write(&format!("clone/{path}"), content)?;
        }
        sandbox.git("clone", None, &["init", "-q"])?;
        sandbox.git("clone", None, &["add", "-A"])?;
        sandbox.git("clone", None, &["commit", "-q", "-m", "start"])?;
        let base = sandbox.git("clone", None, &["rev-parse", "HEAD"])?;
        let world = Self { platform, sandbox, admin, repo, base };
        again("pushing main", || world.git(&["push", "-q", &world.remote(), "HEAD:refs/heads/main"]))?;
        Ok(world)
    }

    fn remote(&self) -> String {
        format!("{}/{}.git", self.platform.url(), self.repo)
    }

    fn git(&self, args: &[&str]) -> Result<String> {
        self.sandbox.git("clone", Some(self.admin.token()), args)
    }

    fn fork(&self, name: &str) -> Result<String> {
        let fork = ForkName::new(name)?;
        again("making a fork", || match self.admin.new_fork(&self.repo, &NewFork { name: fork.clone() }) {
            Ok(_) => Ok(()),
            Err(error) if error.problem().is_some_and(|problem| problem.title == "exists already") => Ok(()),
            Err(error) => Err(error.into()),
        })?;
        self.platform.token(Some(&self.repo), Some(&fork), &[Scope::Submit, Scope::Read])
    }

    /// One change by git: pushed again until the platform says that it has it.
    fn offer_by_git(&self) -> Result<ChangeId> {
        let token = self.fork("ann")?;
        let id = "I00000000000000000000000000000000000000a1";
        self.sandbox.write("clone/a.txt", "A\n")?;
        self.sandbox.git("clone", None, &["commit", "-q", "-am", &format!("edit a\n\nChange-Id: {id}")])?;
        let url = format!("{}/{}/forks/ann.git", self.platform.url(), self.repo);
        again("offering by git", || {
            let out = self.sandbox.try_git("clone", Some(&token), &["push", &url, "HEAD:refs/for/main"])?;
            let said = String::from_utf8_lossy(&out.stderr).into_owned();
            // A repeat of a push whose answer was lost may find the change landed already.
            if out.status.success() || said.contains("has landed") { Ok(()) } else { bail!("{said}") }
        })?;
        Ok(ChangeId::new(id)?)
    }

    /// One change by the API, under one key.
    fn offer_by_api(&self, path: &str, content: &str, key: &str) -> Result<ChangeId> {
        let client = Client::new(self.platform.url(), &self.fork("bob")?);
        let seen = self.git(&["rev-parse", "--verify", "-q", &format!("{}:{path}", self.base)]).ok();
        let edit = ApiEdit {
            path: RepoPath::new(path.as_bytes())?,
            base: seen.map(|id| id.parse()).transpose()?,
            content: None,
            content_base64: Some(Base64(content.as_bytes().to_vec())),
            mode: None,
            keep: false,
        };
        let body = SubmitChanges {
            fork: Some(ForkName::new("bob")?),
            changes: vec![ApiChange {
                change: None,
                new_change: true,
                base: Some(self.base.parse()?),
                edits: vec![edit],
                intent: Intent { title: format!("edit {path}"), ..Intent::default() },
                author: None,
                reverts: Vec::new(),
            }],
        };
        again("offering by the API", || {
            let reply = client.submit(&self.repo, &body, key)?;
            match reply.results.into_iter().next().context("no answer")? {
                SubmitResult::Accepted(accepted) => Ok(accepted.change),
                SubmitResult::Refused(problem) => bail!("{}", problem.detail),
            }
        })
    }

    fn settle(&self, expected: usize) -> Result<Vec<ChangeStatus>> {
        let token = self.platform.token(Some(&self.repo), None, &[Scope::Run])?;
        let client = Client::new(self.platform.url(), &token);
        let lanes = vec![LaneName::new("main")?];
        let runner = Runner::new(client, self.repo.clone(), lanes, self.sandbox.join("runner"), "kill")?;
        let began = Instant::now();
        loop {
            let changes = self.admin.changes(&self.repo, 100).unwrap_or_default();
            let rest = changes.len() >= expected && changes.iter().all(|change| at_rest(change.stage));
            if rest && self.admin.status(&self.repo).is_ok_and(|status| status.outbox == 0) {
                return Ok(changes);
            }
            ensure!(began.elapsed() < PATIENCE * 2, "not settled: {changes:?}");
            // A runner whose platform is down asks again.
            let _ = runner.round();
        }
    }
}

/// The whole life of three changes (two land, one is broken), with a kill at `point`.
fn live_through(point: &str) -> Result<()> {
    let world = World::start(point)?;
    let first = world.offer_by_git()?;
    let second = world.offer_by_api("b.txt", "B\n", "kill-b")?;
    let broken = world.offer_by_api("red-1", "x\n", "kill-red")?;
    let changes = world.settle(3)?;
    let began = Instant::now();
    while !hit(&world, point)? {
        ensure!(began.elapsed() < Duration::from_secs(30), "no kill hit this point");
        std::thread::sleep(Duration::from_millis(200));
    }
    let changes = if changes.len() == 3 { changes } else { world.settle(3)? };
    for change in &changes {
        let expected = if change.change == broken { Stage::NeedsAuthor } else { Stage::Landed };
        ensure!(change.stage == expected, "{} is {:?}: {}", change.title, change.stage, change.reason);
    }
    ensure!(changes.len() == 3, "{} changes for three offers", changes.len());
    exactly_once(&world, &[first, second])
}

fn hit(world: &World, point: &str) -> Result<bool> {
    let log = std::fs::read_to_string(&world.platform.log)?;
    Ok(log.lines().any(|line| line.trim() == format!("POINT {point}")))
}

fn exactly_once(world: &World, landed: &[ChangeId]) -> Result<()> {
    again("fetching the result", || {
        world.git(&[
            "fetch",
            "-q",
            &world.remote(),
            "+refs/heads/main:refs/got/main",
            "+refs/notes/*:refs/notes/*",
        ])
    })?;
    world.git(&["fsck", "--strict"])?;
    let list = world.git(&["rev-list", &format!("{}..refs/got/main", world.base)])?;
    ensure!(
        list.lines().count() == landed.len(),
        "{} commits for {} changes",
        list.lines().count(),
        landed.len()
    );
    let mut named = BTreeSet::new();
    for commit in list.lines() {
        let note = world.git(&["notes", "--ref=intent", "show", commit])?;
        let change = landed.iter().find(|change| note.contains(change.as_str()));
        named.insert(change.context(format!("a note of no change: {note}"))?.clone());
    }
    ensure!(named.len() == landed.len());
    let records = world.admin.records(&world.repo, "limit=100")?;
    let recorded: BTreeSet<ChangeId> = records.iter().map(|record| record.change.clone()).collect();
    ensure!(recorded == named && records.len() == landed.len(), "records {recorded:?}, landed {named:?}");
    Ok(())
}

#[test]
fn a_kill_at_any_point_loses_nothing_and_doubles_nothing() {
    let only = std::env::var("YARD_KILL").unwrap_or_default();
    let names: Vec<&str> = points::NAMES.iter().copied().filter(|name| name.contains(&only)).collect();
    let next = Mutex::new(names.iter());
    let faults = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                loop {
                    let Some(name) = next.lock().expect("no thread panics holding it").next() else { return };
                    let began = Instant::now();
                    let result = live_through(name);
                    eprintln!(
                        "{:5.1} s  {name}: {}",
                        began.elapsed().as_secs_f64(),
                        if result.is_ok() { "ok" } else { "FAILED" }
                    );
                    if let Err(error) = result {
                        faults
                            .lock()
                            .expect("no thread panics holding it")
                            .push(format!("{name}: {error:#}"));
                    }
                }
            });
        }
    });
    let faults = faults.into_inner().expect("all threads have ended");
    assert!(faults.is_empty(), "{} of {} points:\n{}", faults.len(), names.len(), faults.join("\n"));
}
