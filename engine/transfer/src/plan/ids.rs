//! Sets and maps of object ids, for looking up only; nothing is decided by their order.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasherDefault, Hasher};

use yard_common::ObjectId;

/// An id is a hash already: its first eight bytes serve.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct IdHasher(u64);

impl Hasher for IdHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes.iter().take(8) {
            self.0 = self.0.rotate_left(8) ^ u64::from(*byte);
        }
    }

    fn write_usize(&mut self, _length: usize) {}
}

pub(super) type IdSet = HashSet<ObjectId, BuildHasherDefault<IdHasher>>;
pub(super) type IdMap<T> = HashMap<ObjectId, T, BuildHasherDefault<IdHasher>>;
