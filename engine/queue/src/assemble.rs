//! Builds a candidate: each chosen change on the running tree, one commit each, and the pack.
//!
//! Resumable: [`Assembly::run`] answers with all objects it can find out to be missing, and goes on
//! where it stopped once they are at hand. Each tree is hashed once and written once, as a delta
//! against the tree that stood at its place before it in the train.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use yard_common::config::Config;
use yard_common::edit_list::EditList;
use yard_common::intent::Signature;
use yard_common::landing::{AttemptId, Edit, PackRef};
use yard_common::limits::CANDIDATE_PACK_BYTES_MAX;
use yard_common::policy::CONFIG_PATH;
use yard_common::submission::{Entry, Submission};
use yard_common::{ChangeId, Epoch, Millis, ObjectId, OwnerEpoch, PackKey, RepoPath, Version};
use yard_git::editor::{Applied, EditError, Step};
use yard_git::pack::PackWriter;
use yard_git::pack::write::FinishedPack;
use yard_git::{Commit, Kind, Missing, Mode, Object, Objects, ReadError, RunningTree, hash, message};
use yard_merge::{Outcome, Row, Rules, RunningLookup};

use crate::fact::{Aside, Candidate, Check, Member};
use crate::{limits::TRAIN_FACT_BYTES_MAX, special::apply_row};

/// Collisions of one change that are kept.
const COLLISIONS_KEPT: usize = 100;

/// Who commits: the platform. The author is the change's own.
#[must_use]
pub fn committer(now: Millis) -> Signature {
    Signature {
        name: "Switchyard".into(),
        email: "landing@switchyard.invalid".into(),
        seconds: now.seconds(),
        offset_minutes: 0,
    }
}

/// A change that may board.
#[derive(Debug, Clone)]
pub struct Passenger {
    /// Its row, shared with whoever tries the same order again.
    pub row: Arc<Submission>,
    /// Open changes that must be aboard before it.
    pub waits_for: BTreeSet<ChangeId>,
}

/// What is to be built.
#[derive(Debug, Clone)]
pub struct Order {
    /// The attempt, named in the commits of a probe.
    pub attempt: AttemptId,
    /// Main and its tree.
    pub head: (ObjectId, ObjectId),
    /// A probe's base tree, where the change is put on its own base: a commit of it is made on main.
    pub base: Option<ObjectId>,
    /// Main's epoch.
    pub epoch: Epoch,
    /// The lane's owner epoch.
    pub owner_epoch: OwnerEpoch,
    /// The check of main's configuration.
    pub check: Check,
    /// Main's merge rules.
    pub rules: Rules,
    /// The chosen changes, in order.
    pub passengers: Vec<Passenger>,
    /// Now: the committer's time of all commits of the attempt, whenever its authors wrote them.
    pub now: Millis,
}

/// A commit that was made, as the graph needs it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewCommit {
    /// The commit.
    pub id: ObjectId,
    /// Its tree.
    pub tree: ObjectId,
    /// Its one parent.
    pub parent: ObjectId,
    /// Committer's time, seconds since the Unix epoch.
    pub seconds: u64,
}

/// What came of an assembly.
#[derive(Debug)]
pub struct Built {
    /// The candidate; `None` when no change could board.
    pub candidate: Option<Box<Candidate>>,
    /// Its pack and index.
    pub pack: Option<FinishedPack>,
    /// Its commits, in order.
    pub commits: Vec<NewCommit>,
    /// Changes that did not board, with the reason. Ones that merely found no place are not listed.
    pub aside: Vec<(ChangeId, Version, Aside)>,
    /// Lists of edits that are too long for a fact, to be put into the bucket.
    pub lists: Vec<(EditList, Vec<u8>)>,
    /// Trees and merged blobs that were made: the lane keeps them for its next train.
    pub objects: Vec<(ObjectId, Arc<Object>)>,
}

/// New objects over those at hand.
struct Seen<'a> {
    new: &'a BTreeMap<ObjectId, Arc<Object>>,
    base: &'a dyn Objects,
}

impl Objects for Seen<'_> {
    fn get(&self, id: &ObjectId) -> Option<Arc<Object>> {
        self.new.get(id).cloned().or_else(|| self.base.get(id))
    }
}

/// What one change does to the train.
enum Boarding {
    Aboard,
    Aside(Aside),
    /// It stays in the queue: its parent is not aboard, or what it wants is aboard already.
    Later,
    /// The train is full.
    Closed,
}

