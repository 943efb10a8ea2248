//! Who acts on the platform from outside: agents, runners, a model, an admin, and what goes wrong.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use serde_json::{Value, json};
use switchyard::hand::Room;
use switchyard::replay::{self, Batch, Configured, Delivery, Failure, Models, Raw};
use yard_common::{Millis, ObjectId};
use yard_git::{Commit, Kind, Object};
use yard_loadtest::scripted::task::Question;
use yard_replay::provider::{Input, Request};
use yard_replay::settings::Settings;
use yard_wire::lane::{ReplayPointer, Work};

use crate::client::{self, admin, request};
use crate::god::Files;
use crate::objects::{Queued, Weather, World};
use crate::suite::{self, Op};

/// A change as its author meant it.
#[derive(Debug, Clone)]
pub struct Meant {
    /// What it does.
    pub ops: Vec<Op>,
    /// It is red wherever it is.
    pub broken: bool,
    /// It needs a word of the project, or takes one away.
    pub word: bool,
    /// Its author, or an admin, took it back or may have.
    pub cancelled: bool,
    /// The platform said that it has it.
    pub accepted: bool,
}

/// What all actors share.
pub struct Play {
    /// The world.
    pub world: Rc<World>,
    /// The repository; another name in each seed, for caches are the isolate's.
    pub repo: String,
    /// Changes by id.
    pub changes: RefCell<BTreeMap<String, Meant>>,
    /// What direct pushes did, by commit.
    pub pushed: RefCell<BTreeMap<ObjectId, Vec<Op>>>,
    /// Trees that a runner has reported as green.
    pub green: RefCell<BTreeSet<ObjectId>>,
    /// No further work is begun, and nothing fails any more.
    pub calm: Cell<bool>,
    /// Agents that are still at work.
    pub busy: Cell<u32>,
    /// A model errs in so many of 1,000 answers.
    pub errs: u64,
    /// A test fails by chance in so many of 1,000 runs.
    pub flaky: u64,
}

const SECOND: u64 = 1_000;

impl Play {
    fn path(&self, rest: &str) -> String {
        format!("/api/repos/{}{rest}", self.repo)
    }

    /// Main as the API tells it.
    pub async fn head(&self) -> Option<ObjectId> {
        let (status, body) = request(&self.world, ("GET", &self.path("")), &admin(), Value::Null).await?;
        (status == 200).then(|| body["view"]["head"].as_str()?.parse().ok())?
    }

    fn files(&self, commit: ObjectId) -> Option<Files> {
        let god = self.world.god.borrow();
        god.files(god.commit(&commit)?.0)
    }

    fn blob(&self, text: &str) -> ObjectId {
        let id = yard_git::hash(Kind::Blob, text.as_bytes());
        self.world.god.borrow_mut().take(id, Object { kind: Kind::Blob, data: text.into() });
        id
    }

    fn meant(&self, change: &str, files: &Files) -> Meant {
        let clock = &self.world.clock;
        let (mut ops, mut tests) = (Vec::new(), String::new());
        let broken = clock.chance(80);
        let word = !broken && clock.chance(100);
        let mut add = |path: String, place: u64, line: String| {
            tests.push_str(&format!("{path}|{line}\n"));
            ops.push(Op::Add(path, usize::try_from(place).unwrap_or(0), line));
        };
        for _ in 0..=clock.below(2) {
            let path = format!("src/f{}.txt", clock.below(3));
            let length = files.get(&path).map_or(0, |text| text.lines().count());
            add(path, clock.below(length as u64 + 1), format!("line {change} {}", clock.below(1000)));
        }
        if clock.chance(400) {
            add("index.txt".into(), 0, format!("entry {change}"));
        }
        ops.push(Op::Create(format!("t/{change}"), tests));
        if broken {
            ops.push(Op::Create(format!("src/{change}.txt"), "BROKEN\n".into()));
        } else if word {
            let chosen = clock.pick(&["amber", "birch", "cedar"]);
            ops.push(if clock.chance(500) {
                Op::Create(format!("src/{change}.txt"), format!("need {chosen}\n"))
            } else {
                Op::Remove("words.txt".into(), format!("word {chosen}"))
            });
        } else if clock.chance(150) {
            let (n, line) = (clock.below(4), clock.below(5));
            ops.push(Op::Remove(format!("src/f{n}.txt"), format!("filler {n} {line}")));
        }
        Meant { ops, broken, word, cancelled: false, accepted: false }
    }

