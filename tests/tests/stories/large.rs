//! Many files, many landings, cold isolates: each on a platform of its own, whose operations are counted.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use yard_cli::Client;
use yard_common::intent::Intent;
use yard_common::{ForkName, RepoName, RepoPath};
use yard_loadtest::{Crew, Platform, Sandbox, Start};
use yard_tests::{CONFIG, PATIENCE};
use yard_wire::api::{ApiChange, ApiEdit, NewFork, NewRepo, SubmitChanges, SubmitResult};
use yard_wire::token::Scope;

struct Alone {
    platform: Platform,
    sandbox: Sandbox,
    admin: Client,
    repo: RepoName,
}

impl Alone {
    /// A platform and a repository of `files` files on it, a commit's pushed id beside.
    fn with_files(files: usize) -> Result<(Self, String)> {
        let sandbox = Sandbox::new()?;
        let mut start = Start::at(&sandbox.join("state"));
        start.respawn = true;
        let platform = Platform::start(&start)?;
        let admin = platform.admin()?;
        let repo = RepoName::new("large")?;
        admin.new_repo(&NewRepo { name: repo.clone(), default_branch: None })?;
        let alone = Self { platform, sandbox, admin, repo };
        for n in 0..files {
            alone.sandbox.write(&format!("clone/dir{:03}/file{n}.txt", n / 200), &format!("file {n}\n"))?;
        }
        alone.sandbox.write("clone/.switchyard.toml", CONFIG)?;
        alone.git("clone", &["init", "-q"])?;
        alone.git("clone", &["add", "-A"])?;
        alone.git("clone", &["commit", "-q", "-m", "start"])?;
        alone.git("clone", &["push", "-q", &alone.remote(), "HEAD:refs/heads/main"])?;
        let base = alone.git("clone", &["rev-parse", "HEAD"])?;
        Ok((alone, base))
    }

    fn remote(&self) -> String {
        format!("{}/{}.git", self.platform.url(), self.repo)
    }

    fn git(&self, dir: &str, args: &[&str]) -> Result<String> {
        self.sandbox.git(dir, Some(self.admin.token()), args)
    }

    fn count(&self, name: &str) -> Result<u64> {
        let counts: serde_json::Value = self.admin.get("/api/metrics")?;
        counts.get(name).and_then(serde_json::Value::as_u64).context("no such count")
    }

    /// Offers an edit of each of these files, each as a change of its own, in one request.
    fn offer(&self, token: &str, base: &str, files: std::ops::Range<usize>) -> Result<()> {
        let changes = files
            .map(|n| {
                let path = format!("dir{:03}/file{n}.txt", n / 200);
                let seen = self.git("clone", &["rev-parse", &format!("{base}:{path}")])?;
                Ok(ApiChange {
                    change: None,
                    new_change: true,
                    base: Some(base.parse()?),
                    edits: vec![ApiEdit {
                        path: RepoPath::new(path.as_bytes())?,
                        base: Some(seen.parse()?),
                        content: Some(format!("changed {n}\n")),
                        content_base64: None,
                        mode: None,
                        keep: false,
                    }],
                    intent: Intent { title: format!("change {n}"), ..Intent::default() },
                    author: None,
                    reverts: Vec::new(),
                })
            })
            .collect::<Result<Vec<_>>>()?;
        let body = SubmitChanges { fork: Some(ForkName::new("agent")?), changes };
        let reply =
            Client::new(self.platform.url(), token).submit(&self.repo, &body, &format!("offer-{base}"))?;
        for result in reply.results {
            ensure!(matches!(result, SubmitResult::Accepted(_)), "{result:?}");
        }
        Ok(())
    }

