//! A repository double, runners, and the host's loop, all in memory.
//!
//! A tree is the list of the changes that are in it; its id is the hash of that list.

use std::collections::{BTreeMap, BTreeSet};

use yard_common::bytes::Base64;
use yard_common::config::ReplayPolicy;
use yard_common::fact::{Terminal, Turns};
use yard_common::intent::{Intent, Signature};
use yard_common::landing::*;
use yard_common::replay::{Cause, Cost, Origin, ReplayEnd};
use yard_common::stage::Stage;
use yard_common::submission::*;
use yard_common::*;
use yard_git::{Kind, hash};

use crate::fact::{Aside, AttemptKind, Candidate, Check, Member};
use crate::input::{Answer, Input, Work};
use crate::next::Step;
use crate::replay::{Job, Pointer};
use crate::stage::EntryStage;
use crate::state::{Lane, View, World};

pub fn change(name: &str) -> ChangeId {
    ChangeId::new(format!("change-{name}")).unwrap()
}

pub fn names(list: &[ChangeId]) -> Vec<String> {
    list.iter().map(|id| id.as_str().trim_start_matches("change-").to_owned()).collect()
}

pub fn check() -> Check {
    Check {
        config: Some(hash(Kind::Blob, b"config")),
        command: "make test".into(),
        junit: None,
        timeout_seconds: 60,
    }
}

fn origin(version: Version) -> Origin {
    Origin {
        lane: LaneName::new("main").unwrap(),
        no: ReplayNo(1),
        of: Version(version.0 - 1),
        reviewed: Version(1),
        cause: Cause::Collision { paths: vec![] },
        rivals: vec![],
        renames: vec![],
        cost: Cost::default(),
        prompt: String::new(),
        compared: String::new(),
        range_diff: String::new(),
        differing_lines: 0,
    }
}

/// What a run of a tree with these changes says; the number counts the runs of all trees.
pub type Suite = Box<dyn FnMut(&[ChangeId], u64) -> RunResult>;

pub fn green() -> RunResult {
    RunResult { complete: true, green: true, ran: 3, failed: vec![], skipped: 0 }
}

pub fn red(test: &str) -> RunResult {
    RunResult { complete: true, green: false, ran: 3, failed: vec![test.into()], skipped: 0 }
}

pub struct Yard {
    pub lane: Lane,
    pub world: World,
    pub now: Millis,
    pub log: Vec<Fact>,
    pub stored: Vec<crate::LaneFact>,
    /// Main's commits: each with the changes that are in it.
    pub main: Vec<(ObjectId, Vec<ChangeId>)>,
    pub trees: BTreeMap<ObjectId, Vec<ChangeId>>,
    pub rows: BTreeMap<ChangeId, Submission>,
    pub closed: BTreeMap<ChangeId, Terminal>,
    pub collides: BTreeSet<(ChangeId, ChangeId)>,
    pub same: BTreeMap<ChangeId, ChangeId>,
    pub view_claims: Vec<crate::state::Claim>,
    pub check: Result<Check, String>,
    pub tip_tested: bool,
    pub rewritten: BTreeSet<ChangeId>,
    pub suite: Suite,
    pub runs: u64,
    pub answers: BTreeMap<AttemptId, Result<(ObjectId, FactNo), Refusal>>,
    pub refuse_next: Vec<Refusal>,
    pub tested: Vec<Vec<String>>,
    pub trains: Vec<Vec<String>>,
    /// What main's configuration says about models; none in the stories that are not about them.
    pub replay: ReplayPolicy,
    /// Replays that the host put into the queue.
    pub asked: Vec<Pointer>,
    /// Submissions bring a test file too.
    pub with_test: bool,
    /// How the next submission comes in.
    pub via: Via,
}

impl Yard {
    pub fn new(suite: impl FnMut(&[ChangeId], u64) -> RunResult + 'static) -> Self {
        let mut yard = Self {
            lane: Lane::new(LaneName::new("main").unwrap()),
            world: World { stale: true, ..World::default() },
            now: Millis(1_000_000),
            log: Vec::new(),
            stored: Vec::new(),
            main: Vec::new(),
            trees: BTreeMap::new(),
            rows: BTreeMap::new(),
            closed: BTreeMap::new(),
            collides: BTreeSet::new(),
            same: BTreeMap::new(),
            view_claims: Vec::new(),
            check: Ok(check()),
            tip_tested: true,
            rewritten: BTreeSet::new(),
            suite: Box::new(suite),
            runs: 0,
            answers: BTreeMap::new(),
            refuse_next: Vec::new(),
            tested: Vec::new(),
            trains: Vec::new(),
            replay: ReplayPolicy { by_model: false, ..ReplayPolicy::default() },
            asked: Vec::new(),
            with_test: false,
            via: Via::Git,
        };
        yard.push(vec![]);
        yard
    }

