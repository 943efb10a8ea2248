use std::cell::{Cell, RefCell};
use std::rc::Rc;

use serde_json::json;
use yard_common::config::ReplayPolicy;
use yard_common::replay::Cause;
use yard_common::submission::Submission;
use yard_common::{LaneName, Millis, ObjectId, ReplayNo, RepoName, RepoPath};
use yard_git::Object;
use yard_git::pack::PackWriter;
use yard_objects::call::LocalFuture;
use yard_objects::native::block_on;
use yard_objects::{Calls as _, Object as Actor};
use yard_wire::repository::{ChangeView, Changes};

use super::*;
use crate::api::{Admitted, admit};
use crate::git::tests::{Native, ask, commit, event, push};
use crate::hand::Hand;

/// A lane that has one open replay.
#[derive(Default)]
struct OneJob {
    job: RefCell<Option<ReplayJob>>,
    ended: RefCell<Vec<EndReplay>>,
}

impl Actor for OneJob {
    fn handle<'a>(
        &'a self,
        name: &'a str,
        body: &'a [u8],
        _now: Millis,
    ) -> LocalFuture<'a, Result<Vec<u8>, Refusal>> {
        Box::pin(async move {
            match name {
                "ask-replay" => Ok(serde_json::to_vec(&*self.job.borrow()).unwrap()),
                "end-replay" => {
                    self.ended.borrow_mut().push(serde_json::from_slice(body).unwrap());
                    Ok(b"null".to_vec())
                }
                _ => Ok(b"null".to_vec()),
            }
        })
    }
}

/// A provider that says what it is told to, one reply after the other.
#[derive(Default)]
struct Script {
    replies: RefCell<Vec<Result<(u16, String), ()>>>,
    asked: RefCell<Vec<String>>,
    waited: Cell<u64>,
}

impl Script {
    fn says(answers: &[&str]) -> Self {
        let reply = |text: &&str| {
            let usage = json!({ "prompt_tokens": 1000, "completion_tokens": 100 });
            let choices = json!([{ "message": { "content": text }, "finish_reason": "stop" }]);
            Ok((200, json!({ "model": "m-1", "choices": choices, "usage": usage }).to_string()))
        };
        Self { replies: RefCell::new(answers.iter().rev().map(reply).collect()), ..Self::default() }
    }
}

impl Models for Script {
    async fn post(&self, request: &Request, _timeout_ms: u64) -> Result<Raw, Failure> {
        self.asked.borrow_mut().push(request.body.clone());
        match self.replies.borrow_mut().pop() {
            Some(Ok((status, body))) => Ok(Raw { status, retry_after: None, body: body.into_bytes() }),
            Some(Err(())) => Err(Failure::TimedOut),
            None => Err(Failure::Unreachable("connection refused".into())),
        }
    }

    async fn run(&self, _: &str, _: &Input, _: u64) -> Result<serde_json::Value, Failure> {
        Err(Failure::Unreachable("no binding".into()))
    }

    async fn pause(&self, ms: u64) {
        self.waited.set(self.waited.get() + ms);
    }
}

struct World {
    event: Event<Native>,
    lane: Rc<OneJob>,
    pointer: ReplayPointer,
    name: &'static str,
    main: [ObjectId; 3],
}

fn configured() -> Configured {
    Settings::read(|name| match name {
        "SWITCHYARD_MODEL" => Some("m".into()),
        "SWITCHYARD_MODEL_URL" => Some("http://127.0.0.1:1/v1".into()),
        "SWITCHYARD_MODEL_PRICE_IN" => Some("1".into()),
        "SWITCHYARD_MODEL_PRICE_OUT" => Some("10".into()),
        _ => None,
    })
}

