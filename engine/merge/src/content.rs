//! One path that both sides may have changed: what is decided by its entries, what needs its bytes.

use std::sync::Arc;

use yard_common::landing::{Edit, How};
use yard_common::submission::{Entry, Mode};
use yard_common::{ObjectId, RepoPath};
use yard_git::{Kind, Object, Objects, ReadError, hash};
use yard_rules::{Rule, Rules};

use crate::attributes::{self, Driver};
use crate::changes::Wanted;
use crate::lookup::Lookup;
use crate::outcome::{Collision, CollisionKind, Gathered};
use crate::text::{self, TextMerge};

/// The three entries of one path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Three {
    pub path: RepoPath,
    pub base: Option<Entry>,
    pub ours: Option<Entry>,
    pub theirs: Option<Entry>,
}

/// What the entries alone say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Step {
    Done(Edit),
    Content(Content),
    Collide(Collision),
}

/// A merge of bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Content {
    three: Three,
    mode: Mode,
    rule: Option<Rule>,
}

impl Three {
    pub fn edit(&self, result: Option<Entry>, how: How) -> Edit {
        Edit {
            path: self.path.clone(),
            from: None,
            base: self.base,
            ours: self.ours,
            theirs: self.theirs,
            result,
            how,
        }
    }

    fn collide(&self, kind: CollisionKind, sentence: &str) -> Step {
        Step::Collide(Collision::new(&self.path, kind, sentence))
    }

    /// Decides by entries: `ours` = `base` takes theirs, `ours` = `theirs` is done already.
    pub fn step(self, rules: &Rules) -> Step {
        if self.ours == self.base {
            return Step::Done(self.edit(self.theirs, How::Theirs));
        }
        if self.ours == self.theirs {
            return Step::Done(self.edit(self.ours, How::Same));
        }
        match (self.base, self.ours, self.theirs) {
            (Some(base), Some(ours), Some(theirs)) => self.both_changed(base, ours, theirs, rules),
            (None, Some(ours), Some(theirs)) => self.both_added(ours, theirs, rules),
            (_, None, _) => {
                self.collide(CollisionKind::ModifyDelete, "main deleted this file, the change edits it")
            }
            (_, _, None) => {
                self.collide(CollisionKind::ModifyDelete, "main edited this file, the change deletes it")
            }
        }
    }

    fn both_added(self, ours: Entry, theirs: Entry, rules: &Rules) -> Step {
        let rule = rules.of(&self.path);
        if rule.is_some() && is_file(ours) && ours.mode == theirs.mode {
            return Step::Content(Content { three: self, mode: ours.mode, rule });
        }
        self.collide(CollisionKind::AddAdd, "main and the change both added this path, with other contents")
    }

    fn both_changed(self, base: Entry, ours: Entry, theirs: Entry, rules: &Rules) -> Step {
        let all = [base, ours, theirs];
        if all.into_iter().any(|entry| entry.mode == Mode::Gitlink) {
            return self.collide(CollisionKind::Submodule, "main and the change both changed this submodule");
        }
        if all.into_iter().all(|entry| entry.mode == Mode::Symlink) {
            return self
                .collide(CollisionKind::Symlink, "main and the change both changed this symbolic link");
        }
        if !all.into_iter().all(is_file) {
            return self
                .collide(CollisionKind::TypeChange, "one side made another kind of entry of this path");
        }
        // Of two modes, two that differ from the base's are the same one.
        let mode = if ours.mode == base.mode { theirs.mode } else { ours.mode };
        let id = if ours.id == base.id {
            theirs.id
        } else if theirs.id == base.id || ours.id == theirs.id {
            ours.id
        } else {
            let rule = rules.of(&self.path);
            return Step::Content(Content { three: self, mode, rule });
        };
        Step::Done(self.edit(Some(Entry { mode, id }), How::Merge))
    }
}

pub(crate) fn is_file(entry: Entry) -> bool {
    matches!(entry.mode, Mode::File | Mode::Executable)
}

/// Three blobs and the path that they are merged for.
pub(crate) struct Blobs<'a> {
    pub path: &'a RepoPath,
    pub base: Option<ObjectId>,
    pub ours: ObjectId,
    pub theirs: ObjectId,
}

/// The objects of a merge; `base` is absent where both sides added the path.
struct Read {
    base: Option<Arc<Object>>,
    ours: Arc<Object>,
    theirs: Arc<Object>,
}

fn bytes(object: Option<&Arc<Object>>) -> Option<&[u8]> {
    object.map(|object| object.data.as_slice())
}

/// A merge of bytes that failed.
pub(crate) type Failed = (CollisionKind, String);

