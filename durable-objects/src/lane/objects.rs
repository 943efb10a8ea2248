//! Objects for a lane's work: what it made itself, what packs hold, main's configuration.

use std::collections::BTreeSet;
use std::sync::Arc;

use yard_common::config::ReplayPolicy;
use yard_common::policy::CONFIG_PATH;
use yard_common::{ObjectId, Refusal, RepoName, RepoPath};
use yard_git::{CachedObjects, Kind, Object, Objects, ReadError, tree};
use yard_merge::Rules;
use yard_queue::{Check, assemble};
use yard_wire::names::{self, Remote};
use yard_wire::repository as wire;

use super::Lane;
use crate::call::Calls as _;
use crate::pack_set::Needed;
use crate::repository::Platform;

/// What main's `.switchyard.toml` says to the lane.
#[derive(Debug, Clone)]
pub(super) struct MainConfig {
    /// Main's tree that it was read from.
    pub tree: ObjectId,
    /// The check, or why there is none.
    pub check: Result<Check, String>,
    /// The merge rules.
    pub rules: Rules,
    /// Changes in one train.
    pub train_max: usize,
    /// When and how far a model redoes changes.
    pub replay: ReplayPolicy,
    /// Patterns of test files.
    pub tests: Vec<String>,
}

/// What is at hand: what the lane made, and what was loaded for this step.
pub(super) struct AtHand<'a> {
    pub made: &'a CachedObjects,
    pub needed: &'a Needed,
}

impl Objects for AtHand<'_> {
    fn get(&self, id: &ObjectId) -> Option<Arc<Object>> {
        self.made.get(id).or_else(|| self.needed.get(id))
    }
}

/// Why a read did not come to its end.
pub(super) enum Lost {
    /// No pack has these.
    Nowhere(BTreeSet<ObjectId>),
    /// Platform or objects fail.
    Fault(Refusal),
}

impl From<Refusal> for Lost {
    fn from(refusal: Refusal) -> Self {
        Self::Fault(refusal)
    }
}

impl<P: Platform> Lane<P> {
    /// The repository's object.
    pub(super) fn source(&self) -> Result<String, Refusal> {
        let repo = self.repo()?;
        Ok(names::repository(&Remote::parent(repo)))
    }

    pub(super) fn repo(&self) -> Result<RepoName, Refusal> {
        let unknown = || Refusal::NotFound { kind: "lane".into(), name: "of this name".into() };
        self.with(|loaded| loaded.repo.clone())?.ok_or_else(unknown)
    }

    /// Runs `read` until nothing is missing any more. The catalogue is asked for again only when the
    /// packs known so far lack something.
    pub(super) async fn until<T>(
        &self,
        needed: &mut Needed,
        mut read: impl FnMut(&AtHand<'_>) -> Result<T, ReadError>,
    ) -> Result<T, Lost> {
        loop {
            let done = read(&AtHand { made: &self.made.borrow(), needed });
            let missing = match done {
                Ok(value) => return Ok(value),
                Err(ReadError::Missing(missing)) => missing.0,
                Err(ReadError::Malformed { id, why }) => {
                    crate::points::log(&format!("object {id}: {why}"));
                    return Err(Refusal::Internal { during: format!("reading object {id}") }.into());
                }
            };
            let lost = self.packs.load(&self.blobs, &missing, needed).await?;
            if lost.is_empty() {
                continue;
            }
            let source = self.source()?;
            let catalogue = self.calls.call(&source, &self.packs.ask(&source)).await?;
            self.packs.take(&source, catalogue)?;
            let lost = self.packs.load(&self.blobs, &lost, needed).await?;
            if !lost.is_empty() {
                return Err(Lost::Nowhere(lost));
            }
        }
    }

    /// Keeps what the lane made for its next train.
    pub(super) fn keep(&self, objects: Vec<(ObjectId, Arc<Object>)>) {
        let mut made = self.made.borrow_mut();
        for (id, object) in objects {
            made.insert(id, object);
        }
    }

    /// Main's configuration; read again only when main's tree is another one.
    pub(super) async fn main_config(&self, head_tree: ObjectId) -> Result<MainConfig, Refusal> {
        if let Some(known) = self.config.borrow().as_ref().filter(|known| known.tree == head_tree) {
            return Ok(known.clone());
        }
        let path = RepoPath::new(CONFIG_PATH)?;
        let mut needed = Needed::default();
        let read = self
            .until(&mut needed, |objects| {
                let Some(entry) = tree::lookup(objects, head_tree, &path)? else { return Ok(None) };
                match objects.get(&entry.id) {
                    Some(object) if object.kind == Kind::Blob => Ok(Some((entry.id, object))),
                    Some(_) => Ok(None),
                    None => Err(ReadError::Missing(entry.id.into())),
                }
            })
            .await;
        let found = match read {
            Ok(found) => found,
            Err(Lost::Fault(refusal)) => return Err(refusal),
            Err(Lost::Nowhere(ids)) => {
                crate::points::log(&format!("main's configuration: {} objects are in no pack", ids.len()));
                return Err(Refusal::Internal { during: "reading main's configuration".into() });
            }
        };
        let none = || yard_common::config::Config::default();
        let (check, config) = match found {
            None => (Err(none().hold_reason().unwrap_or_default().to_owned()), none()),
            Some((id, blob)) => match assemble::read_check(id, &blob.data) {
                Ok((check, config)) => (Ok(check), config),
                Err(why) => (Err(why), none()),
            },
        };
        let config = MainConfig {
            tree: head_tree,
            check,
            rules: assemble::rules(&config),
            train_max: config.train_max,
            replay: config.replay.clone(),
            tests: config.tests.clone(),
        };
        *self.config.borrow_mut() = Some(config.clone());
        Ok(config)
    }

    /// Contents of API submissions, by as many calls as their bytes need.
    pub(super) async fn contents(&self, ids: BTreeSet<ObjectId>, needed: &mut Needed) -> Result<(), Refusal> {
        let source = self.source()?;
        let mut open: Vec<ObjectId> = ids.into_iter().collect();
        while !open.is_empty() {
            let found = self.calls.call(&source, &wire::Contents { ids: open.clone() }).await?;
            if found.is_empty() {
                break;
            }
            let mut got = BTreeSet::new();
            for (id, bytes) in found {
                got.insert(id);
                needed.insert(id, Arc::new(Object { kind: Kind::Blob, data: bytes.0 }))?;
            }
            open.retain(|id| !got.contains(id));
        }
        Ok(())
    }
}
