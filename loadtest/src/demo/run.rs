//! The demo from start to end.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use yard_cli::Client;
use yard_cli::output::{self, Colour, paint};
use yard_common::{ForkName, RepoName};
use yard_loadtest::{Platform, Sandbox, Start, platform};
use yard_wire::api::{ChangeStatus, NewFork, NewRepo};
use yard_wire::lane::Stage;
use yard_wire::token::Scope;

use crate::agent::Task;
use crate::model::Model;
use crate::plan::{self, Part};
use crate::{check, project, replays, watch};

/// Arguments of the demo.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Decides who does what and when
    #[arg(long, env = "SEED", default_value_t = 1)]
    seed: u64,
    /// How many agents
    #[arg(long, default_value_t = 19)]
    agents: usize,
    /// Runners at once
    #[arg(long, default_value_t = 2)]
    runners: usize,
    /// Port of the platform; 0 takes a free one
    #[arg(long, default_value_t = 8787)]
    port: u16,
    /// Stop the platform at the end instead of leaving it up
    #[arg(long)]
    stop: bool,
}

/// Seconds of each step.
struct Steps {
    began: Instant,
    list: Vec<(String, f64)>,
}

impl Steps {
    fn done(&mut self, name: &str) {
        let seconds = self.began.elapsed().as_secs_f64();
        eprintln!("{} {name} ({seconds:.1} s)", output::rendered(&paint(Colour::Green, "done")));
        self.list.push((name.to_owned(), seconds));
        self.began = Instant::now();
    }
}

/// Processes that end with this.
struct Crew(Vec<Child>);