    /// Offers a change, or a further version of it, made on `base`.
    async fn offer(&self, token: &str, change: &str, base: ObjectId) -> Option<()> {
        let ops = self.changes.borrow().get(change)?.ops.clone();
        let before = self.files(base)?;
        let after = suite::apply(&before, &ops)?;
        let mut edits = Vec::new();
        for (path, text) in &after {
            if before.get(path) == Some(text) {
                continue;
            }
            self.blob(text);
            let seen = before.get(path).map(|old| yard_git::hash(Kind::Blob, old.as_bytes()).to_string());
            edits.push(json!({ "path": path, "base": seen, "content": text }));
        }
        let intent = json!({ "title": format!("do {change}"), "task": "simulate", "review": "read by two" });
        let body = json!({ "changes": [{
            "change": change, "base": base.to_string(), "edits": edits, "intent": intent,
        }] });
        let (_, answer) = request(&self.world, ("POST", &self.path("/changes")), token, body).await?;
        self.world.note(|| format!("offer {change}: {answer}"));
        if answer["results"][0].get("accepted").is_some() {
            self.changes.borrow_mut().get_mut(change)?.accepted = true;
        }
        Some(())
    }

    async fn act(&self, token: &str, change: &str, act: &str) -> bool {
        let path = self.path(&format!("/changes/{change}/{act}"));
        let answer = request(&self.world, ("POST", &path), token, json!({ "reason": "for the play" })).await;
        answer.is_some_and(|(status, _)| status == 200)
    }

    /// Stage and reason of a change.
    pub async fn status(&self, change: &str) -> Option<(String, String, Value)> {
        let path = self.path(&format!("/changes/{change}"));
        let (status, body) = request(&self.world, ("GET", &path), &admin(), Value::Null).await?;
        let text = |name: &str| body["status"][name].as_str().unwrap_or_default().to_owned();
        (status == 200).then(|| (text("stage"), text("reason"), body["status"]["verdict"].clone()))
    }
}

/// An agent with its own fork: offers changes, looks after them, offers them again or takes them back.
pub async fn agent(play: Rc<Play>, number: u64) {
    let clock = play.world.clock.clone();
    let name = format!("agent-{number}");
    let made = request(&play.world, ("POST", &play.path("/forks")), &admin(), json!({ "name": name })).await;
    if let Some(token) = made.and_then(|(_, body)| body["token"].as_str().map(str::to_owned)) {
        let mut own = Vec::new();
        for _ in 0..=clock.below(5) {
            clock.sleep(clock.below(60 * SECOND)).await;
            let Some(head) = play.head().await else { continue };
            // Work takes a while: main moves on meanwhile.
            clock.sleep(clock.below(60 * SECOND)).await;
            let change = format!("I{:040x}", u128::from(clock.below(u64::MAX)));
            let Some(files) = play.files(head) else { continue };
            let meant = play.meant(&change, &files);
            play.changes.borrow_mut().insert(change.clone(), meant);
            play.offer(&token, &change, head).await;
            own.push(change);
        }
        for change in own {
            look_after(&play, &token, &change).await;
        }
    }
    play.busy.set(play.busy.get() - 1);
}

async fn look_after(play: &Play, token: &str, change: &str) {
    let clock = &play.world.clock;
    for _ in 0..3 {
        clock.sleep(30 * SECOND + clock.below(120 * SECOND)).await;
        if clock.chance(50) {
            if let Some(meant) = play.changes.borrow_mut().get_mut(change) {
                meant.cancelled = true;
            }
            play.act(token, change, "cancel").await;
            return;
        }
        let Some((stage, ..)) = play.status(change).await else { continue };
        if stage == "needs-author"
            && clock.chance(600)
            && let Some(head) = play.head().await
        {
            play.offer(token, change, head).await;
        }
    }
}

