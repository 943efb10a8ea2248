//! A bare repository as a host's store: objects in memory, refs, packs made by git.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use yard_common::{ObjectId, RefName};
use yard_git::commit::CommitLinks;
use yard_git::{Kind, MemoryObjects, Object};
use yard_transfer::plan::{CommitGraph, Step, World};
use yard_transfer::{RefTip, RefView};

use crate::shell::{git, git_with};

pub struct Store {
    pub dir: PathBuf,
    objects: HashMap<ObjectId, Arc<Object>>,
    sizes: HashMap<ObjectId, u64>,
    /// Commits are known without their objects.
    pub with_graph: bool,
    /// How many ids were asked for in each step.
    pub needs: Vec<usize>,
}

struct Table<'a>(&'a Store);

impl CommitGraph for Table<'_> {
    fn commit(&self, id: &ObjectId) -> Option<CommitLinks> {
        let object =
            self.0.objects.get(id).filter(|object| self.0.with_graph && object.kind == Kind::Commit)?;
        yard_git::commit::links(&object.data).ok()
    }

    fn kind(&self, id: &ObjectId) -> Option<Kind> {
        self.0.objects.get(id).filter(|_| self.0.with_graph).map(|object| object.kind)
    }

    fn blob_size(&self, id: &ObjectId) -> Option<u64> {
        self.0.sizes.get(id).copied()
    }
}

fn kind(name: &str) -> Kind {
    match name {
        "commit" => Kind::Commit,
        "tree" => Kind::Tree,
        "blob" => Kind::Blob,
        "tag" => Kind::Tag,
        other => panic!("{other}"),
    }
}

/// The objects of a list of ids, a line each.
fn batch(dir: &Path, list: &str) -> Vec<(ObjectId, Arc<Object>)> {
    let out = git_with(dir, &["cat-file", "--batch"], list.as_bytes()).unwrap();
    let mut rest = out.as_slice();
    let mut objects = Vec::new();
    while !rest.is_empty() {
        let end = rest.iter().position(|byte| *byte == b'\n').unwrap();
        let head = std::str::from_utf8(&rest[..end]).unwrap();
        let words: Vec<&str> = head.split(' ').collect();
        let size: usize = words[2].parse().unwrap();
        let data = rest[end + 1..end + 1 + size].to_vec();
        objects.push((words[0].parse().unwrap(), Arc::new(Object { kind: kind(words[1]), data })));
        rest = &rest[end + size + 2..];
    }
    objects
}

impl Store {
    pub fn open(dir: &Path) -> Self {
        let mut store = Self {
            dir: dir.to_owned(),
            objects: HashMap::new(),
            sizes: HashMap::new(),
            with_graph: true,
            needs: Vec::new(),
        };
        store.reload();
        store
    }

    /// Reads the objects that are new; of blobs only the sizes, for no plan may look into one.
    pub fn reload(&mut self) {
        let format = "--batch-check=%(objectname) %(objecttype) %(objectsize)";
        let list = git(&self.dir, &["cat-file", "--batch-all-objects", "--unordered", format]);
        let mut wanted = String::new();
        for line in list.lines() {
            let (id, rest) = line.split_once(' ').unwrap();
            let parsed: ObjectId = id.parse().unwrap();
            if self.objects.contains_key(&parsed) {
                continue;
            }
            match rest.split_once(' ').unwrap() {
                ("blob", size) => {
                    self.sizes.insert(parsed, size.parse().unwrap());
                    self.objects.insert(parsed, Arc::new(Object { kind: Kind::Blob, data: Vec::new() }));
                }
                _ => wanted.push_str(&format!("{id}\n")),
            }
        }
        self.objects.extend(batch(&self.dir, &wanted));
    }

    /// These objects with their bytes, in this order.
    pub fn read(&self, ids: &[ObjectId]) -> Vec<(ObjectId, Arc<Object>)> {
        let list: String = ids.iter().map(|id| format!("{id}\n")).collect();
        batch(&self.dir, &list)
    }

    pub fn kind(&self, id: &ObjectId) -> Option<Kind> {
        self.objects.get(id).map(|object| object.kind)
    }

    pub fn get(&self, id: &ObjectId) -> Option<&Arc<Object>> {
        self.objects.get(id)
    }

    pub fn len(&self) -> usize {
        self.objects.len()
    }

    pub fn refs(&self) -> RefView {
        let list = git(&self.dir, &["for-each-ref", "--format=%(refname) %(objectname) %(*objectname)"]);
        let tips = list.lines().filter_map(|line| {
            let mut words = line.split(' ');
            let name = RefName::new(words.next()?).ok()?;
            let id = words.next()?.parse().ok()?;
            let peeled = words.next().and_then(|id| self.peel(id.parse().ok()?));
            Some(RefTip { name, id, peeled })
        });
        let head = git(&self.dir, &["symbolic-ref", "HEAD"]);
        RefView::new(tips.collect(), RefName::new(head).unwrap())
    }

    fn peel(&self, id: ObjectId) -> Option<ObjectId> {
        let object = self.objects.get(&id)?;
        if object.kind == Kind::Tag {
            self.peel(yard_git::Tag::parse(&object.data).ok()?.target)
        } else {
            Some(id)
        }
    }

    /// Drives a machine as a host does that shows each batch once and forgets it.
    pub fn drive<T, E>(&mut self, mut step: impl FnMut(&World<'_>) -> Result<Step<T>, E>) -> Result<T, E> {
        let mut hand = MemoryObjects::default();
        let mut asked: BTreeMap<ObjectId, u32> = BTreeMap::new();
        loop {
            let exists = |id: &ObjectId| self.objects.contains_key(id);
            let world = World { objects: &hand, exists: &exists, graph: &Table(self) };
            let ids = match step(&world)? {
                Step::Done(value) => return Ok(value),
                Step::Need(ids) => ids,
            };
            assert!(!ids.is_empty(), "a step that needs nothing must be done");
            self.needs.push(ids.len());
            hand = MemoryObjects::default();
            for id in ids {
                let times = asked.entry(id).or_default();
                *times += 1;
                assert!(*times <= 4, "{id} is asked for over and over");
                let object = Arc::clone(&self.objects[&id]);
                assert_ne!(
                    object.kind,
                    Kind::Blob,
                    "no plan needs the bytes of a blob, but {id} was asked for"
                );
                hand.insert(id, object);
            }
        }
    }

    /// A pack of exactly these objects, made by git.
    pub fn pack(&self, ids: &[ObjectId], ofs_delta: bool) -> Vec<u8> {
        let list: String = ids.iter().map(|id| format!("{id}\n")).collect();
        let mut args = vec!["pack-objects", "--stdout", "-q"];
        if ofs_delta {
            args.push("--delta-base-offset");
        }
        git_with(&self.dir, &args, list.as_bytes()).unwrap()
    }
}