/// An assembly under way.
pub struct Assembly {
    order: Order,
    tree: RunningTree,
    onto: (ObjectId, ObjectId),
    tip: ObjectId,
    next: usize,
    prefetched: bool,
    new: BTreeMap<ObjectId, Arc<Object>>,
    writer: PackWriter,
    members: Vec<Member>,
    commits: Vec<NewCommit>,
    aside: Vec<(ChangeId, Version, Aside)>,
    lists: Vec<(EditList, Vec<u8>)>,
    aboard: BTreeSet<ChangeId>,
    fact_bytes: usize,
    config: Option<Check>,
}

impl Assembly {
    /// Begins.
    #[must_use]
    pub fn new(order: Order) -> Self {
        let mut assembly = Self {
            tree: RunningTree::new(order.base.unwrap_or(order.head.1)),
            onto: order.head,
            tip: order.head.0,
            next: 0,
            prefetched: false,
            new: BTreeMap::new(),
            writer: PackWriter::in_memory(),
            members: Vec::new(),
            commits: Vec::new(),
            aside: Vec::new(),
            lists: Vec::new(),
            aboard: BTreeSet::new(),
            fact_bytes: 0,
            config: None,
            order,
        };
        if let Some(base) = assembly.order.base {
            let author = committer(assembly.order.now);
            let message = format!("The base of a change that is tested alone ({})\n", assembly.order.attempt);
            assembly.commit(base, author, message.into_bytes());
            assembly.onto = (assembly.tip, base);
        }
        assembly
    }

    /// Blobs that lie in the submissions' table until they land: to be asked for in one call.
    #[must_use]
    pub fn contents(&self) -> BTreeSet<ObjectId> {
        let rows = self.order.passengers.iter().map(|passenger| &passenger.row);
        rows.filter(|row| row.via.is_inline())
            .flat_map(|row| row.edits.iter().filter_map(|edit| edit.theirs))
            .filter(|entry| entry.mode != Mode::Gitlink)
            .map(|entry| entry.id)
            .collect()
    }

    /// Goes on until the candidate is built.
    ///
    /// # Errors
    /// [`ReadError::Missing`] with all objects that are known to be needed; a malformed object.
    pub fn run(&mut self, objects: &dyn Objects) -> Result<(), ReadError> {
        if !self.prefetched {
            self.prefetch(objects)?;
            self.prefetched = true;
        }
        while let Some(passenger) = self.order.passengers.get(self.next) {
            let row = Arc::clone(&passenger.row);
            let ready = passenger.waits_for.iter().all(|parent| self.aboard.contains(parent));
            let boarding = if ready { self.board(&row, objects)? } else { Boarding::Later };
            self.next += 1;
            match boarding {
                Boarding::Aboard => {
                    self.aboard.insert(row.change.clone());
                }
                Boarding::Aside(aside) => self.aside.push((row.change.clone(), row.version, aside)),
                Boarding::Later => {}
                Boarding::Closed => self.next = self.order.passengers.len(),
            }
        }
        Ok(())
    }

    /// The change that the assembly stands at cannot be built: objects that it needs are nowhere.
    ///
    /// Where it stands at none (main's own trees are not at hand), the answer is `false`.
    pub fn give_up(&mut self, missing: &BTreeSet<ObjectId>) -> bool {
        if !self.prefetched {
            self.prefetched = true;
            return true;
        }
        let Some(passenger) = self.order.passengers.get(self.next) else { return false };
        let first = missing.first().copied().unwrap_or(ObjectId::ZERO);
        let why = format!("{} objects that it needs are in no pack, {first} among them", missing.len());
        self.aside.push((passenger.row.change.clone(), passenger.row.version, Aside::Broken { why }));
        self.next += 1;
        true
    }

    /// The candidate with its pack, once [`Assembly::run`] has come to its end.
    ///
    /// # Errors
    /// A sentence, for a pack that cannot be written.
    pub fn finish(self, key: PackKey) -> Result<Built, String> {
        let objects = self.new.into_iter().collect();
        if self.members.is_empty() {
            return Ok(Built {
                candidate: None,
                pack: None,
                commits: Vec::new(),
                aside: self.aside,
                lists: Vec::new(),
                objects,
            });
        }
        let pack = self.writer.finish().map_err(|fault| format!("{fault}"))?;
        let mut checks = vec![self.order.check];
        checks.extend(self.config.filter(|new| checks.first() != Some(new)));
        let candidate = Candidate {
            head: self.onto.0,
            head_tree: self.onto.1,
            epoch: self.order.epoch,
            owner_epoch: self.order.owner_epoch,
            members: self.members,
            pack: PackRef { key, bytes: pack.bytes, objects: pack.objects },
            checks,
        };
        Ok(Built {
            candidate: Some(Box::new(candidate)),
            pack: Some(pack),
            commits: self.commits,
            aside: self.aside,
            lists: self.lists,
            objects,
        })
    }

