//! One platform that is killed again and again, with authors and a runner that go on trying.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use yard_cli::Client;
use yard_cli::client::ClientError;
use yard_cli::runner::Runner;
use yard_common::bytes::Base64;
use yard_common::intent::Intent;
use yard_common::{ChangeId, ForkName, LaneName, RepoName, RepoPath};
use yard_loadtest::{Platform, Sandbox, Start};
use yard_tests::{CONFIG, PATIENCE, SUITE, at_rest};
use yard_wire::api::{
    ApiChange, ApiEdit, ChangeStatus, NewFork, NewRepo, NewToken, SubmitChanges, SubmitResult,
};
use yard_wire::lane::{Lease, Stage};
use yard_wire::token::Scope;

/// A runner's call waits for work this long, in milliseconds: the test looks at the changes in between.
const WAIT_MS: u64 = 200;
/// A platform that is at rest passes no more points after this: effects wait 250 ms, the cron 1 s.
const REST: Duration = Duration::from_secs(8);

/// Tries until it works: the platform may be down, or have lost the answer.
fn again<T>(what: &str, mut attempt: impl FnMut() -> Result<T>) -> Result<T> {
    let began = Instant::now();
    loop {
        match attempt() {
            Ok(value) => return Ok(value),
            Err(error) if began.elapsed() > PATIENCE => return Err(error.context(what.to_owned())),
            Err(_) => std::thread::sleep(Duration::from_millis(100)),
        }
    }
}

/// A repeat whose first answer was lost finds the name taken: by itself.
fn made<T>(answer: Result<T, ClientError>) -> Result<()> {
    match answer {
        Ok(_) => Ok(()),
        Err(error) if error.problem().is_some_and(|problem| problem.title == "exists already") => Ok(()),
        Err(error) => Err(error.into()),
    }
}

pub struct World {
    platform: Platform,
    sandbox: Sandbox,
    admin: Client,
    runner: Runner,
    repo: RepoName,
    base: String,
    rounds: usize,
    expected: BTreeMap<ChangeId, Stage>,
}

impl World {
    /// A platform whose n-th life is killed at the n-th point; its repository with the files of all rounds.
    pub fn start(points: &[String], rounds_max: usize) -> Result<Self> {
        let sandbox = Sandbox::new()?;
        let mut start = Start::at(&sandbox.join("state"));
        start.respawn = true;
        start.extra = vec!["--tick".into(), "1".into()];
        start.extra.extend(points.iter().flat_map(|point| ["--kill-at".to_owned(), point.clone()]));
        let platform = Platform::start(&start)?;
        let admin = platform.admin()?;
        let repo = RepoName::new("killed")?;
        again("making the repository", || {
            made(admin.new_repo(&NewRepo { name: repo.clone(), default_branch: None }))
        })?;
        sandbox.write("clone/.switchyard.toml", CONFIG)?;
        sandbox.write("clone/tests.sh", SUITE)?;
        for round in 1..=rounds_max {
            sandbox.write(&format!("clone/ann/{round}"), "a\n")?;
            sandbox.write(&format!("clone/bob/{round}"), "b\n")?;
        }
        sandbox.git("clone", None, &["init", "-q"])?;
        sandbox.git("clone", None, &["add", "-A"])?;
        sandbox.git("clone", None, &["commit", "-q", "-m", "start"])?;
        let base = sandbox.git("clone", None, &["rev-parse", "HEAD"])?;
        let runs = Client::new(platform.url(), &platform.token(Some(&repo), None, &[Scope::Run])?);
        let lanes = vec![LaneName::new("main")?];
        let runner = Runner::new(runs, repo.clone(), lanes, sandbox.join("runner"), "kill")?;
        let expected = BTreeMap::new();
        let world = Self { platform, sandbox, admin, runner, repo, base, rounds: 0, expected };
        again("pushing main", || world.git(&["push", "-q", &world.remote(), "HEAD:refs/heads/main"]))?;
        Ok(world)
    }

    /// The points at which it was killed so far, in order.
    pub fn kills(&self) -> Result<Vec<String>> {
        let log = std::fs::read_to_string(&self.platform.log)?;
        Ok(log.lines().filter_map(|line| line.trim().strip_prefix("POINT ")).map(str::to_owned).collect())
    }

    /// The last lines of the platform's log.
    pub fn log_tail(&self) -> String {
        let log = std::fs::read_to_string(&self.platform.log).unwrap_or_default();
        let lines: Vec<&str> = log.lines().collect();
        lines.get(lines.len().saturating_sub(30)..).unwrap_or_default().join("\n")
    }

