//! A Repository over native tables, with an edge's and a lane's hands.

use std::collections::BTreeSet;
use std::rc::Rc;
use std::sync::Arc;

use yard_common::bytes::Base64;
use yard_common::edit_list::EditList;
use yard_common::intent::{Intent, Signature};
use yard_common::landing::{AttemptId, Edit, How, LandChange, LandRequest, PackRef, RunResult, SignedRun};
use yard_common::submission::{RowEdit, Via};
use yard_common::{
    AttemptNo, ChangeId, Fact, ForkName, IdempotencyKey, LaneName, LeaseNo, Millis, ObjectId, PackKey,
    RefName, Refusal, RepoName, RepoPath, RunId, SuiteId, TokenId, TrainNo,
};
use yard_git::pack::PackWriter;
use yard_git::{Commit, Entry, Kind, MemoryObjects, Mode, Object as GitObject, Objects, RunningTree, diff};
use yard_wire::Method;
use yard_wire::repository as wire;
use yard_wire::token::{self, Claims, Scope};

use super::super::{Platform, Repository};
use crate::blobs::Blobs as _;
use crate::board::Board;
use crate::call::Object;
use crate::native::{MemoryBlobs, MemoryIndex, NativeSql, Wired, block_on};

pub const SECRET: &str = "a secret of the platform";
/// No model is asked but in the stories about models.
pub const CONFIG: &str =
    "[checks]\ncommand = \"make test\"\njunit = \"report.xml\"\n\n[replay]\nby_model = false\n";

pub struct Native;

impl Platform for Native {
    type Sql = Rc<NativeSql>;
    type Blobs = Rc<MemoryBlobs>;
    type Index = Rc<MemoryIndex>;
    type Calls = Rc<Wired>;
}

pub struct World {
    pub host: Repository<Native>,
    pub sql: Rc<NativeSql>,
    pub blobs: Rc<MemoryBlobs>,
    pub index: Rc<MemoryIndex>,
    pub wired: Rc<Wired>,
    pub store: MemoryObjects,
    pub now: Millis,
    pub admin: bool,
    /// Packs are made without this object.
    pub without: Option<ObjectId>,
    /// Main's first commit.
    pub start: ObjectId,
    n: u64,
}

pub fn name(text: &str) -> RefName {
    RefName::new(text).unwrap()
}

pub fn path(text: &str) -> RepoPath {
    RepoPath::new(text).unwrap()
}

pub fn key(text: &str) -> IdempotencyKey {
    IdempotencyKey::new(text).unwrap()
}

pub fn fork(text: &str) -> Option<ForkName> {
    Some(ForkName::new(text).unwrap())
}

fn signature() -> Signature {
    Signature { name: "A".into(), email: "a@x".into(), seconds: 1_700_000_000, offset_minutes: 0 }
}

impl World {
    /// A repository without commits.
    pub fn empty() -> Self {
        let sql = Rc::new(NativeSql::new().unwrap());
        let blobs = Rc::new(MemoryBlobs::default());
        let index = Rc::new(MemoryIndex::new().unwrap());
        let wired = Rc::new(Wired::default());
        wired.insert("board:click", Rc::new(Board::new(NativeSql::new().unwrap())));
        let host = host(&sql, &blobs, &index, &wired);
        let store = MemoryObjects::default();
        let world = Self {
            host,
            sql,
            blobs,
            index,
            wired,
            store,
            now: Millis(1000),
            admin: true,
            without: None,
            start: ObjectId::ZERO,
            n: 0,
        };
        let create = wire::Create {
            repo: RepoName::new("click").unwrap(),
            fork: None,
            default_branch: name("refs/heads/main"),
            refs: Vec::new(),
            key: None,
        };
        world.call(&create).unwrap();
        world.call(&create).unwrap();
        world
    }

    /// A repository whose main has these files and a configuration.
    pub fn with(files: &[(&str, &str)]) -> (Self, ObjectId) {
        let mut world = Self::empty();
        let mut all = vec![(".switchyard.toml", Some(CONFIG))];
        all.extend(files.iter().map(|(path, text)| (*path, Some(*text))));
        let head = world.commit(&[], &all, "first");
        world.push("refs/heads/main", None, Some(head), &[head]).unwrap();
        world.start = head;
        (world, head)
    }

    /// The object is evicted and starts again.
    pub fn restart(&mut self) {
        self.host = host(&self.sql, &self.blobs, &self.index, &self.wired);
    }

    pub fn call<M: Method>(&self, asked: &M) -> Result<M::Reply, Refusal> {
        let body = serde_json::to_vec(asked).unwrap();
        let answer = block_on(self.host.handle(M::NAME, &body, self.now))?;
        Ok(serde_json::from_slice(&answer).unwrap())
    }

