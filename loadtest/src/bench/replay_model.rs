//! `yard-bench replay-model`: many collisions redone by a scripted model that takes its time and is wrong now and
//! then; a real suite tests every train, and git alone says what is on main.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use yard_cli::runner::{Round, Runner};
use yard_common::{LaneName, RepoName};
use yard_loadtest::figures::{Figures, Target};
use yard_loadtest::scripted::Act;
use yard_loadtest::{Platform, Progress, Sandbox, Scripted, Start};
use yard_wire::api::ChangeStatus;
use yard_wire::lane::Stage;
use yard_wire::token::Scope;

use crate::offers::{Edit, Ground, Main, Offer};

/// The longest that all may take.
const SETTLE_MAX: Duration = Duration::from_secs(480);
/// How often the platform is asked where all changes stand: the answer names each, so it is dear.
const LOOK_AT_ALL: Duration = Duration::from_secs(1);
/// How often it is looked at how many questions are under way.
const LOOK: Duration = Duration::from_millis(20);

/// Arguments.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Collisions: two changes each
    #[arg(long, default_value_t = 200)]
    collisions: usize,
    /// Of a hundred answers, so many are wrong
    #[arg(long, default_value_t = 5)]
    wrong: usize,
    /// How long an answer takes, in milliseconds
    #[arg(long, default_value_t = 1000)]
    pace_ms: u64,
    /// Changes of one train
    #[arg(long, default_value_t = 50)]
    train: usize,
    /// Decides which answers are wrong
    #[arg(long, env = "SEED", default_value_t = 1)]
    seed: u64,
}

/// Every `want/*` names a file and a line that must stand there once: one test for each.
const SUITE: &str = "awk 'FILENAME ~ /^lists\\// { have[FILENAME \" \" $1]++; next }\n\
    { ran = ran \"<testcase name=\\\"\" FILENAME \"\\\">\" }\n\
    have[$1 \" \" $2] != 1 { ran = ran \"<failure/>\"; red = 1 }\n\
    { ran = ran \"</testcase>\" }\n\
    END { print \"<testsuites><testsuite name=\\\"s\\\">\" ran \"</testsuite></testsuites>\"; exit red }' \
    lists/* want/* >report.xml\n";

fn list(i: usize) -> String {
    format!("lists/{i:03}.txt")
}

fn line(side: &str, i: usize) -> String {
    format!("{side}-{i:03}")
}

/// One side of a collision: its line, last of the list, and its test.
fn offer(side: &str, i: usize) -> Offer {
    let (path, line) = (list(i), line(side, i));
    let edits = vec![
        Edit::of(&path, &format!("begin\n{line}\nend\n")),
        Edit::of(&format!("want/{line}"), &format!("{path} {line}\n")),
    ];
    Offer { title: format!("Add {line}"), edits }
}

/// Runs it.
///
/// # Errors
/// When anything else than what is measured goes wrong.
pub fn run(args: &Args) -> Result<()> {
    let sandbox = Sandbox::new()?;
    let wrong = wrong_lists(args);
    let model = Scripted::start(0, Duration::from_millis(args.pace_ms), false, move |question| {
        let bad = question.paths().iter().any(|path| wrong.contains(path));
        if bad { Act::Wrong } else { Act::Right }
    })?;
    let model = Arc::new(model);
    let mut start = Start::at(&sandbox.join("state"));
    start.extra = model.arguments(60);
    start.extra.push("--quiet".to_owned());
    let platform = Platform::start(&start)?;
    let ground = ground(args, &platform, &sandbox)?;
    for side in ["ann", "bob"] {
        let offers: Vec<Offer> = (0..args.collisions).map(|i| offer(side, i)).collect();
        ground.offer_all(side, &offers)?;
    }
    let runners = Runners::start(&platform, &ground.repo, &sandbox)?;
    let began = Instant::now();
    let width = Width::watch(&model);
    let changes = settle(&platform, &ground.repo, 2 * args.collisions, &width)?;
    let seconds = began.elapsed().as_secs_f64();
    let width = width.stop()?;
    runners.stop()?;
    let main = ground.fetch()?;
    platform.stop()?;
    figures(args, &judge(args, &changes, &main)?, &model, (seconds, width)).finish_beside()
}