    /// Five more changes and a revoked token, then rest: two land, one is there already, one is broken, one
    /// collides and would have to be replayed.
    ///
    /// Ends when it has seen a kill, or when nothing more can come.
    pub fn round(&mut self) -> Result<()> {
        let before = self.kills()?.len();
        self.rounds += 1;
        let n = self.rounds;
        let by_git = self.offer_by_git(n)?;
        let by_api = self.offer_by_api("bob", &format!("bob/{n}"), "B\n")?;
        let same = self.offer_by_api("carol", &format!("bob/{n}"), "B\n")?;
        let broken = self.offer_by_api("bob", &format!("red-{n}"), "x\n")?;
        let collides = self.offer_by_api("dave", &format!("ann/{n}"), "D\n")?;
        self.expected.insert(collides, Stage::NeedsAuthor);
        self.expected.insert(by_git, Stage::Landed);
        self.expected.insert(by_api, Stage::Landed);
        self.expected.insert(same, Stage::AlreadyOnMain);
        self.expected.insert(broken, Stage::NeedsAuthor);
        self.revoke()?;
        self.settle()?;
        let began = Instant::now();
        while self.kills()?.len() == before && began.elapsed() < REST {
            std::thread::sleep(Duration::from_millis(100));
        }
        // It was the last kill of this round that may have left something to be done.
        self.settle()?;
        self.exactly_once()
    }

    fn remote(&self) -> String {
        format!("{}/{}.git", self.platform.url(), self.repo)
    }

    fn git(&self, args: &[&str]) -> Result<String> {
        self.sandbox.git("clone", Some(self.admin.token()), args)
    }

    fn fork(&self, name: &str) -> Result<(ForkName, String)> {
        let fork = ForkName::new(name)?;
        again("making a fork", || made(self.admin.new_fork(&self.repo, &NewFork { name: fork.clone() })))?;
        let token = self.platform.token(Some(&self.repo), Some(&fork), &[Scope::Submit, Scope::Read])?;
        Ok((fork, token))
    }

    /// One change by git, from a new fork: pushed again until the platform says that it has it.
    fn offer_by_git(&self, n: usize) -> Result<ChangeId> {
        let (fork, token) = self.fork(&format!("ann-{n}"))?;
        let id = format!("I{n:040x}");
        self.sandbox.git("clone", None, &["checkout", "-q", "--force", "--detach", &self.base])?;
        self.sandbox.write(&format!("clone/ann/{n}"), "A\n")?;
        let message = format!("edit ann/{n}\n\nChange-Id: {id}");
        self.sandbox.git("clone", None, &["commit", "-q", "-am", &message])?;
        let url = format!("{}/{}/forks/{fork}.git", self.platform.url(), self.repo);
        again("offering by git", || {
            let out = self.sandbox.try_git("clone", Some(&token), &["push", &url, "HEAD:refs/for/main"])?;
            let said = String::from_utf8_lossy(&out.stderr).into_owned();
            // A repeat of a push whose answer was lost may find the change landed already.
            if out.status.success() || said.contains("has landed") { Ok(()) } else { bail!("{said}") }
        })?;
        Ok(ChangeId::new(id)?)
    }

    /// One change by the API, under one key.
    fn offer_by_api(&self, name: &str, path: &str, content: &str) -> Result<ChangeId> {
        let (fork, token) = self.fork(name)?;
        let client = Client::new(self.platform.url(), &token);
        let seen = self.git(&["rev-parse", "--verify", "-q", &format!("{}:{path}", self.base)]).ok();
        let edit = ApiEdit {
            path: RepoPath::new(path.as_bytes())?,
            base: seen.map(|id| id.parse()).transpose()?,
            content: None,
            content_base64: Some(Base64(content.as_bytes().to_vec())),
            mode: None,
            keep: false,
        };
        let change = ApiChange {
            change: None,
            new_change: true,
            base: Some(self.base.parse()?),
            edits: vec![edit],
            intent: Intent { title: format!("edit {path} by {name}"), ..Intent::default() },
            author: None,
            reverts: Vec::new(),
        };
        let body = SubmitChanges { fork: Some(fork), changes: vec![change] };
        let key = format!("offer-{name}-{path}").replace('/', "-");
        again("offering by the API", || {
            let reply = client.submit(&self.repo, &body, &key)?;
            match reply.results.into_iter().next().context("no answer")? {
                SubmitResult::Accepted(accepted) => Ok(accepted.change),
                SubmitResult::Refused(problem) => bail!("{}", problem.detail),
            }
        })
    }

    /// A token that is revoked is refused from then on.
    fn revoke(&self) -> Result<()> {
        let asked = NewToken { scopes: vec![Scope::Read], fork: None, ttl_seconds: 3600 };
        let made = again("making a token", || Ok(self.admin.new_token(&self.repo, &asked)?))?;
        let path = format!("/api/repos/{}/tokens/{}", self.repo, made.id);
        again("revoking a token", || Ok(self.admin.delete::<serde_json::Value>(&path)?))?;
        let client = Client::new(self.platform.url(), &made.token);
        again("asking with a revoked token", || match client.changes(&self.repo, 1) {
            Err(ClientError::Refused(problem)) if problem.status == 401 => Ok(Ok(())),
            Err(error) => Err(error.into()),
            Ok(_) => Ok(Err(anyhow::anyhow!("a revoked token was taken"))),
        })?
    }

