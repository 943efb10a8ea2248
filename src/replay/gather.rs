//! From a job to what the prompt is made of.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use yard_common::policy::CONFIG_PATH;
use yard_common::replay::{Cause, Cost, Origin};
use yard_common::submission::{Entry, Mode, Submission};
use yard_common::{ChangeId, Fact, FactNo, ObjectId, Refusal, RepoName, RepoPath, Version};
use yard_git::{Kind, Object, Objects, ReadError, tree};
use yard_objects::Calls as _;
use yard_replay::brief::{self, Brief, BriefFile, CollidedPath, Rival, RivalFile, Start};
use yard_replay::price::Spent;
use yard_replay::proof::Proof;
use yard_wire::lane::{ReplayJob, ReplayPointer};
use yard_wire::names::{self, Remote};
use yard_wire::repository::{Changes, Contents, Facts};

use super::ask;
use super::plan::{self, Plan, Planned};
use crate::api::{Event, Platform};
use crate::hand::{Hand, Lacking, Room, Source};
use crate::store::{self, Store};

/// Rivals shown to the model.
const RIVALS_MAX: usize = 10;
/// Files shown of one rival: the reviewed paths first.
const RIVAL_FILES_MAX: usize = 20;
/// Facts of one change that are read for its reviewed version: 20 replays, with what happened between.
const FACTS_MAX: u32 = 500;

/// What one replay stands on.
pub struct Gathered {
    /// The brief.
    pub brief: Brief,
    /// The paths with their entries.
    pub plan: Plan,
    /// The reviewed version's row.
    pub reviewed: Submission,
    /// What the versions that models made of this change have cost.
    pub spent: Spent,
    /// The objects read.
    pub hand: Hand,
    /// Blobs that lie in no pack: API submissions keep theirs in the repository's object.
    pub loose: BTreeSet<ObjectId>,
}

/// Packs first, then the contents of API submissions.
pub struct Everywhere<'a, P: Platform> {
    event: &'a Event<P>,
    object: String,
    store: Store<P::Blobs>,
    loose: std::cell::RefCell<BTreeSet<ObjectId>>,
}

impl<'a, P: Platform> Everywhere<'a, P> {
    /// All objects of a repository; those of a candidate too, where the job is on one.
    pub async fn of(
        event: &'a Event<P>,
        repo: &RepoName,
        candidate: Option<ObjectId>,
    ) -> Result<Self, Refusal> {
        let remote = Remote::parent(repo.clone());
        let mut store = Store::of(event, &remote).await?;
        if let Some(tip) = candidate {
            store.add(store::candidates(event, &remote, vec![tip]).await?);
        }
        Ok(Self { event, object: names::repository(&remote), store, loose: std::cell::RefCell::default() })
    }
}

impl<P: Platform> Source for Everywhere<'_, P> {
    async fn read(&self, wanted: &BTreeSet<ObjectId>) -> Result<Vec<(ObjectId, Arc<Object>)>, Refusal> {
        let mut found = self.store.read(wanted).await?;
        let mut open = wanted.clone();
        for (id, _) in &found {
            open.remove(id);
        }
        while !open.is_empty() {
            let ask = Contents { ids: open.iter().copied().collect() };
            let some = self.event.calls().call(&self.object, &ask).await?;
            if some.is_empty() {
                break;
            }
            for (id, bytes) in some {
                open.remove(&id);
                self.loose.borrow_mut().insert(id);
                found.push((id, Arc::new(Object { kind: Kind::Blob, data: bytes.0 })));
            }
        }
        Ok(found)
    }
}

