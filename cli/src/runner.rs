//! The runner: leases a run, checks its candidate out, runs the repository's test command, reports.
//!
//! The checkout is one cached clone, made clean before every run; the command gets an environment
//! of its own (`PATH`, `LANG`, `CI`, an empty `HOME` and `TMPDIR`), its own process group, and a
//! time limit. A report is signed with the runner's token. A lease that was lost ends the command.

use std::fs;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use sha2::{Digest as _, Sha256};
use yard_common::landing::{RunResult, SignedRun};
use yard_common::{LaneName, RepoName, RunnerId};
use yard_wire::lane::{Lease, Renew, Report, Work};
use yard_wire::token;

use crate::client::{Client, ClientError, fresh_key};
use crate::{git, junit, output};

/// How long a runner lets the platform hold its request for work, in milliseconds.
const WAIT_MS: u64 = 10_000;
/// Renewals per lease: two may be lost.
const RENEW_EVERY: Duration = Duration::from_secs(5);
/// Last bytes of the log that go with a report.
const LOG_TAIL_BYTES: usize = 16 * 1024;
/// Largest report read, in bytes.
const JUNIT_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// One runner process.
#[derive(Debug, Clone)]
pub struct Runner {
    /// The platform.
    pub client: Client,
    /// The repository it works for.
    pub repo: RepoName,
    /// The lanes it asks, in order.
    pub lanes: Vec<LaneName>,
    /// Its own name.
    pub id: RunnerId,
    /// Where its clone and logs lie.
    pub work: PathBuf,
    /// Hash of its environment.
    pub environment: String,
    /// The process group of the command that runs now; 0 when none does.
    pub group: Arc<AtomicU32>,
}

/// What a runner did in one round.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Round {
    /// No lane had work.
    Idle,
    /// A run was done; the text says how it ended.
    Ran(String),
}

impl Runner {
    /// A runner with a name of its own.
    ///
    /// # Errors
    /// When the working folder cannot be made.
    pub fn new(
        client: Client,
        repo: RepoName,
        lanes: Vec<LaneName>,
        work: PathBuf,
        label: &str,
    ) -> Result<Self> {
        fs::create_dir_all(&work).with_context(|| format!("cannot make {}", work.display()))?;
        let host = fs::read_to_string("/etc/hostname").unwrap_or_default();
        let name =
            format!("{}-{}", host.trim().replace(|c: char| !c.is_ascii_alphanumeric(), "-"), fresh_key());
        let id = RunnerId::new(name.trim_start_matches('-'))?;
        Ok(Self { client, repo, lanes, id, work, environment: environment(label), group: Arc::default() })
    }

    /// Asks every lane once, waiting at the last one, and does what it gets.
    ///
    /// # Errors
    /// [`ClientError`] when a lane cannot be asked; faults of a run are reported, not returned.
    pub fn round(&self) -> Result<Round, ClientError> {
        for (index, lane) in self.lanes.iter().enumerate() {
            let last = index + 1 == self.lanes.len();
            let lease = Lease {
                repo: self.repo.clone(),
                lane: lane.clone(),
                runner: self.id.clone(),
                environment: self.environment.clone(),
                wait_ms: if last { WAIT_MS } else { 0 },
                token: None,
            };
            if let Some(work) = self.client.lease(&lease)? {
                return Ok(Round::Ran(self.perform(lane, &work)));
            }
        }
        Ok(Round::Idle)
    }

    /// Does one run and reports it; the sentence says how it ended.
    #[must_use]
    pub fn perform(&self, lane: &LaneName, work: &Work) -> String {
        let alive = Arc::new(AtomicBool::new(true));
        let lost = Arc::new(AtomicBool::new(false));
        let renewer = self.renew_until(lane, work, Arc::clone(&alive), Arc::clone(&lost));
        let outcome = self.test(work, &lost);
        alive.store(false, Ordering::Relaxed);
        renewer.thread().unpark();
        let _ = renewer.join();
        if lost.load(Ordering::Relaxed) {
            return format!("run {}: the lease went to another runner, nothing reported", work.run);
        }
        let (result, log_tail, fault) = match outcome {
            Ok((result, tail, fault)) => (result, tail, fault),
            Err(error) => (broken(), String::new(), Some(format!("{error:#}"))),
        };
        let said = describe(&result, fault.as_deref());
        match self.report(lane, work, result, log_tail, fault) {
            Ok(()) => format!("run {}: {said}", work.run),
            Err(error) => format!("run {}: {said}; the report was not taken: {error}", work.run),
        }
    }