    pub fn alarm(&self) -> Option<u64> {
        block_on(self.host.alarm(self.now)).unwrap()
    }

    pub fn blob(&mut self, text: &str) -> ObjectId {
        self.store.add(Kind::Blob, text.as_bytes().to_vec())
    }

    /// The tree of `base` with these paths set or deleted.
    pub fn tree(&mut self, base: ObjectId, edits: &[(&str, Option<&str>)]) -> ObjectId {
        let edits: Vec<(RepoPath, Option<Entry>)> = edits
            .iter()
            .map(|(at, text)| (path(at), text.map(|text| Entry { mode: Mode::File, id: self.blob(text) })))
            .collect();
        let mut tree = RunningTree::new(base);
        let applied = tree.apply(&self.store, &edits).unwrap();
        for yard_git::editor::NewTree { id, data, .. } in applied.trees {
            self.store.insert(id, Arc::new(GitObject { kind: Kind::Tree, data }));
        }
        tree.id()
    }

    pub fn tree_of(&self, commit: ObjectId) -> ObjectId {
        yard_git::commit::links(&self.store.get(&commit).unwrap().data).unwrap().tree
    }

    pub fn commit_of(&mut self, tree: ObjectId, parents: &[ObjectId], message: &str) -> ObjectId {
        let commit = Commit {
            tree,
            parents: parents.to_vec(),
            author: signature(),
            committer: signature(),
            headers: Vec::new(),
            message: message.into(),
        };
        self.store.add(Kind::Commit, commit.encode())
    }

    pub fn commit(
        &mut self,
        parents: &[ObjectId],
        edits: &[(&str, Option<&str>)],
        message: &str,
    ) -> ObjectId {
        let base = parents.first().map_or(ObjectId::EMPTY_TREE, |parent| self.tree_of(*parent));
        let tree = self.tree(base, edits);
        self.commit_of(tree, parents, message)
    }

    pub fn info(&self, commit: ObjectId) -> wire::CommitInfo {
        let links = yard_git::commit::links(&self.store.get(&commit).unwrap().data).unwrap();
        wire::CommitInfo { id: commit, tree: links.tree, parents: links.parents, seconds: links.committed_at }
    }

    /// A pack in the bucket with these commits and all of their trees and blobs.
    pub fn pack(&mut self, pack_key: &str, commits: &[ObjectId]) -> wire::IndexedPack {
        let mut wanted: BTreeSet<ObjectId> = commits.iter().copied().collect();
        let mut todo: Vec<ObjectId> = commits.iter().map(|commit| self.tree_of(*commit)).collect();
        while let Some(id) = todo.pop() {
            if !wanted.insert(id) || id == ObjectId::EMPTY_TREE {
                continue;
            }
            let object = self.store.get(&id).unwrap();
            if object.kind == Kind::Tree {
                todo.extend(yard_git::tree::parse(&object.data).unwrap().iter().map(|entry| entry.id));
            }
        }
        wanted.remove(&ObjectId::EMPTY_TREE);
        wanted.retain(|id| Some(*id) != self.without);
        let mut writer = PackWriter::in_memory();
        for id in wanted {
            let object = self.store.get(&id).unwrap();
            writer.add(id, object.kind, &object.data);
        }
        let pack = writer.finish().unwrap();
        block_on(self.blobs.put(pack_key, pack.rest)).unwrap();
        wire::IndexedPack {
            pack: PackRef { key: PackKey::new(pack_key).unwrap(), bytes: pack.bytes, objects: pack.objects },
            index: Some(Base64(pack.index)),
        }
    }

    pub fn push_request(
        &mut self,
        to: &str,
        old: Option<ObjectId>,
        new: Option<ObjectId>,
        commits: &[ObjectId],
    ) -> wire::Push {
        self.n += 1;
        let n = self.n;
        let pack = (!commits.is_empty()).then(|| self.pack(&format!("click/packs/p{n}.pack"), commits));
        wire::Push {
            key: key(&format!("push-{n}")),
            pack,
            commits: commits.iter().map(|commit| self.info(*commit)).collect(),
            commands: vec![wire::RefCommand { name: name(to), old, new, peeled: None, is_commit: true }],
            atomic: false,
            admin: self.admin,
            reason: None,
            token: None,
        }
    }

    /// Pushes one ref.
    pub fn push(
        &mut self,
        to: &str,
        old: Option<ObjectId>,
        new: Option<ObjectId>,
        commits: &[ObjectId],
    ) -> Result<(), Refusal> {
        let push = self.push_request(to, old, new, commits);
        match self.call(&push)?.results.remove(0) {
            None => Ok(()),
            Some(refusal) => Err(refusal),
        }
    }

