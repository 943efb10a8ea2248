use std::collections::BTreeMap;

use super::*;
use crate::object::MemoryObjects;
use crate::tree::encode;
use yard_common::submission::Mode;

type Model = BTreeMap<RepoPath, Entry>;
/// An entry under the components of its path.
type Flat = (Vec<Vec<u8>>, Entry);

fn path(text: &str) -> RepoPath {
    RepoPath::new(text).unwrap()
}

fn entry(n: u64) -> Entry {
    let mode = [Mode::File, Mode::Executable, Mode::Symlink][(n % 3) as usize];
    Entry { mode, id: crate::object::hash(Kind::Blob, &n.to_le_bytes()) }
}

/// The tree of a flat list, built anew from nothing.
fn build(objects: &mut MemoryObjects, model: &[Flat]) -> ObjectId {
    let mut groups: BTreeMap<Vec<u8>, Vec<Flat>> = BTreeMap::new();
    let mut list = Vec::new();
    for (names, entry) in model {
        match names.as_slice() {
            [name] => list.push((TreeMode::Leaf(entry.mode), name.clone(), entry.id)),
            [first, rest @ ..] => groups.entry(first.clone()).or_default().push((rest.to_vec(), *entry)),
            [] => {}
        }
    }
    for (name, group) in groups {
        list.push((TreeMode::Tree, name, build(objects, &group)));
    }
    let borrowed: Vec<_> = list.iter().map(|(mode, name, id)| (*mode, name.as_slice(), *id)).collect();
    objects.add(Kind::Tree, encode(&borrowed))
}

fn build_model(objects: &mut MemoryObjects, model: &Model) -> ObjectId {
    let flat: Vec<_> = model
        .iter()
        .map(|(path, entry)| (path.components().map(<[u8]>::to_vec).collect(), *entry))
        .collect();
    build(objects, &flat)
}

struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % n
    }
}

fn random_path(random: &mut Random) -> RepoPath {
    let depth = 1 + random.below(3);
    let names = ["a", "a.b", "a-", "b", "a0"];
    let parts: Vec<_> = (0..depth).map(|_| names[random.below(5) as usize]).collect();
    path(&parts.join("/"))
}

/// Applies to the model as the words say: deletes first; `Err` on a clash of file and directory.
fn apply_model(model: &Model, edits: &[(RepoPath, Option<Entry>)]) -> Result<Model, ()> {
    let mut next = model.clone();
    let clashes = |model: &Model, path: &RepoPath| {
        model.keys().any(|other| other.is_below(path) || path.is_below(other))
    };
    for (path, _) in edits.iter().filter(|edit| edit.1.is_none()) {
        if clashes(&next, path) {
            return Err(());
        }
        next.remove(path);
    }
    for (path, entry) in edits {
        if let Some(entry) = entry {
            if clashes(&next, path) {
                return Err(());
            }
            next.insert(path.clone(), *entry);
        }
    }
    Ok(next)
}

#[test]
fn random_edit_lists_give_the_tree_that_is_built_from_nothing() {
    let mut clashes = 0;
    for seed in 1..400u64 {
        let mut random = Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        let mut objects = MemoryObjects::default();
        let mut model = Model::new();
        let mut tree = RunningTree::new(ObjectId::EMPTY_TREE);
        for _ in 0..12 {
            let mut edits: BTreeMap<RepoPath, Option<Entry>> = BTreeMap::new();
            for _ in 0..=random.below(5) {
                let existing = model.keys().nth(random.below(6) as usize).cloned();
                let place =
                    existing.filter(|_| random.below(2) == 0).unwrap_or_else(|| random_path(&mut random));
                edits.insert(place, (random.below(3) > 0).then(|| entry(random.below(50))));
            }
            let edits: Vec<_> = edits.into_iter().collect();
            let before = tree.id();
            match (tree.apply(&objects, &edits), apply_model(&model, &edits)) {
                (Ok(applied), Ok(next)) => {
                    model = next;
                    assert_eq!(
                        applied.root,
                        build_model(&mut MemoryObjects::default(), &model),
                        "seed {seed}"
                    );
                    for new in applied.trees {
                        assert_eq!(crate::object::hash(Kind::Tree, &new.data), new.id);
                        assert_eq!(crate::tree::check(&new.data), Ok(()));
                        objects.add(Kind::Tree, new.data);
                    }
                    // Everything needed is among what was returned: a cold tree reads it all.
                    let listed = crate::diff::list(&objects, applied.root).unwrap();
                    assert_eq!(listed, model.clone().into_iter().collect::<Vec<_>>());
                }
                (Err(EditError::Clash { .. }), Err(())) => {
                    clashes += 1;
                    assert_eq!(tree.id(), before);
                }
                (ours, model) => panic!("seed {seed}: {ours:?} against {model:?}"),
            }
            if random.below(4) == 0 {
                tree = RunningTree::new(tree.id());
            }
        }
    }
    assert!(clashes > 100, "{clashes}");
}

fn sample() -> (MemoryObjects, ObjectId) {
    let mut objects = MemoryObjects::default();
    let model = Model::from([
        (path("a/x/1"), entry(1)),
        (path("a/y/2"), entry(2)),
        (path("b/z"), entry(3)),
        (path("c"), entry(4)),
    ]);
    let root = build_model(&mut objects, &model);
    (objects, root)
}

