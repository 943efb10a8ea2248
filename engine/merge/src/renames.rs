//! The part of a merge that needs renames: gitoxide's tree merge under guards.
//!
//! gitoxide decides structure, renames and modes. Not taken from it: attributes (it gets none; every
//! path whose content it merged is looked up here), content (each is merged again by
//! [`crate::text`], and must have the same bytes), directory renames (a conflict, as git's default
//! has it), its errors and its `Unknown` (collisions).

use std::collections::{BTreeMap, BTreeSet};

use gix_diff::tree_with_rewrites::Change as GixChange;
use gix_merge::tree::{Conflict, Resolution, ResolutionFailure as Failure, TreatAsUnresolved};
use gix_object::WriteTo as _;
use yard_common::landing::{Edit, How};
use yard_common::submission::{Entry, Mode};
use yard_common::{ObjectId, RepoPath};
use yard_git::diff::diff;
use yard_git::{Kind, Objects, ReadError};
use yard_rules::Rules;

use crate::changes::{Changes, RenameHints, Wanted};
use crate::content::{Blobs, Three, is_file};
use crate::doubles;
use crate::lookup::TreeLookup;
use crate::outcome::{Collision, CollisionKind, Gathered};
use crate::store::{Store, from_gix, to_gix};
use crate::stranded;
use crate::trees::{Sides, Trees};

/// At most this many deleted times this many added files of a side are compared for similarity.
pub(crate) const LIMIT: usize = 100;

/// Common bytes, in percent, from which a file that was moved and edited is surely the same file: the
/// measures of git and of gitoxide differ by a few percent around their common limit of 50.
const SURE_PERCENT: usize = 60;

/// What the merge of entries by path left over.
pub(crate) struct Work {
    /// Paths of theirs that do not stand on all three sides.
    pub moving: Vec<Three>,
    /// Paths that stand on all three sides and are decided already.
    pub in_place: BTreeSet<RepoPath>,
    pub hints: RenameHints,
    /// Which rule holds on which paths.
    pub rules: Rules,
}

/// Merges the moving paths; edits and collisions go to `out`.
pub(crate) fn merge(
    objects: &dyn Objects,
    trees: Trees,
    sides: Sides<'_>,
    work: &Work,
    out: &mut Gathered,
) -> Result<(), ReadError> {
    prefetch(objects, sides, work)?;
    out.collisions.extend(doubles::collisions(objects, sides));
    if !out.collisions.is_empty() {
        return Ok(());
    }
    let store = Store::new(objects, submodules(sides));
    let machine = run(&store, trees);
    let missing = store.missing();
    if !missing.is_empty() {
        return Err(ReadError::Missing(missing));
    }
    let merged = match machine {
        Ok(merged) => merged,
        Err(why) => {
            let path = work.moving.first().map(|three| three.path.clone());
            out.collisions.extend(path.map(|path| undecided(&path, &why)));
            return Ok(());
        }
    };
    let checked = check_conflicts(objects, trees, work, &merged.conflicts, out)?;
    out.collisions.extend(stranded::collisions(objects, sides, &work.hints.stranded));
    if out.collisions.is_empty() {
        make_edits(&store, trees, sides, work, &merged, &checked, out)?;
    }
    Ok(())
}

fn undecided(path: &RepoPath, why: &str) -> Collision {
    Collision::new(path, CollisionKind::Undecided, format!("the merge cannot decide this: {why}"))
}

fn submodules(sides: Sides<'_>) -> BTreeSet<ObjectId> {
    let entries = |changes: &Changes| -> Vec<Entry> {
        changes.0.values().flat_map(|change| [change.base, change.side]).flatten().collect()
    };
    let all = entries(sides.ours.changes).into_iter().chain(entries(sides.theirs.changes));
    all.filter(|entry| entry.mode == Mode::Gitlink).map(|entry| entry.id).collect()
}

/// An entry and where it stands.
pub(crate) type Placed<'a> = (&'a RepoPath, Entry);