    /// Finds out in as few rounds as the tree is deep what all changes need: their directories, then
    /// the blobs of every path that is touched twice or has moved since a change's base.
    fn prefetch(&mut self, objects: &dyn Objects) -> Result<(), ReadError> {
        let rows = || self.order.passengers.iter().map(|passenger| &passenger.row);
        let edits = || rows().flat_map(|row| &row.edits);
        self.tree.prefetch(&objects, edits().map(|edit| &edit.path))?;
        let mut touched: BTreeMap<&RepoPath, u32> = BTreeMap::new();
        for edit in edits() {
            *touched.entry(&edit.path).or_default() += 1;
        }
        let mut missing = Missing::default();
        for edit in edits() {
            let ours = self.tree.lookup(&objects, &edit.path)?;
            let moved = ours != edit.base && ours != edit.theirs;
            let again = touched.get(&edit.path).is_some_and(|times| *times > 1);
            if !moved && !again {
                continue;
            }
            let entries = [edit.base, ours, edit.theirs].into_iter().flatten();
            for entry in entries.filter(|entry| entry.mode != Mode::Gitlink) {
                if objects.get(&entry.id).is_none() {
                    missing.insert(entry.id);
                }
            }
        }
        missing.or(())
    }

    fn board(&mut self, row: &Submission, at_hand: &dyn Objects) -> Result<Boarding, ReadError> {
        let objects = Seen { new: &self.new, base: at_hand };
        let wanted = Row { edits: &row.edits, base_tree: row.base.tree, theirs_tree: row.head_tree };
        let lookup = RunningLookup::new(&objects, &mut self.tree);
        let merged = match apply_row(&objects, &lookup, wanted, &self.order.rules) {
            Ok(Outcome::Clean(merged)) => merged,
            Err(ReadError::Missing(missing)) if row.via.is_inline() && missing.0.contains(&row.head_tree) => {
                self.rebuild(row, missing, at_hand)?;
                return self.board(row, at_hand);
            }
            Err(error) => return Err(error),
            Ok(Outcome::Collided(collisions)) => {
                let paths = collisions.into_iter().take(COLLISIONS_KEPT);
                let paths = paths.map(|collision| (collision.path, collision.sentence)).collect();
                return self.collided(row, paths, at_hand);
            }
        };
        if merged.edits.iter().all(|edit| edit.result == edit.ours) {
            return self.nothing_left(row, &merged.edits, at_hand);
        }
        let before = self.tree.clone();
        let steps: Vec<Step<'_>> = merged
            .edits
            .iter()
            .map(|edit| Step { path: &edit.path, ours: edit.ours, result: edit.result })
            .collect();
        let applied = match self.tree.fold(&objects, &steps) {
            Ok(applied) => applied,
            Err(EditError::Read(error)) => return Err(error),
            Err(EditError::Clash { path, why }) => {
                return self.collided(row, vec![(path, why.to_owned())], at_hand);
            }
            Err(EditError::NotThere { path, .. }) => {
                let why = "something else stands there".to_owned();
                return self.collided(row, vec![(path, why)], at_hand);
            }
        };
        let mut blobs: Vec<(ObjectId, Arc<Object>)> = merged
            .new_blobs
            .into_iter()
            .map(|blob| (blob.id, Arc::new(Object { kind: Kind::Blob, data: blob.bytes })))
            .collect();
        if let Err(missing) = uncatalogued(row, &merged.edits, &objects, &mut blobs) {
            self.tree = before;
            return Err(missing);
        }
        let loaded = self.load(row, merged.edits, applied, blobs, at_hand);
        if !matches!(loaded, Ok(Boarding::Aboard)) {
            self.tree = before;
        }
        loaded
    }