/// A runner: leases, tests, reports; sometimes it dies, is late, or says it twice.
pub async fn runner(play: Rc<Play>, number: u64) {
    let clock = play.world.clock.clone();
    let body = json!({ "scopes": ["run"], "ttl_seconds": 1_000_000 });
    let mut token = None;
    while token.is_none() {
        let made = request(&play.world, ("POST", &play.path("/tokens")), &admin(), body.clone()).await;
        token = made.and_then(|(_, body)| body["token"].as_str().map(str::to_owned));
    }
    let token = token.unwrap_or_default();
    let lane = play.path("/lanes/main");
    let lease = json!({ "repo": play.repo, "lane": "main", "runner": format!("runner-{number}"),
        "environment": "e".repeat(40), "wait_ms": 0, "token": null });
    loop {
        let path = format!("{lane}/lease");
        let answer = request(&play.world, ("POST", &path), &token, lease.clone()).await;
        let work = answer.and_then(|(_, body)| serde_json::from_value::<Option<Work>>(body).ok()).flatten();
        let Some(work) = work else {
            clock.sleep(3 * SECOND + clock.below(4 * SECOND)).await;
            continue;
        };
        if !play.calm.get() && clock.chance(40) {
            // It dies, and comes back as another.
            clock.sleep(clock.below(120 * SECOND)).await;
            continue;
        }
        test(&play, &token, &lane, number, work).await;
    }
}

async fn test(play: &Rc<Play>, token: &str, lane: &str, number: u64, work: Work) {
    let clock = &play.world.clock;
    let mut left = SECOND + clock.below(40 * SECOND);
    while left > 0 {
        let part = left.min(4 * SECOND);
        clock.sleep(part).await;
        left -= part;
        let renew = json!({ "run": work.run, "lease": work.lease });
        request(&play.world, ("POST", &format!("{lane}/renew")), token, renew).await;
    }
    let files = {
        let god = play.world.god.borrow();
        god.commit(&work.commit).and_then(|(tree, _)| god.files(tree))
    };
    let mut result = files.map(|files| suite::judge(&files));
    if let Some(result) = result.as_mut().filter(|_| clock.chance(play.flaky)) {
        result.green = false;
        result.failed.push("sometimes".into());
        result.failed.sort();
    }
    let fault = result.is_none().then(|| "the candidate cannot be fetched".to_owned());
    let result = result.unwrap_or(yard_common::landing::RunResult {
        complete: false,
        green: false,
        ran: 0,
        failed: Vec::new(),
        skipped: 0,
    });
    if result.proves_green() {
        play.green.borrow_mut().insert(work.tree);
    }
    let Ok(run) = yard_cli::runner::sign(token, &work, result) else { return };
    let report = json!({ "run": run, "runner": format!("runner-{number}"), "log": [], "fault": fault });
    for _ in 0..=u64::from(clock.chance(30)) {
        let answer = request(&play.world, ("POST", &format!("{lane}/report")), token, report.clone()).await;
        play.world.note(|| format!("report {} {:?}: {answer:?}", work.run, run.result.failed));
    }
}

/// The admin: holds and releases, freezes and thaws, takes back, pushes to main.
pub async fn chief(play: Rc<Play>) {
    let clock = play.world.clock.clone();
    while !play.calm.get() {
        clock.sleep(20 * SECOND + clock.below(120 * SECOND)).await;
        let changes: Vec<String> = play.changes.borrow().keys().cloned().collect();
        if changes.is_empty() {
            continue;
        }
        let change = clock.pick(&changes).clone();
        match clock.below(8) {
            0 => {
                play.act(&admin(), &change, "hold").await;
                clock.sleep(clock.below(60 * SECOND)).await;
                // Whatever is lost here, everything is released at the end.
                play.act(&admin(), &change, "release").await;
            }
            1 => {
                for act in ["freeze", "thaw"] {
                    let reason = json!({ "reason": "for the play" });
                    request(&play.world, ("POST", &play.path(&format!("/{act}"))), &admin(), reason).await;
                    clock.sleep(clock.below(60 * SECOND)).await;
                }
            }
            2 => {
                play.act(&admin(), &change, "requeue").await;
            }
            3 => push(&play).await,
            _ => {}
        }
    }
}