    /// Tests what is to be tested until every change is at rest and every effect is done.
    fn settle(&self) -> Result<()> {
        let lane = self.runner.lanes.first().context("the runner has a lane")?;
        let lease = Lease {
            repo: self.repo.clone(),
            lane: lane.clone(),
            runner: self.runner.id.clone(),
            environment: self.runner.environment.clone(),
            wait_ms: WAIT_MS,
            token: None,
        };
        let began = Instant::now();
        loop {
            let changes = self.admin.changes(&self.repo, 200).unwrap_or_default();
            let rest = changes.len() >= self.expected.len() && changes.iter().all(|of| at_rest(of.stage));
            if rest && self.admin.status(&self.repo).is_ok_and(|status| status.outbox == 0) {
                return Ok(());
            }
            ensure!(began.elapsed() < PATIENCE * 2, "not settled: {}", told(&changes));
            // A runner whose platform is down asks again.
            if let Ok(Some(work)) = self.runner.client.lease(&lease) {
                let _ = self.runner.perform(lane, &work);
            }
        }
    }

    /// Every change has ended as it must, in one commit, one note, one record, told once to the board.
    fn exactly_once(&self) -> Result<()> {
        let changes = again("reading the changes", || Ok(self.admin.changes(&self.repo, 200)?))?;
        for change in &changes {
            let expected =
                self.expected.get(&change.change).context(format!("{} is nobody's", change.title))?;
            ensure!(change.stage == *expected, "not {expected:?}: {}", told(std::slice::from_ref(change)));
        }
        ensure!(changes.len() == self.expected.len(), "{} changes: {}", changes.len(), told(&changes));
        self.in_git()?;
        let landed = self.ended_as(&[Stage::Landed]);
        let records = again("reading the records", || Ok(self.admin.records(&self.repo, "limit=200")?))?;
        let mut recorded: Vec<&ChangeId> = records.iter().map(|record| &record.change).collect();
        recorded.sort();
        ensure!(recorded == landed, "records {recorded:?}, landed {landed:?}");
        self.on_board()
    }

    /// The changes that were offered and must have ended so, in the order of their ids.
    fn ended_as(&self, stages: &[Stage]) -> Vec<&ChangeId> {
        self.expected.iter().filter(|(_, stage)| stages.contains(stage)).map(|(id, _)| id).collect()
    }

    fn in_git(&self) -> Result<()> {
        let refs = ["+refs/heads/main:refs/got/main", "+refs/notes/*:refs/notes/*"];
        again("fetching the result", || self.git(&["fetch", "-q", &self.remote(), refs[0], refs[1]]))?;
        self.git(&["fsck", "--strict"])?;
        let list = self.git(&["rev-list", "--first-parent", &format!("{}..refs/got/main", self.base)])?;
        let mut left = self.ended_as(&[Stage::Landed]);
        for commit in list.lines() {
            let note = self.git(&["notes", "--ref=intent", "show", commit])?;
            let place = left.iter().position(|change| note.contains(change.as_str()));
            left.swap_remove(place.context(format!("a commit for no change, or a second one: {note}"))?);
        }
        ensure!(left.is_empty(), "landed without a commit: {left:?}");
        let notes = self.git(&["notes", "--ref=intent", "list"])?;
        ensure!(notes.lines().count() == list.lines().count(), "a note of no commit: {notes}");
        for n in 1..=self.rounds {
            for (path, content) in [(format!("ann/{n}"), "A"), (format!("bob/{n}"), "B")] {
                let is = self.git(&["show", &format!("refs/got/main:{path}")])?;
                ensure!(is == content, "{path} on main is {is:?}");
            }
        }
        Ok(())
    }

    /// What the repository's facts say has been told, and once.
    fn on_board(&self) -> Result<()> {
        let (mut after, mut events) = (0, Vec::new());
        loop {
            let page = again("reading the board", || Ok(self.admin.events(&self.repo, after)?))?;
            if page.events.is_empty() {
                break;
            }
            after = page.next;
            events.extend(page.events.into_iter().map(|(_, event)| event));
        }
        let all = [Stage::Landed, Stage::AlreadyOnMain, Stage::NeedsAuthor];
        for (kind, stages) in
            [("submitted", &all[..]), ("landed", &all[..1]), ("already-on-main", &all[1..2])]
        {
            let expected = self.ended_as(stages);
            let told = events.iter().filter(|event| event.kind == kind);
            let mut told: Vec<&ChangeId> = told.filter_map(|event| event.change.as_ref()).collect();
            told.sort();
            ensure!(told == expected, "the board tells {kind} of {told:?}, it was {expected:?}");
        }
        Ok(())
    }
}

fn told(changes: &[ChangeStatus]) -> String {
    let one = |change: &ChangeStatus| format!("{} {:?} ({})", change.title, change.stage, change.reason);
    changes.iter().map(one).collect::<Vec<_>>().join("; ")
}
