//! A Repository object without storage or network: the edge that prepares, the kernel, a lane's hands.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::Arc;

use yard_common::fact::{Fact, Terminal};
use yard_common::intent::{Intent, Signature};
use yard_common::landing::{AttemptId, Edit, How, LandChange, LandRequest, PackRef, RunResult, SignedRun};
use yard_common::policy::{Isolation, Policy};
use yard_common::replay::{Cause, Cost, Origin};
use yard_common::submission::{Base, CommitNode, Via};
use yard_common::{
    AttemptNo, ChangeId, Epoch, Fence, ForkName, IdempotencyKey, LaneName, LeaseNo, Millis, ObjectId,
    OwnerEpoch, PackKey, Refusal, ReplayNo, RepoPath, RunId, SuiteId, TokenClaims, TrainNo, Version,
};
use yard_git::editor::Step;
use yard_git::{Commit, Entry, Kind, MemoryObjects, Mode, Objects, RunningTree, diff, tree};
use yard_landing::act::{self, Actor, Close};
use yard_landing::graph::parents_first;
use yard_landing::push::{DirectPush, direct_push};
use yard_landing::{
    Configuration, Context, Decision, LandingAnswer, Ledger, MemoryLedger, Proposal, Stop, SubmissionAnswer,
    Verifier, accept, base, claim, land, sign,
};

use crate::merge::{Files, Text, is_tree, merge_files, three_way};
use crate::model::{Meant, Model};

pub const TOKEN: &str = "sy1.runner.secret";
pub const TURN_MS: u64 = 90;

pub fn path(text: &str) -> RepoPath {
    RepoPath::new(text).unwrap()
}

pub fn change(text: &str) -> ChangeId {
    ChangeId::new(format!("change-{text}")).unwrap()
}

pub fn fork(text: &str) -> Option<ForkName> {
    Some(ForkName::new(text).unwrap())
}

pub fn lane(text: &str) -> LaneName {
    LaneName::new(text).unwrap()
}

pub fn files(entries: &[(&str, &str)]) -> Files {
    entries.iter().map(|(at, text)| (path(at), (Mode::File, (*text).to_owned()))).collect()
}

/// Files with some paths set (or, with `None`, deleted).
pub fn with(files: &Files, edits: &[(&str, Option<&str>)]) -> Files {
    let mut files = files.clone();
    for (at, text) in edits {
        let mode = files.get(&path(at)).map_or(Mode::File, |entry| entry.0);
        match text {
            Some(text) => files.insert(path(at), (mode, (*text).to_owned())),
            None => files.remove(&path(at)),
        };
    }
    files
}

pub fn admin() -> Actor {
    Actor { fork: None, admin: true, by: "admin".into() }
}

pub fn agent(name: &str) -> Actor {
    Actor { fork: fork(name), admin: false, by: name.into() }
}

/// All objects there ever were.
#[derive(Default, Clone)]
pub struct Store {
    pub objects: MemoryObjects,
    histories: RefCell<BTreeMap<ObjectId, Rc<BTreeSet<ObjectId>>>>,
}

impl Store {
    pub fn blob_id(&self, text: &str) -> ObjectId {
        yard_git::hash(Kind::Blob, text.as_bytes())
    }

    pub fn text(&self, entry: Entry) -> (Mode, String) {
        let data = self.objects.get(&entry.id).map(|object| object.data.clone());
        let text = data.map_or_else(|| entry.id.to_string(), |data| String::from_utf8(data).unwrap());
        (entry.mode, text)
    }

    pub fn files(&self, tree: ObjectId) -> Files {
        let list = diff::list(&self.objects, tree).unwrap();
        list.into_iter().map(|(path, entry)| (path, self.text(entry))).collect()
    }

    /// Tree and parents of a commit.
    pub fn links(&self, commit: ObjectId) -> (ObjectId, Vec<ObjectId>) {
        let links = yard_git::commit::links(&self.objects.get(&commit).unwrap().data).unwrap();
        (links.tree, links.parents)
    }

    /// A commit and all its ancestors.
    pub fn history(&self, head: ObjectId) -> Rc<BTreeSet<ObjectId>> {
        if let Some(known) = self.histories.borrow().get(&head) {
            return Rc::clone(known);
        }
        let parents = self.links(head).1;
        let mut all: BTreeSet<ObjectId> = match parents.first() {
            Some(first) => (*self.history(*first)).clone(),
            None => BTreeSet::new(),
        };
        all.insert(head);
        for other in parents.iter().skip(1) {
            all.extend(self.history(*other).iter().copied());
        }
        let all = Rc::new(all);
        self.histories.borrow_mut().insert(head, Rc::clone(&all));
        all
    }