    pub fn tree(&mut self, content: &[ChangeId]) -> ObjectId {
        let text = names(content).join("+");
        let id = hash(Kind::Tree, text.as_bytes());
        self.trees.insert(id, content.to_vec());
        id
    }

    fn commit(&self, content: &[ChangeId], salt: &str) -> ObjectId {
        hash(Kind::Commit, format!("{salt}:{}", names(content).join("+")).as_bytes())
    }

    pub fn head(&self) -> (ObjectId, Vec<ChangeId>) {
        self.main.last().cloned().unwrap()
    }

    /// A direct push.
    pub fn push(&mut self, content: Vec<ChangeId>) {
        let id = self.commit(&content, &format!("push{}", self.main.len()));
        let old = self.main.last().map(|(id, _)| *id);
        self.tree(&content);
        self.main.push((id, content));
        self.log.push(Fact::DirectPush {
            old,
            new: id,
            epoch: Epoch(0),
            reason: String::new(),
            rewritten: vec![],
            restored: vec![],
            standing: vec![],
            policy: None,
            at: self.now,
        });
        self.world.stale = true;
    }

    pub fn submit(&mut self, name: &str) -> ChangeId {
        self.submit_on(name, &[])
    }

    pub fn submit_on(&mut self, name: &str, parents: &[ChangeId]) -> ChangeId {
        let id = change(name);
        let (base, mut content) = self.head();
        content.extend(parents.iter().cloned());
        let tree = self.tree(&content);
        let version = self.rows.get(&id).map_or(Version(1), |row| row.version.next());
        let via = self.via;
        let paths = [format!("{name}.txt"), format!("tests/{name}.txt")];
        let paths = paths.into_iter().take(if self.with_test { 2 } else { 1 });
        let row = Submission {
            seq: Seq(self.log.len() as u64),
            change: id.clone(),
            version,
            fork: Some(ForkName::new("agent").unwrap()),
            author: Signature { name: "a".into(), email: "a@b".into(), seconds: 1, offset_minutes: 0 },
            head: hash(Kind::Commit, format!("{name} {version}").as_bytes()),
            head_tree: hash(Kind::Tree, format!("{name} {version}").as_bytes()),
            commits: vec![],
            base: Base { commits: vec![base], tree },
            list: None,
            edits: paths
                .map(|path| RowEdit {
                    path: RepoPath::new(path).unwrap(),
                    base: None,
                    theirs: Some(Entry { mode: Mode::File, id: hash(Kind::Blob, name.as_bytes()) }),
                })
                .collect(),
            fences: BTreeMap::new(),
            reverts: vec![],
            lane: self.lane.name.clone(),
            owner_epoch: OwnerEpoch(0),
            waits_for: parents.to_vec(),
            key: IdempotencyKey::new("k").unwrap(),
            at: self.now,
            via,
            intent: Intent::default(),
            warnings: vec![],
            content: String::new(),
            replay: (via == Via::Replay).then(|| Box::new(origin(version))),
        };
        self.rows.insert(id.clone(), row.clone());
        self.log.push(Fact::Submitted { row: Box::new(row), nodes: vec![] });
        self.world.stale = true;
        id
    }

    pub fn job(&self, pointer: &Pointer) -> Option<Job> {
        let view = self.world.view.as_ref();
        self.lane.replay_job(&pointer.change, pointer.version, pointer.no, view)
    }

    /// The model has redone a change: it merges with all that is on main now.
    pub fn proposes(&mut self, pointer: &Pointer) {
        let name = pointer.change.as_str().trim_start_matches("change-").to_owned();
        if self.rows[&pointer.change].version == pointer.version && self.is_open(&pointer.change) {
            let (_, content) = self.head();
            self.collides.retain(|(other, id)| *id != pointer.change || !content.contains(other));
            self.via = Via::Replay;
            self.submit(&name);
            self.via = Via::Git;
        }
        let version = pointer.version.next();
        self.replay_ends(pointer, ReplayEnd::Proposed { version }, 1_000);
    }

    pub fn is_open(&self, id: &ChangeId) -> bool {
        !self.closed.contains_key(id) && !self.head().1.contains(id)
    }

