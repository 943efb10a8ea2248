//! The tree of a base of several commits: their trees merged pairwise, in the order of their ids.

use std::sync::Arc;

use yard_common::{ObjectId, Refusal, RepoPath};
use yard_git::{Kind, Object, RunningTree};
use yard_merge::{Outcome, Rules, Trees, merge_trees};
use yard_wire::repository::PrepareReply;

use crate::hand::{Hand, Lacking, Source};

/// Folds the trees of the bases; what the merge makes stays in `hand`.
///
/// # Errors
/// [`Refusal::RebaseNeeded`] when two do not merge cleanly, [`Refusal::NoBase`] when there is none.
pub async fn base_tree(
    prepared: &PrepareReply,
    hand: &mut Hand,
    source: &impl Source,
) -> Result<ObjectId, Refusal> {
    let mut bases = prepared.bases.iter();
    let mut tree = bases.next().ok_or(Refusal::NoBase)?.tree;
    for (next, merge_base) in bases.zip(&prepared.merge_bases) {
        let trees = Trees { base: merge_base.tree, ours: tree, theirs: next.tree };
        let outcome = hand.until(source, |hand| merge_trees(hand, trees, &Rules::default())).await?;
        let applied = match outcome {
            Outcome::Clean(applied) => applied,
            Outcome::Collided(collisions) => {
                let paths: Vec<RepoPath> = collisions.into_iter().map(|one| one.path).take(100).collect();
                let commits = prepared.bases.iter().map(|commit| commit.id).collect();
                return Err(Refusal::RebaseNeeded { commits, paths });
            }
        };
        for blob in applied.new_blobs {
            hand.insert(blob.id, Arc::new(Object { kind: Kind::Blob, data: blob.bytes }));
        }
        let edits: Vec<_> = applied.edits.into_iter().map(|edit| (edit.path, edit.result)).collect();
        let made = hand
            .until(source, |hand| {
                RunningTree::new(tree).apply(hand, &edits).map_err(|error| match error {
                    yard_git::editor::EditError::Read(error) => Lacking::from(error),
                    clash => Lacking::Refused(Refusal::Invalid { why: clash.to_string() }),
                })
            })
            .await?;
        tree = made.root;
        for new in made.trees {
            hand.insert(new.id, Arc::new(Object { kind: Kind::Tree, data: new.data }));
        }
    }
    Ok(tree)
}
