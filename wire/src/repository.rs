//! The methods of a Repository object (one per repository and one per fork).

use serde::{Deserialize, Serialize};
use yard_common::bytes::Base64;
use yard_common::edit_list::EditList;
use yard_common::fact::{Fact, Terminal};
use yard_common::intent::{Intent, Signature};
use yard_common::landing::{AttemptId, LandRequest, PackRef};
use yard_common::replay::Origin;
use yard_common::submission::{RowEdit, Submission, Via};
use yard_common::{
    ChangeId, Epoch, FactNo, Fence, ForkName, IdempotencyKey, LaneName, Millis, ObjectId, OwnerEpoch,
    PackKey, RefName, Refusal, RepoName, RepoPath, TokenId, Version,
};

use crate::method;

mod candidate;
mod offered;
mod upkeep;

pub use candidate::StageCandidate;
pub use offered::{CatalogueHeads, Heads, Offered, OfferedReply, Prepare, PrepareReply, WaitingHead};
pub use upkeep::{CheckToken, Reindex, ReindexReply, Revoke, Sweep, SweepReply};

/// A pack with its index, where that is small enough to travel inline.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct IndexedPack {
    /// Key, length, object count.
    pub pack: PackRef,
    /// The index (version 2), inline up to `limits::INLINE_INDEX_BYTES_MAX`; else it lies in R2 at
    /// the key plus `.idx`.
    pub index: Option<Base64>,
}

/// A commit's place in the graph.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommitInfo {
    /// The commit.
    pub id: ObjectId,
    /// Its tree.
    pub tree: ObjectId,
    /// Its parents, in order.
    pub parents: Vec<ObjectId>,
    /// Committer's time, seconds since the Unix epoch.
    pub seconds: u64,
}

/// Makes the object: a repository, or a fork of one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Create {
    /// The repository's name.
    pub repo: RepoName,
    /// The fork's name; `None` makes the repository itself.
    pub fork: Option<ForkName>,
    /// What HEAD names.
    pub default_branch: RefName,
    /// Refs that a fork starts with: its parent's branches and tags.
    pub refs: Vec<(RefName, ObjectId)>,
    /// The maker's key: the same one finds it made, any other finds it taken.
    #[serde(default)]
    pub key: Option<IdempotencyKey>,
}
method!(Create, "create", ());

/// One ref.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RefEntry {
    /// The name.
    pub name: RefName,
    /// Where it stands.
    pub id: ObjectId,
    /// What an annotated tag finally names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peeled: Option<ObjectId>,
}

/// All refs that a client may see.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refs {
    /// Leave out `refs/changes/` (hidden refs are never listed).
    pub without_changes: bool,
    /// Revoked if this token is.
    pub token: Option<TokenId>,
}
/// The refs of a remote at one state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RefsReply {
    /// What HEAD names, whether or not it exists.
    pub head: RefName,
    /// All refs, in name order.
    pub refs: Vec<RefEntry>,
    /// The state they were read at.
    pub state: FactNo,
}
method!(Refs, "refs", RefsReply);

/// Resolves names, hidden refs (`refs/candidates/...`) and full object ids of commits included.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resolve {
    /// Ref names.
    pub names: Vec<RefName>,
}
method!(Resolve, "resolve", Vec<Option<ObjectId>>);

/// The catalogue of packs after a place in it; a caller keeps what it has while `generation` holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Catalogue {
    /// The place that the caller has read up to; 0 at first.
    pub since: u64,
    /// The generation that the caller's copy belongs to.
    pub generation: u64,
    /// Candidates (staged packs) of this attempt are wanted too.
    pub attempt: Option<AttemptId>,
}
/// Packs of the catalogue.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CatalogueReply {
    /// Moves when a pack left the catalogue: then the list is complete and replaces the copy.
    pub generation: u64,
    /// The packs, oldest first.
    pub packs: Vec<IndexedPack>,
    /// The place read up to.
    pub next: u64,
    /// For a fork: the parent repository, whose catalogue is to be read as well.
    pub parent: Option<RepoName>,
}
method!(Catalogue, "catalogue", CatalogueReply);

/// The packs of staged candidates by their tips: a client that fetches `refs/candidates/...` names the
/// tip alone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Candidates {
    /// The tips.
    pub tips: Vec<ObjectId>,
}
method!(Candidates, "candidates", Vec<Option<IndexedPack>>);

/// The commit graph after a place in it, oldest first, at most 20,000 at a time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Graph {
    /// The place that the caller has read up to; 0 at first.
    pub since: u64,
}
/// Commits of the graph.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GraphReply {
    /// The commits.
    pub commits: Vec<CommitInfo>,
    /// The place read up to; ask again until it stands still.
    pub next: u64,
}
method!(Graph, "graph", GraphReply);

/// Announces a pack before its first byte is written, so that a sweep finds it if it stays alone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stage {
    /// The key that will be written.
    pub key: PackKey,
}
method!(Stage, "stage", ());