impl Blobs<'_> {
    /// Notes what the merge needs.
    pub fn want(
        &self,
        objects: &dyn Objects,
        ours: &dyn Lookup,
        wanted: &mut Wanted,
    ) -> Result<(), ReadError> {
        for id in [self.base, Some(self.ours), Some(self.theirs)].into_iter().flatten() {
            wanted.need(objects, id);
        }
        for (_, id) in attributes::files(ours, self.path, wanted)? {
            wanted.need(objects, id);
        }
        Ok(())
    }

    /// The base, where there is one, and the two sides.
    fn read(&self, objects: &dyn Objects) -> Option<Read> {
        let blob = |id: ObjectId| objects.get(&id).filter(|object| object.kind == Kind::Blob);
        let base = match self.base {
            Some(id) => Some(blob(id)?),
            None => None,
        };
        Some(Read { base, ours: blob(self.ours)?, theirs: blob(self.theirs)? })
    }

    /// Does the rule of this path give the bytes that the merge of a moved file gave?
    pub fn agrees(&self, objects: &dyn Objects, rule: Rule, merged: &[u8]) -> Result<(), Failed> {
        let Some(Read { base, ours, theirs }) = self.read(objects) else {
            return Err((CollisionKind::Undecided, "an entry of mode file is not a blob".to_owned()));
        };
        let (ours, theirs) = (Some(ours.data.as_slice()), Some(theirs.data.as_slice()));
        let why = match rule.apply(bytes(base.as_ref()), ours, theirs, self.path, &text::Guarded) {
            Ok(ruled) if ruled == merged => return Ok(()),
            Ok(_) => "its lines merge to something else in the moved file".to_owned(),
            Err(why) => why,
        };
        Err((CollisionKind::Rule, format!("rule {}: {why}", rule.as_str())))
    }

    /// The bytes merged as text under every guard.
    pub fn merge_text(
        &self,
        objects: &dyn Objects,
        ours: &dyn Lookup,
    ) -> Result<Result<Vec<u8>, Failed>, ReadError> {
        let mut wanted = Wanted::default();
        self.want(objects, ours, &mut wanted)?;
        let files = attributes::files(ours, self.path, &mut wanted)?;
        wanted.check()?;
        if std::str::from_utf8(self.path.as_bytes()).is_err() {
            let why = "both sides changed a file whose name is not UTF-8: its attributes cannot be looked up";
            return Ok(Err((CollisionKind::Undecided, why.to_owned())));
        }
        let binary = "main and the change both changed this binary file";
        match attributes::driver(objects, &files, self.path) {
            Err(why) => return Ok(Err((CollisionKind::Undecided, why))),
            Ok(Driver::Binary) => return Ok(Err((CollisionKind::Binary, binary.to_owned()))),
            Ok(Driver::Union) => {
                let why = "both sides changed it and .gitattributes asks for merge=union, which brings \
                           deleted lines back: merge by hand, or give the path a rule";
                return Ok(Err((CollisionKind::Union, why.to_owned())));
            }
            Ok(Driver::Text) => {}
        }
        let Some(Read { base, ours, theirs }) = self.read(objects) else {
            let why = "an entry of mode file is not a blob";
            return Ok(Err((CollisionKind::Undecided, why.to_owned())));
        };
        Ok(match text::merge(bytes(base.as_ref()).unwrap_or_default(), &ours.data, &theirs.data) {
            TextMerge::Clean(bytes) => Ok(bytes),
            TextMerge::Binary => Err((CollisionKind::Binary, binary.to_owned())),
            TextMerge::Conflict => {
                Err((CollisionKind::Content, "main and the change both changed the same lines".to_owned()))
            }
            TextMerge::Ambiguous => {
                let why = "how main's and the change's lines fit together depends on the diff algorithm";
                Err((CollisionKind::Ambiguous, why.to_owned()))
            }
        })
    }
}

impl Content {
    pub fn blobs(&self) -> Option<Blobs<'_>> {
        Some(Blobs {
            path: &self.three.path,
            base: self.three.base.map(|entry| entry.id),
            ours: self.three.ours?.id,
            theirs: self.three.theirs?.id,
        })
    }

    fn merge(
        &self,
        objects: &dyn Objects,
        ours: &dyn Lookup,
    ) -> Result<Result<(Vec<u8>, How), Failed>, ReadError> {
        let Some(blobs) = self.blobs() else {
            return Ok(Err((CollisionKind::Undecided, "a side has no file".to_owned())));
        };
        let Some(rule) = self.rule else {
            return Ok(blobs.merge_text(objects, ours)?.map(|bytes| (bytes, How::Merge)));
        };
        let Some(Read { base, ours, theirs }) = blobs.read(objects) else {
            return Ok(Err((CollisionKind::Undecided, "an entry of mode file is not a blob".to_owned())));
        };
        let (ours, theirs) = (Some(ours.data.as_slice()), Some(theirs.data.as_slice()));
        let ruled = rule.apply(bytes(base.as_ref()), ours, theirs, &self.three.path, &text::Guarded);
        let named =
            ruled.and_then(|bytes| Ok((bytes, How::Rule(rule.name().map_err(|bad| bad.to_string())?))));
        Ok(named.map_err(|why| (CollisionKind::Rule, format!("rule {}: {why}", rule.as_str()))))
    }
}

/// Merges all contents, after every object that they need is at hand.
pub(crate) fn merge_contents(
    objects: &dyn Objects,
    ours: &dyn Lookup,
    contents: &[Content],
    out: &mut Gathered,
) -> Result<(), ReadError> {
    let mut wanted = Wanted::default();
    for blobs in contents.iter().filter_map(Content::blobs) {
        blobs.want(objects, ours, &mut wanted)?;
    }
    wanted.check()?;
    for content in contents {
        let three = &content.three;
        match content.merge(objects, ours)? {
            Ok((bytes, how)) => {
                let id = out.blob(objects, bytes);
                let edit = three.edit(Some(Entry { mode: content.mode, id }), how);
                out.edits.push((three.path.clone(), edit));
            }
            Err((kind, sentence)) => out.collisions.push(Collision::new(&three.path, kind, sentence)),
        }
    }
    Ok(())
}

impl Gathered {
    /// Keeps a merged blob, unless a side has it already; its id.
    pub fn blob(&mut self, objects: &dyn Objects, bytes: Vec<u8>) -> ObjectId {
        let id = hash(Kind::Blob, &bytes);
        if objects.get(&id).is_none() {
            self.blobs.insert(id, bytes);
        }
        id
    }
}