    fn renew_until(
        &self,
        lane: &LaneName,
        work: &Work,
        alive: Arc<AtomicBool>,
        lost: Arc<AtomicBool>,
    ) -> std::thread::JoinHandle<()> {
        let (client, repo, lane) = (self.client.clone(), self.repo.clone(), lane.clone());
        let body = Renew { run: work.run.clone(), lease: work.lease };
        std::thread::spawn(move || {
            while alive.load(Ordering::Relaxed) {
                std::thread::park_timeout(RENEW_EVERY);
                if !alive.load(Ordering::Relaxed) {
                    return;
                }
                if let Err(ClientError::Refused(_)) = client.renew(&repo, &lane, &body) {
                    lost.store(true, Ordering::Relaxed);
                    return;
                }
            }
        })
    }

    fn test(&self, work: &Work, lost: &AtomicBool) -> Result<(RunResult, String, Option<String>)> {
        let checkout = self.checkout(work)?;
        if let Some(path) = &work.junit {
            // A report that lies in the tree is not this run's.
            let _ = fs::remove_file(checkout.join(path));
        }
        let log = self.work.join("run.log");
        let (ended, fault) = self.run_command(work, &checkout, &log, lost)?;
        let tail = tail_of(&log);
        let Some(success) = ended else { return Ok((broken(), tail, fault)) };
        let Some(path) = &work.junit else {
            let why = "the configuration names no JUnit report, so no test can be counted".to_owned();
            return Ok((broken(), tail, Some(why)));
        };
        match read_report(&checkout.join(path)) {
            Ok(summary) => Ok((judged(success, summary), tail, None)),
            Err(why) => Ok((broken(), tail, Some(format!("{path}: {why}")))),
        }
    }

    fn checkout(&self, work: &Work) -> Result<PathBuf> {
        let clone = self.work.join("clone");
        if !clone.join(".git").exists() {
            fs::create_dir_all(&clone)?;
            git::run(&clone, None, &["init", "-q"])?;
            git::run(&clone, None, &["config", "gc.auto", "0"])?;
        }
        let url = format!("{}/{}.git", self.client.url(), self.repo);
        let refspec = format!("+{}:refs/yard/candidate", work.reference);
        let token = Some(self.client.token());
        git::run(&clone, token, &["fetch", "-q", "--no-tags", "--no-write-fetch-head", &url, &refspec])?;
        let commit = work.commit.to_string();
        git::run(&clone, None, &["checkout", "-q", "--force", "--detach", &commit])?;
        git::run(&clone, None, &["clean", "-q", "-ffdx"])?;
        let tree = git::run(&clone, None, &["rev-parse", "HEAD^{tree}"])?;
        if tree != work.tree.to_string() {
            bail!("the candidate has tree {tree}, the run is for {}", work.tree);
        }
        Ok(clone)
    }

    /// Runs the command; `None` as status when it did not end by itself, with the reason.
    fn run_command(
        &self,
        work: &Work,
        checkout: &Path,
        log: &Path,
        lost: &AtomicBool,
    ) -> Result<(Option<bool>, Option<String>)> {
        let home = self.work.join("home");
        let _ = fs::remove_dir_all(&home);
        fs::create_dir_all(home.join("tmp"))?;
        let out = fs::File::create(log).with_context(|| format!("cannot write {}", log.display()))?;
        let mut child = Command::new("sh")
            .args(["-c", &work.command])
            .current_dir(checkout)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", &home)
            .env("TMPDIR", home.join("tmp"))
            .env("LANG", "C.UTF-8")
            .env("CI", "true")
            .stdin(Stdio::null())
            .stdout(out.try_clone()?)
            .stderr(out)
            .process_group(0)
            .spawn()
            .context("sh cannot be started")?;
        self.group.store(child.id(), Ordering::Relaxed);
        let ended = wait(&mut child, work, lost);
        self.group.store(0, Ordering::Relaxed);
        ended
    }