    /// With main, or with a change ahead of it in this train, which has not landed and may yet fall?
    fn collided(
        &self,
        row: &Submission,
        paths: Vec<(RepoPath, String)>,
        at_hand: &dyn Objects,
    ) -> Result<Boarding, ReadError> {
        if self.members.is_empty() {
            return Ok(Boarding::Aside(Aside::Collided { paths }));
        }
        let objects = Seen { new: &self.new, base: at_hand };
        let mut main = RunningTree::new(self.onto.1);
        let wanted = Row { edits: &row.edits, base_tree: row.base.tree, theirs_tree: row.head_tree };
        let lookup = RunningLookup::new(&objects, &mut main);
        let alone = apply_row(&objects, &lookup, wanted, &self.order.rules)?;
        Ok(Boarding::Aside(match alone {
            Outcome::Clean(_) => Aside::Behind { paths },
            Outcome::Collided(_) => Aside::Collided { paths },
        }))
    }

    /// Makes the trees of an API submission again: its head is in no pack.
    fn rebuild(
        &mut self,
        row: &Submission,
        missing: Missing,
        at_hand: &dyn Objects,
    ) -> Result<(), ReadError> {
        let edits: Vec<_> = row.edits.iter().map(|edit| (edit.path.clone(), edit.theirs)).collect();
        let objects = Seen { new: &self.new, base: at_hand };
        match RunningTree::new(row.base.tree).apply(&objects, &edits) {
            Ok(applied) if applied.root == row.head_tree => {
                let trees = applied.trees.into_iter();
                let trees =
                    trees.map(|tree| (tree.id, Arc::new(Object { kind: Kind::Tree, data: tree.data })));
                self.new.extend(trees);
                Ok(())
            }
            Err(EditError::Read(error)) => Err(error),
            _ => Err(missing.into()),
        }
    }

    /// Nothing of the change is left to do: main has it already, or a train member that has to land first.
    fn nothing_left(
        &self,
        row: &Submission,
        edits: &[Edit],
        objects: &dyn Objects,
    ) -> Result<Boarding, ReadError> {
        let mut main = RunningTree::new(self.onto.1);
        let mut wanted = row.edits.iter().map(|edit| (&edit.path, edit.theirs));
        if wanted.try_fold(true, |all, (path, entry)| {
            Ok::<_, ReadError>(all && main.lookup(&objects, path)? == entry)
        })? {
            return Ok(Boarding::Aside(Aside::AlreadyOnMain));
        }
        for edit in edits {
            if main.lookup(&objects, &edit.path)? != edit.ours {
                return Ok(Boarding::Later);
            }
        }
        // Merged into what others wrote: only its author can tell that this is all that was meant.
        Ok(Boarding::Aside(Aside::Nothing))
    }

    /// Takes the change aboard, unless the train is full or its configuration cannot be read.
    fn load(
        &mut self,
        row: &Submission,
        edits: Vec<Edit>,
        applied: Applied,
        blobs: Vec<(ObjectId, Arc<Object>)>,
        objects: &dyn Objects,
    ) -> Result<Boarding, ReadError> {
        let (bytes, list) = match EditList::measured(&edits) {
            Ok(measured) => measured,
            Err(refusal) => return Ok(Boarding::Aside(Aside::Broken { why: refusal.to_string() })),
        };
        let fact_bytes = 250 + if list.is_some() { 0 } else { bytes };
        let raw: usize = blobs.iter().map(|(_, blob)| blob.data.len()).sum::<usize>()
            + applied.trees.iter().map(|tree| tree.data.len()).sum::<usize>();
        let bytes = usize::try_from(self.writer.bytes()).unwrap_or(usize::MAX).saturating_add(raw);
        if bytes > CANDIDATE_PACK_BYTES_MAX || self.fact_bytes + fact_bytes > TRAIN_FACT_BYTES_MAX {
            if !self.members.is_empty() {
                return Ok(Boarding::Closed);
            }
            let why = format!(
                "it has {raw} bytes of new content, at most {CANDIDATE_PACK_BYTES_MAX} are taken: split it"
            );
            return Ok(Boarding::Aside(Aside::Broken { why }));
        }
        let seen = Seen { new: &self.new, base: objects };
        match new_check(&edits, &blobs, &seen)? {
            Ok(check) => self.config = check.or(self.config.take()),
            Err(why) => return Ok(Boarding::Aside(Aside::BadConfig { why })),
        }
        self.fact_bytes += fact_bytes;
        // A file that was merged differs by little from the one that stood there, as a tree does.
        let ours = |id| Some(edits.iter().find(|edit| edit.result.is_some_and(|new| new.id == id))?.ours?.id);
        let blobs = blobs.into_iter().map(|(id, blob)| (id, blob, ours(id)));
        let made = |data| Arc::new(Object { kind: Kind::Tree, data });
        let trees = applied.trees.into_iter().map(|tree| (tree.id, made(tree.data), tree.before));
        for (id, object, before) in blobs.chain(trees) {
            let near = before.and_then(|id| Some((id, self.new.get(&id)?)));
            let near = near.as_ref().map(|(id, object)| (*id, object.data.as_slice()));
            self.writer.add_near(id, object.kind, &object.data, near);
            self.new.insert(id, object);
        }
        let message = message::write(&row.intent, Some(&row.change), &row.reverts);
        let commit = self.commit(applied.root, row.author.clone(), message.into_bytes());
        let edits = if list.is_some() { Vec::new() } else { edits };
        self.members.push(Member {
            change: row.change.clone(),
            version: row.version,
            commit,
            tree: applied.root,
            edits,
            list: list.as_ref().map(|(list, _)| list.clone()),
        });
        self.lists.extend(list);
        Ok(Boarding::Aboard)
    }

