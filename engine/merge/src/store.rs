//! The objects at hand as gitoxide reads them, with what it asked for in vain.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use gix_error::Result;
use yard_common::ObjectId;
use yard_git::{Kind, Missing, Objects, hash};

/// Objects at hand, plus those that this merge has written.
pub(crate) struct Store<'a> {
    objects: &'a dyn Objects,
    /// Commits of other repositories: never asked for.
    foreign: BTreeSet<ObjectId>,
    written: RefCell<BTreeMap<ObjectId, (Kind, Vec<u8>)>>,
    missing: RefCell<Missing>,
}

impl<'a> Store<'a> {
    pub fn new(objects: &'a dyn Objects, foreign: BTreeSet<ObjectId>) -> Self {
        Self { objects, foreign, written: RefCell::default(), missing: RefCell::default() }
    }

    pub fn write(&self, kind: Kind, bytes: Vec<u8>) -> ObjectId {
        let id = hash(kind, &bytes);
        self.written.borrow_mut().insert(id, (kind, bytes));
        id
    }

    /// Was this object made by this merge, and is it on no side?
    pub fn has_written(&self, id: ObjectId) -> bool {
        self.written.borrow().contains_key(&id) && self.objects.get(&id).is_none()
    }

    pub fn missing(&self) -> Missing {
        self.missing.borrow().clone()
    }

    /// Reads an object; notes it when it is neither at hand nor foreign.
    pub fn read<T>(&self, id: ObjectId, read: impl FnOnce(Kind, &[u8]) -> T) -> Option<T> {
        if let Some((kind, bytes)) = self.written.borrow().get(&id) {
            return Some(read(*kind, bytes));
        }
        let object = self.objects.get(&id);
        if object.is_none() && !self.foreign.contains(&id) {
            self.missing.borrow_mut().insert(id);
        }
        object.map(|object| read(object.kind, &object.data))
    }
}

impl Objects for Store<'_> {
    fn get(&self, id: &ObjectId) -> Option<std::sync::Arc<yard_git::Object>> {
        if let Some((kind, data)) = self.written.borrow().get(id) {
            return Some(std::sync::Arc::new(yard_git::Object { kind: *kind, data: data.clone() }));
        }
        self.objects.get(id)
    }
}

fn kind(kind: Kind) -> gix_object::Kind {
    match kind {
        Kind::Commit => gix_object::Kind::Commit,
        Kind::Tree => gix_object::Kind::Tree,
        Kind::Blob => gix_object::Kind::Blob,
        Kind::Tag => gix_object::Kind::Tag,
    }
}

pub(crate) fn from_gix(id: &gix_hash::oid) -> ObjectId {
    ObjectId::from_bytes(id.as_bytes()).unwrap_or(ObjectId::ZERO)
}

pub(crate) fn to_gix(id: ObjectId) -> gix_hash::ObjectId {
    gix_hash::ObjectId::Sha1(*id.as_bytes())
}

impl gix_object::Find for Store<'_> {
    fn try_find<'b>(
        &self,
        id: &gix_hash::oid,
        buffer: &'b mut Vec<u8>,
    ) -> Result<Option<gix_object::Data<'b>>> {
        buffer.clear();
        let found = self.read(from_gix(id), |kind, bytes| {
            buffer.extend_from_slice(bytes);
            kind
        });
        let data: &'b [u8] = buffer;
        Ok(found.map(|found| gix_object::Data::new(data, kind(found), gix_hash::Kind::Sha1)))
    }
}

impl gix_object::FindHeader for Store<'_> {
    fn try_header(&self, id: &gix_hash::oid) -> Result<Option<gix_object::Header>> {
        Ok(self.read(from_gix(id), |found, bytes| gix_object::Header {
            kind: kind(found),
            size: bytes.len() as u64,
        }))
    }
}