impl Drop for Crew {
    fn drop(&mut self) {
        for child in &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Runs it, checks the outcome, and leaves the platform up.
///
/// # Errors
/// When anything is not as it must be.
pub fn run(args: &Args) -> Result<()> {
    println!("seed {}", args.seed);
    let mut steps = Steps { began: Instant::now(), list: Vec::new() };
    let state = state_folder()?;
    let model = Model::start(&state, args.seed)?;
    let mut start = Start::at(&state);
    start.port = args.port;
    start.tied = args.stop;
    start.extra = model.arguments();
    let platform = Platform::start(&start)?;
    steps.done(&format!("platform up at {}, {}", platform.url(), model.said()));

    let repo = RepoName::new("harbour")?;
    let sandbox = Sandbox::new()?;
    let client = platform.admin()?;
    let base = found(&platform, &client, &repo, &sandbox)?;
    steps.done("project pushed");

    let parts = plan::parts(args.agents, args.seed);
    let runners = Crew(start_runners(&platform, &repo, &sandbox, args.runners)?);
    let mut agents = start_agents(&platform, &client, (&repo, &base), &parts)?;
    let waiter = std::thread::spawn(move || collect(&mut agents));
    let changes = watch::until_settled(&client, &repo, parts.len())?;
    let offered = waiter.join().map_err(|_| anyhow::anyhow!("an agent's watcher broke"))?;
    offered?;
    drop(runners);
    steps.done("every change landed or waits for its author");

    check::outcome(&check::World {
        client: &client,
        repo: &repo,
        base: &base,
        parts: &parts,
        changes: &changes,
        sandbox: &sandbox,
        model: &model,
    })?;
    steps.done("outcome checked with git alone");

    report(&sandbox, &changes)?;
    replays::report(&client, &repo, &changes)?;
    times(&steps.list);
    if args.stop {
        return platform.stop();
    }
    let url = platform.url().to_owned();
    let token = client.token().to_owned();
    let pid = platform.leave_up();
    println!("\nThe platform is up at {url} (stop it with: kill {pid}). Look around:");
    println!(
        "  export YARD_URL={url} YARD_REPO={repo} YARD_TOKEN={token}\n  target/debug/yard status --all 20"
    );
    println!(
        "Its runners have gone home; what you push is tested once one runs:\n  \
         YARD_TOKEN=$(target/debug/yard token run) target/debug/yard runner"
    );
    Ok(())
}

/// A fresh state folder; a platform that an earlier demo left up is stopped.
fn state_folder() -> Result<PathBuf> {
    let state = platform::root()?.join(".state/demo");
    let ready = state.join("serve.json");
    if let Ok(text) = std::fs::read_to_string(&ready)
        && let Ok(ready) = serde_json::from_str::<platform::Ready>(&text)
    {
        let _ = Command::new("sh").args(["-c", &format!("kill -TERM {} 2>/dev/null", ready.pid)]).status();
        let began = Instant::now();
        while state.join("serve.json").exists() && began.elapsed() < Duration::from_secs(10) {
            std::thread::sleep(Duration::from_millis(50));
        }
    }
    if state.exists() {
        std::fs::remove_dir_all(&state).context("the state of the last demo cannot be removed")?;
    }
    Ok(state)
}

/// Makes the repository and pushes the project's first commit; its id is returned.
fn found(platform: &Platform, client: &Client, repo: &RepoName, sandbox: &Sandbox) -> Result<String> {
    let made = client.new_repo(&NewRepo { name: repo.clone(), default_branch: None })?;
    let base = project::commit(sandbox)?;
    let url = format!("{}/{repo}.git", platform.url());
    sandbox.git("project", Some(&made.token), &["push", "-q", &url, "HEAD:refs/heads/main"])?;
    Ok(base)
}

fn start_runners(
    platform: &Platform,
    repo: &RepoName,
    sandbox: &Sandbox,
    count: usize,
) -> Result<Vec<Child>> {
    let yard = std::env::current_exe()?.with_file_name("yard");
    if !yard.exists() {
        bail!("{} is missing: run cargo build", yard.display());
    }
    let token = platform.token(Some(repo), None, &[Scope::Run])?;
    (0..count)
        .map(|index| {
            let work = sandbox.join(&format!("runner-{index}"));
            std::fs::create_dir_all(&work)?;
            let log = std::fs::File::create(work.join("runner.log"))?;
            Command::new(&yard)
                .args(["--url", platform.url(), "--repo", repo.as_str(), "runner", "--work"])
                .arg(&work)
                .env("YARD_TOKEN", &token)
                .stdin(Stdio::null())
                .stdout(log.try_clone()?)
                .stderr(log)
                .spawn()
                .context("a runner cannot be started")
        })
        .collect()
}

fn start_agents(
    platform: &Platform,
    client: &Client,
    (repo, base): (&RepoName, &str),
    parts: &[Part],
) -> Result<Vec<(String, Child)>> {
    let mut order: Vec<&Part> = parts.iter().collect();
    order.sort_by_key(|part| part.after_ms);
    let began = Instant::now();
    let mut agents = Vec::new();
    for part in order {
        let fork = client.new_fork(repo, &NewFork { name: ForkName::new(part.fork.as_str())? })?;
        std::thread::sleep(Duration::from_millis(part.after_ms).saturating_sub(began.elapsed()));
        let mut command = Command::new(std::env::current_exe()?);
        command.args(["agent", "--url", platform.url(), "--repo", repo.as_str(), "--fork", &part.fork]);
        command.args(["--task", value(&part.task).as_str(), "--via", value(&part.via).as_str()]);
        command.args(["--word", part.word, "--number", &part.number.to_string()]);
        if part.task == Task::Place {
            // From one commit, so that the two of a place collide whoever is faster.
            command.args(["--place", &part.place.to_string(), "--base", base]);
        }
        command
            .env("YARD_TOKEN", &fork.token)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        agents.push((part.fork.clone(), command.spawn().context("an agent cannot be started")?));
    }
    Ok(agents)
}

fn value<T: clap::ValueEnum>(value: &T) -> String {
    value.to_possible_value().map(|found| found.get_name().to_owned()).unwrap_or_default()
}

/// Waits for all agents; one that failed is a fault of the demo.
fn collect(agents: &mut Vec<(String, Child)>) -> Result<()> {
    for (fork, child) in agents.drain(..) {
        let out = child.wait_with_output()?;
        if !out.status.success() {
            bail!("{fork} failed: {}", String::from_utf8_lossy(&out.stderr));
        }
    }
    Ok(())
}

fn report(sandbox: &Sandbox, changes: &[ChangeStatus]) -> Result<()> {
    println!("\nmain, newest first, with the intent of each landed change:\n");
    let log = sandbox.git(
        "check",
        None,
        &["log", "--notes=intent", "--format=%C(yellow)%h%C(reset) %s%n%N", "-n", "3", "main"],
    )?;
    for line in log.lines() {
        println!("  {line}");
    }
    println!("  ... ({} commits in all)\n", sandbox.git("check", None, &["rev-list", "--count", "main"])?);
    let rows: Vec<Vec<String>> = changes
        .iter()
        .rev()
        .map(|change| {
            let colour = if change.stage == Stage::Landed { Colour::Green } else { Colour::Red };
            vec![
                change.fork.as_ref().map_or_else(String::new, ToString::to_string),
                change.title.clone(),
                paint(colour, &format!("{:?}", change.stage)),
                change.reason.clone(),
            ]
        })
        .collect();
    output::text(&output::table(&["agent", "change", "stage", "why"], &rows))
}

fn times(steps: &[(String, f64)]) {
    let rows: Vec<Vec<String>> =
        steps.iter().map(|(name, s)| vec![name.clone(), format!("{s:.1}")]).collect();
    print!("\n{}", output::rendered(&output::table(&["step", "seconds"], &rows)));
}