    pub fn entry(&mut self, text: &Text) -> Option<Entry> {
        let (mode, text) = text.as_ref()?;
        if *mode == Mode::Gitlink {
            return Some(Entry { mode: *mode, id: text.parse().unwrap() });
        }
        Some(Entry { mode: *mode, id: self.objects.add(Kind::Blob, text.clone().into_bytes()) })
    }

    pub fn tree(&mut self, files: &Files) -> ObjectId {
        let mut edits = Vec::new();
        for (path, text) in files {
            edits.push((path.clone(), self.entry(&Some(text.clone()))));
        }
        self.apply(ObjectId::EMPTY_TREE, &edits)
    }

    pub fn apply(&mut self, root: ObjectId, edits: &[(RepoPath, Option<Entry>)]) -> ObjectId {
        let mut tree = RunningTree::new(root);
        let applied = tree.apply(&self.objects, edits).unwrap();
        for tree in applied.trees {
            self.objects.add(Kind::Tree, tree.data);
        }
        applied.root
    }

    pub fn commit(&mut self, parents: &[ObjectId], tree: ObjectId, message: &str) -> ObjectId {
        let who = Signature { name: "A".into(), email: "a@b".into(), seconds: 1, offset_minutes: 0 };
        let commit = Commit {
            tree,
            parents: parents.to_vec(),
            author: who.clone(),
            committer: who,
            headers: Vec::new(),
            message: message.as_bytes().to_vec(),
        };
        self.objects.add(Kind::Commit, commit.encode())
    }

    pub fn node(&self, id: ObjectId) -> CommitNode {
        let (tree, parents) = self.links(id);
        CommitNode { id, parents, tree }
    }
}

/// A push to `refs/for/main`.
#[derive(Debug, Clone)]
pub struct Push {
    pub key: String,
    pub change: Option<ChangeId>,
    pub new_change: bool,
    pub replay_of: Option<Version>,
    /// The version that was reviewed; the replayed one when absent.
    pub reviewed: Option<Version>,
    /// Reviewed paths that main has renamed, for a replay.
    pub renames: Vec<(RepoPath, RepoPath)>,
    /// Lines that differ from what was reviewed, for a replay.
    pub differing_lines: u32,
    pub fork: Option<ForkName>,
    pub head: ObjectId,
    pub lane: LaneName,
    pub reverts: Vec<ChangeId>,
    /// What the author looked at, and made.
    pub meant: Meant,
}

fn origin(of: Version, push: &Push) -> Origin {
    Origin {
        lane: lane("main"),
        no: ReplayNo(1),
        of,
        reviewed: push.reviewed.unwrap_or(of),
        cause: Cause::Collision { paths: Vec::new() },
        rivals: Vec::new(),
        renames: push.renames.clone(),
        cost: Cost::default(),
        prompt: String::new(),
        compared: String::new(),
        range_diff: String::new(),
        differing_lines: push.differing_lines,
    }
}

struct Runners;

impl Verifier for Runners {
    fn run_is_signed(&self, run: &SignedRun) -> bool {
        run.token.as_str() == "sy1.runner" && sign::is_signed(TOKEN, run)
    }
}

struct OneLine;

/// A configuration of one line: the command; one that starts with "paths" isolates by paths.
fn policy_of(id: ObjectId, text: &str) -> Policy {
    let isolation = if text.starts_with("paths") { Isolation::Paths } else { Isolation::Strict };
    Policy { config: Some(id), command: text.trim().to_owned(), isolation, ..Policy::default() }
}

impl Configuration for OneLine {
    fn policy(&self, blob: Option<(ObjectId, &[u8])>) -> Result<Policy, String> {
        let (id, data) = blob.ok_or("there is none")?;
        Ok(policy_of(id, &String::from_utf8_lossy(data)))
    }
}

pub struct World {
    pub ledger: MemoryLedger,
    pub store: Store,
    pub facts: Vec<Fact>,
    pub model: Model,
    pub now: Millis,
    pub broken: Vec<String>,
    /// The model is told of each fact.
    pub judged: bool,
    count: u64,
}