/// What was stopped goes on.
pub async fn let_all_go(play: &Play) {
    request(&play.world, ("POST", &play.path("/thaw")), &admin(), json!({})).await;
    let changes: Vec<String> = play.changes.borrow().keys().cloned().collect();
    for change in changes {
        play.act(&admin(), &change, "release").await;
    }
}

/// An admin's direct push of one line.
async fn push(play: &Play) {
    let clock = &play.world.clock;
    let Some(head) = play.head().await else { return };
    let line = format!("pushed {}", clock.below(u64::MAX));
    let ops = vec![Op::Add(format!("src/f{}.txt", clock.below(4)), 0, line)];
    let Some(files) = play.files(head).and_then(|files| suite::apply(&files, &ops)) else { return };
    let (commit, pack) = commit(play, Some(head), &files, "push");
    play.pushed.borrow_mut().insert(commit, ops);
    let pushed = client::push(&play.world, &play.repo, ("refs/heads/main", head, commit), pack).await;
    play.world.note(|| format!("direct push {commit}: {pushed:?}"));
}

/// A commit with these files, and a pack that has all of it.
///
/// # Panics
/// When a pack of a few files cannot be written.
#[must_use]
pub fn commit(play: &Play, parent: Option<ObjectId>, files: &Files, message: &str) -> (ObjectId, Vec<u8>) {
    let mut objects: Vec<(Kind, Vec<u8>)> = Vec::new();
    let mut folders: BTreeMap<&str, Vec<(&str, ObjectId)>> = BTreeMap::new();
    for (path, text) in files {
        let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
        folders.entry(folder).or_default().push((name, yard_git::hash(Kind::Blob, text.as_bytes())));
        objects.push((Kind::Blob, text.clone().into_bytes()));
    }
    let mut root: Vec<(Vec<u8>, &[u8], ObjectId)> = Vec::new();
    for (folder, entries) in &folders {
        if folder.is_empty() {
            root.extend(
                entries.iter().map(|(name, id)| (name.as_bytes().to_vec(), b"100644".as_slice(), *id)),
            );
            continue;
        }
        let mut tree = Vec::new();
        for (name, id) in entries {
            yard_git::tree::push_entry(&mut tree, b"100644", name.as_bytes(), id);
        }
        root.push((format!("{folder}/").into_bytes(), b"40000", yard_git::hash(Kind::Tree, &tree)));
        objects.push((Kind::Tree, tree));
    }
    root.sort();
    let mut tree = Vec::new();
    for (name, mode, id) in &root {
        yard_git::tree::push_entry(&mut tree, mode, name.strip_suffix(b"/").unwrap_or(name), id);
    }
    let id = yard_git::hash(Kind::Tree, &tree);
    objects.push((Kind::Tree, tree));
    let who = yard_common::intent::Signature {
        name: "Chief".into(),
        email: "chief@agents.invalid".into(),
        seconds: play.world.clock.now().0 / 1000,
        offset_minutes: 0,
    };
    let commit = Commit {
        tree: id,
        parents: parent.into_iter().collect(),
        author: who.clone(),
        committer: who,
        headers: Vec::new(),
        message: message.into(),
    };
    objects.push((Kind::Commit, commit.encode()));
    let mut writer = yard_git::pack::PackWriter::in_memory();
    let mut last = ObjectId::ZERO;
    for (kind, data) in objects {
        last = yard_git::hash(kind, &data);
        writer.add(last, kind, &data);
    }
    (last, writer.finish().expect("a small pack").rest)
}

/// Kills instances, now one, now all.
pub async fn chaos(play: Rc<Play>, every_ms: u64) {
    let clock = play.world.clock.clone();
    loop {
        clock.sleep(1 + clock.below(2 * every_ms)).await;
        if play.calm.get() {
            return;
        }
        if clock.chance(400) {
            play.world.note(|| "the process dies".into());
            play.world.kill(|owner| {
                owner.contains(':') || owner == "registry" || owner == "edge" || owner == "consumer"
            });
        } else {
            let object = clock.pick(&["repo:", "lane:", "board:"]);
            play.world.note(|| format!("{object} dies"));
            play.world.kill(|owner| owner.starts_with(*object));
        }
    }
}