/// The lists that the model gets wrong, by seed.
fn wrong_lists(args: &Args) -> BTreeSet<String> {
    let mut all: Vec<String> = (0..args.collisions).map(list).collect();
    fastrand::Rng::with_seed(args.seed).shuffle(&mut all);
    all.truncate((args.collisions * args.wrong).div_ceil(100));
    all.into_iter().collect()
}

fn ground<'a>(args: &Args, platform: &'a Platform, sandbox: &'a Sandbox) -> Result<Ground<'a>> {
    let mut config = format!("[lane]\ntrain_max = {}\n\n", args.train);
    config
        .push_str("[checks]\ncommand = \"sh ./tests.sh\"\njunit = \"report.xml\"\ntimeout_seconds = 60\n\n");
    write!(config, "[replay]\nper_change = 3\n")?;
    let mut files = BTreeMap::from([
        (".switchyard.toml".to_owned(), config),
        (".gitignore".to_owned(), "report.xml\n".to_owned()),
        ("tests.sh".to_owned(), SUITE.to_owned()),
        ("want/none".to_owned(), "lists/000.txt begin\n".to_owned()),
    ]);
    files.extend((0..args.collisions).map(|i| (list(i), "begin\nend\n".to_owned())));
    Ground::new(platform, sandbox, "collisions", &files)
}

/// Two real runners, each a thread.
struct Runners {
    stop: Arc<AtomicBool>,
    hands: Vec<JoinHandle<Result<()>>>,
}

impl Runners {
    fn start(platform: &Platform, repo: &RepoName, sandbox: &Sandbox) -> Result<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        let mut hands = Vec::new();
        for name in ["one", "two"] {
            let token = platform.token(Some(repo), None, &[Scope::Run])?;
            let client = yard_cli::Client::new(platform.url(), &token);
            let lanes = vec![LaneName::new(yard_wire::names::DEFAULT_LANE)?];
            let runner = Runner::new(client, repo.clone(), lanes, sandbox.join(name), "bench")?;
            let stop = Arc::clone(&stop);
            hands.push(std::thread::spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    if runner.round()? == Round::Idle {
                        std::thread::sleep(Duration::from_millis(50));
                    }
                }
                Ok(())
            }));
        }
        Ok(Self { stop, hands })
    }

    fn stop(self) -> Result<()> {
        self.stop.store(true, Ordering::Relaxed);
        for hand in self.hands {
            hand.join().map_err(|_| anyhow::anyhow!("a runner broke"))??;
        }
        Ok(())
    }
}

/// How many questions are under way while more replays are open than that.
struct Width {
    open: Arc<AtomicUsize>,
    stop: Arc<AtomicBool>,
    hand: JoinHandle<(u64, u64)>,
}

impl Width {
    fn watch(model: &Arc<Scripted>) -> Self {
        let (open, stop) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicBool::new(false)));
        let (model, waiting, ends) = (Arc::clone(model), Arc::clone(&open), Arc::clone(&stop));
        let hand = std::thread::spawn(move || {
            let (mut looks, mut sum) = (0, 0);
            while !ends.load(Ordering::Relaxed) {
                let now = model.under_way();
                if waiting.load(Ordering::Relaxed) > now {
                    (looks, sum) = (looks + 1, sum + now as u64);
                }
                std::thread::sleep(LOOK);
            }
            (looks, sum)
        });
        Self { open, stop, hand }
    }

    /// The mean.
    #[allow(clippy::cast_precision_loss, reason = "counts are small")]
    fn stop(self) -> Result<f64> {
        self.stop.store(true, Ordering::Relaxed);
        let (looks, sum) = self.hand.join().map_err(|_| anyhow::anyhow!("the look-out broke"))?;
        Ok(sum as f64 / (looks.max(1) as f64))
    }
}

fn rests(change: &ChangeStatus) -> bool {
    matches!(change.stage, Stage::Landed | Stage::AlreadyOnMain | Stage::NeedsAuthor | Stage::Withdrawn)
}