impl World {
    /// A repository whose main has these files.
    pub fn new(start: &Files) -> Self {
        Self::with_policy(start, Policy { command: "test".into(), ..Policy::default() })
    }

    pub fn with_policy(start: &Files, policy: Policy) -> Self {
        let mut world = Self {
            ledger: MemoryLedger::new(policy.clone()),
            store: Store::default(),
            facts: Vec::new(),
            model: Model::under(policy.command, policy.config),
            now: Millis(1000),
            broken: Vec::new(),
            judged: true,
            count: 0,
        };
        let root = world.make(&[], start);
        world.push(root, "").unwrap();
        world
    }

    /// A world under `isolation = "paths"`.
    pub fn paths(start: &Files) -> Self {
        let policy = Policy { command: "paths test".into(), isolation: Isolation::Paths, ..Policy::default() };
        Self::with_policy(start, policy)
    }

    pub fn count(&mut self) -> u64 {
        self.count += 1;
        self.count
    }

    pub fn main(&self) -> ObjectId {
        self.ledger.main().unwrap()
    }

    pub fn main_files(&self) -> Files {
        self.files_of(self.main())
    }

    pub fn files_of(&self, commit: ObjectId) -> Files {
        self.store.files(self.store.links(commit).0)
    }

    /// A commit of its own with these files.
    pub fn make(&mut self, parents: &[ObjectId], files: &Files) -> ObjectId {
        let tree = self.store.tree(files);
        let n = self.count();
        self.store.commit(parents, tree, &format!("work {n}\n"))
    }

    fn take(&mut self, fact: Fact) {
        if let Fact::DirectPush { new, .. } = &fact {
            self.learn(*new);
        }
        if self.judged
            && let Err(law) = self.model.take(&fact, &self.store, self.now)
        {
            self.broken.push(law);
        }
        self.ledger.apply(&fact);
        self.facts.push(fact);
    }

    /// The host's index of a pushed pack.
    fn learn(&mut self, head: ObjectId) {
        use yard_landing::LedgerMut as _;
        for node in parents_first(&self.ledger, &self.unknown(head)) {
            self.ledger.put_commit(&node);
        }
    }

    /// Commits that the ledger does not know, children before parents.
    fn unknown(&self, head: ObjectId) -> Vec<CommitNode> {
        let (mut nodes, mut seen, mut todo) = (Vec::new(), BTreeSet::new(), vec![head]);
        while let Some(id) = todo.pop() {
            if self.ledger.commit(&id).is_none() && seen.insert(id) {
                let node = self.store.node(id);
                todo.extend(&node.parents);
                nodes.push(node);
            }
        }
        nodes
    }

    fn act<A>(&mut self, decision: Decision<A>) -> Result<(), Refusal> {
        match decision {
            Decision::Fact(fact) => {
                self.take(*fact);
                Ok(())
            }
            Decision::Answered(_) => Ok(()),
            Decision::Refused(refusal) => Err(refusal),
            Decision::Missing(ids) => panic!("missing {ids:?}"),
        }
    }

    pub fn push(&mut self, new: ObjectId, reason: &str) -> Result<(), Refusal> {
        let old = self.ledger.main();
        let config = self.files_of(new).get(&path(".switchyard.toml")).cloned();
        let today = self.ledger.policy();
        let policy = config.map(|(_, text)| policy_of(self.store.blob_id(&text), &text));
        let policy = policy.filter(|policy| policy.config != today.config);
        let (commits, name) = (self.unknown(new), "refs/heads/main".to_owned());
        let push = DirectPush { old, new, commits, reason: reason.into(), policy, name };
        let decision = direct_push(&self.ledger, &push, &admin(), self.now);
        self.act(decision)
    }

    pub fn cancel(&mut self, change: &ChangeId, actor: &Actor) -> Result<(), Refusal> {
        let decision = act::cancel(&self.ledger, change, "", actor, self.now);
        self.act(decision)
    }

    pub fn hold(&mut self, change: &ChangeId, reason: Option<&str>) -> Result<(), Refusal> {
        let decision = act::hold(&self.ledger, change, reason.map(str::to_owned), &admin());
        self.act(decision)
    }

    pub fn requeue(&mut self, change: &ChangeId) -> Result<(), Refusal> {
        let decision = act::requeue(&self.ledger, change, &admin());
        self.act(decision)
    }

