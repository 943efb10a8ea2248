//! Which objects a fetch needs, worked out over objects that are only partly at hand.
//!
//! A [`Planner`] asks for whole frontiers of commits and trees and keeps ids only: what it asked for and
//! was shown once it never needs again, so a host may show each batch and forget it.

mod connected;
mod depth;
mod history;
mod ids;
mod reach;
mod trees;
mod walk;

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use yard_common::{ObjectId, Refusal};
use yard_git::commit::CommitLinks;
use yard_git::{Kind, Objects, Tag};

pub use connected::{Connectivity, Outside};
use history::{History, Resolver};
use ids::IdSet;
use trees::TreeWalk;
use walk::Walk;

/// Most ids asked for at once: 1,024 trees of some 2 kB are 2 MB.
pub const NEED_MAX: usize = 1_024;
/// Known commits whose trees are compared with: more find little more to leave out.
const EDGES_MAX: usize = 256;
/// `git fetch --unshallow` and `--depth=2147483647`.
pub const DEPTH_INFINITE: u32 = 0x7fff_ffff;

/// What the host knows of objects without inflating them, such as its table of commits.
///
/// Every answer may be `None`: then the object itself is asked for.
pub trait CommitGraph {
    /// The links of a commit.
    fn commit(&self, id: &ObjectId) -> Option<CommitLinks>;

    /// The kind of an object.
    fn kind(&self, _id: &ObjectId) -> Option<Kind> {
        None
    }

    /// The inflated size of a blob in bytes; `blob:limit` leaves out no blob of unknown size.
    fn blob_size(&self, _id: &ObjectId) -> Option<u64> {
        None
    }
}

/// A graph that knows nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoGraph;

impl CommitGraph for NoGraph {
    fn commit(&self, _id: &ObjectId) -> Option<CommitLinks> {
        None
    }
}

/// What a step may look at.
#[derive(Clone, Copy)]
pub struct World<'a> {
    /// Objects at hand.
    pub objects: &'a dyn Objects,
    /// Is the object in the catalogue?
    pub exists: &'a dyn Fn(&ObjectId) -> bool,
    /// What is known without objects.
    pub graph: &'a dyn CommitGraph,
}

/// How far a machine has come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step<T> {
    /// These objects are needed next, at most [`NEED_MAX`], in id order.
    Need(Vec<ObjectId>),
    /// The result.
    Done(T),
}

/// How much history is asked for.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Deepen {
    /// So many commits from each want, 1 = the want alone; [`DEPTH_INFINITE`] = all.
    pub depth: Option<u32>,
    /// `depth` counts from the client's present boundary.
    pub relative: bool,
    /// Commits made at or after this time, in seconds since the Unix epoch.
    pub since: Option<u64>,
    /// Nothing reachable from these.
    pub not: Vec<ObjectId>,
}

impl Deepen {
    /// Is nothing asked for?
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.depth.is_none() && self.since.is_none() && self.not.is_empty()
    }
}

/// Which objects a partial clone leaves out. What is wanted by its own id is never left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Filter {
    /// Blobs of at least this many bytes; 0: all blobs.
    pub blob_limit: Option<u64>,
    /// Trees and blobs at this depth and below; 0: all trees, 1: all but root trees.
    pub tree_depth: Option<u32>,
}

/// What to plan.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PlanRequest {
    /// Objects to send with all they reach.
    pub wants: Vec<ObjectId>,
    /// Objects that the client has with all they reach, all of them in the catalogue.
    pub haves: Vec<ObjectId>,
    /// Commits whose parents the client does not have.
    pub shallow: Vec<ObjectId>,
    /// How much history.
    pub deepen: Deepen,
    /// What to leave out.
    pub filter: Filter,
    /// Annotated tags to add when what they stand for is sent: the tag, and its commit.
    pub tags: Vec<(ObjectId, ObjectId)>,
}

/// Where the client's history is cut after the fetch, as changes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Boundary {
    /// Commits that come without their parents, new to the client, in id order.
    pub shallow: Vec<ObjectId>,
    /// Commits of the client's boundary whose parents come now, in id order.
    pub unshallow: Vec<ObjectId>,
}

/// What to send; every commit, tag and tree was seen, of the blobs only the names.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FetchPlan {
    /// Every object once: commits newest first, tags, then trees and blobs by path, newest first in each.
    pub objects: Vec<ObjectId>,
    /// How many of them are commits.
    pub commits: usize,
    /// How many are annotated tags.
    pub tags: usize,
    /// How many are trees.
    pub trees: usize,
    /// How many are blobs.
    pub blobs: usize,
}

