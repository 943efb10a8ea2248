//! A platform in workerd on this machine, started from `wrangler.toml` by `scripts/serve.mjs`.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, mpsc};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use serde::Deserialize;
use yard_cli::Client;
use yard_cli::client::fresh_key;
use yard_common::{ForkName, Millis, RepoName, TokenId};
use yard_wire::token::{Claims, Scope, issue};

/// How long a platform may take to start or to stop.
const START_MAX: Duration = Duration::from_secs(60);
/// The secret of platforms that tests and benchmarks start.
const SECRET: &str = "a-secret-of-tests-and-benchmarks";

/// How to start a platform.
#[derive(Debug, Clone)]
pub struct Start {
    /// Where objects, R2 and D1 are kept.
    pub state: PathBuf,
    /// The port; 0 takes a free one.
    pub port: u16,
    /// Start workerd again on the same state and port when it dies.
    pub respawn: bool,
    /// End with this process, however that ends.
    pub tied: bool,
    /// Further arguments of `scripts/serve.mjs`.
    pub extra: Vec<String>,
}

impl Start {
    /// A platform on a free port that keeps its state in `state`.
    #[must_use]
    pub fn at(state: &Path) -> Self {
        Self { state: state.to_owned(), port: 0, respawn: false, tied: true, extra: Vec::new() }
    }
}

/// The line that the server prints when it is ready.
#[derive(Debug, Clone, Deserialize)]
pub struct Ready {
    /// Where it answers.
    pub url: String,
    /// The serving process.
    pub pid: u32,
    /// The workerd process.
    pub workerd_pid: u32,
    /// The inspector's address, when one was asked for.
    #[serde(default)]
    pub inspector: Option<String>,
    /// How often workerd was started.
    #[serde(default)]
    pub starts: u32,
}

/// A running platform; it is stopped when this is dropped, unless it is left up.
#[derive(Debug)]
pub struct Platform {
    child: Option<Child>,
    lines: Mutex<mpsc::Receiver<Ready>>,
    ready: Ready,
    /// The platform's log.
    pub log: PathBuf,
}

/// The folder of the checkout: where `wrangler.toml` lies, from here or from a built binary.
///
/// # Errors
/// When no parent of the working directory or of this crate holds it.
pub fn root() -> Result<PathBuf> {
    let here = std::env::current_dir()?;
    let built = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    [here, built]
        .iter()
        .flat_map(|start| start.ancestors().map(Path::to_path_buf).collect::<Vec<_>>())
        .find(|folder| folder.join("wrangler.toml").exists())
        .context("run this inside a checkout of Switchyard")
}