    pub fn replay_ends(&mut self, pointer: &Pointer, end: ReplayEnd, micro_usd: u64) {
        let cost = Cost { micro_usd, calls: 1, ..Cost::default() };
        let (change, version) = (pointer.change.clone(), pointer.version);
        self.feed(Input::ReplayEnded { change, version, replay: pointer.no, end, cost }).unwrap();
    }

    pub fn fact(&mut self, fact: Fact) {
        self.log.push(fact);
        self.world.stale = true;
    }

    pub fn withdraw(&mut self, id: &ChangeId) {
        self.closed.insert(id.clone(), Terminal::Withdrawn);
        let version = self.rows[id].version;
        let (change, by, at) = (id.clone(), "a".into(), self.now);
        self.fact(Fact::Closed {
            change,
            version,
            stage: Terminal::Withdrawn,
            by,
            reason: String::new(),
            at,
        });
    }

    pub fn feed(&mut self, input: Input) -> Result<Answer, Refusal> {
        let fed = self.lane.feed(input, &mut self.world, self.now);
        self.stored.extend(fed.facts);
        fed.answer
    }

    fn known(&self, id: &ChangeId) -> Option<crate::fact::KnownRow> {
        let row = self.rows.get(id).filter(|_| !self.closed.contains_key(id))?;
        Some(crate::fact::KnownRow {
            row: Box::new(row.clone()),
            rewritten: self.rewritten.contains(id),
            held: None,
        })
    }

    fn frozen(&self) -> Option<String> {
        self.log.iter().rev().find_map(|fact| match fact {
            Fact::FreezeSet { reason } => Some(reason.clone()),
            _ => None,
        })?
    }

    pub fn pull(&mut self) {
        let facts: Vec<_> =
            self.log.iter().enumerate().map(|(n, fact)| (FactNo(n as u64 + 1), fact.clone())).collect();
        let upto = FactNo(facts.len() as u64);
        let (id, content) = self.head();
        let tree = self.tree(&content);
        self.world.view = Some(View {
            head: Some((id, tree)),
            epoch: Epoch(0),
            owner_epoch: OwnerEpoch(0),
            notes: None,
            frozen: self.frozen(),
            claims: self.view_claims.clone(),
            tip_tested: self.tip_tested,
            check: self.check.clone(),
            train_max: 500,
            replay: self.replay.clone(),
            tests: vec!["tests/**".into()],
        });
        self.world.stale = false;
        self.feed(Input::Pulled { facts, upto }).unwrap();
    }

    /// The step the host would take now, without waiting; false when there is none.
    pub fn step(&mut self) -> bool {
        match self.lane.next(&self.world, self.now) {
            Step::Pull => self.pull(),
            Step::Ask(changes) => {
                let rows = changes.iter().map(|id| (id.clone(), self.known(id))).collect();
                self.feed(Input::Known(rows)).unwrap();
            }
            Step::Close { change, version, stage, .. } => {
                self.closed.insert(change.clone(), stage);
                let at = self.now;
                self.fact(Fact::Closed {
                    change,
                    version,
                    stage,
                    by: "lane".into(),
                    reason: String::new(),
                    at,
                });
            }
            Step::Assemble { attempt, kind, changes } => self.assemble(&attempt, kind, &changes),
            Step::Note { attempt, count, .. } => {
                let id = hash(Kind::Commit, attempt.to_string().as_bytes());
                let node = CommitNode { id, parents: vec![], tree: id };
                let (pack, index) = (pack(&attempt, "notes"), Base64::default());
                let input =
                    Input::Noted { attempt, count, notes_head: None, commit: node, seconds: 1, pack, index };
                self.feed(input).unwrap();
            }
            Step::Land { attempt } => {
                let answer = self.land(&attempt);
                self.feed(Input::LandAnswered { attempt, answer }).unwrap();
            }
            Step::Replay(pointers) => {
                let numbers = pointers.iter().map(|pointer| pointer.no).collect();
                self.asked.extend(pointers);
                self.feed(Input::ReplaysAsked(numbers)).unwrap();
            }
            Step::Rest { .. } => return false,
        }
        true
    }