/// The deleted and the added files of a side that are compared for similarity: those without an
/// exact partner.
pub(crate) fn candidates(changes: &Changes) -> (Vec<Placed<'_>>, Vec<Placed<'_>>) {
    let file = |(_, entry): &(&RepoPath, Entry)| entry.mode != Mode::Gitlink;
    let deleted: Vec<_> = changes.deleted().filter(file).collect();
    let added: Vec<_> = changes.added().filter(file).collect();
    let ids = |list: &[(&RepoPath, Entry)]| list.iter().map(|(_, entry)| entry.id).collect::<BTreeSet<_>>();
    let (was, is) = (ids(&deleted), ids(&added));
    let deleted: Vec<_> = deleted.into_iter().filter(|(_, entry)| !is.contains(&entry.id)).collect();
    let added: Vec<_> = added.into_iter().filter(|(_, entry)| !was.contains(&entry.id)).collect();
    if deleted.len().saturating_mul(added.len()) > LIMIT * LIMIT {
        return (Vec::new(), Vec::new());
    }
    (deleted, added)
}

/// Asks at once for the blobs that the rename search and the content merges after it will read.
fn prefetch(objects: &dyn Objects, sides: Sides<'_>, work: &Work) -> Result<(), ReadError> {
    let mut wanted = Wanted::default();
    for (side, other) in [(sides.ours, sides.theirs), (sides.theirs, sides.ours)] {
        let (deleted, added) = candidates(side.changes);
        if !deleted.is_empty() && !added.is_empty() {
            for (_, entry) in deleted.iter().chain(&added) {
                wanted.need(objects, entry.id);
            }
        }
        for (path, was) in side.changes.deleted().filter(|(_, entry)| entry.mode != Mode::Gitlink) {
            if let Some(entry) = other.changes.get(path).and_then(|change| change.side) {
                wanted.need(objects, was.id);
                wanted.need(objects, entry.id);
            }
        }
    }
    for path in &work.in_place {
        for changes in [sides.ours.changes, sides.theirs.changes] {
            let entries = changes.get(path).map(|change| [change.base, change.side]);
            for entry in entries.into_iter().flatten().flatten().filter(|entry| entry.mode != Mode::Gitlink) {
                if sides.ours.changes.get(path).is_some() {
                    wanted.need(objects, entry.id);
                }
            }
        }
    }
    wanted.check()
}

struct Merged {
    tree: ObjectId,
    conflicts: Vec<Conflict>,
}

fn attribute_stack() -> gix_worktree::Stack {
    use gix_worktree::stack::state::{Attributes, attributes::Source};
    let attributes = Attributes::new(Default::default(), None, Source::IdMapping, Default::default());
    let state = gix_worktree::stack::State::AttributesStack(attributes);
    gix_worktree::Stack::new(
        "",
        state,
        gix_attributes::glob::pattern::Case::Sensitive,
        Vec::new(),
        Vec::new(),
    )
}

fn run(store: &Store<'_>, trees: Trees) -> Result<Merged, String> {
    let filter = || {
        let context = gix_command::Context::default();
        gix_filter::Pipeline::new(context, gix_hash::Kind::Sha1, Default::default())
    };
    let mut similarity = gix_diff::blob::Platform::new(
        Default::default(),
        gix_diff::blob::Pipeline::new(Default::default(), filter(), Vec::new(), Default::default()),
        gix_diff::blob::pipeline::Mode::ToGit,
        attribute_stack(),
    );
    let mut blobs = gix_merge::blob::Platform::new(
        gix_merge::blob::Pipeline::new(Default::default(), filter(), Default::default()),
        gix_merge::blob::pipeline::Mode::ToGit,
        attribute_stack(),
        Vec::new(),
        Default::default(),
    );
    let mut options = gix_merge::tree::Options {
        rewrites: Some(gix_diff::Rewrites {
            copies: None,
            percentage: Some(0.5),
            limit: LIMIT,
            track_empty: false,
        }),
        ..Default::default()
    };
    options.blob_merge.text.diff_algorithm = gix_imara_diff::Algorithm::Histogram;
    let mut outcome = gix_merge::tree(
        &to_gix(trees.base),
        &to_gix(trees.ours),
        &to_gix(trees.theirs),
        Default::default(),
        store,
        |bytes| Ok(to_gix(store.write(Kind::Blob, bytes.to_vec()))),
        &mut Default::default(),
        &mut similarity,
        &mut blobs,
        options,
    )
    .map_err(|error| error.to_string())?;
    let tree = outcome
        .tree
        .write(|tree| {
            let mut bytes = Vec::new();
            tree.write_to(&mut bytes)?;
            Ok::<_, std::io::Error>(to_gix(store.write(Kind::Tree, bytes)))
        })
        .map_err(|error| error.to_string())?;
    Ok(Merged { tree: from_gix(&tree), conflicts: outcome.conflicts })
}