#[test]
fn only_the_trees_on_the_path_are_made_anew_and_name_the_trees_before() {
    let (objects, root) = sample();
    let mut tree = RunningTree::new(root);
    let applied = tree.apply(&objects, &[(path("a/x/1"), Some(entry(9)))]).unwrap();
    let before: Vec<_> = applied.trees.iter().map(|new| new.before.unwrap()).collect();
    let id_of = |text: &str| match crate::tree::spot(&objects, root, &path(text)).unwrap() {
        Spot::Directory(id) => id,
        other => panic!("{other:?}"),
    };
    assert_eq!(before, [id_of("a/x"), id_of("a"), root]);
    assert_eq!(applied.trees.last().unwrap().id, applied.root);
    let again = tree.apply(&objects, &[(path("a/x/1"), Some(entry(9)))]).unwrap();
    assert_eq!((again.root, again.trees), (applied.root, vec![]));
}

#[test]
fn missing_directories_are_asked_for_in_one_batch_and_nothing_changes_meanwhile() {
    let (objects, root) = sample();
    let mut few = MemoryObjects::default();
    few.insert(root, objects.get(&root).unwrap());
    let mut tree = RunningTree::new(root);
    let edits = [(path("a/x/1"), None), (path("b/z"), Some(entry(7))), (path("new/file"), Some(entry(8)))];
    let Err(EditError::Read(ReadError::Missing(Missing(ids)))) = tree.apply(&few, &edits) else { panic!() };
    assert_eq!(ids.len(), 2, "a and b: {ids:?}");
    assert_eq!(tree.id(), root);
    let applied = tree.apply(&objects, &edits).unwrap();
    let mut grown = objects.clone();
    for new in applied.trees {
        grown.add(Kind::Tree, new.data);
    }
    let listed: Vec<_> =
        crate::diff::list(&grown, applied.root).unwrap().into_iter().map(|e| e.0.to_string()).collect();
    assert_eq!(listed, ["a/y/2", "b/z", "c", "new/file"]);
}

#[test]
fn the_last_file_deleted_takes_its_directories_with_it() {
    let (objects, root) = sample();
    let mut tree = RunningTree::new(root);
    tree.apply(&objects, &[(path("a/x/1"), None), (path("a/y/2"), None)]).unwrap();
    assert_eq!(tree.spot(&objects, &path("a")).unwrap(), Spot::Absent);
    let all = [(path("b/z"), None), (path("c"), None)];
    assert_eq!(tree.apply(&objects, &all).unwrap().root, ObjectId::EMPTY_TREE);
    assert_eq!(tree.apply(&objects, &[(path("gone"), None)]).unwrap().trees, []);
}

#[test]
fn clashes_name_the_path_and_change_nothing() {
    let (objects, root) = sample();
    let mut tree = RunningTree::new(root);
    for (at, result) in
        [("a", Some(entry(1))), ("a/x", None), ("c/below", Some(entry(1))), ("c/below", None)]
    {
        let edits = [(path("b/z"), Some(entry(77))), (path(at), result)];
        let Err(EditError::Clash { path: named, .. }) = tree.apply(&objects, &edits) else {
            panic!("{at}")
        };
        assert_eq!((named, tree.id()), (path(at), root));
    }
    let swap = [
        (path("b"), Some(entry(5))),
        (path("b/z"), None),
        (path("c"), None),
        (path("c/d"), Some(entry(6))),
    ];
    tree.apply(&objects, &swap).unwrap();
    assert_eq!(tree.lookup(&objects, &path("b")).unwrap(), Some(entry(5)));
    assert_eq!(tree.lookup(&objects, &path("c/d")).unwrap(), Some(entry(6)));
}

#[test]
fn a_fold_refuses_a_step_that_finds_something_else_mode_included() {
    let (objects, root) = sample();
    let mut tree = RunningTree::new(root);
    let z = path("b/z");
    let mut other_mode = entry(3);
    other_mode.mode = Mode::Executable;
    for ours in [None, Some(entry(9)), Some(other_mode)] {
        let step = Step { path: &z, ours, result: None };
        let Err(EditError::NotThere { path: named, found }) = tree.fold(&objects, &[step]) else {
            panic!()
        };
        assert_eq!((named, found, tree.id()), (z.clone(), Spot::Entry(entry(3)), root));
    }
    // A directory at the path and a file at a prefix are not "absent".
    for at in ["a", "c/x"] {
        let at = path(at);
        let step = Step { path: &at, ours: None, result: None };
        assert!(matches!(tree.fold(&objects, &[step]), Err(EditError::NotThere { .. })));
    }
    // A place that an earlier delete of the same list frees is absent.
    let (b, z) = (path("b"), path("b/z"));
    let steps = [
        Step { path: &b, ours: None, result: Some(entry(5)) },
        Step { path: &z, ours: Some(entry(3)), result: None },
    ];
    tree.fold(&objects, &steps).unwrap();
    assert_eq!(tree.lookup(&objects, &b).unwrap(), Some(entry(5)));
}

#[test]
fn a_clone_is_a_point_to_go_back_to() {
    let (objects, root) = sample();
    let mut tree = RunningTree::new(root);
    let before = tree.clone();
    tree.apply(&objects, &[(path("c"), None)]).unwrap();
    let mut back = before;
    assert_eq!(back.id(), root);
    assert_eq!(back.lookup(&objects, &path("c")).unwrap(), Some(entry(4)));
    assert_eq!(tree.lookup(&objects, &path("c")).unwrap(), None);
}

#[test]
fn untouched_entries_keep_their_odd_mode_digits() {
    let mut data = Vec::new();
    crate::tree::push_entry(&mut data, b"100664", b"a", &entry(1).id);
    crate::tree::push_entry(&mut data, b"100644", b"b", &entry(2).id);
    let mut objects = MemoryObjects::default();
    let root = objects.add(Kind::Tree, data);
    let mut tree = RunningTree::new(root);
    let applied = tree.apply(&objects, &[(path("b"), None)]).unwrap();
    assert!(applied.trees[0].data.starts_with(b"100664 a\0"));
}
