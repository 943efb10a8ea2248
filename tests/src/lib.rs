//! What the stories share: one platform for all of them, a repository of its own for each.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, OnceLock};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use yard_cli::Client;
use yard_cli::runner::{Round, Runner};
use yard_common::bytes::Base64;
use yard_common::intent::Intent;
use yard_common::{ChangeId, ForkName, LaneName, RepoName, RepoPath};
use yard_loadtest::scripted::{Act, task::Question};
use yard_loadtest::{Platform, Sandbox, Scripted, Start};
use yard_wire::api::{ApiChange, ApiEdit, ChangeStatus, NewFork, NewRepo, SubmitChanges, SubmitResult};
use yard_wire::lane::Stage;
use yard_wire::token::Scope;

/// The longest that any one wait of a story may take.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// A configuration whose command writes a green report unless a file named `red` says no.
///
/// `tests.sh` at the root of the project is run by `sh`, so that each story decides what its suite is.
pub const CONFIG: &str = "[lane]\ntrain_max = 8\n\n\
    [checks]\ncommand = \"sh ./tests.sh\"\njunit = \"report.xml\"\ntimeout_seconds = 20\n\n\
    [[rules]]\npaths = \"index.txt\"\nrule = \"sorted-lines\"\n";

/// A suite that has one green test; and one red one for each file whose name starts with `red`.
pub const SUITE: &str = "n=0\necho the suite says something\n\
    { echo '<testsuites><testsuite name=\"s\"><testcase name=\"base\"/>'\n\
    for f in red*; do [ -e \"$f\" ] && echo \"<testcase name=\\\"$f\\\"><failure/></testcase>\" && n=1\ndone\n\
    echo '</testsuite></testsuites>'; } >report.xml\n[ $n = 0 ]\n";

static PLATFORM: OnceLock<Platform> = OnceLock::new();
static WITH_MODEL: OnceLock<(Platform, Scripted)> = OnceLock::new();
static ACTS: Mutex<BTreeMap<String, VecDeque<Act>>> = Mutex::new(BTreeMap::new());

/// How long the platform with a model waits for one answer, in seconds.
pub const MODEL_TIMEOUT_SECONDS: u64 = 4;

/// The platform that all stories share; it ends with the test process. It has no model.
///
/// # Panics
/// When it does not start.
#[must_use]
pub fn platform() -> &'static Platform {
    PLATFORM.get_or_init(|| start("", Vec::new()))
}

/// A platform with a scripted model, for the stories of replays.
///
/// # Panics
/// When it does not start.
#[must_use]
pub fn with_model() -> &'static (Platform, Scripted) {
    WITH_MODEL.get_or_init(|| {
        sweep_old_states();
        let model = match Scripted::start(0, Duration::ZERO, false, act) {
            Ok(model) => model,
            Err(error) => panic!("{error:#}"),
        };
        (start("-model", model.arguments(MODEL_TIMEOUT_SECONDS)), model)
    })
}

fn start(name: &str, extra: Vec<String>) -> Platform {
    sweep_old_states();
    let state = std::env::temp_dir().join(format!("{STATE_PREFIX}{}{name}", std::process::id()));
    let mut how = Start::at(&state);
    how.extra = extra;
    match Platform::start(&how) {
        Ok(platform) => platform,
        Err(error) => panic!("{error:#}"),
    }
}

/// Says what the scripted model does with questions about a path: one after another, the last one for good.
///
/// # Panics
/// When another story broke in the middle of saying so.
#[allow(clippy::expect_used, reason = "as documented")]
pub fn model_acts(path: &str, acts: &[Act]) {
    ACTS.lock().expect("a story broke").insert(path.to_owned(), acts.iter().cloned().collect());
}

fn act(question: &Question) -> Act {
    let Ok(mut acts) = ACTS.lock() else { return Act::Right };
    let said = question.paths().iter().find_map(|path| {
        let list = acts.get_mut(path)?;
        if list.len() > 1 { list.pop_front() } else { list.front().cloned() }
    });
    said.unwrap_or(Act::Right)
}

fn platform_with_model() -> &'static Platform {
    &with_model().0
}

const STATE_PREFIX: &str = "yard-stories-";

