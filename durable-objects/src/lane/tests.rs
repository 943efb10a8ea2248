//! Stories of the Lane host beside a real Repository host: what lands, checked by real git, and what a
//! fault anywhere costs.

use std::cell::RefCell;
use std::path::Path;
use std::process::Command;
use std::rc::Rc;

use yard_common::bytes::Base64;
use yard_common::landing::{RunResult, SignedRun};
use yard_common::replay::{Cost, ReplayEnd};
use yard_common::stage::{Stage, Verdict};
use yard_common::submission::{Entry, Mode, Via};
use yard_common::{ChangeId, LaneName, LeaseNo, Millis, ObjectId, Refusal, RepoName, RunnerId};
use yard_git::Objects as _;
use yard_wire::Method;
use yard_wire::board::{Event, Events};
use yard_wire::lane as wire;
use yard_wire::repository as repo;
use yard_wire::token;

mod logs;

use super::Lane;
use crate::blobs::Blobs as _;
use crate::call::{Calls as _, LocalFuture, Object};
use crate::native::{Fails, NativeSql, block_on};
use crate::repository::tests::world::{self, Native, SECRET, World};

mod index;

/// The Repository as the lane reaches it.
struct Hand(Rc<RefCell<World>>);

impl Object for Hand {
    fn handle<'a>(
        &'a self,
        name: &'a str,
        body: &'a [u8],
        now: Millis,
    ) -> LocalFuture<'a, Result<Vec<u8>, Refusal>> {
        Box::pin(async move { block_on(self.0.borrow().host.handle(name, body, now)) })
    }
}

fn bearer(name: &str) -> yard_common::TokenId {
    yard_common::TokenId::new(name).unwrap()
}

fn segment(start: u64, text: &str) -> wire::Segment {
    wire::Segment { start, text: text.into() }
}

struct Yard {
    world: Rc<RefCell<World>>,
    lane: Lane<Native>,
    sql: Rc<NativeSql>,
    now: Millis,
}

fn green() -> RunResult {
    RunResult { complete: true, green: true, ran: 3, failed: vec![], skipped: 0 }
}

fn red(test: &str) -> RunResult {
    RunResult { complete: true, green: false, ran: 3, failed: vec![test.into()], skipped: 0 }
}

impl Yard {
    fn new(files: &[(&str, &str)]) -> Self {
        let (world, _) = World::with(files);
        let now = world.now;
        let world = Rc::new(RefCell::new(world));
        world.borrow().wired.insert("repo:click", Rc::new(Hand(Rc::clone(&world))));
        let sql = Rc::new(NativeSql::new().unwrap());
        let lane = Self::host(&sql, &world);
        Self { world, lane, sql, now }
    }

    /// As [`Yard::new`], with a model.
    fn replaying(files: &[(&str, &str)]) -> Self {
        let config = world::CONFIG.replace("by_model = false", "by_model = true");
        let mut all = vec![(".switchyard.toml", config.as_str())];
        all.extend(files);
        Self::new(&all)
    }

    fn host(sql: &Rc<NativeSql>, world: &Rc<RefCell<World>>) -> Lane<Native> {
        let world = world.borrow();
        Lane::new(Rc::clone(sql), Rc::clone(&world.blobs), Rc::clone(&world.index), Rc::clone(&world.wired))
    }

    /// The process ends: what is not in the tables is gone.
    fn restart(&mut self) {
        self.lane = Self::host(&self.sql, &self.world);
        self.world.borrow_mut().restart();
    }

    fn call<M: Method>(&self, asked: &M) -> Result<M::Reply, Refusal> {
        let body = serde_json::to_vec(asked).unwrap();
        let answer = block_on(self.lane.handle(M::NAME, &body, self.now))?;
        Ok(serde_json::from_slice(&answer).unwrap())
    }

    fn submit(&self, id: &str, edits: &[(&str, Option<&str>)]) {
        self.world.borrow_mut().submit(id, edits);
    }

    /// A change of one file that was made on main's first commit.
    fn submit_on_start(&self, id: &str, path: &str, text: &str) {
        let mut world = self.world.borrow_mut();
        let start = world.start;
        let head = world.commit(&[start], &[(path, Some(text))], id);
        let proposal = world.proposal(id, &format!("agent-{id}"), head);
        let reply = world.call(&repo::Submit { items: vec![proposal], token: None }).unwrap();
        assert!(reply.results[0].is_ok(), "{reply:?}");
    }

