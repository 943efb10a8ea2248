//! The objects and the history of a remote, as an isolate knows them.
//!
//! What is kept between events is immutable or a copy of a log that only grows, brought up to date
//! before each use: it makes answers faster and never decides one. A fork's objects are its own packs
//! and its parent's. Memory: 1 repository of 30 MiB, 4 forks of 4 MiB, 100,000 commits of some 200
//! bytes: 66 MiB of the isolate's 128 at most, and far less in use.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::Arc;

use yard_common::{ObjectId, Refusal};
use yard_git::commit::CommitLinks;
use yard_git::{Kind, Object};
use yard_objects::Calls as _;
use yard_objects::pack_set::{Budget, Needed, PackSet, PackView};
use yard_transfer::plan::CommitGraph;
use yard_wire::names::{self, Remote};
use yard_wire::repository::{Candidates, CommitInfo, Graph};

use crate::api::{Event, Platform};
use crate::hand::Source;

const REPOSITORY_BUDGET: Budget = Budget { objects: 8 << 20, indexes: 6 << 20, windows: 16 << 20 };
const FORK_BUDGET: Budget = Budget { objects: 1 << 20, indexes: 2 << 20, windows: 1 << 20 };
/// What is kept of a pack that no catalogue names, while one event lasts.
pub const EVENT_BUDGET: Budget = FORK_BUDGET;
const REPOSITORIES_MAX: usize = 1;
const FORKS_MAX: usize = 4;
const COMMITS_MAX: usize = 100_000;

/// Commits of one remote, as its graph log has told them so far.
#[derive(Default)]
struct History {
    next: u64,
    commits: BTreeMap<ObjectId, CommitLinks>,
}

/// What an isolate keeps of one remote.
struct Kept {
    name: String,
    is_fork: bool,
    set: Rc<PackSet>,
    history: Rc<RefCell<History>>,
}

thread_local! {
    // The most recently used stands last.
    static KEPT: RefCell<Vec<Kept>> = const { RefCell::new(Vec::new()) };
}

fn kept(remote: &Remote) -> (Rc<PackSet>, Rc<RefCell<History>>) {
    let name = names::repository(remote);
    KEPT.with_borrow_mut(|all| {
        let found = all.iter().position(|kept| kept.name == name).map(|at| all.remove(at));
        let is_fork = remote.fork.is_some();
        let kept = found.unwrap_or_else(|| Kept {
            name,
            is_fork,
            set: Rc::new(PackSet::new(if is_fork { FORK_BUDGET } else { REPOSITORY_BUDGET })),
            history: Rc::default(),
        });
        let both = (Rc::clone(&kept.set), Rc::clone(&kept.history));
        all.push(kept);
        let most = if is_fork { FORKS_MAX } else { REPOSITORIES_MAX };
        if all.iter().filter(|kept| kept.is_fork == is_fork).count() > most
            && let Some(oldest) = all.iter().position(|kept| kept.is_fork == is_fork)
        {
            all.remove(oldest);
        }
        let commits: usize = all.iter().map(|kept| kept.history.borrow().commits.len()).sum();
        if commits > COMMITS_MAX
            && let Some(largest) = all.iter().max_by_key(|kept| kept.history.borrow().commits.len())
        {
            *largest.history.borrow_mut() = History::default();
        }
        both
    })
}

/// The objects of a remote at the time of one event.
pub struct Store<B> {
    blobs: B,
    sets: Vec<Rc<PackSet>>,
}

impl<B> Store<B> {
    /// The remote's own packs (first), its parent's, a candidate's.
    #[must_use]
    pub fn sets(&self) -> &[Rc<PackSet>] {
        &self.sets
    }

    /// The bucket.
    #[must_use]
    pub fn blobs(&self) -> &B {
        &self.blobs
    }

    /// The same objects and those of packs that no catalogue names yet, which are looked at first.
    #[must_use]
    pub fn with(&self, set: Rc<PackSet>) -> Self
    where
        B: Clone,
    {
        let sets = std::iter::once(set).chain(self.sets.iter().cloned()).collect();
        Self { blobs: self.blobs.clone(), sets }
    }

    /// Adds packs that no catalogue names yet, for this event alone.
    pub fn add(&mut self, set: Rc<PackSet>) {
        self.sets.push(set);
    }
}