/// Main has moved from `base` to `main`; a change wants `theirs`, and its lane asks for a replay.
fn world(name: &'static str, base: &str, main: &str, theirs: &str) -> World {
    let event = event(name);
    let mut writer = PackWriter::in_memory();
    let one = commit(&mut writer, None, base);
    let two = commit(&mut writer, Some(one[0]), main);
    let pack = writer.finish().unwrap().rest;
    let answer = push(&event, name, "refs/heads/main", two[0], &pack);
    assert!(answer.contains("ok refs/heads/main"), "{answer}");
    let mut ask = ask(&format!("/api/repos/{name}/changes"));
    ask.headers.insert("idempotency-key".into(), "k".into());
    let edit = json!({ "path": "f", "base": one[2].to_string(), "content": theirs });
    let change = json!({ "base": one[0].to_string(), "edits": [edit], "intent": { "title": "mine" } });
    ask.body = json!({ "changes": [change] }).to_string().into_bytes();
    let Admitted::Call(call) = admit(&event.secret, event.now, &ask) else { panic!("not admitted") };
    let answer = block_on(crate::api::answer(&event, &call));
    assert!(String::from_utf8_lossy(&answer.body).contains("accepted"), "{answer:?}");
    let lane = Rc::new(OneJob::default());
    let row = newest(&event, name).row;
    let pointer = ReplayPointer {
        repo: RepoName::new(name).unwrap(),
        lane: row.lane.clone(),
        change: row.change.clone(),
        version: row.version,
        replay: ReplayNo(1),
    };
    let path = RepoPath::new("f").unwrap();
    let job = ReplayJob {
        row: Box::new(row),
        cause: Cause::Collision { paths: vec![(path, "both changed the same lines".into())] },
        commit: two[0],
        tree: two[1],
        rivals: Vec::new(),
        early: false,
        policy: ReplayPolicy::default(),
        budget_left: ReplayPolicy::default().micro_usd_per_day,
    };
    *lane.job.borrow_mut() = Some(job);
    let lane_name: LaneName = pointer.lane.clone();
    event.platform.wired.insert(&names::lane(&pointer.repo, &lane_name), Rc::clone(&lane) as Rc<dyn Actor>);
    World { event, lane, pointer, name, main: two }
}

fn newest(event: &Event<Native>, name: &str) -> ChangeView {
    let ask = Changes { ids: Vec::new(), before: None, limit: 10 };
    block_on(event.platform.wired.call(&format!("repo:{name}"), &ask)).unwrap().remove(0)
}

impl World {
    fn replay(&self, models: &Script) -> Delivery {
        self.replay_as(models, &configured())
    }

    fn replay_as(&self, models: &Script, configured: &Configured) -> Delivery {
        self.replay_in(&Room::default(), models, configured, &self.pointer)
    }

    fn replay_in(
        &self,
        room: &Room,
        models: &Script,
        configured: &Configured,
        pointer: &ReplayPointer,
    ) -> Delivery {
        let batch = Batch { event: &self.event, models, configured, room: room.clone() };
        block_on(one(&batch, pointer, 0))
    }

    fn end(&self) -> EndReplay {
        self.lane.ended.borrow_mut().pop().expect("the lane was told")
    }

    fn failed(&self) -> String {
        match self.end().end {
            End::Failed { why } => why,
            other => panic!("{other:?}"),
        }
    }

    fn row(&self) -> Submission {
        newest(&self.event, self.name).row
    }
}

const EDIT: &str = "f\n<<<<<<< SEARCH\nlimit = scale(10)\n=======\nlimit = scale(20)\n>>>>>>> REPLACE\n";

fn limits(name: &'static str) -> World {
    world(name, "head\nlimit = 10\n", "head\nlimit = scale(10)\n", "head\nlimit = 20\n")
}

#[test]
fn an_answer_becomes_the_next_version_with_its_proof_and_cost() {
    let world = limits("replayed");
    let script = Script::says(&[EDIT]);
    assert_eq!(world.replay(&script), Delivery::Ack);
    let end = world.end();
    let row = world.row();
    assert_eq!(end.end, End::Proposed { version: row.version });
    assert_eq!((end.cost.tokens_in, end.cost.tokens_out, end.cost.micro_usd), (1000, 100, 2000));
    assert_eq!(row.version, world.pointer.version.next());
    assert_eq!(row.base.commits, [world.main[0]]);
    let theirs = yard_git::hash(yard_git::Kind::Blob, b"head\nlimit = scale(20)\n");
    assert_eq!(row.edits[0].theirs.unwrap().id, theirs);
    let origin = row.replay.unwrap();
    assert_eq!((origin.of, origin.reviewed), (world.pointer.version, world.pointer.version));
    assert!(origin.compared.starts_with("2 lines differ"), "{}", origin.compared);
    assert!(origin.range_diff.contains("> +limit = scale(20)"), "{}", origin.range_diff);
    let kept = world.event.platform.blobs.keys();
    assert!(kept.iter().any(|key| *key == format!("replayed/replays/{}.json", origin.prompt)), "{kept:?}");
    assert!(script.asked.borrow()[0].contains("limit = scale(10)"));
    assert!(
        !script.asked.borrow()[0].contains(&world.main[0].to_string()),
        "no commit is named to the model"
    );
}

