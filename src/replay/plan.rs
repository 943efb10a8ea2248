//! What each reviewed path is on the tree that the intent is redone on.

use std::collections::BTreeSet;

use yard_common::RepoPath;
use yard_common::config::Config;
use yard_common::submission::{Entry, Mode, RowEdit, Submission};
use yard_common::{ObjectId, Refusal};
use yard_git::editor::EditError;
use yard_git::{Objects, Overlay, ReadError, RunningTree, tree};
use yard_merge::{Outcome, Row, Rule, Rules, TreeLookup, apply_row};

/// One reviewed path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Planned {
    /// The path in the reviewed version.
    pub reviewed: RepoPath,
    /// The path now.
    pub path: RepoPath,
    /// In the reviewed base.
    pub base: Option<Entry>,
    /// In the reviewed version.
    pub theirs: Option<Entry>,
    /// Now.
    pub main: Option<Entry>,
    /// The merge of the three, `None` where it is not clean.
    pub merged: Option<Option<Entry>>,
}

impl Planned {
    /// The mode of what a model writes here: the reviewed one where the change set it, else what stands there.
    pub fn mode(&self) -> Mode {
        let mode = |entry: Option<Entry>| entry.map(|entry| entry.mode);
        if let Some(Some(merged)) = self.merged {
            return merged.mode;
        }
        let set = mode(self.theirs).filter(|theirs| Some(*theirs) != mode(self.base));
        set.or(mode(self.main)).or(mode(self.theirs)).unwrap_or(Mode::File)
    }

    /// Is it a link or a submodule on any side?
    pub fn is_special(&self) -> bool {
        let sides = [self.base, self.theirs, self.main, self.merged.flatten()];
        sides.into_iter().flatten().any(|entry| matches!(entry.mode, Mode::Symlink | Mode::Gitlink))
    }

    /// Every blob that it names.
    pub fn blobs(&self) -> impl Iterator<Item = ObjectId> {
        let sides = [self.base, self.theirs, self.main, self.merged.flatten()];
        sides.into_iter().flatten().filter(|entry| entry.mode != Mode::Gitlink).map(|entry| entry.id)
    }
}

/// All reviewed paths, and blobs that merging made.
#[derive(Debug, Clone, Default)]
pub struct Plan {
    /// The paths, in the row's order.
    pub files: Vec<Planned>,
    /// Merged contents that lie nowhere.
    pub made: Vec<(ObjectId, Vec<u8>)>,
}

/// The merge rules of a configuration; those of one that cannot be read are none, and a lane does not test with it.
pub fn rules(config: Option<&[u8]>) -> Rules {
    let config = config.and_then(|bytes| Config::parse(bytes).ok()).unwrap_or_default();
    let known = |name: &str| Rule::from_name(name);
    Rules::new(
        config
            .rules
            .iter()
            .filter_map(|rule| Some((rule.pattern.clone(), known(rule.rule.as_str())?)))
            .collect(),
    )
}

/// Merges each reviewed path by itself onto `onto`; where the lane says that it collides, it does.
///
/// # Errors
/// All objects found missing so far, or a malformed one.
pub fn plan(
    objects: &impl Objects,
    row: &Submission,
    onto: ObjectId,
    rules: &Rules,
    collided: &BTreeSet<&RepoPath>,
) -> Result<Plan, ReadError> {
    let mut plan = Plan::default();
    let mut missing = BTreeSet::new();
    for edit in &row.edits {
        match one(objects, row, edit, onto, rules) {
            Ok((mut planned, made)) => {
                if collided.contains(&planned.path) || collided.contains(&planned.reviewed) {
                    planned.merged = None;
                }
                plan.files.push(planned);
                plan.made.extend(made);
            }
            Err(ReadError::Missing(more)) => missing.extend(more.0),
            Err(error) => return Err(error),
        }
    }
    if missing.is_empty() { Ok(plan) } else { Err(ReadError::Missing(yard_git::Missing(missing))) }
}

type Made = Vec<(ObjectId, Vec<u8>)>;

fn one(
    objects: &impl Objects,
    row: &Submission,
    edit: &RowEdit,
    onto: ObjectId,
    rules: &Rules,
) -> Result<(Planned, Made), ReadError> {
    let path = name_now(objects, row, edit, onto)?;
    let main = tree::lookup(objects, onto, &path)?;
    let mut planned = Planned {
        reviewed: edit.path.clone(),
        path,
        base: edit.base,
        theirs: edit.theirs,
        main,
        merged: None,
    };
    let outcome = alone(objects, row, edit, onto, rules)?;
    let Outcome::Clean(applied) = outcome else { return Ok((planned, Vec::new())) };
    let [done] = applied.edits.as_slice() else { return Ok((planned, Vec::new())) };
    if done.path == planned.path {
        planned.merged = Some(done.result);
    }
    Ok((planned, applied.new_blobs.into_iter().map(|blob| (blob.id, blob.bytes)).collect()))
}

/// The merge of one edit alone: its base tree with nothing but this edit, onto the tree of now.
fn alone(
    objects: &impl Objects,
    row: &Submission,
    edit: &RowEdit,
    onto: ObjectId,
    rules: &Rules,
) -> Result<Outcome, ReadError> {
    let mut overlay = Overlay::new(objects);
    let mut running = RunningTree::new(row.base.tree);
    let applied = match running.apply(objects, &[(edit.path.clone(), edit.theirs)]) {
        Ok(applied) => applied,
        Err(EditError::Read(error)) => return Err(error),
        // A file stands where this alone wants a directory: only together with the others it fits.
        Err(_) => return Ok(Outcome::Collided(Vec::new())),
    };
    for made in applied.trees {
        overlay.new.add(yard_git::Kind::Tree, made.data);
    }
    let edits = [edit.clone()];
    let one = Row { edits: &edits, base_tree: row.base.tree, theirs_tree: applied.root };
    apply_row(&overlay, &TreeLookup::new(&overlay, onto), one, rules)
}

/// The name that main has given the file meanwhile. Setting nothing but the other mode of its base merges clean
/// with any rename, and says where to.
fn name_now(
    objects: &impl Objects,
    row: &Submission,
    edit: &RowEdit,
    onto: ObjectId,
) -> Result<RepoPath, ReadError> {
    let flipped = edit.base.and_then(|base| match base.mode {
        Mode::File => Some(Entry { mode: Mode::Executable, ..base }),
        Mode::Executable => Some(Entry { mode: Mode::File, ..base }),
        Mode::Symlink | Mode::Gitlink => None,
    });
    let (Some(flipped), None) = (flipped, tree::lookup(objects, onto, &edit.path)?) else {
        return Ok(edit.path.clone());
    };
    let probe = RowEdit { path: edit.path.clone(), base: edit.base, theirs: Some(flipped) };
    let outcome = alone(objects, row, &probe, onto, &Rules::new(Vec::new()))?;
    Ok(match outcome {
        Outcome::Clean(applied) => match applied.edits.as_slice() {
            [moved] => moved.path.clone(),
            _ => edit.path.clone(),
        },
        Outcome::Collided(_) => edit.path.clone(),
    })
}

/// A path that two reviewed paths have become is none to write to.
///
/// # Errors
/// [`Refusal::Invalid`].
pub fn check(plan: &Plan) -> Result<(), Refusal> {
    let mut seen = BTreeSet::new();
    match plan.files.iter().find(|file| !seen.insert(&file.path)) {
        None => Ok(()),
        Some(file) => {
            Err(Refusal::Invalid { why: format!("two reviewed paths have become {} on main", file.path) })
        }
    }
}