#[derive(Debug)]
enum Stage {
    Resolve,
    Boundary(depth::Depth),
    Commits(Walk),
    Trees(Box<TreeWalk>),
    Tags,
    Done,
}

/// Plans one fetch.
#[derive(Debug)]
pub struct Planner {
    request: PlanRequest,
    history: History,
    wants: Resolver,
    haves: Resolver,
    shallow: Resolver,
    not: Resolver,
    grafts: IdSet,
    boundary: Boundary,
    reach: Option<reach::Reach>,
    stage: Stage,
    plan: FetchPlan,
    tags: Resolver,
}

macro_rules! finish {
    ($step:expr) => {
        match $step {
            Step::Need(ids) => return Ok(Step::Need(ids)),
            Step::Done(value) => value,
        }
    };
}

impl Planner {
    /// A plan to be made.
    #[must_use]
    pub fn new(request: PlanRequest) -> Self {
        let grafts = request.shallow.iter().copied().collect();
        Self {
            wants: Resolver::new(request.wants.iter().copied()),
            haves: Resolver::new(request.haves.iter().copied()),
            shallow: Resolver::new(request.shallow.iter().copied()),
            not: Resolver::new(request.deepen.not.iter().copied()),
            tags: Resolver::default(),
            history: History::default(),
            grafts,
            boundary: Boundary::default(),
            reach: None,
            stage: Stage::Resolve,
            plan: FetchPlan::default(),
            request,
        }
    }

    /// Works out where history is cut; nothing is cut when nothing of [`Deepen`] is asked for.
    ///
    /// # Errors
    /// [`Refusal::Invalid`] when the wish leaves no commit, [`Refusal::Internal`] when the catalogue lacks
    /// or garbles an object.
    pub fn boundary(&mut self, world: &World<'_>) -> Result<Step<Boundary>, Refusal> {
        if matches!(self.stage, Stage::Resolve) {
            let missing = self.resolve(world)?;
            if !missing.is_empty() {
                return Ok(Step::Need(missing));
            }
            let client = self.shallow.commits.iter().copied().collect();
            self.request.deepen.not.clone_from(&self.not.commits);
            self.stage =
                Stage::Boundary(depth::Depth::new(&self.request.deepen, &self.wants.commits, client));
        }
        if let Stage::Boundary(depth) = &mut self.stage {
            let cut = finish!(depth.step(&mut self.history, world)?);
            let wants = self.wants.commits.iter().copied().chain(cut.parents);
            let haves = self.haves.commits.iter().copied().chain(cut.boundary.unshallow.iter().copied());
            self.grafts.extend(cut.boundary.shallow.iter().copied());
            self.stage = Stage::Commits(Walk::new(wants, haves));
            self.boundary = cut.boundary;
        }
        Ok(Step::Done(self.boundary.clone()))
    }

    fn resolve(&mut self, world: &World<'_>) -> Result<Vec<ObjectId>, Refusal> {
        let mut missing = Vec::new();
        if self.request.deepen.is_empty() {
            self.shallow = Resolver::default();
        }
        self.shallow.keep(|id| (world.exists)(id));
        for some in [&mut self.wants, &mut self.haves, &mut self.shallow, &mut self.not] {
            missing.extend(some.step(&mut self.history, world, NEED_MAX - missing.len())?);
        }
        missing.sort_unstable();
        missing.dedup();
        Ok(missing)
    }

    /// Does every wanted commit reach one that the client has, so that negotiation may end?
    ///
    /// # Errors
    /// As [`Planner::boundary`].
    pub fn ready(&mut self, world: &World<'_>) -> Result<Step<bool>, Refusal> {
        finish!(self.boundary(world)?);
        if self.haves.commits.is_empty() {
            return Ok(Step::Done(self.wants.commits.is_empty()));
        }
        let Self { reach, wants, haves, history, grafts, .. } = self;
        let reach = reach.get_or_insert_with(|| reach::Reach::new(&wants.commits, &haves.commits));
        reach.step(history, grafts, world)
    }

    /// The first have that no want reaches, if there is one: trees and blobs are not asked about.
    ///
    /// # Errors
    /// As [`Planner::boundary`].
    pub fn unreached(&mut self, world: &World<'_>) -> Result<Step<Option<ObjectId>>, Refusal> {
        finish!(self.boundary(world)?);
        let Self { reach, wants, haves, history, grafts, .. } = self;
        let reach = reach.get_or_insert_with(|| reach::Reach::new(&wants.commits, &haves.commits));
        reach.step_to_all(history, grafts, world)
    }