#[test]
fn an_early_answer_is_at_hand_when_it_is_needed() {
    let world = limits("early");
    world.lane.job.borrow_mut().as_mut().unwrap().early = true;
    assert_eq!(world.replay(&Script::says(&[EDIT])), Delivery::Ack);
    assert_eq!(world.end().end, End::Prepared);
    assert_eq!(world.row().version, world.pointer.version, "nothing is submitted");
    world.lane.job.borrow_mut().as_mut().unwrap().early = false;
    let silent = Script::default();
    assert_eq!(world.replay(&silent), Delivery::Ack);
    let end = world.end();
    assert!(matches!(end.end, End::Proposed { .. }), "{end:?}");
    assert_eq!((end.cost.calls, end.cost.micro_usd), (0, 0));
    assert!(silent.asked.borrow().is_empty(), "the model was not called again");
}

#[test]
fn a_bad_answer_is_told_to_the_model_and_at_last_to_the_author() {
    let world = limits("again");
    let script = Script::says(&["Sure! I would change the limit.", EDIT]);
    assert_eq!(world.replay(&script), Delivery::Ack);
    assert!(matches!(world.end().end, End::Proposed { .. }));
    assert!(script.asked.borrow()[1].contains("words without an edit"));

    let world = limits("never");
    let script = Script::says(&["no", "no", "no", "no"]);
    assert_eq!(world.replay(&script), Delivery::Ack);
    assert_eq!(world.failed(), "the model answered words without an edit, beginning \"no\", in 3 tries");
    assert_eq!(script.asked.borrow().len(), 3);
    assert_eq!(world.row().version, world.pointer.version);
    // The same message again asks nobody; a replay that is asked for anew does.
    let silent = Script::default();
    assert_eq!(world.replay(&silent), Delivery::Ack);
    assert!(world.failed().contains("in 3 tries") && silent.asked.borrow().is_empty());
    let mut anew = world.pointer.clone();
    anew.replay = ReplayNo(2);
    let script = Script::says(&[EDIT]);
    assert_eq!(world.replay_in(&Room::default(), &script, &configured(), &anew), Delivery::Ack);
    assert!(matches!(world.end().end, End::Proposed { .. }));
    assert_eq!(script.asked.borrow().len(), 1);
}

#[test]
fn what_leaves_the_reviewed_paths_or_declines_ends_at_once() {
    for (name, answer, sentence) in [
        ("outside", EDIT.replacen('f', ".switchyard.toml", 1), "no path of the reviewed change"),
        ("cannot", "<<<<<<< CANNOT\nlimits are gone\n>>>>>>> CANNOT\n".into(), "limits are gone"),
        ("keep", "f\n<<<<<<< KEEP\n>>>>>>> KEEP\n".into(), "main has all of it already"),
    ] {
        let world = limits(name);
        let script = Script::says(&[&answer, EDIT]);
        assert_eq!(world.replay(&script), Delivery::Ack);
        let why = world.failed();
        assert!(why.contains(sentence), "{why}");
        assert_eq!(script.asked.borrow().len(), 1);
        assert_eq!(world.row().version, world.pointer.version);
    }
}