impl Platform {
    /// Starts one and waits until it answers.
    ///
    /// # Errors
    /// When it does not start in time: with the end of its log.
    pub fn start(how: &Start) -> Result<Self> {
        fs::create_dir_all(&how.state)?;
        let log = how.state.join("serve.log");
        let out = fs::OpenOptions::new().create(true).append(true).open(&log)?;
        let mut command = Command::new("node");
        command
            .current_dir(root()?)
            .arg("scripts/serve.mjs")
            .args(["--port", &how.port.to_string()])
            .arg("--state")
            .arg(fs::canonicalize(&how.state)?)
            .args(how.respawn.then_some("--respawn"))
            .args(&how.extra)
            .env("SWITCHYARD_SECRET", SECRET)
            .args(how.tied.then_some("--until-eof"))
            .stdin(if how.tied { Stdio::piped() } else { Stdio::null() })
            .stdout(Stdio::piped())
            .stderr(out);
        let mut child = command.spawn().context("node cannot be started: is it installed?")?;
        let stdout = child.stdout.take().context("the server has no output")?;
        let (send, lines) = mpsc::channel();
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                if let Ok(ready) = serde_json::from_str::<Ready>(&line)
                    && send.send(ready).is_err()
                {
                    return;
                }
            }
        });
        match lines.recv_timeout(START_MAX) {
            Ok(ready) => Ok(Self { child: Some(child), lines: Mutex::new(lines), ready, log }),
            Err(_) => {
                let _ = child.kill();
                let text = fs::read_to_string(&log).unwrap_or_default();
                let tail: Vec<&str> = text.lines().rev().take(20).collect();
                bail!(
                    "the platform did not start:\n{}",
                    tail.into_iter().rev().collect::<Vec<_>>().join("\n")
                )
            }
        }
    }

    /// Where it answers, without a trailing slash.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.ready.url
    }

    /// What it last said of itself.
    #[must_use]
    pub fn ready(&self) -> &Ready {
        &self.ready
    }

    /// A token of any claims, signed with this platform's secret.
    ///
    /// # Errors
    /// Never in practice: the id is well formed.
    pub fn token(
        &self,
        repo: Option<&RepoName>,
        fork: Option<&ForkName>,
        scopes: &[Scope],
    ) -> Result<String> {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH)?.as_millis();
        let claims = Claims {
            id: TokenId::new(fresh_key())?,
            repo: repo.cloned(),
            fork: fork.cloned(),
            scopes: scopes.to_vec(),
            expires: Millis(u64::try_from(now)?).plus(24 * 3600 * 1000),
        };
        Ok(issue(SECRET.as_bytes(), &claims))
    }

    /// A client that may do everything.
    ///
    /// # Errors
    /// As [`Self::token`].
    pub fn admin(&self) -> Result<Client> {
        Ok(Client::new(self.url(), &self.token(None, None, &[Scope::Admin])?))
    }

    /// Waits for the next life of workerd (with `respawn`).
    ///
    /// # Errors
    /// When none comes in time.
    pub fn wait_for_respawn(&mut self) -> Result<()> {
        let lines = self.lines.get_mut().map_err(|_| anyhow::anyhow!("the server's reader broke"))?;
        self.ready = lines.recv_timeout(START_MAX).context("workerd did not come back")?;
        Ok(())
    }

    /// Ends workerd as a power cut would: SIGKILL.
    ///
    /// # Errors
    /// When there is no such process.
    pub fn kill_workerd(&self) -> Result<()> {
        let done =
            Command::new("sh").args(["-c", &format!("kill -9 {}", self.ready.workerd_pid)]).status()?;
        if done.success() { Ok(()) } else { bail!("workerd {} cannot be ended", self.ready.workerd_pid) }
    }

    /// CPU time that workerd has used, in milliseconds (from `/proc`, 10 ms a tick).
    ///
    /// # Errors
    /// When the process is gone.
    pub fn cpu_ms(&self) -> Result<u64> {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.ready.workerd_pid))?;
        let after = stat.rsplit_once(')').map(|(_, rest)| rest).unwrap_or_default();
        let fields: Vec<&str> = after.split_whitespace().collect();
        // Fields 14 and 15 of proc(5), counted after pid and name: user and system ticks.
        let ticks: u64 = fields.iter().skip(11).take(2).filter_map(|field| field.parse::<u64>().ok()).sum();
        Ok(ticks * 10)
    }

    /// Leaves it running; its process id is returned.
    #[must_use]
    pub fn leave_up(mut self) -> u32 {
        self.child = None;
        self.ready.pid
    }

    /// Stops it and waits until it has ended.
    ///
    /// # Errors
    /// When it does not end in time or with a fault.
    pub fn stop(mut self) -> Result<()> {
        self.end()
    }

    fn end(&mut self) -> Result<()> {
        let Some(mut child) = self.child.take() else { return Ok(()) };
        let _ = Command::new("sh").args(["-c", &format!("kill -TERM {}", child.id())]).status();
        let began = Instant::now();
        while began.elapsed() < START_MAX {
            if let Some(status) = child.try_wait()? {
                return if status.success() { Ok(()) } else { bail!("the platform ended with {status}") };
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        child.kill()?;
        bail!("the platform did not stop and was ended")
    }
}

impl Drop for Platform {
    fn drop(&mut self) {
        let _ = self.end();
    }
}