fn location(bytes: &[u8]) -> Option<RepoPath> {
    RepoPath::new(bytes).ok()
}

/// Turns what gitoxide could not merge into collisions; the ids of the contents that hold.
fn check_conflicts(
    objects: &dyn Objects,
    trees: Trees,
    work: &Work,
    conflicts: &[Conflict],
    out: &mut Gathered,
) -> Result<BTreeSet<ObjectId>, ReadError> {
    let lookup = TreeLookup::new(objects, trees.ours);
    let mut checked = BTreeSet::new();
    let mut wanted = Wanted::default();
    for conflict in conflicts {
        let Some(path) = location(conflict.theirs.location()) else { continue };
        if is_in_place(work, conflict, &path) {
            continue;
        }
        if let Some(collision) = unresolved(conflict, &path) {
            out.collisions.push(collision);
            continue;
        }
        if [&conflict.ours, &conflict.theirs].into_iter().any(|change| is_doubtful(objects, change)) {
            let why = "one side moved this file and rewrote so much of it that it may be another file";
            out.collisions.push(Collision::new(&path, CollisionKind::Rename, why));
            continue;
        }
        let Some(content) = conflict.content_merge() else { continue };
        let merged = from_gix(&content.merged_blob_id);
        let [base, ours, theirs] = conflict.entries.map(|entry| entry.map(|entry| from_gix(&entry.id)));
        // Where both sides rename alike, the entries are the merged file already.
        let own = |id: Option<ObjectId>, change| if id == Some(merged) { id_of(change) } else { id };
        let (ours, theirs) = (own(ours, &conflict.ours), own(theirs, &conflict.theirs));
        let (Some(ours), Some(theirs)) = (ours, theirs) else {
            out.collisions.push(undecided(&path, "a content merge without two sides"));
            continue;
        };
        let names = [conflict.ours.location(), conflict.theirs.location(), conflict.theirs.source_location()];
        let names: BTreeSet<RepoPath> = names.into_iter().filter_map(|name| location(name)).collect();
        for name in &names {
            let blobs = Blobs { path: name, base, ours, theirs };
            match wanted.take(blobs.merge_text(objects, &lookup))? {
                None => {}
                Some(Err((kind, why))) => out.collisions.push(Collision::new(&path, kind, why)),
                Some(Ok(bytes)) => {
                    let id = yard_git::hash(Kind::Blob, &bytes);
                    if id == merged {
                        let rule = work.rules.of(name);
                        match rule.map_or(Ok(()), |rule| blobs.agrees(objects, rule, &bytes)) {
                            Ok(()) => _ = checked.insert(id),
                            Err((kind, why)) => out.collisions.push(Collision::new(&path, kind, why)),
                        }
                    } else {
                        let why = "how the lines fit together depends on the diff's heuristics";
                        out.collisions.push(Collision::new(&path, CollisionKind::Ambiguous, why));
                    }
                }
            }
        }
    }
    wanted.check()?;
    Ok(checked)
}

/// What a change puts at its place.
fn id_of(change: &GixChange) -> Option<ObjectId> {
    match change {
        GixChange::Addition { id, .. }
        | GixChange::Modification { id, .. }
        | GixChange::Rewrite { id, .. } => Some(from_gix(id)),
        GixChange::Deletion { .. } => None,
    }
}

/// Is this a rename of two files so unlike that git, which measures otherwise, may see none?
fn is_doubtful(objects: &dyn Objects, change: &GixChange) -> bool {
    match change {
        GixChange::Rewrite { source_id, id, .. } if source_id != id => {
            !stranded::alike(objects, from_gix(source_id), from_gix(id), SURE_PERCENT)
        }
        _ => false,
    }
}

