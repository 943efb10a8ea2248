//! A map bounded in bytes that lets the oldest go.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use crate::object::Object;

/// Objects by key up to a number of bytes; the oldest are evicted.
#[derive(Debug)]
pub(crate) struct ByteCache<K> {
    bytes_max: usize,
    bytes: usize,
    objects: BTreeMap<K, Arc<Object>>,
    order: VecDeque<K>,
}

/// What an entry costs besides its object's bytes: key twice, pointers, tree node.
pub(crate) const OVERHEAD_BYTES: usize = 160;

impl<K: Ord + Copy> ByteCache<K> {
    pub(crate) fn new(bytes_max: usize) -> Self {
        Self { bytes_max, bytes: 0, objects: BTreeMap::new(), order: VecDeque::new() }
    }

    pub(crate) fn get(&self, key: &K) -> Option<&Arc<Object>> {
        self.objects.get(key)
    }

    pub(crate) fn insert(&mut self, key: K, object: Arc<Object>) {
        let cost = object.data.len() + OVERHEAD_BYTES;
        if cost > self.bytes_max || self.objects.contains_key(&key) {
            return;
        }
        self.bytes += cost;
        self.objects.insert(key, object);
        self.order.push_back(key);
        while self.bytes > self.bytes_max {
            let Some(oldest) = self.order.pop_front() else { break };
            if let Some(gone) = self.objects.remove(&oldest) {
                self.bytes -= gone.data.len() + OVERHEAD_BYTES;
            }
        }
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(crate) fn len(&self) -> usize {
        self.objects.len()
    }

    pub(crate) fn clear(&mut self) {
        self.objects.clear();
        self.order.clear();
        self.bytes = 0;
    }
}