#[test]
fn a_provider_in_trouble_is_called_again_then_later() {
    let world = limits("slow");
    let script = Script::says(&[EDIT]);
    script.replies.borrow_mut().extend([Err(()), Ok((503, "busy".into()))]);
    assert_eq!(world.replay(&script), Delivery::Ack);
    assert!(matches!(world.end().end, End::Proposed { .. }));
    assert!(script.waited.get() >= 2500, "{}", script.waited.get());

    let world = limits("down");
    assert!(matches!(world.replay(&Script::default()), Delivery::Again(10..=13)));
    assert!(world.lane.ended.borrow().is_empty());
    let refused = Script::default();
    refused.replies.borrow_mut().push(Ok((401, "{}".into())));
    assert_eq!(world.replay(&refused), Delivery::Ack);
    assert!(world.failed().contains("SWITCHYARD_MODEL_KEY"));
}

#[test]
fn no_model_a_bad_setting_and_a_spent_budget_are_said() {
    let world = limits("none");
    let script = Script::says(&[EDIT]);
    assert_eq!(world.replay_as(&script, &Ok(None)), Delivery::Ack);
    assert!(world.failed().contains("no model is configured"));
    assert_eq!(world.replay_as(&script, &Err("SWITCHYARD_MODEL_URL is not set".into())), Delivery::Ack);
    assert!(world.failed().contains("SWITCHYARD_MODEL_URL is not set"));
    world.lane.job.borrow_mut().as_mut().unwrap().budget_left = 10;
    assert_eq!(world.replay(&script), Delivery::Ack);
    assert!(world.failed().contains("budget for today"));
    assert!(script.asked.borrow().is_empty());
}

#[test]
fn a_replay_that_is_late_or_gone_changes_nothing() {
    let world = limits("late");
    let job = world.lane.job.borrow().clone();
    assert_eq!(world.replay(&Script::says(&[EDIT])), Delivery::Ack);
    assert!(matches!(world.end().end, End::Proposed { .. }));
    let version = world.row().version;
    // Another consumer has made the same replay of the version before.
    let mut late = world.pointer.clone();
    late.replay = ReplayNo(2);
    *world.lane.job.borrow_mut() = job;
    let answered = world.replay_in(&Room::default(), &Script::default(), &configured(), &late);
    assert_eq!(answered, Delivery::Ack);
    world.failed();
    assert_eq!(world.row().version, version);
    *world.lane.job.borrow_mut() = None;
    assert_eq!(world.replay(&Script::default()), Delivery::Ack);
    assert!(world.lane.ended.borrow().is_empty());
}

#[test]
fn a_replay_that_finds_no_room_beside_the_others_comes_again_and_loses_nothing() {
    let world = limits("crowded");
    let room = Room::default();
    let (script, main) = (Script::says(&[EDIT]), world.main[2]);
    let mut other = Hand::within(&room);
    let large = Object { kind: yard_git::Kind::Blob, data: vec![b'x'; 32 << 20] };
    other.insert(main, std::sync::Arc::new(large));
    assert_eq!(world.replay_in(&room, &script, &configured(), &world.pointer), Delivery::Again(5));
    assert!(world.lane.ended.borrow().is_empty() && script.asked.borrow().is_empty());
    drop(other);
    assert_eq!(world.replay_in(&room, &script, &configured(), &world.pointer), Delivery::Ack);
    assert!(matches!(world.end().end, End::Proposed { .. }));
}

#[test]
fn paths_that_merge_go_along_without_the_model() {
    let world = world("merge", "a\nb\nc\nd\ne\n", "A\nb\nc\nd\ne\n", "a\nb\nc\nd\nE\n");
    // The lane's interaction: the file merges clean, and tests are red.
    world.lane.job.borrow_mut().as_mut().unwrap().cause =
        Cause::Interaction { with: Vec::new(), runs: Vec::new(), detail: "test_e fails".into() };
    let script = Script::says(&["f\n<<<<<<< SEARCH\nE\n=======\nEE\n>>>>>>> REPLACE\n"]);
    assert_eq!(world.replay(&script), Delivery::Ack);
    assert!(matches!(world.end().end, End::Proposed { .. }));
    let theirs = yard_git::hash(yard_git::Kind::Blob, b"A\nb\nc\nd\nEE\n");
    assert_eq!(world.row().edits[0].theirs.unwrap().id, theirs);
    assert!(script.asked.borrow()[0].contains("test_e fails"));
}