/// One command of a push.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RefCommand {
    /// The ref.
    pub name: RefName,
    /// What the client thinks it is; `None`: it must not exist.
    pub old: Option<ObjectId>,
    /// What it shall be; `None` deletes it.
    pub new: Option<ObjectId>,
    /// What an annotated tag finally names.
    pub peeled: Option<ObjectId>,
    /// Is `new` a commit (after no peeling)? Branches take commits only.
    pub is_commit: bool,
}

/// A push whose pack is stored and checked: catalogues it and moves refs, in one decision.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Push {
    /// The push id.
    pub key: IdempotencyKey,
    /// The pack; `None` when only refs move.
    pub pack: Option<IndexedPack>,
    /// The commits in the pack.
    pub commits: Vec<CommitInfo>,
    /// The ref updates.
    pub commands: Vec<RefCommand>,
    /// All or none.
    pub atomic: bool,
    /// Does the token have the admin scope?
    pub admin: bool,
    /// Why a push that is not a fast-forward of main is made (push option `reason=`).
    pub reason: Option<String>,
    /// The bearer's token id.
    pub token: Option<TokenId>,
}
/// What became of each command, in their order: `None` = done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PushReply {
    /// One entry a command.
    pub results: Vec<Option<Refusal>>,
}
method!(Push, "push", PushReply);

/// One submission, prepared: the edge has read trees and made the edits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Proposal {
    /// The caller's key.
    pub key: IdempotencyKey,
    /// A digest of the caller's whole request, where the key is bound to that.
    #[serde(default)]
    pub request: Option<String>,
    /// The change, if its id was given.
    pub change: Option<ChangeId>,
    /// `-o new-change`: it is another change although it overlaps with an open one.
    pub new_change: bool,
    /// The fork that offers it.
    pub fork: Option<ForkName>,
    /// How it came in.
    pub via: Via,
    /// A replay of this version; refused when it is not the newest any more.
    pub replay_of: Option<Version>,
    /// Author of the head.
    pub author: Signature,
    /// The head.
    pub head: ObjectId,
    /// The head's tree.
    pub head_tree: ObjectId,
    /// All commits from base (exclusive) to head (inclusive).
    pub commits: Vec<CommitInfo>,
    /// The base commits as `prepare` gave them.
    pub base_commits: Vec<ObjectId>,
    /// Their tree, folded.
    pub base_tree: ObjectId,
    /// The differing paths; never empty.
    pub edits: Vec<RowEdit>,
    /// Their list as the edge has put it into the bucket, where they are too many for a fact.
    #[serde(default)]
    pub list: Option<EditList>,
    /// Differing paths between the head's tree and each main of `mains_before`, counted no further
    /// than the number of edits.
    pub differs_from_mains: Vec<u32>,
    /// Paths that the nearest of those mains would take back, at most 1,000.
    pub takes_back: Vec<RepoPath>,
    /// Declared reverts.
    pub reverts: Vec<ChangeId>,
    /// What was asked.
    pub intent: Intent,
    /// Warnings that the edge found.
    pub warnings: Vec<String>,
    /// How a model made it, for a replay.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replay: Option<Box<Origin>>,
    /// Contents of an API submission's new blobs: kept here until landed.
    pub contents: Vec<(ObjectId, Base64)>,
    /// The head commit of an API submission, encoded: kept here until it is built as a git object.
    #[serde(default)]
    pub head_object: Option<Base64>,
    /// The fork's packs that the head's closure needs, to be catalogued here.
    pub packs: Vec<IndexedPack>,
}
/// Stores submissions; each stands alone, in order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Submit {
    /// The proposals.
    pub items: Vec<Proposal>,
    /// The bearer's token id.
    pub token: Option<TokenId>,
}
/// An accepted submission.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Accepted {
    /// The change.
    pub change: ChangeId,
    /// Its version.
    pub version: Version,
    /// The head.
    pub head: ObjectId,
    /// What it waits for.
    pub waits_for: Vec<ChangeId>,
    /// What the author should know.
    pub warnings: Vec<String>,
}
/// One result an item.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SubmitReply {
    /// In the order of the items.
    pub results: Vec<Result<Accepted, Refusal>>,
    /// The lanes that should be hinted.
    pub lanes: Vec<LaneName>,
}
method!(Submit, "submit", SubmitReply);