    pub fn approve(&mut self, change: &ChangeId, version: Version) -> Result<(), Refusal> {
        let decision = act::approve(&self.ledger, change, version, &admin());
        self.act(decision)
    }

    pub fn freeze(&mut self, reason: Option<&str>) -> Result<(), Refusal> {
        let decision = act::freeze(&self.ledger, reason.map(str::to_owned), &admin());
        self.act(decision)
    }

    pub fn protect(&mut self, protected: bool) -> Result<(), Refusal> {
        let decision = act::protect(&self.ledger, protected, &admin());
        self.act(decision)
    }

    pub fn hand_over(&mut self, change: &ChangeId, to: &LaneName) -> Result<(), Refusal> {
        let decision = act::hand_over(&self.ledger, change, to);
        self.act(decision)
    }

    pub fn close(&mut self, change: &ChangeId, version: Version, stage: Terminal) -> Result<(), Refusal> {
        let close = Close { change, version, stage, head: self.main(), by: "lane" };
        let decision = act::close(&self.ledger, &close, &self.store.objects, self.now);
        self.act(decision)
    }

    pub fn claim(&mut self, who: &Option<ForkName>, paths: &[&str], for_ms: u64) -> Result<Fence, Refusal> {
        let paths: Vec<RepoPath> = paths.iter().map(|text| path(text)).collect();
        let fact = claim::claim(&self.ledger, who.as_ref(), &paths, None, for_ms, self.now)?;
        let Fact::Claimed { fence, .. } = &fact else { panic!("{fact:?}") };
        let fence = *fence;
        self.take(fact);
        Ok(fence)
    }

    pub fn release(&mut self, fence: Fence, actor: &Actor) -> Result<(), Refusal> {
        let fact = claim::release(&self.ledger, fence, actor)?;
        self.take(fact);
        Ok(())
    }

    /// A push of `files` made on `parent`, whose files are what its author looked at.
    pub fn work(
        &mut self,
        who: &Option<ForkName>,
        id: Option<&ChangeId>,
        parent: ObjectId,
        files: &Files,
    ) -> Push {
        let head = self.make(&[parent], files);
        let meant = Meant { from: self.files_of(parent), to: files.clone() };
        let n = self.count();
        Push {
            key: format!("key-{n}"),
            change: id.cloned(),
            new_change: false,
            replay_of: None,
            reviewed: None,
            renames: Vec::new(),
            differing_lines: 0,
            fork: who.clone(),
            head,
            lane: lane("main"),
            reverts: Vec::new(),
            meant,
        }
    }

    /// The edge's part: base, edits and counts of a push.
    pub fn prepare(&mut self, push: &Push) -> Result<Proposal, Refusal> {
        let commits = self.unknown(push.head);
        let own = push.change.as_ref().filter(|_| !push.new_change);
        let found = base::find_base(&self.ledger, &commits, push.head, own, push.fork.as_ref());
        let bases = found.map_err(|stop| match stop {
            Stop::No(refusal) => refusal,
            Stop::Missing(ids) => panic!("missing {ids:?}"),
        })?;
        let mut tree = self.store.files(bases.trees[0]);
        for (place, right) in bases.trees.iter().enumerate().skip(1) {
            let over = bases.merge_bases[place - 1].map(|id| self.files_of(id)).unwrap_or_default();
            let merged = merge_files(&over, &tree, &self.store.files(*right));
            tree = merged.ok_or(Refusal::RebaseNeeded { commits: bases.commits.clone(), paths: vec![] })?;
        }
        let base_tree = self.store.tree(&tree);
        Ok(self.proposal(push, bases, base_tree, commits))
    }

    /// As [`World::prepare`], for a push whose base is one commit with this tree.
    pub fn prepare_on(&mut self, push: &Push, base_tree: ObjectId) -> Proposal {
        let commits = self.unknown(push.head);
        let (own, fork) = (push.change.as_ref(), push.fork.as_ref());
        let bases = base::find_base(&self.ledger, &commits, push.head, own, fork).unwrap();
        self.proposal(push, bases, base_tree, commits)
    }