    /// Works out the objects.
    ///
    /// # Errors
    /// As [`Planner::boundary`].
    pub fn step(&mut self, world: &World<'_>) -> Result<Step<FetchPlan>, Refusal> {
        finish!(self.boundary(world)?);
        if let Stage::Commits(walk) = &mut self.stage {
            finish!(walk.step(&mut self.history, &self.grafts, world)?);
            self.stage = Self::begin_trees(
                &self.request,
                walk,
                &self.history,
                &self.wants,
                &self.haves,
                &mut self.plan,
            );
            self.tags = self.tags_to_resolve();
        }
        if let Stage::Trees(trees) = &mut self.stage {
            finish!(trees.step(world)?);
            let (trees, blobs) = trees.finish(world);
            self.plan.trees = trees.len();
            self.plan.blobs = blobs.len();
            self.plan.objects.extend(trees);
            self.plan.objects.extend(blobs);
            self.stage = Stage::Tags;
        }
        if matches!(self.stage, Stage::Tags) {
            let missing = self.tags.step(&mut self.history, world, NEED_MAX)?;
            if !missing.is_empty() {
                return Ok(Step::Need(missing));
            }
            self.place_tags();
            self.stage = Stage::Done;
        }
        Ok(Step::Done(self.plan.clone()))
    }

    fn begin_trees(
        request: &PlanRequest,
        walk: &Walk,
        history: &History,
        wants: &Resolver,
        haves: &Resolver,
        plan: &mut FetchPlan,
    ) -> Stage {
        plan.objects = walk.wanted();
        plan.commits = plan.objects.len();
        let mut trees = TreeWalk::new(request.filter);
        let mut edges = walk.edges(history);
        edges.truncate(EDGES_MAX);
        let known = edges.iter().filter_map(|id| history.get(id)).map(|links| links.tree);
        known.chain(haves.trees.iter().copied()).for_each(|id| trees.add_known_root(id));
        haves.blobs.iter().for_each(|id| trees.add_known(*id));
        let roots = plan.objects.iter().filter_map(|id| history.get(id)).map(|links| links.tree);
        roots.for_each(|id| trees.add_root(id));
        wants.trees.iter().for_each(|id| trees.add_wanted_tree(*id));
        wants.blobs.iter().for_each(|id| trees.add_wanted_blob(*id));
        Stage::Trees(Box::new(trees))
    }

    /// Tags that follow the commits sent; a tag may stand for another tag, which must come too.
    fn tags_to_resolve(&self) -> Resolver {
        let sent: IdSet = self.plan.objects.iter().copied().collect();
        let follow =
            self.request.tags.iter().filter(|(_, peeled)| sent.contains(peeled)).map(|(tag, _)| *tag);
        Resolver::new(follow)
    }

    fn place_tags(&mut self) {
        let known: BTreeSet<&ObjectId> = self.haves.tags.iter().collect();
        let all = self.wants.tags.iter().chain(&self.tags.tags);
        let mut seen = BTreeSet::new();
        let tags: Vec<ObjectId> =
            all.filter(|id| !known.contains(id) && seen.insert(**id)).copied().collect();
        self.plan.tags = tags.len();
        let at = self.plan.commits;
        self.plan.objects.splice(at..at, tags);
    }
}

fn damaged(id: &ObjectId, why: &str) -> Refusal {
    Refusal::Internal { during: format!("a fetch (object {id} {why})") }
}

/// The ids that an object names: what must exist where it exists, each with its kind.
///
/// Submodule commits are left out: they live elsewhere.
///
/// # Errors
/// [`Refusal::Invalid`] when the bytes are no object of their kind.
pub fn references(id: &ObjectId, kind: Kind, data: &[u8]) -> Result<Vec<(ObjectId, Kind)>, Refusal> {
    let bad = |why: &str| Refusal::Invalid { why: format!("{} {id} is malformed: {why}", kind.as_str()) };
    match kind {
        Kind::Blob => Ok(Vec::new()),
        Kind::Commit => {
            let links = yard_git::commit::links(data).map_err(|fault| bad(fault.why))?;
            let parents = links.parents.into_iter().map(|parent| (parent, Kind::Commit));
            Ok(std::iter::once((links.tree, Kind::Tree)).chain(parents).collect())
        }
        Kind::Tag => {
            let tag = Tag::parse(data).map_err(|fault| bad(fault.why))?;
            Ok(vec![(tag.target, tag.kind)])
        }
        Kind::Tree => yard_git::tree::entries(data)
            .filter_map(|entry| match entry {
                Err(fault) => Some(Err(bad(fault.why))),
                Ok(entry) => trees::entry_kind(&entry).map(|kind| Ok((entry.id, kind))),
            })
            .collect(),
    }
}