/// Waits until every change rests; where all stand.
fn settle(platform: &Platform, repo: &RepoName, expected: usize, width: &Width) -> Result<Vec<ChangeStatus>> {
    let admin = platform.admin()?;
    let began = Instant::now();
    let mut progress = Progress::new(&format!("{repo}: at rest"), expected);
    loop {
        let changes = admin.changes(repo, 500)?;
        let replaying = changes.iter().filter(|change| change.stage == Stage::Replaying).count();
        width.open.store(replaying, Ordering::Relaxed);
        let open = changes.iter().filter(|change| !rests(change)).count();
        progress.at(changes.len() - open, &format!(", {replaying} replays open"));
        if open == 0 && changes.len() >= expected && admin.status(repo)?.outbox == 0 {
            return Ok(changes);
        }
        if began.elapsed() > SETTLE_MAX {
            let one = changes.iter().find(|change| !rests(change)).context("none is open")?;
            bail!("{open} are open after {} s; one of them: {one:?}", SETTLE_MAX.as_secs());
        }
        std::thread::sleep(LOOK_AT_ALL);
    }
}

/// What git shows, against what the platform says of each change.
#[derive(Debug, Default)]
struct Judged {
    landed: usize,
    back: usize,
    lost: usize,
    wrong: usize,
}

/// A landed change is on main with its commit, its note, its line and its test; one that was sent back says why
/// and has left nothing. Main has no other lines, and no test of main is red.
fn judge(args: &Args, changes: &[ChangeStatus], main: &Main) -> Result<Judged> {
    let mut judged = Judged::default();
    let mut wanted: BTreeSet<(String, String)> = BTreeSet::new();
    for change in changes {
        let name = change.title.trim_start_matches("Add ");
        let number = name.rsplit_once('-').and_then(|(_, n)| n.parse().ok()).context("an odd title")?;
        let tested = main.file(&format!("want/{name}")) == format!("{} {name}\n", list(number));
        let commit = change.commit.map(|commit| commit.to_string()).unwrap_or_default();
        let noted = main.notes.get(&commit).is_some_and(|note| note.contains(change.change.as_str()));
        match change.stage {
            Stage::Landed => {
                judged.landed += 1;
                judged.lost += usize::from(!noted || !tested);
                wanted.insert((list(number), name.to_owned()));
            }
            Stage::NeedsAuthor => {
                judged.back += 1;
                judged.lost += usize::from(change.reason.is_empty() || noted);
            }
            _ => judged.lost += 1,
        }
    }
    judged.lost += (2 * args.collisions).abs_diff(changes.len()) + judged.landed.abs_diff(main.notes.len());
    for i in 0..args.collisions {
        let text = main.file(&list(i));
        let own = text.lines().filter(|line| !matches!(*line, "begin" | "end"));
        let there: Vec<(String, String)> = own.map(|line| (list(i), line.to_owned())).collect();
        judged.wrong += there.iter().filter(|line| !wanted.contains(line)).count();
        for line in wanted.iter().filter(|(path, _)| *path == list(i)) {
            judged.wrong += there.iter().filter(|there| *there == line).count().abs_diff(1);
        }
    }
    let tests = main.names("want")?;
    judged.wrong += tests.len().abs_diff(judged.landed + 1);
    Ok(judged)
}

#[allow(clippy::cast_precision_loss, reason = "counts are small")]
fn figures(args: &Args, judged: &Judged, model: &Scripted, (seconds, width): (f64, f64)) -> Figures {
    let count = |count: usize| count as f64;
    let mut figures = Figures::new("replay", args.seed);
    figures.add("lost_in_landing", count(judged.lost), "changes", Target::AtMost(0.0));
    figures.add("wrong_on_main", count(judged.wrong), "lines", Target::AtMost(0.0));
    figures.add("replay_width", width, "mean while others wait", Target::AtLeast(6.0));
    figures.add("replay_width_most", count(model.width()), "replays at once", Target::None);
    figures.add("replay_landed", count(judged.landed), "changes", Target::None);
    figures.add("replay_sent_back", count(judged.back), "changes", Target::None);
    figures.add("replay_model_calls", count(model.asked().len()), "calls", Target::None);
    figures.add("replay_seconds", seconds, "s for all", Target::None);
    figures
}