    fn proposal(
        &self,
        push: &Push,
        bases: yard_landing::Bases,
        base_tree: ObjectId,
        commits: Vec<CommitNode>,
    ) -> Proposal {
        let head_tree = self.store.links(push.head).0;
        let edits = diff::diff(&self.store.objects, base_tree, head_tree).unwrap();
        let counts: Vec<u32> = bases
            .mains_before
            .iter()
            .map(|main| diff::count(&self.store.objects, main.tree, head_tree, edits.len()).unwrap() as u32)
            .collect();
        let nearest = counts.iter().enumerate().min_by_key(|(_, count)| **count).map(|(place, _)| place);
        let takes_back = nearest.map(|place| bases.mains_before[place].tree).map(|older| {
            let stands = |edit: &&yard_common::submission::RowEdit| {
                tree::lookup(&self.store.objects, older, &edit.path).unwrap() == edit.theirs
            };
            edits.iter().filter(stands).map(|edit| edit.path.clone()).collect()
        });
        Proposal {
            key: IdempotencyKey::new(push.key.clone()).unwrap(),
            request: None,
            change: push.change.clone(),
            new_change: push.new_change,
            replay_of: push.replay_of,
            fork: push.fork.clone(),
            via: Via::Git,
            author: Signature { name: "A".into(), email: "a@b".into(), seconds: 1, offset_minutes: 0 },
            head: push.head,
            head_tree,
            commits: if commits.is_empty() { vec![self.store.node(push.head)] } else { commits },
            base: Base { commits: bases.commits, tree: base_tree },
            edits,
            list: None,
            differs_from_mains: counts,
            takes_back: takes_back.unwrap_or_default(),
            reverts: push.reverts.clone(),
            lane: push.lane.clone(),
            intent: Intent { title: "work".into(), ..Intent::default() },
            warnings: Vec::new(),
            replay: push.replay_of.map(|of| Box::new(origin(of, push))),
        }
    }

    /// Prepares and offers a push.
    pub fn submit(&mut self, push: &Push) -> Result<(ChangeId, Version), Refusal> {
        let stored = self.ledger.submission_answer(&IdempotencyKey::new(push.key.clone()).unwrap());
        match (self.prepare(push), stored.map(|stored| stored.answer)) {
            (Ok(proposal), _) => self.offer(&proposal, &push.meant),
            (Err(_), Some(SubmissionAnswer::Accepted { change, version })) => Ok((change, version)),
            (Err(_), Some(SubmissionAnswer::Refused(refusal))) | (Err(refusal), None) => Err(refusal),
        }
    }

    pub fn offer(&mut self, proposal: &Proposal, meant: &Meant) -> Result<(ChangeId, Version), Refusal> {
        match accept(&self.ledger, proposal, self.now) {
            Decision::Fact(fact) => {
                let answer = match &*fact {
                    Fact::Submitted { row, .. } => {
                        let id = (row.change.clone(), row.version);
                        self.model.meant.insert(id.clone(), meant.clone());
                        Ok(id)
                    }
                    Fact::SubmissionRefused { refusal, .. } => Err(refusal.clone()),
                    other => panic!("{other:?}"),
                };
                self.take(*fact);
                answer
            }
            Decision::Answered(SubmissionAnswer::Accepted { change, version }) => Ok((change, version)),
            Decision::Answered(SubmissionAnswer::Refused(refusal)) | Decision::Refused(refusal) => {
                Err(refusal)
            }
            Decision::Missing(ids) => panic!("missing {ids:?}"),
        }
    }

    /// New work on main by an agent, accepted.
    pub fn submitted(&mut self, who: &str, id: &str, edits: &[(&str, Option<&str>)]) -> ChangeId {
        let (main, id) = (self.main(), change(id));
        let files = with(&self.main_files(), edits);
        let push = self.work(&fork(who), Some(&id), main, &files);
        self.submit(&push).unwrap();
        id
    }

    // ---- a lane's hands ---------------------------------------------------------------------