    fn report(
        &self,
        lane: &LaneName,
        work: &Work,
        result: RunResult,
        log_tail: String,
        fault: Option<String>,
    ) -> Result<(), ClientError> {
        let run = sign(self.client.token(), work, result)?;
        let body = Report { run, runner: self.id.clone(), log_tail, fault };
        self.client.report(&self.repo, lane, &body).map(|_| ())
    }
}

/// The result of a run, signed with the whole token.
///
/// # Errors
/// [`ClientError::Transport`] when the token has not the form of one.
pub fn sign(token_text: &str, work: &Work, result: RunResult) -> Result<SignedRun, ClientError> {
    let public = token::public_part(token_text).map_err(|why| ClientError::Transport(why.to_string()))?;
    let mut run = SignedRun {
        run: work.run.clone(),
        lease: work.lease,
        tree: work.tree,
        suite: work.suite.clone(),
        command: work.command.clone(),
        config: work.config,
        result,
        token: public,
        mac: String::new(),
    };
    run.mac = token::sign_with(token_text, &run.signed_text());
    Ok(run)
}

fn broken() -> RunResult {
    RunResult { complete: false, green: false, ran: 0, failed: Vec::new(), skipped: 0 }
}

fn judged(success: bool, summary: junit::Summary) -> RunResult {
    RunResult {
        complete: true,
        green: success && summary.failed.is_empty() && summary.ran > 0,
        ran: summary.ran,
        failed: summary.failed,
        skipped: summary.skipped,
    }
}

fn describe(result: &RunResult, fault: Option<&str>) -> String {
    match (fault, result.proves_green()) {
        (Some(fault), _) => format!("no complete result: {fault}"),
        (None, true) => format!("green, {}", output::count(result.ran.into(), "test")),
        (None, false) if result.ran == 0 => "no test ran".to_owned(),
        (None, false) => {
            format!("red, {} of {} failed: {}", result.failed.len(), result.ran, result.failed.join(", "))
        }
    }
}

fn read_report(path: &Path) -> Result<junit::Summary, String> {
    let files: Vec<PathBuf> = if path.is_dir() {
        let entries = fs::read_dir(path).map_err(|error| error.to_string())?;
        let mut files: Vec<PathBuf> = entries
            .filter_map(|entry| entry.ok().map(|entry| entry.path()))
            .filter(|file| file.extension().is_some_and(|end| end == "xml"))
            .collect();
        files.sort();
        files
    } else {
        vec![path.to_owned()]
    };
    if files.is_empty() {
        return Err("no report was written".into());
    }
    let mut sum = junit::Summary::default();
    for file in files {
        let size = fs::metadata(&file).map_err(|_| "no report was written".to_owned())?.len();
        if size > JUNIT_BYTES_MAX {
            return Err(format!("the report has {size} bytes, at most {JUNIT_BYTES_MAX} are read"));
        }
        let bytes = fs::read(&file).map_err(|error| error.to_string())?;
        sum.add(junit::parse(&String::from_utf8_lossy(&bytes))?);
    }
    Ok(sum)
}

fn tail_of(log: &Path) -> String {
    let bytes = fs::read(log).unwrap_or_default();
    let from = bytes.len().saturating_sub(LOG_TAIL_BYTES);
    String::from_utf8_lossy(bytes.get(from..).unwrap_or_default()).into_owned()
}

/// Waits for the command, at most its time; a lost lease ends it.
fn wait(child: &mut Child, work: &Work, lost: &AtomicBool) -> Result<(Option<bool>, Option<String>)> {
    let limit = Duration::from_secs(u64::from(work.timeout_seconds));
    let began = Instant::now();
    let mut pause = Duration::from_millis(5);
    loop {
        if let Some(status) = child.try_wait()? {
            end_group(child.id());
            let signal = status.code().is_none().then(|| "the command was ended by a signal".to_owned());
            return Ok((status.code().map(|code| code == 0), signal));
        }
        let late = began.elapsed() > limit;
        if late || lost.load(Ordering::Relaxed) {
            end_group(child.id());
            let _ = child.wait();
            let why = late.then(|| format!("the command ran longer than {} s", work.timeout_seconds));
            return Ok((None, why));
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(100));
    }
}

