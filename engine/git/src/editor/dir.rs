//! One loaded directory: its tree's bytes, where each entry starts, and the loaded children.

use std::cmp::Ordering;
use std::sync::Arc;

use yard_common::ObjectId;
use yard_common::submission::Entry;

use crate::error::Malformed;
use crate::tree::{self, TreeEntry, TreeMode};

/// A directory as bytes, so that an edit is a copy of few bytes and encoding is free.
#[derive(Debug, Clone, Default)]
pub(super) struct Dir {
    data: Vec<u8>,
    starts: Vec<u32>,
    /// Loaded directories below, sorted by name.
    children: Vec<(Arc<[u8]>, Arc<Dir>)>,
}

impl Dir {
    pub(super) fn load(data: &[u8]) -> Result<Self, Malformed> {
        let mut starts = Vec::with_capacity(data.len() / 36 + 1);
        let mut at = 0usize;
        let mut before: Option<TreeEntry<'_>> = None;
        for entry in tree::entries(data) {
            let entry = entry?;
            if before.is_some_and(|before| {
                tree::compare((before.name, before.mode), (entry.name, entry.mode)) != Ordering::Less
            }) {
                return Err(Malformed { why: "not properly sorted" });
            }
            starts.push(u32::try_from(at).map_err(|_| Malformed { why: "a tree has more than 4 GiB" })?);
            at += entry.encoded_len();
            before = Some(entry);
        }
        Ok(Self { data: data.to_vec(), starts, children: Vec::new() })
    }

    pub(super) fn data(&self) -> &[u8] {
        &self.data
    }

    pub(super) fn is_empty(&self) -> bool {
        self.data.is_empty()
    }

    fn entry_at(&self, index: usize) -> Option<TreeEntry<'_>> {
        let start = usize::try_from(*self.starts.get(index)?).ok()?;
        tree::entries(self.data.get(start..)?).next()?.ok()
    }

    /// Where the entry of this name and sort is, or where it would go.
    fn find(&self, name: &[u8], mode: TreeMode) -> Result<usize, usize> {
        let (mut low, mut high) = (0, self.starts.len());
        while low < high {
            let middle = low + (high - low) / 2;
            let order = self
                .entry_at(middle)
                .map_or(Ordering::Greater, |entry| tree::compare((entry.name, entry.mode), (name, mode)));
            match order {
                Ordering::Less => low = middle + 1,
                Ordering::Greater => high = middle,
                Ordering::Equal => return Ok(middle),
            }
        }
        Err(low)
    }

    pub(super) fn leaf(&self, name: &[u8]) -> Option<Entry> {
        let at = self.find(name, TreeMode::Leaf(yard_common::submission::Mode::File)).ok()?;
        self.entry_at(at)?.leaf()
    }

    pub(super) fn tree(&self, name: &[u8]) -> Option<ObjectId> {
        let at = self.find(name, TreeMode::Tree).ok()?;
        self.entry_at(at).map(|entry| entry.id)
    }

    /// Sets the entry of this name; an entry whose mode stays keeps its mode's digits.
    pub(super) fn set(&mut self, name: &[u8], mode: TreeMode, id: ObjectId) {
        match self.find(name, mode) {
            Ok(at) => {
                let digits = match self.entry_at(at) {
                    Some(old) if old.mode == mode => old.digits.to_vec(),
                    _ => mode.as_bytes().to_vec(),
                };
                self.replace(at, true, &encoded(&digits, name, &id));
            }
            Err(at) => self.replace(at, false, &encoded(mode.as_bytes(), name, &id)),
        }
    }

    pub(super) fn remove(&mut self, name: &[u8], tree: bool) {
        let mode = if tree { TreeMode::Tree } else { TreeMode::Leaf(yard_common::submission::Mode::File) };
        if let Ok(at) = self.find(name, mode) {
            self.replace(at, true, &[]);
        }
        if tree && let Ok(at) = self.child_index(name) {
            self.children.remove(at);
        }
    }

    /// Replaces the entry at `index` (or inserts before it) by `bytes`; no bytes: removes it.
    fn replace(&mut self, index: usize, is_there: bool, bytes: &[u8]) {
        let end_of = |index: usize| {
            self.starts.get(index).and_then(|start| usize::try_from(*start).ok()).unwrap_or(self.data.len())
        };
        let (start, end) = (end_of(index), end_of(if is_there { index + 1 } else { index }));
        self.data.splice(start..end, bytes.iter().copied());
        match (is_there, bytes.is_empty()) {
            (true, true) => {
                self.starts.remove(index);
            }
            (false, false) => self.starts.insert(index, u32::try_from(start).unwrap_or(u32::MAX)),
            _ => {}
        }
        let first_moved = if bytes.is_empty() { index } else { index + 1 };
        let (old, new) = (end - start, bytes.len());
        if old != new {
            for start in self.starts.iter_mut().skip(first_moved) {
                let moved = usize::try_from(*start).unwrap_or(usize::MAX) - old + new;
                *start = u32::try_from(moved).unwrap_or(u32::MAX);
            }
        }
    }

    fn child_index(&self, name: &[u8]) -> Result<usize, usize> {
        self.children.binary_search_by(|child| child.0.as_ref().cmp(name))
    }

    pub(super) fn child(&self, name: &[u8]) -> Option<&Arc<Dir>> {
        let at = self.child_index(name).ok()?;
        self.children.get(at).map(|child| &child.1)
    }

    pub(super) fn child_mut(&mut self, name: &[u8]) -> Option<&mut Arc<Dir>> {
        let at = self.child_index(name).ok()?;
        self.children.get_mut(at).map(|child| &mut child.1)
    }

    pub(super) fn put_child(&mut self, name: &[u8], dir: Arc<Dir>) {
        match self.child_index(name) {
            Ok(at) => {
                if let Some(child) = self.children.get_mut(at) {
                    child.1 = dir;
                }
            }
            Err(at) => self.children.insert(at, (name.into(), dir)),
        }
    }
}

fn encoded(digits: &[u8], name: &[u8], id: &ObjectId) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(digits.len() + name.len() + 22);
    tree::push_entry(&mut bytes, digits, name, id);
    bytes
}