/// Facts after a place, and the world as it is now: a lane's one read per train.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pull {
    /// The lane that asks.
    pub lane: LaneName,
    /// The last fact it has read; 0 at first.
    pub after: FactNo,
    /// At most this many facts.
    pub limit: u32,
}
/// A live claim.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClaimView {
    /// Who; the parent's own agents when `None`.
    pub fork: Option<ForkName>,
    /// The paths.
    pub paths: Vec<RepoPath>,
    /// The fencing number.
    pub fence: Fence,
    /// When it ends.
    pub until: Millis,
}
/// Main and what governs landing, at one state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct View {
    /// Main; `None` while the repository is empty.
    pub head: Option<ObjectId>,
    /// Main's tree.
    pub head_tree: Option<ObjectId>,
    /// Main's epoch.
    pub epoch: Epoch,
    /// The lane's owner epoch.
    pub owner_epoch: OwnerEpoch,
    /// The notes ref.
    pub notes_head: Option<ObjectId>,
    /// The notes ref's tree.
    pub notes_tree: Option<ObjectId>,
    /// Why landing is frozen, if it is.
    pub frozen: Option<String>,
    /// Live claims.
    pub claims: Vec<ClaimView>,
    /// The lane that has the landing turn, and until when.
    pub turn: Option<(LaneName, Millis)>,
    /// Was main's tip tested (or is it known green by a landing)?
    pub tip_tested: bool,
}
/// What a pull answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PullReply {
    /// Facts with their numbers, in order: what concerns lanes (submissions, landings, refusals of
    /// landings, closings, holds, freezes, requeues, direct pushes, owners). A submission's row is
    /// whole; a landing's edits are left out.
    pub facts: Vec<(FactNo, Fact)>,
    /// Read up to here.
    pub upto: FactNo,
    /// More are to be had at once.
    pub more: bool,
    /// The world, read at the newest fact.
    pub view: View,
}
method!(Pull, "pull", PullReply);

/// Contents of API submissions that have not landed, at most 8 MiB in one reply.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Contents {
    /// Blob ids.
    pub ids: Vec<ObjectId>,
}
method!(Contents, "contents", Vec<(ObjectId, Base64)>);

/// Asks the kernel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Land {
    /// The request.
    pub request: LandRequest,
    /// The notes pack's index (the candidate's came with its staging).
    pub notes: IndexedPack,
    /// The notes commit.
    pub notes_commit: CommitInfo,
}
/// Main after a landing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LandedReply {
    /// Main.
    pub head: ObjectId,
    /// The fact that says so.
    pub fact: FactNo,
}
method!(Land, "land", Result<LandedReply, Refusal>);

/// What a person or lane may do to a change or to landing as a whole.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "act", rename_all = "kebab-case")]
pub enum Act {
    /// Take a change back.
    Cancel {
        /// The change.
        change: ChangeId,
        /// Why, where somebody says so.
        #[serde(default)]
        reason: String,
    },
    /// A lane closes a change: already-on-main or expired.
    Close {
        /// The change.
        change: ChangeId,
        /// The version.
        version: Version,
        /// The stage.
        stage: Terminal,
        /// Main when the lane saw it.
        head: ObjectId,
    },
    /// Hold a change, or release it.
    Hold {
        /// The change.
        change: ChangeId,
        /// The reason; `None` releases.
        reason: Option<String>,
    },
    /// Offer a rewritten or sent-back change again as it is.
    Requeue {
        /// The change.
        change: ChangeId,
    },
    /// Freeze landing, or thaw it.
    Freeze {
        /// The reason; `None` thaws.
        reason: Option<String>,
    },
    /// Lease paths.
    Claim {
        /// The paths.
        paths: Vec<RepoPath>,
        /// For how long, in milliseconds, at most 24 h.
        for_ms: u64,
    },
    /// Give a claim back.
    Release {
        /// Its fencing number.
        fence: Fence,
    },
    /// An admin allows the newest version to change what only admins may change.
    Approve {
        /// The change.
        change: ChangeId,
        /// The version; a newer one needs its own approval.
        version: Version,
    },
    /// Forbid or allow direct pushes to main.
    Protect {
        /// Forbid?
        protected: bool,
    },
}
/// Does one act.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Do {
    /// The caller's key.
    pub key: IdempotencyKey,
    /// What.
    pub act: Act,
    /// The fork of the bearer; an author may cancel and requeue its own changes only.
    pub fork: Option<ForkName>,
    /// Does the bearer have the admin scope?
    pub admin: bool,
    /// Who, in words: the fork, an admin, the lane.
    pub by: String,
}
method!(Do, "do", Option<Fence>);

/// One change as the Repository knows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangeView {
    /// The newest accepted row.
    pub row: Submission,
    /// Landed as this commit.
    pub landed: Option<ObjectId>,
    /// Ended otherwise.
    pub closed: Option<Terminal>,
    /// Held by a person, with the reason.
    pub held: Option<String>,
    /// Landed once, but main was rewritten.
    pub rewritten: bool,
}
/// Changes, newest first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Changes {
    /// These only; all when empty.
    pub ids: Vec<ChangeId>,
    /// Those before this place in the submissions log.
    pub before: Option<u64>,
    /// At most this many.
    pub limit: u32,
}
method!(Changes, "changes", Vec<ChangeView>);

/// The changes whose ids begin with a text, at most 10; the one whose id it is, alone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Find {
    /// The text.
    pub prefix: String,
}
method!(Find, "find", Vec<ChangeId>);

/// Facts by number, whole: for `yard fsck`, `yard show` and rebuilding the index.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Facts {
    /// Those after this one.
    pub after: FactNo,
    /// At most this many (and 4 MiB).
    pub limit: u32,
    /// Of this change only.
    pub change: Option<ChangeId>,
}
method!(Facts, "facts", Vec<(FactNo, Millis, Fact)>);