    /// A change by the API: its head and trees are in no pack.
    fn submit_by_api(&self, id: &str, edits: &[(&str, Option<Entry>)]) {
        let mut world = self.world.borrow_mut();
        let main = world.main().unwrap();
        let edits: Vec<_> = edits.iter().map(|(at, entry)| (world::path(at), *entry)).collect();
        let mut tree = yard_git::RunningTree::new(world.tree_of(main));
        for made in tree.apply(&world.store, &edits).unwrap().trees {
            world.store.add(yard_git::Kind::Tree, made.data);
        }
        let head = world.commit_of(tree.id(), &[main], id);
        let mut proposal = world.proposal(id, &format!("agent-{id}"), head);
        let pushed: Vec<String> = proposal.packs.drain(..).map(|pack| pack.pack.key.to_string()).collect();
        block_on(world.blobs.delete(&pushed)).unwrap();
        proposal.via = Via::Api;
        let contents = edits.iter().filter_map(|(_, entry)| entry.map(|entry| entry.id));
        proposal.contents =
            contents.map(|id| (id, Base64(world.store.get(&id).unwrap().data.clone()))).collect();
        let reply = world.call(&repo::Submit { items: vec![proposal], token: None }).unwrap();
        assert!(reply.results[0].is_ok(), "{reply:?}");
    }

    fn hint(&self) -> Result<(), Refusal> {
        let repo = RepoName::new("click").unwrap();
        self.call(&wire::Hint { repo, lane: LaneName::new("main").unwrap() })
    }

    /// Alarms until nothing is due at once.
    fn drive(&mut self) -> Result<(), Refusal> {
        for _ in 0..20 {
            self.world.borrow_mut().now = self.now;
            self.world.borrow().wired.set_now(self.now);
            let now = self.now;
            match block_on(self.lane.alarm(&|| now))? {
                Some(due) if due <= now.plus(super::RETRY_MS) => self.now = due.max(now),
                _ => return Ok(()),
            }
        }
        Ok(())
    }

    fn lease(&self) -> Result<Option<wire::Work>, Refusal> {
        self.call(&wire::Lease {
            repo: RepoName::new("click").unwrap(),
            lane: LaneName::new("main").unwrap(),
            runner: RunnerId::new("runner").unwrap(),
            environment: "e".repeat(40),
            wait_ms: 0,
            token: Some(bearer("runner")),
        })
    }

    fn report(&self, work: &wire::Work, result: RunResult) -> Result<(), Refusal> {
        self.report_log(work, result, vec![segment(0, "the end of it")])
    }

    fn report_log(
        &self,
        work: &wire::Work,
        result: RunResult,
        log: Vec<wire::Segment>,
    ) -> Result<(), Refusal> {
        let token = self.world.borrow().runner(SECRET);
        let mut run = SignedRun {
            run: work.run.clone(),
            lease: work.lease,
            tree: work.tree,
            suite: work.suite.clone(),
            command: work.command.clone(),
            config: work.config,
            result,
            token: token::public_part(&token).unwrap(),
            mac: String::new(),
        };
        run.mac = token::sign_with(&token, &run.signed_text());
        let runner = RunnerId::new("runner").unwrap();
        self.call(&wire::Report { run, runner, log, fault: None, token: Some(bearer("runner")) })
    }

    /// Drives and runs, each run judged by the files of its tree, until nothing moves.
    fn settle(&mut self, suite: &dyn Fn(&str) -> RunResult) -> Result<(), Refusal> {
        for _ in 0..50 {
            self.drive()?;
            let Some(work) = self.lease()? else { return Ok(()) };
            let result = suite(&self.listing(work.commit));
            self.report(&work, result)?;
        }
        panic!("the lane never settles");
    }

    /// The paths of a commit, by real git over the packs in the bucket.
    fn listing(&self, commit: ObjectId) -> String {
        let folder = self.repository();
        let names = git(&folder, &["ls-tree", "-r", "--name-only", &commit.to_string()]);
        std::fs::remove_dir_all(&folder).unwrap();
        names
    }

    /// A bare repository with all packs of the bucket, main and the notes.
    fn repository(&self) -> std::path::PathBuf {
        let folder = Self::folder();
        let keys = self.world.borrow().blobs.keys();
        self.repository_of(folder, &keys)
    }