    pub fn main(&self) -> Option<ObjectId> {
        self.call(&wire::Resolve { names: vec![name("HEAD")] }).unwrap().remove(0)
    }

    /// A proposal of `head`, prepared as the edge does it.
    pub fn proposal(&mut self, id: &str, by: &str, head: ObjectId) -> wire::Proposal {
        let commits = vec![self.info(head)];
        let prepare = wire::Prepare {
            commits: commits.clone(),
            head,
            is_base: false,
            change: Some(ChangeId::new(id).unwrap()),
            fork: fork(by),
        };
        let base = self.call(&prepare).unwrap();
        let tree = base.bases[0].tree;
        let edits: Vec<RowEdit> = diff::diff(&self.store, tree, self.tree_of(head)).unwrap();
        self.n += 1;
        let n = self.n;
        wire::Proposal {
            key: key(&format!("submit-{n}")),
            request: None,
            change: Some(ChangeId::new(id).unwrap()),
            new_change: false,
            fork: fork(by),
            via: Via::Git,
            replay_of: None,
            replay: None,
            author: signature(),
            head,
            head_tree: self.tree_of(head),
            commits,
            base_commits: base.bases.iter().map(|base| base.id).collect(),
            base_tree: tree,
            differs_from_mains: vec![edits.len() as u32; base.mains_before.len()],
            list: self.keep(&edits),
            edits,
            takes_back: Vec::new(),
            reverts: Vec::new(),
            intent: Intent { title: format!("do {id}"), agent: by.into(), ..Intent::default() },
            warnings: Vec::new(),
            contents: Vec::new(),
            head_object: None,
            packs: vec![self.pack(&format!("click/packs/f{n}.pack"), &[head])],
        }
    }

    /// Puts a list that is too long for a fact into the bucket.
    fn keep(&self, edits: &[RowEdit]) -> Option<EditList> {
        let (list, value) = EditList::of(edits).unwrap()?;
        let key = yard_wire::names::edit_list(&RepoName::new("click").unwrap(), &list);
        block_on(self.blobs.put(&key, value)).unwrap();
        Some(list)
    }

    /// Submits a change of one file on main.
    pub fn submit(&mut self, id: &str, edits: &[(&str, Option<&str>)]) -> wire::Accepted {
        let main = self.main().unwrap();
        let head = self.commit(&[main], edits, id);
        let proposal = self.proposal(id, &format!("agent-{id}"), head);
        let mut reply = self.call(&wire::Submit { items: vec![proposal], token: None }).unwrap();
        reply.results.remove(0).unwrap()
    }

    pub fn runner(&self, secret: &str) -> String {
        let claims = Claims {
            id: TokenId::new("runner-1").unwrap(),
            repo: Some(RepoName::new("click").unwrap()),
            fork: None,
            scopes: vec![Scope::Run],
            expires: Millis(u64::MAX >> 12),
        };
        token::issue(secret.as_bytes(), &claims)
    }

    fn run(&self, tree: ObjectId, config: Option<ObjectId>) -> SignedRun {
        let token = self.runner(SECRET);
        let mut run = SignedRun {
            run: RunId::new("run-1").unwrap(),
            lease: LeaseNo(1),
            tree,
            suite: SuiteId::new("0".repeat(40)).unwrap(),
            command: "make test".into(),
            config,
            result: RunResult { complete: true, green: true, ran: 3, failed: Vec::new(), skipped: 0 },
            token: token::public_part(&token).unwrap(),
            mac: String::new(),
        };
        run.mac = token::sign_with(&token, &run.signed_text());
        run
    }

    /// What a lane asks for these changes, whose paths nobody else has touched; its packs are stored.
    pub fn candidate(&mut self, train: u64, changes: &[&str]) -> (wire::StageCandidate, wire::Land) {
        let view = self.pull().view;
        let head = view.head.unwrap();
        let (mut tip, mut listed, mut notes) = (head, Vec::new(), Vec::new());
        let ids = changes.iter().map(|id| ChangeId::new(*id).unwrap()).collect();
        let views = self.call(&wire::Changes { ids, before: None, limit: 1 }).unwrap();
        for id in changes {
            let row = &views.iter().find(|view| view.row.change.as_str() == *id).unwrap().row;
            let edits: Vec<(RepoPath, Option<Entry>)> =
                row.edits.iter().map(|edit| (edit.path.clone(), edit.theirs)).collect();
            let mut tree = RunningTree::new(self.tree_of(tip));
            let applied = tree.apply(&self.store, &edits).unwrap();
            for yard_git::editor::NewTree { id, data, .. } in applied.trees {
                self.store.insert(id, Arc::new(GitObject { kind: Kind::Tree, data }));
            }
            tip = self.commit_of(tree.id(), &[tip], id);
            let edits = row.edits.iter().map(|edit| Edit {
                path: edit.path.clone(),
                from: None,
                base: edit.base,
                ours: edit.base,
                theirs: edit.theirs,
                result: edit.theirs,
                how: How::Theirs,
            });
            let (change, version) = (row.change.clone(), row.version);
            listed.push(LandChange { change, version, commit: tip, edits: edits.collect(), list: None });
            notes.push((tip.to_string(), format!("Change-Id: {id}\n")));
        }
        let edits: Vec<(&str, Option<&str>)> =
            notes.iter().map(|(at, text)| (at.as_str(), Some(text.as_str()))).collect();
        let notes_tree = self.tree(view.notes_tree.unwrap_or(ObjectId::EMPTY_TREE), &edits);
        let notes_tip = self.commit_of(notes_tree, view.notes_head.as_slice(), "notes");
        self.asked(train, &view, tip, listed, notes_tip)
    }