/// A trigger of the clock: pokes the lane, as cron does.
pub async fn cron(play: Rc<Play>) {
    loop {
        play.world.clock.sleep(60 * SECOND).await;
        let hint = json!({ "repo": play.repo, "lane": "main" });
        let name = format!("lane:{}/main", play.repo);
        let _ = World::call(&play.world, &name, "hint", hint.to_string().into_bytes()).await;
    }
}

/// A model that reads the prompt alone; by chance it is wrong, silent, garbage, or leaves the paths.
struct Model(Rc<Play>);

impl Models for Model {
    async fn post(&self, request: &Request, timeout_ms: u64) -> Result<Raw, Failure> {
        let clock = &self.0.world.clock;
        // About log-normal: most take some seconds, a few far longer.
        let ms = ((2 + clock.below(8)) * SECOND) << clock.below(4);
        if ms > timeout_ms {
            clock.sleep(timeout_ms).await;
            return Err(Failure::TimedOut);
        }
        clock.sleep(ms).await;
        let errs = !self.0.calm.get() && clock.chance(self.0.errs);
        let body: Value = serde_json::from_str(&request.body).unwrap_or_default();
        let messages = body["messages"].as_array().cloned().unwrap_or_default();
        let text = messages.last().and_then(|message| message["content"].as_str()).unwrap_or_default();
        let question = Question::read(text);
        let answer = match clock.below(5) {
            0 if errs => return Ok(Raw { status: 500, retry_after: None, body: b"oops".to_vec() }),
            1 if errs => "<<<<<<< SEARCH\nhalf a block".to_owned(),
            2 if errs => question.answer(true, Some("outside.txt")),
            _ if errs => question.answer(false, None),
            _ => question.answer(true, None),
        };
        let usage = json!({ "prompt_tokens": 1000, "completion_tokens": 100 });
        let choices = json!([{ "message": { "content": answer }, "finish_reason": "stop" }]);
        let body = json!({ "model": "simulated", "choices": choices, "usage": usage }).to_string();
        Ok(Raw { status: 200, retry_after: None, body: body.into_bytes() })
    }

    async fn run(&self, _: &str, _: &Input, _: u64) -> Result<Value, Failure> {
        Err(Failure::Unreachable("no binding".into()))
    }

    async fn pause(&self, ms: u64) {
        self.0.world.clock.sleep(ms).await;
    }
}

fn configured() -> Configured {
    Settings::read(|name| match name {
        "SWITCHYARD_MODEL" => Some("simulated".into()),
        "SWITCHYARD_MODEL_URL" => Some("http://127.0.0.1:1/v1".into()),
        _ => None,
    })
}

/// A message that its consumer has in hand: it comes again when that dies.
struct InHand(Rc<World>, Option<Queued>, u64);

impl Drop for InHand {
    fn drop(&mut self) {
        if let Some(message) = self.1.take() {
            World::deliver_after(&self.0, message, self.2);
        }
    }
}

/// The real consumer of the replay queue takes its messages.
pub fn consume(play: &Rc<Play>) {
    let weak = Rc::downgrade(play);
    play.world.consume(move |world, message| {
        let Some(play) = weak.upgrade() else { return };
        let world = Rc::clone(world);
        world.clock.clone().spawn("consumer", async move {
            let Ok(pointer) = serde_json::from_str::<ReplayPointer>(&message.body) else { return };
            let age = world.clock.now().since(message.sent);
            let mut hand = InHand(Rc::clone(&world), Some(message), 30 * SECOND);
            let event = client::event(&world);
            let model = Model(play);
            let batch =
                Batch { event: &event, models: &model, configured: &configured(), room: Room::default() };
            let delivery = replay::one(&batch, &pointer, age).await;
            drop(batch);
            world.note(|| format!("replay {pointer:?}: {delivery:?}"));
            match delivery {
                Delivery::Ack => hand.1 = None,
                Delivery::Again(seconds) => hand.2 = u64::from(seconds) * SECOND,
            }
            drop(hand);
            event.send_hints().await;
        });
    });
}

/// Fair weather from now on.
pub fn calm(play: &Play) {
    play.calm.set(true);
    play.world.weather.set(Weather::default());
}

/// The time since the play began.
#[must_use]
pub fn since_start(play: &Play) -> u64 {
    play.world.clock.now().since(Millis(1_700_000_000_000))
}