    fn folder() -> std::path::PathBuf {
        use std::sync::atomic::{AtomicU64, Ordering};
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let n = NEXT.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("yard-lane-{}-{n}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        git(&folder, &["init", "-q", "--bare", "-b", "main", "."]);
        folder
    }

    /// A file as a clone has it: of the packs that are catalogued alone, which must be complete.
    fn cloned(&self, file: &str) -> String {
        let all = repo::Catalogue { since: 0, generation: 0, attempt: None };
        let packs = self.world.borrow().call(&all).unwrap().packs;
        let keys: Vec<String> = packs.iter().map(|pack| pack.pack.key.to_string()).collect();
        let folder = self.repository_of(Self::folder(), &keys);
        git(&folder, &["fsck", "--strict", "--connectivity-only", "main"]);
        let text = git(&folder, &["show", file]);
        std::fs::remove_dir_all(&folder).unwrap();
        text
    }

    fn repository_of(&self, folder: std::path::PathBuf, keys: &[String]) -> std::path::PathBuf {
        let world = self.world.borrow();
        for (n, key) in keys.iter().filter(|key| key.ends_with(".pack")).enumerate() {
            let bytes = block_on(world.blobs.get(key)).unwrap().unwrap();
            let file = folder.join(format!("objects/pack/pack-{n:040x}.pack"));
            std::fs::write(&file, bytes).unwrap();
            git(&folder, &["index-pack", file.to_str().unwrap()]);
        }
        if let Some(main) = world.main() {
            git(&folder, &["update-ref", "refs/heads/main", &main.to_string()]);
        }
        if let Some(notes) = world.pull().view.notes_head {
            git(&folder, &["update-ref", "refs/notes/intent", &notes.to_string()]);
        }
        folder
    }

    /// The authors fetch main.
    fn fetch(&self) {
        let folder = self.repository();
        for line in git(&folder, &["rev-list", "--objects", "main"]).lines() {
            let id = line.split(' ').next().unwrap();
            let kind = git(&folder, &["cat-file", "-t", id]);
            let args = ["cat-file", kind.trim(), id];
            let output = Command::new("git").current_dir(&folder).args(args).output().unwrap();
            let kind = yard_git::Kind::from_name(kind.trim().as_bytes()).unwrap();
            assert_eq!(self.world.borrow_mut().store.add(kind, output.stdout).to_string(), id);
        }
        std::fs::remove_dir_all(&folder).unwrap();
    }

    fn titles(&self) -> Vec<String> {
        let folder = self.repository();
        let log = git(&folder, &["log", "--reverse", "--format=%s", "main"]);
        git(&folder, &["fsck", "--strict"]);
        std::fs::remove_dir_all(&folder).unwrap();
        log.lines().skip(1).map(str::to_owned).collect()
    }

    fn status(&self) -> wire::StatusReply {
        self.status_of("click")
    }

    fn status_of(&self, repo: &str) -> wire::StatusReply {
        let (repo, lane) = (RepoName::new(repo).unwrap(), LaneName::new("main").unwrap());
        self.call(&wire::Status { repo, lane, changes: vec![] }).unwrap()
    }
}

fn git(folder: &Path, args: &[&str]) -> String {
    let output = Command::new("git")
        .current_dir(folder)
        .args(args)
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("HOME", folder)
        .output()
        .unwrap();
    assert!(output.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn what_is_submitted_lands_with_one_commit_and_one_note_each_as_real_git_reads_it() {
    let mut yard = Yard::new(&[("a/one", "1\n"), ("b/two", "2\n")]);
    yard.submit("change-1", &[("a/one", Some("one\n"))]);
    yard.submit("change-2", &[("b/two", Some("two\n")), ("b/new", Some("new\n"))]);
    yard.submit("change-3", &[("a/one", None), ("c", Some("moved\n"))]);
    yard.hint().unwrap();
    yard.settle(&|_| green()).unwrap();
    assert_eq!(yard.titles(), ["do change-1", "do change-2"]);
    let status = yard.status();
    assert_eq!(status.entries.len(), 1, "{status:?}");
    assert_eq!(status.entries[0].stage, Stage::NeedsAuthor, "it deletes what change-1 changed");
    assert!(status.entries[0].reason.contains("a/one"), "{}", status.entries[0].reason);

    let folder = yard.repository();
    let notes = git(&folder, &["log", "--notes=intent", "--format=%s|%an|%cn|%N", "main"]);
    assert!(notes.contains("do change-2|A|Switchyard|Change-Id: change-2\nVersion: 1\n"), "{notes}");
    assert!(notes.contains("Run: ") && notes.contains("green 3 tests"), "{notes}");
    assert!(git(&folder, &["notes", "--ref=intent", "show", "main"]).contains("change-2"));
    assert_eq!(git(&folder, &["notes", "--ref=intent", "list"]).lines().count(), 2);
    assert_eq!(git(&folder, &["show", "main:b/new"]), "new\n");
    assert!(git(&folder, &["log", "-1", "--format=%B", "main"]).contains("Change-Id: change-2"));
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn a_shared_index_that_everyone_touches_comes_out_complete() {
    let config = format!("{}\n[[rules]]\npaths = \"INDEX\"\nrule = \"sorted-lines\"\n", world::CONFIG);
    let mut yard = Yard::new(&[("INDEX", "m\n"), (".switchyard.toml", &config)]);
    for n in 0..6 {
        let text = format!("{}m\n", ["c\n", "a\n", "e\n", "b\n", "d\n", "a\n"][n]);
        let file = format!("f{n}");
        yard.submit(&format!("change-{n}"), &[("INDEX", Some(text.as_str())), (file.as_str(), Some("x\n"))]);
    }
    yard.hint().unwrap();
    yard.settle(&|_| green()).unwrap();
    assert_eq!(yard.titles().len(), 6, "{:?}", yard.status());
    let folder = yard.repository();
    assert_eq!(git(&folder, &["show", "main:INDEX"]), "a\nb\nc\nd\ne\nm\n");
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn a_long_index_that_a_whole_train_adds_to_makes_a_small_pack_that_real_git_reads() {
    let config = format!("{}\n[[rules]]\npaths = \"INDEX\"\nrule = \"sorted-lines\"\n", world::CONFIG);
    let index = |n: Option<u32>| {
        let own = n.map(|n| format!("line {n:04} of a change\n")).into_iter();
        let mut lines: Vec<String> = (1000..2000).map(|n| format!("line {n:04} of the base\n")).collect();
        lines.extend(own);
        lines.sort();
        lines.concat()
    };
    let mut yard = Yard::new(&[("INDEX", &index(None)), (".switchyard.toml", &config)]);
    for n in 0..10 {
        yard.submit(&format!("change-{n}"), &[("INDEX", Some(index(Some(1001 + n * 77)).as_str()))]);
    }
    yard.hint().unwrap();
    yard.settle(&|_| green()).unwrap();
    assert_eq!(yard.titles().len(), 10, "{:?}", yard.status());
    let folder = yard.repository();
    let lines = git(&folder, &["show", "main:INDEX"]);
    assert_eq!(lines.lines().filter(|line| line.ends_with("of a change")).count(), 10);
    let format = "--batch-check=%(objectsize:disk) %(objectsize)";
    let sizes = git(&folder, &["cat-file", "--batch-all-objects", format]);
    let blobs = sizes.lines().filter_map(|line| line.split_once(' '));
    let blobs = blobs.map(|(disk, size)| (disk.parse::<u64>().unwrap(), size.trim().parse::<u64>().unwrap()));
    let small = blobs.filter(|(disk, size)| *size > 20_000 && *disk < 200).count();
    // All that the train merged on top of what it had merged before.
    assert!(small >= 8, "{small} small blobs: {sizes}");
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn a_change_of_many_paths_lands_with_its_lists_in_the_bucket() {
    let files: Vec<String> =
        (0..2500).map(|n| format!("some/directory/number/{:02}/file-{n}", n % 50)).collect();
    let mut yard = Yard::new(&[("a", "1\n")]);
    let edits: Vec<(&str, Option<&str>)> = files.iter().map(|file| (file.as_str(), Some("x\n"))).collect();
    yard.submit("change-many", &edits);
    yard.submit("change-twin", &edits);
    yard.submit("change-few", &[("a", Some("2\n"))]);
    yard.hint().unwrap();
    yard.settle(&|_| green()).unwrap();
    assert_eq!(yard.titles(), ["do change-many", "do change-few"], "{:?}", yard.status());
    let change = Some(ChangeId::new("change-many").unwrap());
    let asked = repo::Facts { after: yard_common::FactNo(0), limit: 100, change };
    let mut kept = 0;
    for (_, _, fact) in yard.world.borrow().call(&asked).unwrap() {
        match fact {
            yard_common::Fact::Submitted { row, .. } => {
                assert_eq!((row.edits.len(), row.list.unwrap().count), (0, 2500));
                kept += 1;
            }
            yard_common::Fact::Landed { request, .. } => {
                let counts = request.changes.iter().map(|one| (one.edits.len(), one.list.is_some()));
                assert_eq!(counts.collect::<Vec<_>>(), [(0, true), (1, false)]);
                kept += 1;
            }
            _ => {}
        }
    }
    assert_eq!(kept, 2);
    assert!(
        yard.status().entries.is_empty(),
        "the twin is on main already, by its list: {:?}",
        yard.status()
    );
}

#[test]
fn a_change_that_merges_to_nothing_makes_no_commit() {
    let config = format!("{}\n[[rules]]\npaths = \"INDEX\"\nrule = \"sorted-lines\"\n", world::CONFIG);
    let mut yard = Yard::new(&[("INDEX", "m\n"), (".switchyard.toml", &config)]);
    yard.submit("change-both", &[("INDEX", Some("a\nb\nm\n"))]);
    yard.submit("change-part", &[("INDEX", Some("a\nm\n"))]);
    yard.submit("change-same", &[("INDEX", Some("a\nb\nm\n"))]);
    yard.hint().unwrap();
    yard.settle(&|_| green()).unwrap();
    assert_eq!(yard.titles(), ["do change-both"], "{:?}", yard.status());
    let status = yard.status();
    assert_eq!(status.entries.len(), 1, "change-same is closed: {status:?}");
    assert_eq!(status.entries[0].stage, Stage::NeedsAuthor);
    assert!(status.entries[0].reason.contains("changes nothing"), "{}", status.entries[0].reason);
}

#[test]
fn what_a_train_member_has_waits_until_that_member_stands_on_main() {
    let mut yard = Yard::new(&[("a", "1\n")]);
    yard.submit("very-bad-one", &[("a", Some("2\n")), ("very-bad-one", Some("x\n"))]);
    yard.submit("change-twin", &[("a", Some("2\n"))]);
    yard.hint().unwrap();
    yard.settle(&|files| if files.contains("very-bad-one") { red("t1") } else { green() }).unwrap();
    assert_eq!(yard.titles(), ["do change-twin"], "its member fell: {:?}", yard.status());
}

#[test]
fn contents_of_an_api_submission_get_into_the_candidate() {
    let mut yard = Yard::new(&[("a", "1\n")]);
    {
        let mut world = yard.world.borrow_mut();
        let main = world.main().unwrap();
        let head = world.commit(&[main], &[("a", Some("by api\n"))], "x");
        let mut proposal = world.proposal("change-1", "agent", head);
        proposal.via = Via::Api;
        proposal.packs.clear();
        world.blobs.keys().iter().filter(|key| key.contains("/f")).for_each(|key| {
            block_on(world.blobs.delete(std::slice::from_ref(key))).unwrap();
        });
        let blob = proposal.edits[0].theirs.unwrap().id;
        let data = world.store.get(&blob).unwrap().data.clone();
        proposal.contents = vec![(blob, yard_common::bytes::Base64(data))];
        let reply = world.call(&repo::Submit { items: vec![proposal], token: None }).unwrap();
        assert!(reply.results[0].is_ok(), "{reply:?}");
    }
    yard.hint().unwrap();
    yard.settle(&|_| green()).unwrap();
    let folder = yard.repository();
    assert_eq!(git(&folder, &["show", "main:a"]), "by api\n");
    git(&folder, &["fsck", "--strict"]);
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn what_is_merged_again_after_a_red_train_is_in_the_pack_that_lands() {
    let lines = |edit: &str, to: &str| "1\n2\n3\n4\n5\n6\n7\n8\n9\n".replace(edit, to);
    let (base, top, end) = (lines("", ""), lines("2\n", "two\n"), lines("8\n", "eight\n"));
    let mut yard = Yard::new(&[("a", &base)]);
    yard.submit("very-bad-one", &[("very-bad-one", Some("x\n"))]);
    yard.submit("change-top", &[("a", Some(&top))]);
    yard.submit("change-end", &[("a", Some(&end))]);
    yard.hint().unwrap();
    yard.settle(&|files| if files.contains("very-bad-one") { red("t1") } else { green() }).unwrap();
    assert_eq!(yard.cloned("main:a"), lines("2\n", "two\n").replace("8\n", "eight\n"));
}

#[test]
fn api_changes_merge_with_new_modes_and_names_as_pushed_ones_do() {
    let base = "1\n2\n3\n4\n5\n6\n7\n8\n9\n";
    let mut yard = Yard::new(&[("run", "1\n"), ("old", base), ("gone", "1\n")]);
    let executable = yard.world.borrow_mut().blob("1\n");
    let executable = Some(Entry { mode: Mode::Executable, id: executable });
    yard.submit_by_api("change-mode", &[("run", executable)]);
    let entry = |text: &str| Some(Entry { mode: Mode::File, id: yard.world.borrow_mut().blob(text) });
    let (content, edited, late) = (entry("2\n"), entry(&base.replace("5\n", "five\n")), entry("3\n"));
    yard.submit_by_api("change-content", &[("run", content)]);
    yard.submit("change-rename", &[("old", None), ("new", Some(base)), ("gone", None)]);
    yard.submit_by_api("change-edit", &[("old", edited)]);
    yard.submit_by_api("change-late", &[("gone", late)]);
    yard.hint().unwrap();
    yard.settle(&|_| green()).unwrap();
    assert_eq!(yard.cloned("main:run"), "2\n");
    assert_eq!(yard.cloned("main:new"), base.replace("5\n", "five\n"));
    let status = yard.status();
    assert_eq!(status.entries.len(), 1, "{status:?}");
    assert_eq!(status.entries[0].stage, Stage::NeedsAuthor, "{status:?}");
    assert!(status.entries[0].reason.contains("collides with main at gone"), "{status:?}");
}

#[test]
fn an_api_change_keeps_its_contents_when_another_with_the_same_ones_is_withdrawn() {
    let mut yard = Yard::new(&[("a", "1\n")]);
    let same = yard.world.borrow_mut().blob("same\n");
    let same = Some(Entry { mode: Mode::File, id: same });
    yard.submit_by_api("change-first", &[("b", same)]);
    yard.submit_by_api("change-second", &[("c", same)]);
    let act = repo::Act::Cancel { change: ChangeId::new("change-first").unwrap(), reason: String::new() };
    let key = yard_common::IdempotencyKey::new("cancel").unwrap();
    let cancel = repo::Do { key, act, fork: None, admin: true, by: "t".into() };
    yard.world.borrow().call(&cancel).unwrap();
    yard.hint().unwrap();
    yard.settle(&|_| green()).unwrap();
    assert_eq!(yard.cloned("main:c"), "same\n");
}

#[test]
fn the_guilty_change_is_sent_back_and_the_others_land() {
    let mut yard = Yard::new(&[("a", "1\n")]);
    for name in ["good-one", "very-bad-one", "good-two"] {
        yard.submit(name, &[(name, Some("x\n"))]);
    }
    yard.hint().unwrap();
    yard.settle(&|files| if files.contains("very-bad-one") { red("t1") } else { green() }).unwrap();
    assert_eq!(yard.titles(), ["do good-one", "do good-two"]);
    let status = yard.status();
    assert_eq!(status.entries[0].verdict, Some(Verdict::BrokenAlone), "{status:?}");
    assert!(status.entries[0].reason.contains("t1"));
    let events =
        block_on(yard.world.borrow().wired.call("board:click", &Events { after: 0, last: None })).unwrap();
    let change = Some(ChangeId::new("very-bad-one").unwrap());
    let keys = yard.world.borrow().blobs.keys();
    let has_log = |run: &yard_common::RunId| keys.contains(&format!("click/logs/{run}.log"));
    assert!(status.entries[0].runs.iter().all(has_log), "the runs that prove it have their logs: {keys:?}");
    let told = |event: &Event| event.kind == "needs-author" && event.change == change;
    assert!(events.events.iter().any(|(_, event)| told(event)), "{events:?}");
}

#[test]
fn a_second_train_stands_on_the_first_ones_trees_and_notes() {
    let mut yard = Yard::new(&[("a", "1\n")]);
    for round in 0..4 {
        for n in 0..3 {
            yard.submit(&format!("change-{round}-{n}"), &[(&format!("d{n}/f{round}"), Some("x\n"))]);
        }
        yard.hint().unwrap();
        yard.settle(&|_| green()).unwrap();
        yard.fetch();
        if round == 2 {
            yard.restart();
        }
    }
    assert_eq!(yard.titles().len(), 12);
    let folder = yard.repository();
    assert_eq!(git(&folder, &["notes", "--ref=intent", "list"]).lines().count(), 12);
    std::fs::remove_dir_all(&folder).unwrap();
}

fn story(yard: &mut Yard) -> Result<(), Refusal> {
    yard.hint()?;
    yard.settle(&|files| if files.contains("very-bad-one") { red("t") } else { green() })
}

fn assert_ended_once(mut yard: Yard, what: &str) {
    for _ in 0..6 {
        yard.restart();
        yard.now = yard.now.plus(70_000);
        if story(&mut yard).is_ok() {
            break;
        }
    }
    assert_eq!(yard.titles(), ["do good-one", "do good-two"], "{what}");
    let status = yard.status();
    assert_eq!(status.entries.len(), 1, "{what}: {status:?}");
    assert_eq!(status.entries[0].verdict, Some(Verdict::BrokenAlone), "{what}");
    yard.drive().unwrap();
    index::assert_has_the_rows_of(&yard, what);
}

fn three() -> Yard {
    let yard = Yard::new(&[("a", "1\n")]);
    for name in ["good-one", "very-bad-one", "good-two"] {
        yard.submit(name, &[(name, Some("x\n"))]);
    }
    yard
}

#[test]
fn a_fault_of_any_statement_costs_time_only() {
    let mut clean = three();
    story(&mut clean).unwrap();
    let statements = clean.sql.statements();
    for nth in (1..statements).step_by(usize::try_from(statements / 8).unwrap().max(1)) {
        let mut yard = three();
        yard.sql.fail_after(nth);
        let _ = story(&mut yard);
        assert_ended_once(yard, &format!("statement {nth}"));
    }
}

#[test]
fn a_lost_call_or_write_before_or_after_it_was_done_costs_time_only() {
    for calls in 0..9 {
        for how in [Fails::Before, Fails::After] {
            let mut yard = three();
            yard.hint().unwrap();
            for at in 0..60 {
                if at == calls {
                    let world = yard.world.borrow();
                    world.wired.faults.fail_next(how);
                    world.blobs.faults.fail_next(how);
                    world.index.faults.fail_next(how);
                }
                yard.drive().unwrap();
                let Some(work) = yard.lease().unwrap() else { break };
                let bad = yard.listing(work.commit).contains("very-bad-one");
                yard.report(&work, if bad { red("t") } else { green() }).unwrap();
            }
            assert_ended_once(yard, &format!("round {calls} {how:?}"));
        }
    }
}

#[test]
fn another_lease_than_the_live_one_is_answered_stale() {
    let mut yard = three();
    yard.hint().unwrap();
    yard.drive().unwrap();
    let work = yard.lease().unwrap().unwrap();
    let ask = |lease| wire::Renew { run: work.run.clone(), lease, log: None, token: Some(bearer("runner")) };
    let renewed = yard.call(&ask(work.lease)).unwrap();
    assert!(renewed >= work.until);
    let late = yard.call(&ask(LeaseNo(99)));
    assert!(matches!(late, Err(Refusal::Stale { .. })), "{late:?}");
}

#[test]
fn a_change_of_the_configuration_is_tested_under_the_old_and_the_new_one() {
    let mut yard = Yard::new(&[("a", "1\n")]);
    let config = world::CONFIG.replace("make test", "make check");
    yard.submit("change-config", &[(".switchyard.toml", Some(config.as_str()))]);
    yard.submit("change-after", &[("b", Some("x\n"))]);
    yard.hint().unwrap();
    let mut commands = Vec::new();
    loop {
        yard.drive().unwrap();
        let Some(work) = yard.lease().unwrap() else { break };
        commands.push(work.command.clone());
        yard.report(&work, green()).unwrap();
    }
    assert!(commands.contains(&"make check".to_owned()) && commands.contains(&"make test".to_owned()));
    let status = yard.status();
    assert_eq!(yard.titles(), ["do change-after"], "others go on: {status:?}");
    assert!(status.entries[0].reason.contains("an admin approves"), "{status:?}");

    let repo = repo::Do {
        key: world::key("approve-1"),
        act: repo::Act::Approve {
            change: ChangeId::new("change-config").unwrap(),
            version: yard_common::Version(1),
        },
        fork: None,
        admin: true,
        by: "admin".into(),
    };
    yard.world.borrow().call(&repo).unwrap();
    yard.hint().unwrap();
    yard.settle(&|_| green()).unwrap();
    assert_eq!(yard.titles(), ["do change-after", "do change-config"], "{:?}", yard.status());
}

#[test]
fn an_invalid_configuration_in_a_change_is_sent_back_with_what_is_wrong() {
    let mut yard = Yard::new(&[("a", "1\n")]);
    yard.submit("change-config", &[(".switchyard.toml", Some("[checks]\ncommand = 5\n"))]);
    yard.hint().unwrap();
    yard.settle(&|_| green()).unwrap();
    let status = yard.status();
    assert_eq!(status.entries[0].stage, Stage::NeedsAuthor, "{status:?}");
    assert!(status.entries[0].reason.contains("line 2"), "{}", status.entries[0].reason);
    assert!(yard.titles().is_empty());
}

#[test]
fn a_lane_of_no_repository_waits_long_and_makes_no_facts() {
    let mut yard = Yard::new(&[]);
    yard.sql = Rc::new(NativeSql::new().unwrap());
    yard.lane = Yard::host(&yard.sql, &yard.world);
    let repo = RepoName::new("nowhere").unwrap();
    yard.call(&wire::Hint { repo, lane: LaneName::new("main").unwrap() }).unwrap();
    yard.drive().unwrap();
    assert!(yard.status_of("nowhere").entries.is_empty());
}

impl Yard {
    /// The replays in the queue.
    fn replays(&self) -> Vec<wire::ReplayPointer> {
        let queued = self.world.borrow().wired.take_queued();
        queued.iter().map(|(_, message)| serde_json::from_str(message).unwrap()).collect()
    }

    fn job(&self, pointer: &wire::ReplayPointer) -> Option<wire::ReplayJob> {
        let wire::ReplayPointer { repo, lane, change, version, replay } = pointer.clone();
        self.call(&wire::AskReplay { repo, lane, change, version, replay, for_ms: 60_000 }).unwrap()
    }

    /// The consumer offers a next version with these files on main, then says so.
    fn replayed(
        &self,
        pointer: &wire::ReplayPointer,
        edits: &[(&str, Option<&str>)],
    ) -> Result<repo::Accepted, Refusal> {
        self.fetch();
        let offered = {
            let mut world = self.world.borrow_mut();
            let main = world.main().unwrap();
            let head = world.commit(&[main], edits, "replayed");
            let mut proposal = world.proposal(pointer.change.as_str(), "nobody", head);
            (proposal.via, proposal.replay_of) = (Via::Replay, Some(pointer.version));
            let contents = proposal.edits.iter().filter_map(|edit| edit.theirs).map(|entry| entry.id);
            proposal.contents =
                contents.map(|id| (id, Base64(world.store.get(&id).unwrap().data.clone()))).collect();
            world.call(&repo::Submit { items: vec![proposal], token: None }).unwrap().results.remove(0)
        };
        let end = match &offered {
            Ok(accepted) => ReplayEnd::Proposed { version: accepted.version },
            Err(refusal) => ReplayEnd::Failed { why: refusal.to_string() },
        };
        let wire::ReplayPointer { repo, lane, change, version, replay } = pointer.clone();
        let cost = Cost { calls: 1, micro_usd: 7, ..Cost::default() };
        self.call(&wire::EndReplay { repo, lane, change, version, replay, end, cost }).unwrap();
        offered
    }
}

/// `change-late` collides with `change-first`, which has landed.
fn collided() -> (Yard, wire::ReplayPointer) {
    let mut yard = Yard::replaying(&[("a", "1\n2\n3\n")]);
    yard.submit("change-first", &[("a", Some("1\ntwo\n3\n"))]);
    yard.submit("change-late", &[("a", Some("1\nzwei\n3\n")), ("b", Some("new\n"))]);
    yard.hint().unwrap();
    yard.settle(&|_| green()).unwrap();
    let replays = yard.replays();
    let early = yard.job(&replays[0]);
    assert!(early.is_none(), "the one that was prepared while the rival was tested is over");
    let last = replays.last().unwrap().clone();
    (yard, last)
}

#[test]
fn what_a_model_makes_of_a_collided_change_lands_as_its_next_version_with_its_note() {
    let (mut yard, pointer) = collided();
    let job = yard.job(&pointer).unwrap();
    assert_eq!(
        (job.early, job.rivals.as_slice()),
        (false, [ChangeId::new("change-first").unwrap()].as_slice())
    );
    assert_eq!(Some(job.commit), yard.world.borrow().main(), "on newest main");
    yard.restart();
    yard.hint().unwrap();
    yard.drive().unwrap();
    yard.replayed(&pointer, &[("a", Some("1\ntwo zwei\n3\n")), ("b", Some("new\n"))]).unwrap();
    yard.settle(&|_| green()).unwrap();
    assert_eq!(yard.titles(), ["do change-first", "do change-late"]);
    assert_eq!(yard.cloned("main:a"), "1\ntwo zwei\n3\n");
    assert!(yard.job(&pointer).is_none());
}

#[test]
fn a_replay_that_touches_another_path_or_comes_late_changes_nothing() {
    let (mut yard, pointer) = collided();
    let outside = yard.replayed(&pointer, &[("a", Some("x\n")), ("evil", Some("x\n"))]);
    assert!(matches!(outside, Err(Refusal::OutsideReview { .. })), "{outside:?}");
    yard.settle(&|_| green()).unwrap();
    let status = yard.status();
    assert_eq!(status.entries[0].stage, Stage::NeedsAuthor, "{status:?}");
    assert!(status.entries[0].reason.contains("which was not reviewed"), "{status:?}");

    let (mut yard, pointer) = collided();
    yard.fetch();
    yard.submit("change-late", &[("b", Some("by its author\n"))]);
    let late = yard.replayed(&pointer, &[("a", Some("x\n"))]);
    assert!(matches!(late, Err(Refusal::LateReplay { .. })), "{late:?}");
    yard.settle(&|_| green()).unwrap();
    assert_eq!(yard.cloned("main:b"), "by its author\n");
    assert_eq!(yard.cloned("main:a"), "1\ntwo\n3\n");
}

#[test]
fn a_lost_call_of_a_replay_costs_time_only() {
    for how in [Fails::Before, Fails::After] {
        let mut yard = Yard::replaying(&[("a", "1\n")]);
        yard.submit("change-first", &[("a", Some("2\n"))]);
        yard.hint().unwrap();
        yard.settle(&|_| green()).unwrap();
        yard.submit_on_start("change-late", "a", "3\n");
        yard.hint().unwrap();
        let mut told = Vec::new();
        for _ in 0..30 {
            yard.world.borrow().wired.faults.fail_next(how);
            yard.drive().unwrap();
            told.extend(yard.replays());
            yard.now = yard.now.plus(5_000);
        }
        yard.world.borrow().wired.faults.fail_never();
        yard.now = yard.now.plus(70_000);
        yard.hint().unwrap();
        yard.drive().unwrap();
        told.extend(yard.replays());
        told.dedup();
        assert_eq!(told.len(), 1, "{how:?}: one replay, however often it was told: {told:?}");
        yard.replayed(&told[0], &[("a", Some("23\n"))]).unwrap();
        yard.settle(&|_| green()).unwrap();
        assert_eq!(yard.cloned("main:a"), "23\n");
    }
}