/// Reads all that a job needs.
///
/// # Errors
/// What keeps the change from being replayed; [`Refusal::Internal`] where the platform fails.
pub async fn gather<P: Platform>(
    event: &Event<P>,
    room: &Room,
    repo: &RepoName,
    job: &ReplayJob,
) -> Result<Gathered, Refusal> {
    let source = Everywhere::of(event, repo, job.early.then_some(job.commit)).await?;
    let (reviewed, spent) = reviewed(event, repo, job).await?;
    let rivals = rivals(event, repo, job).await?;
    let mut hand = Hand::within(room);
    let onto = job.tree;
    let config_path = RepoPath::new(CONFIG_PATH)?;
    let config = hand.until(&source, |hand| blob_at(hand, onto, &config_path)).await?;
    let rules = plan::rules(config.as_ref().map(|blob| blob.data.as_slice()));
    let collided: BTreeSet<&RepoPath> = match &job.cause {
        Cause::Collision { paths } => paths.iter().map(|(path, _)| path).collect(),
        Cause::Interaction { .. } => BTreeSet::new(),
    };
    let plan = hand.until(&source, |hand| plan::plan(hand, &reviewed, onto, &rules, &collided)).await?;
    plan::check(&plan)?;
    for (id, bytes) in &plan.made {
        hand.insert(*id, Arc::new(Object { kind: Kind::Blob, data: bytes.clone() }));
    }
    let own: BTreeSet<&RepoPath> = plan.files.iter().flat_map(|file| [&file.path, &file.reviewed]).collect();
    let shown: Vec<(&Submission, Vec<&yard_common::submission::RowEdit>)> =
        rivals.iter().map(|row| (row, edits_shown(row, &own))).collect();
    let entries = shown.iter().flat_map(|(_, edits)| edits.iter().flat_map(|edit| [edit.base, edit.theirs]));
    let mut ids: BTreeSet<ObjectId> = plan.files.iter().flat_map(Planned::blobs).collect();
    ids.extend(entries.flatten().filter(|entry| entry.mode != Mode::Gitlink).map(|entry| entry.id));
    hand.until(&source, |hand| {
        let missing: BTreeSet<_> = ids.iter().filter(|id| hand.get(id).is_none()).copied().collect();
        if missing.is_empty() { Ok(()) } else { Err(Lacking::Objects(missing)) }
    })
    .await?;
    let contract = match &job.policy.contract {
        Some(path) => hand.until(&source, |hand| blob_at(hand, onto, path)).await?,
        None => None,
    };
    let brief = Brief {
        intent: reviewed.intent.clone(),
        cause: cause(&job.cause),
        files: plan.files.iter().map(|file| brief_file(&hand, file)).collect(),
        rivals: shown.into_iter().map(|(row, edits)| rival(&hand, row, &edits)).collect(),
        contract: contract.map(|blob| String::from_utf8_lossy(&blob.data).into_owned()),
        context: Vec::new(),
    };
    let loose = source.loose.into_inner();
    Ok(Gathered { brief, plan, reviewed, spent, hand, loose })
}

fn blob_at(hand: &Hand, tree: ObjectId, path: &RepoPath) -> Result<Option<Arc<Object>>, Lacking> {
    match tree::lookup(hand, tree, path).map_err(|error: ReadError| Lacking::from(error))? {
        Some(Entry { mode: Mode::File | Mode::Executable, id }) => match hand.get(&id) {
            Some(blob) => Ok(Some(blob)),
            None => Err(Lacking::Objects(BTreeSet::from([id]))),
        },
        _ => Ok(None),
    }
}

/// The row that was reviewed, for a replay's own is a model's work, and what all replays have cost.
async fn reviewed<P: Platform>(
    event: &Event<P>,
    repo: &RepoName,
    job: &ReplayJob,
) -> Result<(Submission, Spent), Refusal> {
    let Some(origin) = &job.row.replay else { return Ok(((*job.row).clone(), Spent::default())) };
    let object = names::repository(&Remote::parent(repo.clone()));
    let ask = Facts { after: FactNo(0), limit: FACTS_MAX, change: Some(job.row.change.clone()) };
    let (mut reviewed, mut spent) = (None, Spent::default());
    for (_, _, fact) in event.calls().call(&object, &ask).await? {
        let Fact::Submitted { row, .. } = fact else { continue };
        if let Some(replay) = &row.replay {
            spent = spent.plus(ask::spent(&replay.cost));
        }
        if row.version == origin.reviewed {
            reviewed = Some(*row);
        }
    }
    let missing = || Refusal::Invalid {
        why: format!(
            "version {} of change {}, which was reviewed, is not found",
            origin.reviewed, job.row.change
        ),
    };
    Ok((reviewed.ok_or_else(missing)?, spent))
}