/// Ends what a command left running: its whole process group.
pub fn end_group(group: u32) {
    let group = i32::try_from(group).ok().and_then(rustix::process::Pid::from_raw);
    if let Some(group) = group {
        // Nothing is left when the group has gone by itself.
        let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
    }
}

/// Forty hex digits over operating system, architecture, tool versions and the runner's label.
#[must_use]
pub fn environment(label: &str) -> String {
    let mut hash = Sha256::new();
    hash.update(std::env::consts::OS);
    hash.update(std::env::consts::ARCH);
    hash.update(fs::read("/etc/os-release").unwrap_or_default());
    for tool in ["node", "python3", "cargo", "git"] {
        if let Ok(out) = Command::new(tool).arg("--version").stderr(Stdio::null()).output() {
            hash.update(out.stdout);
        }
    }
    hash.update(label);
    yard_common::hex(&hash.finalize()).chars().take(40).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn runner(work: &Path) -> Runner {
        Runner {
            client: Client::new("http://127.0.0.1:9", "sy1.e30.x"),
            repo: RepoName::new("r").unwrap(),
            lanes: vec![],
            id: RunnerId::new("r1").unwrap(),
            work: work.to_owned(),
            environment: environment(""),
            group: Arc::default(),
        }
    }

    fn work(command: &str, timeout_seconds: u32) -> Work {
        serde_json::from_value(serde_json::json!({
            "run": "run1", "lease": 1, "until": 0,
            "attempt": {"lane": "main", "train": 1, "attempt": 1},
            "reference": "refs/candidates/1/1", "commit": yard_common::ObjectId::EMPTY_TREE,
            "tree": yard_common::ObjectId::EMPTY_TREE, "suite": "s", "command": command,
            "config": null, "junit": "out.xml", "timeout_seconds": timeout_seconds
        }))
        .unwrap()
    }

    #[test]
    fn a_command_gets_a_clean_environment_and_its_exit_status_counts() {
        let dir = tempfile::tempdir().unwrap();
        let runner = runner(dir.path());
        let log = dir.path().join("log");
        let lost = AtomicBool::new(false);
        let work = work("env; exit 3", 10);
        let (ended, _) = runner.run_command(&work, dir.path(), &log, &lost).unwrap();
        assert_eq!(ended, Some(false));
        let text = fs::read_to_string(&log).unwrap();
        let names: std::collections::BTreeSet<&str> =
            text.lines().filter_map(|line| line.split('=').next()).collect();
        for name in &names {
            assert!(
                ["PATH", "HOME", "TMPDIR", "LANG", "CI", "PWD", "OLDPWD", "_", "SHLVL"].contains(name),
                "{name}"
            );
        }
    }

    #[test]
    fn a_command_over_its_time_is_ended_with_all_that_it_started() {
        let dir = tempfile::tempdir().unwrap();
        let runner = runner(dir.path());
        let lost = AtomicBool::new(false);
        let work = work("(sleep 60; echo late >late) & sleep 60", 1);
        let began = Instant::now();
        let (ended, why) = runner.run_command(&work, dir.path(), &dir.path().join("log"), &lost).unwrap();
        assert_eq!(ended, None);
        assert!(why.unwrap().contains("longer than 1 s"));
        assert!(began.elapsed() < Duration::from_secs(10));
        let left = Command::new("sh")
            .args(["-c", "ps -eo args | grep -c '[s]leep 60; echo late'"])
            .output()
            .unwrap();
        assert_eq!(String::from_utf8_lossy(&left.stdout).trim(), "0");
    }

    #[test]
    fn no_report_or_no_test_is_never_green() {
        let dir = tempfile::tempdir().unwrap();
        assert!(read_report(&dir.path().join("none.xml")).is_err());
        let none = judged(true, junit::Summary::default());
        assert!(!none.green && !none.proves_green());
        let skipped = judged(true, junit::Summary { skipped: 4, ..junit::Summary::default() });
        assert!(!skipped.proves_green());
    }
}