    fn asked(
        &mut self,
        train: u64,
        view: &wire::View,
        tip: ObjectId,
        changes: Vec<LandChange>,
        notes_tip: ObjectId,
    ) -> (wire::StageCandidate, wire::Land) {
        let lane = LaneName::new("main").unwrap();
        let attempt = AttemptId { lane, train: TrainNo(train), attempt: AttemptNo(1) };
        let commits: Vec<ObjectId> = changes.iter().map(|listed| listed.commit).collect();
        let pack = self.pack(&format!("click/candidates/{train}.pack"), &commits);
        let notes = self.pack(&format!("click/candidates/{train}.notes.pack"), &[notes_tip]);
        let head = view.head.unwrap();
        let config = diff::list(&self.store, self.tree_of(tip)).unwrap();
        let config = config.iter().find(|(at, _)| *at == path(".switchyard.toml")).map(|(_, entry)| entry.id);
        let request = LandRequest {
            key: attempt.clone(),
            epoch: view.epoch,
            owner_epoch: view.owner_epoch,
            head,
            tested_head: head,
            tip,
            notes_head: view.notes_head,
            notes_tip,
            candidate: pack.pack.clone(),
            notes: notes.pack.clone(),
            runs: vec![self.run(self.tree_of(tip), config)],
            changes,
        };
        let infos = commits.iter().map(|commit| self.info(*commit)).collect();
        let aboard = request.changes.iter().map(|listed| (listed.change.clone(), listed.version)).collect();
        let (commits, changes, for_ms) = (infos, aboard, 600_000);
        let stage = wire::StageCandidate { attempt, pack, tip, commits, changes, for_ms };
        (stage, wire::Land { request, notes, notes_commit: self.info(notes_tip) })
    }

    pub fn pull(&self) -> wire::PullReply {
        let lane = LaneName::new("main").unwrap();
        self.call(&wire::Pull { lane, after: yard_common::FactNo(0), limit: 10_000 }).unwrap()
    }

    pub fn facts(&self) -> Vec<Fact> {
        let facts = self.call(&wire::Facts { after: yard_common::FactNo(0), limit: 10_000, change: None });
        facts.unwrap().into_iter().map(|(_, _, fact)| fact).collect()
    }

    /// Every table that is a fold of facts, as text.
    pub fn tables(&self) -> Vec<String> {
        let queries = [
            "SELECT name, target FROM refs ORDER BY 1",
            "SELECT seq, change, version, fact FROM submissions ORDER BY 1",
            "SELECT id, change, version FROM version_commits ORDER BY 1, 2, 3",
            "SELECT fork, path, change FROM paths ORDER BY 1, 2, 3",
            "SELECT change, state FROM changes ORDER BY 1",
            "SELECT id, change, version FROM landings ORDER BY 1",
            "SELECT tip, json FROM steps ORDER BY 1",
            "SELECT kind, key, json FROM answers ORDER BY 1, 2",
            "SELECT key, state, place FROM packs WHERE state = 'live' ORDER BY place",
            "SELECT id, generation, ever FROM commits ORDER BY 1",
            "SELECT value FROM meta WHERE key = 'scalars'",
        ];
        use crate::sql::Sql as _;
        queries.iter().map(|query| format!("{:?}", self.sql.run(query, &[]).unwrap())).collect()
    }
}

fn host(
    sql: &Rc<NativeSql>,
    blobs: &Rc<MemoryBlobs>,
    index: &Rc<MemoryIndex>,
    wired: &Rc<Wired>,
) -> Repository<Native> {
    let (sql, blobs) = (Rc::clone(sql), Rc::clone(blobs));
    Repository::new(sql, blobs, Rc::clone(index), Rc::clone(wired), SECRET.into())
}