async fn rivals<P: Platform>(
    event: &Event<P>,
    repo: &RepoName,
    job: &ReplayJob,
) -> Result<Vec<Submission>, Refusal> {
    let skip = job.rivals.len().saturating_sub(RIVALS_MAX);
    let ids: Vec<ChangeId> = job.rivals.get(skip..).unwrap_or_default().to_vec();
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    let object = names::repository(&Remote::parent(repo.clone()));
    let limit = u32::try_from(ids.len()).unwrap_or(u32::MAX);
    let views = event.calls().call(&object, &Changes { ids: ids.clone(), before: None, limit }).await?;
    let rows: BTreeMap<ChangeId, Submission> =
        views.into_iter().map(|view| (view.row.change.clone(), view.row)).collect();
    Ok(ids.iter().filter_map(|id| rows.get(id).cloned()).collect())
}

fn edits_shown<'a>(
    row: &'a Submission,
    own: &BTreeSet<&RepoPath>,
) -> Vec<&'a yard_common::submission::RowEdit> {
    let mut edits: Vec<_> = row.edits.iter().collect();
    edits.sort_by_key(|edit| !own.contains(&edit.path));
    edits.truncate(RIVAL_FILES_MAX);
    edits
}

fn cause(cause: &Cause) -> brief::Cause {
    match cause {
        Cause::Collision { paths } => brief::Cause::Collision {
            at: paths
                .iter()
                .map(|(path, why)| CollidedPath { path: path.clone(), why: why.clone() })
                .collect(),
        },
        Cause::Interaction { with, detail, .. } => brief::Cause::Interaction {
            with: with.clone(),
            failing: vec![detail.clone()],
            log: String::new(),
        },
    }
}

fn content(hand: &Hand, entry: Option<Entry>) -> Option<Vec<u8>> {
    let entry = entry?;
    match entry.mode {
        Mode::Gitlink => Some(entry.id.to_string().into_bytes()),
        _ => hand.get(&entry.id).map(|object| object.data.clone()),
    }
}

fn brief_file(hand: &Hand, file: &Planned) -> BriefFile {
    let mode = |entry: Option<Entry>| entry.map(|entry| entry.mode);
    BriefFile {
        reviewed: file.reviewed.clone(),
        path: file.path.clone(),
        base: content(hand, file.base),
        theirs: content(hand, file.theirs),
        main: content(hand, file.main),
        start: match file.merged {
            Some(merged) => Start::Merged(content(hand, merged)),
            None => Start::Main,
        },
        special: file.is_special(),
        mode_moved: file.merged.is_some_and(|merged| mode(merged) != mode(file.main)),
    }
}

fn rival(hand: &Hand, row: &Submission, edits: &[&yard_common::submission::RowEdit]) -> Rival {
    let files = edits.iter().map(|edit| RivalFile {
        path: edit.path.clone(),
        before: content(hand, edit.base),
        after: content(hand, edit.theirs),
    });
    Rival { change: row.change.clone(), intent: row.intent.clone(), files: files.collect() }
}

impl Gathered {
    /// What is kept with the version that the model made.
    pub fn origin(
        &self,
        pointer: &ReplayPointer,
        job: &ReplayJob,
        proof: &Proof,
        hash: &str,
        cost: &Cost,
    ) -> Origin {
        let renamed = self.plan.files.iter().filter(|file| file.reviewed != file.path);
        let reviewed: Version = self.reviewed.version;
        Origin {
            lane: pointer.lane.clone(),
            no: pointer.replay,
            of: job.row.version,
            reviewed,
            cause: job.cause.clone(),
            rivals: job.rivals.clone(),
            renames: renamed.map(|file| (file.reviewed.clone(), file.path.clone())).collect(),
            cost: cost.clone(),
            prompt: hash.to_owned(),
            compared: proof.verdict.clone(),
            range_diff: proof.text(),
            differing_lines: u32::try_from(proof.counts.differ()).unwrap_or(u32::MAX),
        }
    }
}