impl<B: yard_objects::Blobs + Clone> Store<B> {
    /// The store of a remote, brought up to date with its catalogue and its parent's.
    ///
    /// # Errors
    /// The Repository's refusal: an unknown repository or fork.
    pub async fn of<P: Platform<Blobs = B>>(event: &Event<P>, remote: &Remote) -> Result<Self, Refusal> {
        let mut sets = vec![current(event, remote).await?];
        if remote.fork.is_some() {
            sets.push(current(event, &Remote::parent(remote.repo.clone())).await?);
        }
        Ok(Self { blobs: event.platform.blobs().clone(), sets })
    }

    /// All packs with their indexes at hand, oldest first, the parent's before a fork's.
    ///
    /// # Errors
    /// [`Refusal::Internal`] when the bucket fails.
    pub async fn view(&self) -> Result<PackView, Refusal> {
        let mut all = PackView::default();
        for set in self.sets.iter().rev() {
            all.extend(set.view(&self.blobs).await?);
        }
        Ok(all)
    }
}

async fn current<P: Platform>(event: &Event<P>, remote: &Remote) -> Result<Rc<PackSet>, Refusal> {
    let name = names::repository(remote);
    let (set, _) = kept(remote);
    let reply = event.calls().call(&name, &set.ask(&name)).await?;
    set.take(&name, reply)?;
    Ok(set)
}

/// The packs of these candidates, which no catalogue names; those that are gone are left out.
///
/// # Errors
/// The Repository's refusal.
pub async fn candidates<P: Platform>(
    event: &Event<P>,
    remote: &Remote,
    tips: Vec<ObjectId>,
) -> Result<Rc<PackSet>, Refusal> {
    let name = names::repository(remote);
    let set = PackSet::new(FORK_BUDGET);
    for pack in event.calls().call(&name, &Candidates { tips }).await?.into_iter().flatten() {
        set.add(&name, pack)?;
    }
    Ok(Rc::new(set))
}

impl<B: yard_objects::Blobs> Store<B> {
    /// The kinds of the objects that are here.
    ///
    /// # Errors
    /// [`Refusal::Internal`] when the bucket fails.
    pub async fn kinds(&self, wanted: &BTreeSet<ObjectId>) -> Result<BTreeMap<ObjectId, Kind>, Refusal> {
        let (mut all, mut open) = (BTreeMap::new(), wanted.clone());
        for set in &self.sets {
            if !open.is_empty() {
                let (kinds, missing) = set.kinds(&self.blobs, &open).await?;
                all.extend(kinds);
                open = missing;
            }
        }
        Ok(all)
    }
}

impl<B: yard_objects::Blobs> Source for Store<B> {
    async fn read(&self, wanted: &BTreeSet<ObjectId>) -> Result<Vec<(ObjectId, Arc<Object>)>, Refusal> {
        let mut needed = Needed::default();
        let mut open = wanted.clone();
        for set in &self.sets {
            if !open.is_empty() {
                open = set.load(&self.blobs, &open, &mut needed).await?;
            }
        }
        Ok(needed.objects.iter().map(|(id, object)| (*id, Arc::clone(object))).collect())
    }
}

/// The commit graph of a remote and its parent.
pub struct Ancestry(Vec<Rc<RefCell<History>>>);

impl Ancestry {
    /// The graph, brought up to date.
    ///
    /// # Errors
    /// The Repository's refusal.
    pub async fn of<P: Platform>(event: &Event<P>, remote: &Remote) -> Result<Self, Refusal> {
        let mut remotes = vec![remote.clone()];
        if remote.fork.is_some() {
            remotes.push(Remote::parent(remote.repo.clone()));
        }
        let mut all = Vec::new();
        for remote in remotes {
            let name = names::repository(&remote);
            let (_, history) = kept(&remote);
            loop {
                let since = history.borrow().next;
                let reply = event.calls().call(&name, &Graph { since }).await?;
                let mut history = history.borrow_mut();
                let stands = reply.next <= history.next;
                history.next = reply.next.max(history.next);
                history.commits.extend(reply.commits.into_iter().map(|commit| (commit.id, links(&commit))));
                if stands {
                    break;
                }
            }
            all.push(history);
        }
        Ok(Self(all))
    }
}

impl Ancestry {
    /// Does no log know any commit?
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.iter().all(|history| history.borrow().commits.is_empty())
    }
}

fn links(commit: &CommitInfo) -> CommitLinks {
    CommitLinks { tree: commit.tree, parents: commit.parents.clone(), committed_at: commit.seconds }
}

impl CommitGraph for Ancestry {
    fn commit(&self, id: &ObjectId) -> Option<CommitLinks> {
        self.0.iter().find_map(|history| history.borrow().commits.get(id).cloned())
    }
}