    /// The edits that put a version on a tree, or `None` when it collides.
    pub fn merge(&mut self, change: &ChangeId, version: Version, onto: ObjectId) -> Option<Vec<Edit>> {
        let row = self.ledger.row(change, version)?;
        let mut edits = Vec::new();
        let text = |store: &Store, entry: Option<Entry>| entry.map(|entry| store.text(entry));
        for accepted in &row.edits {
            let ours = tree::lookup(&self.store.objects, onto, &accepted.path).unwrap();
            let (base, theirs) = (accepted.base, accepted.theirs);
            let (result, how) = if ours == base {
                (theirs, How::Theirs)
            } else if ours == theirs {
                (ours, How::Same)
            } else {
                let (b, o, t) = (text(&self.store, base), text(&self.store, ours), text(&self.store, theirs));
                (self.store.entry(&three_way(&b, &o, &t)?), How::Merge)
            };
            edits.push(Edit { path: accepted.path.clone(), from: None, base, ours, theirs, result, how });
        }
        edits.sort_by_key(|edit| edit.result.is_some());
        // A file and a directory at one path collide, as everything that does not fold.
        let steps: Vec<Step<'_>> = edits
            .iter()
            .map(|edit| Step { path: &edit.path, ours: edit.ours, result: edit.result })
            .collect();
        RunningTree::new(onto).fold(&self.store.objects, &steps).ok()?;
        Some(edits)
    }

    /// The tree that edits make of another, or `None` when a file would stand below a file.
    pub fn tree_after(&mut self, onto: ObjectId, edits: &[Edit]) -> Option<ObjectId> {
        let mut files = self.store.files(onto);
        for edit in edits {
            match edit.result {
                Some(entry) => drop(files.insert(edit.path.clone(), self.store.text(entry))),
                None => drop(files.remove(&edit.path)),
            }
        }
        is_tree(&files).then(|| self.store.tree(&files))
    }

    /// A request that lands these changes on main, without runs; `None` when one collides.
    pub fn assemble(&mut self, lane: &LaneName, changes: &[(ChangeId, Version)]) -> Option<LandRequest> {
        let head = self.main();
        let mut tree = self.store.links(head).0;
        let mut listed = Vec::new();
        for (change, version) in changes {
            let edits = self.merge(change, *version, tree)?;
            tree = self.tree_after(tree, &edits)?;
            listed.push((change.clone(), *version, edits, tree));
        }
        Some(self.request(lane, head, listed))
    }

    /// A request with one commit for each (change, version, edits, tree) on top of `head`.
    pub fn request(
        &mut self,
        lane: &LaneName,
        head: ObjectId,
        listed: Vec<(ChangeId, Version, Vec<Edit>, ObjectId)>,
    ) -> LandRequest {
        let mut tip = head;
        let mut changes = Vec::new();
        for (change, version, edits, tree) in listed {
            tip = self.store.commit(&[tip], tree, &format!("{change}\n"));
            changes.push(LandChange { change, version, commit: tip, edits, list: None });
        }
        let n = self.count();
        let pack = |kind: &str| PackRef {
            key: PackKey::new(format!("{kind}/{n}")).unwrap(),
            bytes: 100,
            objects: 3,
        };
        let mut request = LandRequest {
            key: AttemptId { lane: lane.clone(), train: TrainNo(n), attempt: AttemptNo(1) },
            epoch: self.ledger.epoch(),
            owner_epoch: self.ledger.lane_epoch(lane),
            head,
            tested_head: head,
            tip,
            notes_head: None,
            notes_tip: ObjectId::ZERO,
            candidate: pack("candidate"),
            notes: pack("notes"),
            changes,
            runs: Vec::new(),
        };
        self.note(&mut request);
        request
    }

    /// Writes one note for each listed commit on top of the notes ref.
    pub fn note(&mut self, request: &mut LandRequest) {
        let notes = self.ledger.notes();
        let before = notes.map_or(ObjectId::EMPTY_TREE, |id| self.store.links(id).0);
        let mut edits = Vec::new();
        for listed in &request.changes {
            let text = Some((Mode::File, format!("Change-Id: {}\n", listed.change)));
            edits.push((note_path(listed.commit), self.store.entry(&text)));
        }
        let tree = self.store.apply(before, &edits);
        request.notes_head = notes;
        request.notes_tip = self.store.commit(notes.as_slice(), tree, "notes\n");
    }

    /// A run of a tree under today's suite, signed; the model knows when it really was green.
    pub fn run(&mut self, tree: ObjectId, green: bool) -> SignedRun {
        let policy = self.ledger.policy();
        self.run_under(tree, green, &policy.command.clone(), policy.config)
    }