/// Is this a change of one path by both sides, which was decided before?
fn is_in_place(work: &Work, conflict: &Conflict, path: &RepoPath) -> bool {
    let modified = |change: &GixChange| matches!(change, GixChange::Modification { .. });
    modified(&conflict.ours)
        && modified(&conflict.theirs)
        && conflict.ours.location() == conflict.theirs.location()
        && work.in_place.contains(path)
}

fn unresolved(conflict: &Conflict, path: &RepoPath) -> Option<Collision> {
    let (kind, why) = match &conflict.resolution {
        Ok(Resolution::SourceLocationAffectedByRename { final_location }) => {
            let suggested = location(final_location);
            return Some(stranded::collision(path, suggested));
        }
        _ if !conflict.is_unresolved(TreatAsUnresolved::forced_resolution()) => return None,
        Ok(Resolution::OursModifiedTheirsRenamedAndChangedThenRename { merged_blob: Some(_), .. }) => {
            (CollisionKind::Content, "one side renamed this file and both changed the same lines")
        }
        Ok(Resolution::OursModifiedTheirsRenamedAndChangedThenRename { .. }) => {
            (CollisionKind::Rename, "one side renamed this file into a directory that the other renamed")
        }
        Ok(Resolution::OursModifiedTheirsModifiedThenBlobContentMerge { .. }) => {
            (CollisionKind::AddAdd, "main and the change both made this path, with other contents")
        }
        Ok(Resolution::Forced(_)) | Err(Failure::Unknown) => {
            (CollisionKind::Undecided, "the merge cannot combine what the two sides did here")
        }
        Err(Failure::SubmoduleMerge | Failure::SubmoduleAddAdd) => {
            (CollisionKind::Submodule, "main and the change both changed this submodule")
        }
        Err(Failure::OursModifiedTheirsDeleted) => {
            (CollisionKind::ModifyDelete, "one side deleted this file, the other edits it")
        }
        Err(Failure::OursDeletedTheirsRenamed) => {
            (CollisionKind::Rename, "one side deleted this file, the other renamed it")
        }
        Err(Failure::OursRenamedTheirsRenamedDifferently { .. }) => {
            (CollisionKind::Rename, "main and the change renamed this file to different places")
        }
        Err(Failure::OursRenamedTheirsRenamedToSameLocation) => {
            (CollisionKind::Rename, "main and the change renamed different files to this place")
        }
        Err(
            Failure::OursModifiedTheirsDirectoryThenOursRenamed { .. }
            | Failure::OursDirectoryTheirsNonDirectoryTheirsRenamed { .. },
        ) => (CollisionKind::FileDirectory, "a file stands where the other side has a directory"),
        Err(
            Failure::OursAddedTheirsAddedTypeMismatch { .. } | Failure::OursModifiedTheirsRenamedTypeMismatch,
        ) => (CollisionKind::TypeChange, "one side made another kind of entry of this path"),
    };
    Some(Collision::new(path, kind, why))
}

/// Where main moved each path to, as far as the merge had to follow.
fn moves(conflicts: &[Conflict]) -> BTreeMap<RepoPath, RepoPath> {
    let changes = conflicts.iter().flat_map(|conflict| [&conflict.ours, &conflict.theirs]);
    changes
        .filter_map(|change| match change {
            GixChange::Rewrite { source_location, location: to, copy: false, .. } => {
                Some((location(source_location)?, location(to)?))
            }
            _ => None,
        })
        .collect()
}

/// The three entries that were merged into `three.path`, or that its own entry was merged into.
fn merged_entries(
    three: &Three,
    moves: &BTreeMap<RepoPath, RepoPath>,
    sides: Sides<'_>,
) -> Option<[Entry; 3]> {
    if let (Some(base), None, Some(theirs)) = (three.base, three.ours, three.theirs) {
        let ours = sides.ours.changes.get(moves.get(&three.path)?)?.side?;
        return Some([base, ours, theirs]);
    }
    let (source, _) = moves.iter().find(|(_, to)| **to == three.path)?;
    let (own, change) = (sides.ours.changes.get(source), sides.theirs.changes.get(source));
    let base = own.or(change)?.base?;
    let ours = three.ours.or_else(|| own.map_or(Some(base), |own| own.side))?;
    Some([base, ours, three.theirs?])
}