    fn settle(&self) -> Result<()> {
        let began = Instant::now();
        loop {
            let status = self.admin.status(&self.repo)?;
            if status.open.is_empty() && status.outbox == 0 {
                return Ok(());
            }
            ensure!(began.elapsed() < PATIENCE, "still open: {:?}", status.open.first());
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

#[test]
fn a_fork_of_40000_files_copies_nothing() -> Result<()> {
    let (alone, base) = Alone::with_files(40_000)?;
    let (writes, statements) = (alone.count("r2_writes")?, alone.count("sql_statements")?);
    let made = alone.admin.new_fork(&alone.repo, &NewFork { name: ForkName::new("agent")? })?;
    ensure!(alone.count("r2_writes")? == writes, "a fork wrote to the bucket");
    let used = alone.count("sql_statements")? - statements;
    ensure!(used < 100, "a fork took {used} statements");
    let listed = alone.git("clone", &["ls-remote", &made.url, "refs/heads/main"])?;
    ensure!(listed.starts_with(&base), "{listed}");
    Ok(())
}

#[test]
fn after_100_landings_fetches_are_whole_from_fork_and_parent_also_with_cold_isolates() -> Result<()> {
    let (mut alone, base) = Alone::with_files(400)?;
    let fork = alone.admin.new_fork(&alone.repo, &NewFork { name: ForkName::new("agent")? })?;
    alone.git(".", &["clone", "-q", &alone.remote(), "second"])?;
    let run = alone.platform.token(Some(&alone.repo), None, &[Scope::Run])?;
    let crew = Crew::start(&Client::new(alone.platform.url(), &run), &alone.repo, 1)?;
    alone.offer(&fork.token, &base, 0..100)?;
    alone.settle()?;
    crew.stop()?;
    let main = |alone: &Alone| -> Result<String> {
        let listed = alone.git("clone", &["ls-remote", &alone.remote(), "refs/heads/main"])?;
        Ok(listed.split('\t').next().unwrap_or_default().to_owned())
    };
    let tip = main(&alone)?;
    alone.git("second", &["pull", "-q", "--ff-only"])?;
    ensure!(alone.git("second", &["rev-list", "--count", &format!("{base}..HEAD")])? == "100");
    ensure!(alone.git("second", &["rev-parse", "HEAD"])? == tip);
    alone.git("second", &["fsck", "--strict"])?;

    alone.platform.kill_workerd()?;
    alone.platform.wait_for_respawn()?;
    ensure!(main(&alone)? == tip, "main is another one after a restart");
    alone.git(".", &["clone", "-q", &alone.remote(), "cold"])?;
    alone.git("cold", &["fsck", "--strict"])?;
    ensure!(alone.git("cold", &["rev-parse", "HEAD"])? == tip);
    let from_fork = format!("{}/{}/forks/agent.git", alone.platform.url(), alone.repo);
    alone.git(".", &["clone", "-q", &from_fork, "forked"])?;
    alone.git("forked", &["fsck", "--strict"])?;
    ensure!(alone.git("forked", &["rev-parse", "HEAD"])? == base, "a fork's main moved by itself");
    Ok(())
}

#[test]
fn a_change_of_20000_paths_is_accepted_tested_and_lands() -> Result<()> {
    let (alone, base) = Alone::with_files(10_000)?;
    let fork = alone.admin.new_fork(&alone.repo, &NewFork { name: ForkName::new("agent")? })?;
    let run = alone.platform.token(Some(&alone.repo), None, &[Scope::Run])?;
    let crew = Crew::start(&Client::new(alone.platform.url(), &run), &alone.repo, 1)?;
    // Every file moves: 10,000 paths go, 10,000 come.
    alone.git("clone", &["checkout", "-q", "--detach", &base])?;
    std::fs::create_dir(alone.sandbox.join("clone/moved"))?;
    for n in 0..50 {
        alone.git("clone", &["mv", &format!("dir{n:03}"), "moved/"])?;
    }
    alone.git("clone", &["commit", "-q", "-m", "Move everything"])?;
    let head = alone.git("clone", &["rev-parse", "HEAD^{tree}"])?;
    let url = format!("{}/{}/forks/agent.git", alone.platform.url(), alone.repo);
    let push = ["push", "-q", &url, "HEAD:refs/for/main"];
    alone.sandbox.git("clone", Some(&fork.token), &push)?;
    alone.settle()?;
    // And a small change after it, on what it made.
    alone.git("clone", &["fetch", "-q", &alone.remote(), "refs/heads/main"])?;
    let main = alone.git("clone", &["rev-parse", "FETCH_HEAD"])?;
    ensure!(alone.git("clone", &["rev-parse", "FETCH_HEAD^{tree}"])? == head, "main is another tree");
    ensure!(alone.git("clone", &["rev-list", "--count", &format!("{base}..{main}")])? == "1");
    alone.git("clone", &["checkout", "-q", "--detach", &main])?;
    alone.sandbox.write("clone/moved/dir000/file0.txt", "after\n")?;
    alone.git("clone", &["commit", "-q", "-a", "-m", "After it"])?;
    alone.sandbox.git("clone", Some(&fork.token), &push)?;
    alone.settle()?;
    crew.stop()?;
    alone.git("clone", &["fetch", "-q", &alone.remote(), "refs/heads/main"])?;
    ensure!(alone.git("clone", &["show", "FETCH_HEAD:moved/dir000/file0.txt"])? == "after");
    // The proof is whole for whoever checks it.
    let landings = alone.admin.landings(&alone.repo, yard_common::FactNo(0), 100)?;
    let edits: Vec<usize> = landings
        .iter()
        .filter_map(|(_, _, fact)| match fact {
            yard_common::Fact::Landed { request, .. } => {
                Some(request.changes.iter().map(|one| one.edits.len()).sum())
            }
            _ => None,
        })
        .collect();
    ensure!(edits == [20_000, 1], "{edits:?}");
    Ok(())
}