    fn assemble(&mut self, attempt: &AttemptId, kind: AttemptKind, changes: &[ChangeId]) {
        self.feed(Input::Begin { attempt: attempt.clone(), kind: kind.clone() }).unwrap();
        let (mut head, mut content) = self.head();
        if let AttemptKind::Probe { change, on_main: false, .. } = &kind {
            content = self.trees[&self.rows[change].base.tree].clone();
            head = self.commit(&content, "probe");
        }
        let (mut members, mut aside) = (Vec::new(), Vec::new());
        let head_tree = self.tree(&content);
        let on_main = content.clone();
        for id in changes {
            let row = self.rows[id].clone();
            if content.iter().any(|other| self.collides.contains(&(other.clone(), id.clone()))) {
                let paths = vec![(row.edits[0].path.clone(), "both changed it".into())];
                let with_main =
                    on_main.iter().any(|other| self.collides.contains(&(other.clone(), id.clone())));
                let how = if with_main { Aside::Collided { paths } } else { Aside::Behind { paths } };
                aside.push((id.clone(), row.version, how));
                continue;
            }
            if self.same.get(id).is_some_and(|other| content.contains(other)) {
                aside.push((id.clone(), row.version, Aside::AlreadyOnMain));
                continue;
            }
            if !row.waits_for.iter().all(|parent| content.contains(parent)) {
                continue;
            }
            match kind {
                AttemptKind::Without { .. } => {
                    content.push(change(&format!("tests-of-{}", names(std::slice::from_ref(id))[0])))
                }
                _ => content.push(id.clone()),
            }
            let tree = self.tree(&content);
            members.push(Member {
                change: id.clone(),
                version: row.version,
                commit: self.commit(&content, &attempt.to_string()),
                tree,
                edits: row.edits.iter().map(edit).collect(),
                list: None,
            });
        }
        if kind == AttemptKind::Train {
            self.trains.push(
                members.iter().flat_map(|member| names(std::slice::from_ref(&member.change))).collect(),
            );
        }
        let candidate = (!members.is_empty()).then(|| {
            Box::new(Candidate {
                head,
                head_tree,
                epoch: Epoch(0),
                owner_epoch: OwnerEpoch(0),
                members,
                pack: pack(attempt, "pack"),
                checks: vec![self.check.clone().unwrap()],
            })
        });
        self.feed(Input::Assembled { attempt: attempt.clone(), candidate, aside }).unwrap();
    }

    /// The kernel, as far as a lane can tell.
    pub fn land(&mut self, attempt: &AttemptId) -> Result<(ObjectId, FactNo), Refusal> {
        if let Some(answer) = self.answers.get(attempt) {
            return answer.clone();
        }
        let (request, _) = self.lane.land_request(attempt).expect("a landing that was noted");
        let answer = self.decide(&request);
        self.answers.insert(attempt.clone(), answer.clone());
        if let Err(refusal) = &answer {
            self.log.push(Fact::LandingRefused {
                key: attempt.clone(),
                refusal: refusal.clone(),
                turn_until: None,
                turns: Turns::default(),
            });
        }
        answer
    }

    pub fn decide(&mut self, request: &LandRequest) -> Result<(ObjectId, FactNo), Refusal> {
        if !self.refuse_next.is_empty() {
            return Err(self.refuse_next.remove(0));
        }
        let (head, mut content) = self.head();
        if request.head != head {
            return Err(Refusal::Moved { head, paths: vec![] });
        }
        if let Some(reason) = self.frozen() {
            return Err(Refusal::Frozen { reason });
        }
        let ids = |wrong: &dyn Fn(&LandChange) -> bool| -> Vec<ChangeId> {
            request.changes.iter().filter(|item| wrong(item)).map(|item| item.change.clone()).collect()
        };
        let superseded = ids(&|item| self.rows[&item.change].version != item.version);
        if !superseded.is_empty() {
            return Err(Refusal::Superseded { changes: superseded });
        }
        let withdrawn = ids(&|item| self.closed.contains_key(&item.change));
        if !withdrawn.is_empty() {
            return Err(Refusal::Withdrawn { changes: withdrawn });
        }
        let landed = ids(&|item| content.contains(&item.change));
        if !landed.is_empty() {
            return Err(Refusal::AlreadyLanded { changes: landed });
        }
        for item in &request.changes {
            for parent in &self.rows[&item.change].waits_for {
                if !content.contains(parent) {
                    return Err(Refusal::ParentOpen {
                        change: item.change.clone(),
                        waits_for: parent.clone(),
                    });
                }
            }
            content.push(item.change.clone());
        }
        let tree = self.tree(&content);
        let proven = request.runs.iter().any(|run| run.tree == tree && run.result.proves_green());
        if !proven {
            return Err(Refusal::Unproven { why: "no green run of this tree".into() });
        }
        self.main.push((request.tip, content));
        self.log.push(Fact::Landed {
            request: Box::new(request.clone()),
            untested: None,
            trees: vec![],
            policy: None,
            turns: Turns::default(),
            at: self.now,
        });
        Ok((request.tip, FactNo(self.log.len() as u64)))
    }