    fn commit(&mut self, tree: ObjectId, author: Signature, message: Vec<u8>) -> ObjectId {
        let committer = committer(self.order.now);
        let seconds = committer.seconds;
        let parent = self.tip;
        let commit = Commit { tree, parents: vec![parent], author, committer, headers: Vec::new(), message };
        let data = commit.encode();
        let id = hash(Kind::Commit, &data);
        self.writer.add(id, Kind::Commit, &data);
        self.commits.push(NewCommit { id, tree, parent, seconds });
        self.tip = id;
        id
    }
}

/// Adds the blobs that the tree now names and that may be in no catalogued pack: contents of API
/// submissions, and merged contents that are at hand from a train which never landed.
fn uncatalogued(
    row: &Submission,
    edits: &[Edit],
    objects: &dyn Objects,
    blobs: &mut Vec<(ObjectId, Arc<Object>)>,
) -> Result<(), ReadError> {
    let mut missing = Missing::default();
    for edit in edits {
        let Some(entry) = edit.result.filter(|entry| entry.mode != Mode::Gitlink) else { continue };
        let has = |side: Option<Entry>| side.is_some_and(|side| side.id == entry.id);
        let pushed = !row.via.is_inline() && has(edit.theirs);
        if has(edit.ours) || pushed || blobs.iter().any(|(id, _)| *id == entry.id) {
            continue;
        }
        match objects.get(&entry.id) {
            Some(object) => blobs.push((entry.id, object)),
            None => missing.insert(entry.id),
        }
    }
    missing.or(())
}

/// The check that a change of the configuration brings; `Err` when nothing could land after it.
fn new_check(
    edits: &[Edit],
    blobs: &[(ObjectId, Arc<Object>)],
    objects: &dyn Objects,
) -> Result<Result<Option<Check>, String>, ReadError> {
    let config = edits.iter().find(|edit| edit.path.as_bytes() == CONFIG_PATH.as_bytes());
    let Some(edit) = config.filter(|edit| edit.result != edit.ours) else { return Ok(Ok(None)) };
    let Some(entry) = edit.result else { return Ok(Err("it deletes it".into())) };
    let blob = blobs.iter().find(|(id, _)| *id == entry.id).map(|(_, blob)| Arc::clone(blob));
    let Some(blob) = blob.or_else(|| objects.get(&entry.id)) else {
        return Err(ReadError::Missing(Missing::from(entry.id)));
    };
    Ok(read_check(entry.id, &blob.data).map(|(check, _)| Some(check)))
}

/// The check and the whole configuration of a `.switchyard.toml`.
///
/// # Errors
/// A sentence that says why nothing can be tested by it.
pub fn read_check(id: ObjectId, bytes: &[u8]) -> Result<(Check, Config), String> {
    let config = Config::parse(bytes).map_err(|refusal| refusal.to_string())?;
    let Some(check) = &config.check else {
        return Err(config.hold_reason().unwrap_or("it has no check command").to_owned());
    };
    let check = Check {
        config: Some(id),
        command: check.command.clone(),
        junit: Some(check.junit.to_string()),
        timeout_seconds: check.timeout_seconds,
    };
    Ok((check, config))
}

/// The merge rules of a configuration.
#[must_use]
pub fn rules(config: &Config) -> Rules {
    let rules = config
        .rules
        .iter()
        .filter_map(|entry| Some((entry.pattern.clone(), yard_merge::Rule::from_name(entry.rule.as_str())?)));
    Rules::new(rules.collect())
}