/// Removes the state of runs whose process has ended: a test process has no end of its own to do it in.
fn sweep_old_states() {
    for entry in std::fs::read_dir(std::env::temp_dir()).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if let Some(pid) = name.strip_prefix(STATE_PREFIX)
            && !std::path::Path::new("/proc").join(pid.trim_end_matches("-model")).exists()
        {
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}

/// A repository of its own on the shared platform, with a sandboxed git beside it.
#[derive(Debug)]
pub struct Story {
    /// Where it answers.
    pub url: String,
    /// A client that may do everything.
    pub admin: Client,
    /// The repository.
    pub repo: RepoName,
    /// An admin token of the repository.
    pub token: String,
    /// The folder with a git of its own.
    pub sandbox: Sandbox,
    platform: fn() -> &'static Platform,
}

impl Story {
    /// An empty repository named after the story.
    ///
    /// # Errors
    /// When the platform refuses.
    pub fn empty(name: &str) -> Result<Self> {
        Self::on(self::platform, name)
    }

    fn on(of: fn() -> &'static Platform, name: &str) -> Result<Self> {
        let platform = of();
        let admin = platform.admin()?;
        let repo = RepoName::new(name)?;
        let made = admin.new_repo(&NewRepo { name: repo.clone(), default_branch: None })?;
        Ok(Self {
            url: platform.url().to_owned(),
            admin,
            repo,
            token: made.token,
            sandbox: Sandbox::new()?,
            platform: of,
        })
    }

    /// A repository with configuration, suite and these files on main, cloned into `clone`.
    ///
    /// # Errors
    /// When git or the platform refuses.
    pub fn with_files(name: &str, files: &[(&str, &str)]) -> Result<Self> {
        Self::empty(name)?.filled(files)
    }

    /// As [`Story::with_files`], on the platform that has a scripted model.
    ///
    /// # Errors
    /// When git or the platform refuses.
    pub fn with_model(name: &str, files: &[(&str, &str)]) -> Result<Self> {
        Self::on(platform_with_model, name)?.filled(files)
    }

    fn filled(self, files: &[(&str, &str)]) -> Result<Self> {
        let story = self;
        story.sandbox.write("clone/.switchyard.toml", CONFIG)?;
        story.sandbox.write("clone/tests.sh", SUITE)?;
        story.sandbox.write("clone/.gitignore", "report.xml\n")?;
        for (path, content) in files {
            story.sandbox.write(&format!("clone/{path}"), content)?;
        }
        story.git(&["init", "-q"])?;
        story.git(&["add", "-A"])?;
        story.git(&["commit", "-q", "-m", "start"])?;
        story.git(&["remote", "add", "origin", &story.remote()])?;
        story.git(&["push", "-q", "origin", "HEAD:refs/heads/main"])?;
        Ok(story)
    }

    /// The repository's remote URL.
    #[must_use]
    pub fn remote(&self) -> String {
        format!("{}/{}.git", self.url, self.repo)
    }

    /// A fork's remote URL.
    #[must_use]
    pub fn fork_remote(&self, fork: &str) -> String {
        format!("{}/{}/forks/{fork}.git", self.url, self.repo)
    }

    /// Runs git in `clone` with the admin's token.
    ///
    /// # Errors
    /// When git fails.
    pub fn git(&self, args: &[&str]) -> Result<String> {
        self.sandbox.git("clone", Some(&self.token), args)
    }

    /// Runs git in `clone` and returns its standard error, whether it succeeded or not.
    ///
    /// # Errors
    /// When git cannot be started.
    pub fn git_says(&self, args: &[&str]) -> Result<(bool, String)> {
        let out = self.sandbox.try_git("clone", Some(&self.token), args)?;
        Ok((out.status.success(), String::from_utf8_lossy(&out.stderr).into_owned()))
    }

    /// Makes a fork where there is none of this name; a token of it is returned.
    ///
    /// # Errors
    /// When the platform refuses.
    pub fn fork(&self, name: &str) -> Result<String> {
        let name = ForkName::new(name)?;
        match self.admin.new_fork(&self.repo, &NewFork { name: name.clone() }) {
            Ok(made) => Ok(made.token),
            Err(error) if error.problem().is_some_and(|problem| problem.status == 409) => {
                self.token_for(Some(&name), &[Scope::Read, Scope::Submit])
            }
            Err(error) => Err(error.into()),
        }
    }

    /// A token of this repository.
    ///
    /// # Errors
    /// Never in practice.
    pub fn token_for(&self, fork: Option<&ForkName>, scopes: &[Scope]) -> Result<String> {
        (self.platform)().token(Some(&self.repo), fork, scopes)
    }

    /// Commits files (`None` deletes) on `from` in `clone`, with a message; the commit's id.
    ///
    /// # Errors
    /// When git fails.
    pub fn commit(&self, from: &str, files: &[(&str, Option<&str>)], message: &str) -> Result<String> {
        self.git(&["checkout", "-q", "--detach", from])?;
        for (path, content) in files {
            match content {
                Some(content) => self.sandbox.write(&format!("clone/{path}"), content)?,
                None => std::fs::remove_file(self.sandbox.join("clone").join(path))?,
            }
        }
        self.git(&["add", "-A"])?;
        self.git(&["commit", "-q", "--allow-empty", "-m", message])?;
        self.git(&["rev-parse", "HEAD"])
    }

    /// Pushes a commit to `refs/for/main` of a fork with its token; what git printed.
    ///
    /// # Errors
    /// When git cannot be started.
    pub fn offer(&self, fork: &str, token: &str, commit: &str, options: &[&str]) -> Result<(bool, String)> {
        let url = self.fork_remote(fork);
        let spec = format!("{commit}:refs/for/main");
        let mut args = vec!["push"];
        for option in options {
            args.extend(["-o", option]);
        }
        args.extend([url.as_str(), &spec]);
        let out = self.sandbox.try_git("clone", Some(token), &args)?;
        Ok((out.status.success(), String::from_utf8_lossy(&out.stderr).into_owned()))
    }

    /// Offers an edit of whole files by the API; each path's base is read from `base` in `clone`.
    ///
    /// # Errors
    /// When the platform refuses.
    pub fn offer_by_api(
        &self,
        fork: &str,
        token: &str,
        base: &str,
        files: &[(&str, Option<&str>)],
        title: &str,
    ) -> Result<ChangeId> {
        let mut edits = Vec::new();
        for (path, content) in files {
            let seen = self.git(&["rev-parse", "--verify", "-q", &format!("{base}:{path}")]).ok();
            edits.push(ApiEdit {
                path: RepoPath::new(path.as_bytes())?,
                base: seen.map(|id| id.parse()).transpose()?,
                content: None,
                content_base64: content.map(|text| Base64(text.as_bytes().to_vec())),
                mode: None,
                keep: false,
            });
        }
        let change = ApiChange {
            change: None,
            new_change: false,
            base: Some(base.parse()?),
            edits,
            intent: Intent { title: title.to_owned(), ..Intent::default() },
            author: None,
            reverts: Vec::new(),
        };
        let body = SubmitChanges { fork: Some(ForkName::new(fork)?), changes: vec![change] };
        let client = Client::new(&self.url, token);
        let reply = client.submit(&self.repo, &body, &yard_cli::client::fresh_key())?;
        match reply.results.into_iter().next().context("no answer")? {
            SubmitResult::Accepted(accepted) => Ok(accepted.change),
            SubmitResult::Refused(problem) => bail!("{}: {}", problem.title, problem.detail),
        }
    }

    /// A runner of this repository, in this process.
    ///
    /// # Errors
    /// When its folder cannot be made.
    pub fn runner(&self, name: &str) -> Result<Runner> {
        let client = Client::new(&self.url, &self.token_for(None, &[Scope::Run])?);
        Runner::new(client, self.repo.clone(), vec![LaneName::new("main")?], self.sandbox.join(name), "story")
    }

    /// Lets a runner work until every change is at rest (landed, ended or waiting for its author).
    ///
    /// # Errors
    /// When they do not come to rest in time.
    pub fn run_until_settled(&self, expected: usize) -> Result<Vec<ChangeStatus>> {
        let mut runner = self.runner("runner")?;
        // A short poll: the story itself decides when to look again.
        runner.environment.truncate(40);
        let began = Instant::now();
        loop {
            let changes = self.admin.changes(&self.repo, 200)?;
            let open = changes.iter().filter(|change| !at_rest(change.stage)).count();
            if open == 0 && changes.len() >= expected && self.admin.status(&self.repo)?.outbox == 0 {
                return Ok(changes);
            }
            ensure!(began.elapsed() < PATIENCE, "not settled: {}", stands(&changes));
            if runner.round()? == Round::Idle {
                std::thread::sleep(Duration::from_millis(50));
            }
        }
    }

    /// Waits until a change is in a stage.
    ///
    /// # Errors
    /// When it is not in time.
    pub fn wait_for(&self, change: &ChangeId, stage: Stage) -> Result<ChangeStatus> {
        let began = Instant::now();
        loop {
            let status = self.admin.change(&self.repo, change)?.status;
            if status.stage == stage {
                return Ok(status);
            }
            ensure!(began.elapsed() < PATIENCE, "{change} is {:?}: {}", status.stage, status.reason);
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Main's commits after `base`, oldest first, fetched anew.
    ///
    /// # Errors
    /// When git fails.
    pub fn landed_after(&self, base: &str) -> Result<Vec<String>> {
        self.git(&[
            "fetch",
            "-q",
            "origin",
            "+refs/heads/main:refs/remotes/origin/main",
            "+refs/notes/*:refs/notes/*",
        ])?;
        let list = self.git(&["rev-list", "--reverse", "--first-parent", &format!("{base}..origin/main")])?;
        Ok(list.lines().map(str::to_owned).collect())
    }

    /// A file's content on main, as last fetched.
    ///
    /// # Errors
    /// When it is not there.
    pub fn on_main(&self, path: &str) -> Result<String> {
        self.git(&["show", &format!("origin/main:{path}")])
    }
}

/// Does nothing more happen to a change in this stage by itself?
#[must_use]
pub fn at_rest(stage: Stage) -> bool {
    match stage {
        Stage::Landed | Stage::Withdrawn | Stage::AlreadyOnMain | Stage::Expired | Stage::NeedsAuthor => true,
        Stage::Submitted | Stage::Queued | Stage::Testing | Stage::Replaying | Stage::Held => false,
    }
}

fn stands(changes: &[ChangeStatus]) -> String {
    changes
        .iter()
        .map(|change| format!("{} {:?} ({})", change.title, change.stage, change.reason))
        .collect::<Vec<_>>()
        .join("; ")
}

/// The change's id in what a submitting push printed.
///
/// # Errors
/// When none is in it.
pub fn change_in(said: &str) -> Result<ChangeId> {
    said.split(|c: char| !(c.is_ascii_alphanumeric() || c == '-'))
        .find(|word| word.starts_with('I') && word.len() == 41)
        .map(|word| ChangeId::new(word).map_err(Into::into))
        .context(format!("no change id in: {said}"))?
}