    pub fn lease(&mut self, runner: &str) -> Option<Work> {
        let token = Some(TokenId::new(format!("token-{runner}")).unwrap());
        let runner = RunnerId::new(runner).unwrap();
        let input = Input::LeaseAsked { runner, environment: "e".into(), token };
        match self.feed(input) {
            Ok(Answer::Work(work)) => work.map(|work| *work),
            other => panic!("{other:?}"),
        }
    }

    pub fn signed(work: &Work, result: RunResult) -> Box<SignedRun> {
        Box::new(SignedRun {
            run: work.run.clone(),
            lease: work.lease,
            tree: work.commit.1,
            suite: work.suite.clone(),
            command: work.check.command.clone(),
            config: work.check.config,
            result,
            token: TokenClaims::new("t").unwrap(),
            mac: String::new(),
        })
    }

    pub fn report(&mut self, work: &Work, runner: &str, result: RunResult) -> Result<Answer, Refusal> {
        let token = Some(TokenId::new(format!("token-{runner}")).unwrap());
        let runner = RunnerId::new(runner).unwrap();
        self.feed(Input::Reported { signed: Self::signed(work, result), runner, fault: None, token })
    }

    pub fn renew(&mut self, work: &Work, runner: &str) -> Result<Answer, Refusal> {
        let token = Some(TokenId::new(format!("token-{runner}")).unwrap());
        self.feed(Input::Renewed { run: work.run.clone(), lease: work.lease, token })
    }

    /// One runner takes one run to its end; false when there is none.
    pub fn run_once(&mut self) -> bool {
        let Some(work) = self.lease("runner") else { return false };
        let content = self.trees[&work.commit.1].clone();
        self.runs += 1;
        self.tested.push(names(&content));
        let result = (self.suite)(&content, self.runs);
        self.report(&work, "runner", result).unwrap();
        true
    }

    /// Steps without any runner.
    pub fn work(&mut self) {
        for _ in 0..1_000 {
            if !self.step() {
                return;
            }
        }
        panic!("the host never rests: {:?}", self.lane.next(&self.world, self.now));
    }

    /// Steps and runs until nothing moves.
    pub fn settle(&mut self) {
        for _ in 0..1_000 {
            self.work();
            if !self.run_once() {
                return;
            }
        }
        panic!("the yard never settles");
    }

    pub fn landed(&self) -> Vec<String> {
        names(&self.head().1)
    }

    pub fn stage(&self, id: &ChangeId) -> EntryStage {
        let stage = self.lane.stage(id, self.world.view.as_ref(), self.now);
        stage.unwrap_or_else(|| panic!("{id} is no entry"))
    }

    pub fn assert_stage(&self, id: &ChangeId, stage: Stage, reason: &str) {
        let found = self.stage(id);
        assert!(found.stage == stage && found.reason.contains(reason), "{id}: {found:?}");
    }

    /// Kills the lane's process: what was not stored is gone.
    pub fn kill(&mut self) {
        let mut lane = Lane::new(self.lane.name.clone());
        self.stored.iter().for_each(|fact| lane.apply(fact));
        assert_eq!(lane, self.lane, "the state is the fold of what was stored");
        self.lane = lane;
        self.world = World { stale: true, ..World::default() };
    }

    /// As [`Yard::kill`], and facts and snapshots go through JSON.
    pub fn restart(&mut self) {
        let mut lane = Lane::new(self.lane.name.clone());
        let text = serde_json::to_string(&self.stored).unwrap();
        let stored: Vec<crate::LaneFact> = serde_json::from_str(&text).unwrap();
        stored.iter().for_each(|fact| lane.apply(fact));
        assert_eq!(lane, self.lane, "the state is the fold of what was stored");
        let text = serde_json::to_string(&lane).unwrap();
        assert_eq!(serde_json::from_str::<Lane>(&text).unwrap(), lane, "a snapshot reads as it was written");
        self.lane = lane;
        self.world = World { stale: true, ..World::default() };
    }
}

fn edit(row: &RowEdit) -> Edit {
    let (path, theirs) = (row.path.clone(), row.theirs);
    Edit { path, from: None, base: row.base, ours: row.base, theirs, result: theirs, how: How::Theirs }
}

fn pack(attempt: &AttemptId, kind: &str) -> PackRef {
    PackRef { key: PackKey::new(format!("{attempt}.{kind}")).unwrap(), bytes: 1, objects: 1 }
}