/// The entry that three merge to, where `result` is what gitoxide made of them.
fn merged_entry(
    [base, ours, theirs]: [Entry; 3],
    result: Entry,
    checked: &BTreeSet<ObjectId>,
) -> Option<Entry> {
    if ours == base || ours == theirs {
        return Some(theirs).filter(|entry| *entry == result);
    }
    if theirs == base {
        return Some(ours).filter(|entry| *entry == result);
    }
    if ![base, ours, theirs].into_iter().all(is_file) {
        return None;
    }
    let id = if ours.id == base.id {
        theirs.id
    } else if theirs.id == base.id || ours.id == theirs.id {
        ours.id
    } else {
        Some(result.id).filter(|id| checked.contains(id))?
    };
    // gitoxide lets an executable bit win; git merges modes like contents.
    let mode = if ours.mode == base.mode { theirs.mode } else { ours.mode };
    (id == result.id).then_some(Entry { mode, id })
}

/// The merged tree as edits of ours; every difference must be explained by exactly one edit.
fn make_edits(
    store: &Store<'_>,
    trees: Trees,
    sides: Sides<'_>,
    work: &Work,
    merged: &Merged,
    checked: &BTreeSet<ObjectId>,
    out: &mut Gathered,
) -> Result<(), ReadError> {
    let mut delta: BTreeMap<RepoPath, Option<Entry>> = diff(&store, trees.ours, merged.tree)?
        .into_iter()
        .filter(|edit| !work.in_place.contains(&edit.path))
        .map(|edit| (edit.path, edit.theirs))
        .collect();
    let moves = moves(&merged.conflicts);
    for three in &work.moving {
        let Some(edit) = moving_edit(three, &moves, sides, checked, &mut delta) else {
            out.collisions.push(undecided(&three.path, "its merged entry has no explanation"));
            continue;
        };
        if let Some(entry) = edit.result {
            let bytes = store.read(entry.id, |kind, bytes| (kind == Kind::Blob).then(|| bytes.to_vec()));
            if store.has_written(entry.id)
                && let Some(Some(bytes)) = bytes
            {
                out.blobs.insert(entry.id, bytes);
            }
        }
        out.edits.push((three.path.clone(), edit));
    }
    if let Some(path) = delta.keys().next() {
        out.collisions.push(undecided(path, "the merged tree has a change that no edit explains"));
    }
    Ok(())
}

/// The edit of one moving path; takes what it explains out of `delta`.
fn moving_edit(
    three: &Three,
    moves: &BTreeMap<RepoPath, RepoPath>,
    sides: Sides<'_>,
    checked: &BTreeSet<ObjectId>,
    delta: &mut BTreeMap<RepoPath, Option<Entry>>,
) -> Option<Edit> {
    let result = delta.remove(&three.path).unwrap_or(three.ours);
    if three.ours == three.base && result == three.theirs {
        return Some(three.edit(result, How::Theirs));
    }
    if three.ours == three.theirs && result == three.ours {
        return Some(three.edit(result, How::Same));
    }
    if three.theirs.is_none() {
        // Theirs moved the file away, and ours' edit went with it.
        let moved = result.is_none() && moves.contains_key(&three.path);
        return moved.then(|| three.edit(None, How::Merge));
    }
    let entries = merged_entries(three, moves, sides)?;
    if three.base.is_none() {
        return Some(three.edit(Some(merged_entry(entries, result?, checked)?), How::Merge));
    }
    let to = moves.get(&three.path).filter(|_| three.ours.is_none() && result.is_none())?;
    let [_, ours, _] = entries;
    let result = delta.remove(to).unwrap_or(Some(ours))?;
    let result = merged_entry(entries, result, checked)?;
    let edit = three.edit(Some(result), How::Merge);
    Some(Edit { path: to.clone(), from: Some(three.path.clone()), ours: Some(ours), ..edit })
}