    pub fn run_under(
        &mut self,
        tree: ObjectId,
        green: bool,
        command: &str,
        config: Option<ObjectId>,
    ) -> SignedRun {
        if green {
            self.model.green.insert((tree, command.to_owned(), config));
        }
        let n = self.count();
        let failed = if green { Vec::new() } else { vec!["t".to_owned()] };
        let mut run = SignedRun {
            run: RunId::new(format!("run-{n}")).unwrap(),
            lease: LeaseNo(1),
            tree,
            suite: SuiteId::new("suite").unwrap(),
            command: command.to_owned(),
            config,
            result: RunResult { complete: true, green, ran: 3, failed, skipped: 0 },
            token: TokenClaims::new("sy1.runner").unwrap(),
            mac: String::new(),
        };
        run.mac = sign::sign(TOKEN, &run);
        run
    }

    /// Gives a request the run that it needs.
    pub fn tested(&mut self, request: &mut LandRequest) {
        let tree = self.store.links(request.tip).0;
        request.runs = vec![self.run(tree, true)];
    }

    pub fn decide(&self, request: &LandRequest, objects: &dyn Objects) -> Decision<LandingAnswer> {
        let context =
            Context { objects, verifier: &Runners, configuration: &OneLine, now: self.now, turn_ms: TURN_MS };
        land(&self.ledger, request, &context)
    }

    /// Asks the kernel and stores what it decides.
    pub fn land(&mut self, request: &LandRequest) -> Result<ObjectId, Refusal> {
        let answer = |answer| match answer {
            LandingAnswer::Landed { tip } => Ok(tip),
            LandingAnswer::Refused { refusal, .. } => Err(refusal),
        };
        match self.decide(request, &self.store.objects) {
            Decision::Fact(fact) => {
                let told = match &*fact {
                    Fact::Landed { request, .. } => LandingAnswer::Landed { tip: request.tip },
                    Fact::LandingRefused { refusal, turn_until, .. } => {
                        LandingAnswer::Refused { refusal: refusal.clone(), turn_until: *turn_until }
                    }
                    other => panic!("{other:?}"),
                };
                self.take(*fact);
                answer(told)
            }
            Decision::Answered(told) => answer(told),
            Decision::Refused(refusal) => Err(refusal),
            Decision::Missing(ids) => Err(Refusal::Malformed { why: format!("no object {ids:?}") }),
        }
    }

    /// A tested request that lands these changes of lane "main" at their newest versions.
    pub fn train(&mut self, changes: &[&ChangeId]) -> LandRequest {
        let listed: Vec<_> = changes
            .iter()
            .map(|change| ((*change).clone(), self.ledger.newest(change).unwrap().version))
            .collect();
        let mut request = self.assemble(&lane("main"), &listed).unwrap();
        self.tested(&mut request);
        request
    }

    /// Lands these changes.
    pub fn landed(&mut self, changes: &[&ChangeId]) -> ObjectId {
        let request = self.train(changes);
        self.land(&request).unwrap()
    }

    /// What every step must leave true; the first law broken.
    pub fn laws(&self) -> Result<(), String> {
        if let Some(law) = self.broken.first() {
            return Err(law.clone());
        }
        if self.main_files() != self.model.main {
            return Err("main is not what the model has".into());
        }
        for change in self.ledger.changes() {
            let count = self.model.on_main(change, &self.store);
            let landed = self.ledger.state(change).landed;
            if count > 1 || (count == 1) != landed.is_some() {
                return Err(format!("{change} has {count} commits on main, the ledger says {landed:?}"));
            }
        }
        self.notes_hold()
    }

    fn notes_hold(&self) -> Result<(), String> {
        let notes = self.ledger.notes().map(|notes| self.files_of(notes)).unwrap_or_default();
        let wanted: Files = self
            .model
            .landings
            .iter()
            .map(|(change, _, commit)| (note_path(*commit), (Mode::File, format!("Change-Id: {change}\n"))))
            .collect();
        if notes == wanted { Ok(()) } else { Err("the notes are not one for each landed commit".into()) }
    }

    /// Everything lawful, and the tables are the fold of the facts.
    pub fn check(&self) {
        assert_eq!(self.laws(), Ok(()));
    }

    pub fn epoch(&self) -> Epoch {
        self.ledger.epoch()
    }

    pub fn owner_epoch(&self, lane: &LaneName) -> OwnerEpoch {
        self.ledger.lane_epoch(lane)
    }

    pub fn object(&self, id: ObjectId) -> Arc<yard_git::Object> {
        self.store.objects.get(&id).unwrap()
    }
}

pub fn note_path(commit: ObjectId) -> RepoPath {
    let digits = commit.to_string();
    path(&format!("{}/{}", &digits[..2], &digits[2..]))
}
