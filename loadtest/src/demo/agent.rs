//! One agent of the demo: a process of its own that clones, works, and offers its change.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, bail};
use yard_cli::Client;
use yard_common::intent::Intent;
use yard_common::{ChangeId, ForkName, RepoName, RepoPath};
use yard_loadtest::Sandbox;
use yard_wire::api::{ApiChange, ApiEdit, SubmitChanges, SubmitResult};

use crate::project;

/// What an agent was asked to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, clap::ValueEnum)]
pub enum Task {
    /// Add a feature with its test, its line in the index and its entry in the changelog: lands.
    Feature,
    /// Add at a place where another agent adds too: one lands, the other collides and is replayed.
    Place,
    /// Break a function that others' tests use: sent back, with the run that proves it.
    Break,
}

/// How it offers its change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Via {
    /// `git push origin HEAD:refs/for/main`.
    Git,
    /// `POST /api/repos/{repo}/changes`.
    Api,
}

/// The arguments of an agent's process; its token comes in `YARD_TOKEN`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Address of the platform
    #[arg(long)]
    url: String,
    /// Token of its fork
    #[arg(long, env = "YARD_TOKEN", hide_env_values = true)]
    token: String,
    /// Repository
    #[arg(long)]
    repo: RepoName,
    /// Its fork
    #[arg(long)]
    fork: ForkName,
    /// What to do
    #[arg(long, value_enum)]
    task: Task,
    /// How to offer it
    #[arg(long, value_enum)]
    via: Via,
    /// The word that its work is named after
    #[arg(long)]
    word: String,
    /// A number of its own
    #[arg(long)]
    number: u64,
    /// Which place it adds to
    #[arg(long, default_value_t = 0)]
    place: usize,
    /// The commit that it works from, instead of newest main
    #[arg(long)]
    base: Option<String>,
}

impl Args {
    fn place(&self) -> Result<&'static project::Place> {
        project::PLACES.get(self.place).context("there is no such place")
    }
}

/// The edits of a task, by path, from what stands in the clone.
fn edits(args: &Args, read: impl Fn(&str) -> Result<String>) -> Result<BTreeMap<String, String>> {
    let mut edits = BTreeMap::new();
    match args.task {
        Task::Feature => {
            edits.extend(project::feature(&args.word, args.number));
            edits.insert("features.txt".to_owned(), project::index_with(&read("features.txt")?, &args.word));
            let changelog = project::changelog_with(&read("CHANGELOG.md")?, &args.word);
            edits.insert("CHANGELOG.md".to_owned(), changelog);
        }
        Task::Place => {
            let place = args.place()?;
            let text = place.with(&read(place.path)?, &args.word, args.number);
            edits.extend([(place.path.to_owned(), text), place.test(&args.word, args.number)]);
        }
        Task::Break => {
            let text = read("src/text.js")?.replace("toUpperCase", "toLowerCase");
            edits.insert("src/text.js".to_owned(), text);
        }
    }
    Ok(edits)
}

fn intent(args: &Args) -> Intent {
    let title = match args.task {
        Task::Feature => format!("Add the feature {}", args.word),
        Task::Place => format!("Add the {} {}", args.place().map_or("line", |place| place.what), args.word),
        Task::Break => "Tidy up titles".to_owned(),
    };
    Intent {
        title,
        task: format!("demo task {}", args.number),
        review: "read by a second agent, no remarks".to_owned(),
        agent: args.fork.to_string(),
        model: "scripted".to_owned(),
        ..Intent::default()
    }
}

/// Does the work and prints the change's id.
///
/// # Errors
/// When git or the platform says no.
pub fn run(args: &Args) -> Result<()> {
    let sandbox = Sandbox::new()?;
    let token = Some(args.token.as_str());
    let parent = format!("{}/{}.git", args.url, args.repo);
    sandbox.git(".", token, &["clone", "-q", &parent, "clone"])?;
    if let Some(base) = &args.base {
        sandbox.git("clone", None, &["checkout", "-q", "--detach", base])?;
    }
    let edits = edits(args, |path| {
        std::fs::read_to_string(sandbox.join("clone").join(path))
            .with_context(|| format!("{path} is missing"))
    })?;
    let change = match args.via {
        Via::Git => by_git(args, &sandbox, &edits)?,
        Via::Api => by_api(args, &sandbox, &edits)?,
    };
    println!("{change}");
    Ok(())
}

fn by_git(args: &Args, sandbox: &Sandbox, edits: &BTreeMap<String, String>) -> Result<ChangeId> {
    for (path, content) in edits {
        sandbox.write(&format!("clone/{path}"), content)?;
    }
    sandbox.git("clone", None, &["add", "-A"])?;
    let intent = intent(args);
    // Chosen by the author, as hooks do, from what is offered.
    let change = format!("I{}", sandbox.git("clone", None, &["write-tree"])?);
    let message = format!(
        "{}\n\nChange-Id: {change}\nTask: {}\nReview: {}\nAgent: {}\nModel: {}\n",
        intent.title, intent.task, intent.review, intent.agent, intent.model
    );
    sandbox.git("clone", None, &["commit", "-q", "-m", &message])?;
    let fork = format!("{}/{}/forks/{}.git", args.url, args.repo, args.fork);
    let pushed = sandbox.try_git("clone", Some(&args.token), &["push", &fork, "HEAD:refs/for/main"])?;
    let said = String::from_utf8_lossy(&pushed.stderr).into_owned();
    if !pushed.status.success() {
        bail!("the push was refused: {said}");
    }
    Ok(ChangeId::new(change)?)
}

fn by_api(args: &Args, sandbox: &Sandbox, edits: &BTreeMap<String, String>) -> Result<ChangeId> {
    let base = sandbox.git("clone", None, &["rev-parse", "HEAD"])?.parse()?;
    let mut list = Vec::new();
    for (path, content) in edits {
        let seen = sandbox.git("clone", None, &["rev-parse", "--verify", "-q", &format!("HEAD:{path}")]).ok();
        list.push(ApiEdit {
            path: RepoPath::new(path.as_bytes())?,
            base: seen.map(|id| id.parse()).transpose()?,
            content: Some(content.clone()),
            content_base64: None,
            mode: None,
            keep: false,
        });
    }
    let body = SubmitChanges {
        fork: Some(args.fork.clone()),
        changes: vec![ApiChange {
            change: None,
            new_change: false,
            base: Some(base),
            edits: list,
            intent: intent(args),
            author: Some(format!("{} <{}@agents.example>", args.fork, args.fork)),
            reverts: Vec::new(),
        }],
    };
    let client = Client::new(&args.url, &args.token);
    let reply = client.submit(&args.repo, &body, &format!("demo-{}-{}", args.fork, args.number))?;
    match reply.results.into_iter().next() {
        Some(SubmitResult::Accepted(accepted)) => Ok(accepted.change),
        Some(SubmitResult::Refused(problem)) => bail!("the change was refused: {}", problem.detail),
        None => bail!("the platform answered nothing"),
    }
}
