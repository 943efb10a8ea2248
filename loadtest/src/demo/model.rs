//! The demo's model: the operator's, where one is configured, else a scripted one in a process of its own.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use yard_loadtest::platform::Ready;
use yard_loadtest::scripted::seeded::Seeded;
use yard_loadtest::scripted::{self, Asked, Scripted};

use crate::project::PLACES;

/// The longest that the scripted model may take to start, and to see its platform.
const START_MAX: Duration = Duration::from_secs(60);
/// How long it thinks.
const PACE: Duration = Duration::from_millis(300);
/// The platform's time limit for one call, in seconds.
const TIMEOUT_SECONDS: u64 = 3;
/// How much later than others a late answer comes, in milliseconds.
const LATE_MS: u64 = 5_000;

/// Arguments of the scripted model's process.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Decides which answers are wrong
    #[arg(long)]
    seed: u64,
    /// The state folder of the platform that it serves: it ends with that platform
    #[arg(long)]
    with: PathBuf,
}

/// Serves until the platform is gone; the first line printed is the address, each further one an answer.
///
/// # Errors
/// When no port is free.
pub fn run(args: &Args) -> Result<()> {
    let seeded = Seeded::new(args.seed, PLACES.len(), LATE_MS);
    let model = Scripted::start(0, PACE, true, move |question| seeded.choose(question))?;
    println!("{}", serde_json::to_string(&model.url())?);
    let began = Instant::now();
    let mut seen = false;
    loop {
        std::thread::sleep(Duration::from_millis(500));
        let up = is_up(&args.with.join("serve.json"));
        if !up && (seen || began.elapsed() > START_MAX) {
            return Ok(());
        }
        seen |= up;
    }
}

fn is_up(ready: &Path) -> bool {
    let text = fs::read_to_string(ready).unwrap_or_default();
    serde_json::from_str::<Ready>(&text)
        .is_ok_and(|ready| Path::new("/proc").join(ready.pid.to_string()).exists())
}

/// What redoes collided changes.
pub enum Model {
    /// The operator's, from the environment.
    Real(String),
    /// The scripted one.
    Scripted {
        /// Its address.
        url: String,
        /// What it prints.
        log: PathBuf,
    },
}

impl Model {
    /// Starts the scripted one, unless the environment names another.
    ///
    /// # Errors
    /// When it does not start.
    pub fn start(state: &Path, seed: u64) -> Result<Self> {
        let set = |name: &str| std::env::var(name).ok().filter(|value| !value.trim().is_empty());
        if let Some(model) = set("SWITCHYARD_MODEL").or_else(|| set("SWITCHYARD_MODEL_URL")) {
            return Ok(Self::Real(model));
        }
        fs::create_dir_all(state)?;
        let log = state.join("model.log");
        Command::new(std::env::current_exe()?)
            .args(["model", "--seed", &seed.to_string(), "--with"])
            .arg(state)
            .stdin(Stdio::null())
            .stdout(fs::File::create(&log)?)
            .stderr(Stdio::null())
            .spawn()
            .context("the scripted model cannot be started")?;
        let began = Instant::now();
        while began.elapsed() < START_MAX {
            let text = fs::read_to_string(&log)?;
            if let Some(url) = text.lines().next().and_then(|line| serde_json::from_str(line).ok()) {
                return Ok(Self::Scripted { url, log });
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        anyhow::bail!("the scripted model did not start")
    }

    /// What `scripts/serve.mjs` is told of it; the operator's settings it reads itself.
    #[must_use]
    pub fn arguments(&self) -> Vec<String> {
        match self {
            Self::Real(_) => Vec::new(),
            Self::Scripted { url, .. } => scripted::arguments(url, TIMEOUT_SECONDS),
        }
    }

    /// Which it is.
    #[must_use]
    pub fn said(&self) -> String {
        match self {
            Self::Real(model) => format!("replays by {model}"),
            Self::Scripted { .. } => {
                "replays by a scripted model (SWITCHYARD_MODEL names a real one)".to_owned()
            }
        }
    }

    /// Every question that the scripted model was asked; `None` for a real one.
    ///
    /// # Errors
    /// When its log cannot be read.
    pub fn asked(&self) -> Result<Option<Vec<Asked>>> {
        let Self::Scripted { log, .. } = self else { return Ok(None) };
        let text = fs::read_to_string(log).context("the scripted model's log")?;
        let asked = text.lines().skip(1).map(serde_json::from_str).collect::<Result<_, _>>()?;
        Ok(Some(asked))
    }
}
