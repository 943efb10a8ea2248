//! A set's packs at one moment, every index at hand: what may be asked without waiting.

use std::rc::Rc;

use yard_common::bytes::Base64;
use yard_common::landing::PackRef;
use yard_common::{ObjectId, Refusal};
use yard_git::pack::PackIndex;
use yard_git::pack::index::Spans;
use yard_git::pack::read::Pack;

use super::{Index, PackSet, corrupt};
use crate::blobs::Blobs;

/// Packs with their indexes, oldest first.
#[derive(Clone, Default)]
pub struct PackView(Vec<(PackRef, Rc<Index>)>);

impl PackView {
    /// Adds the packs of another view, as newer ones.
    pub fn extend(&mut self, other: Self) {
        self.0.extend(other.0);
    }

    /// How many packs there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Are there none?
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The pack at a place.
    #[must_use]
    pub fn pack(&self, place: usize) -> Option<&PackRef> {
        self.0.get(place).map(|(pack, _)| pack)
    }

    /// The index of the pack at a place as a catalogue carries it: inline where it is small, else `None`.
    #[must_use]
    pub fn inline_index(&self, place: usize) -> Option<Base64> {
        let (_, index) = self.0.get(place)?;
        index.inline.then(|| Base64(index.index.bytes().to_vec()))
    }

    /// The index of the pack at a place.
    #[must_use]
    pub fn index(&self, place: usize) -> Option<&PackIndex<Vec<u8>>> {
        self.0.get(place).map(|(_, index)| &index.index)
    }

    /// Where the entries of the pack at a place end.
    #[must_use]
    pub fn spans(&self, place: usize) -> Option<&Spans> {
        self.0.get(place).map(|(_, index)| &index.spans)
    }

    /// The pack at a place over the bytes of it that are at hand.
    #[must_use]
    pub fn over<'a, B: ?Sized>(&'a self, place: usize, bytes: &'a B) -> Option<Pack<'a, B, Vec<u8>>> {
        let (_, index) = self.0.get(place)?;
        Some(Pack { bytes, index: &index.index, spans: Some(&index.spans) })
    }

    /// The place of the newest pack that holds the object, and the start of its entry there.
    #[must_use]
    pub fn find(&self, id: &ObjectId) -> Option<(usize, u64)> {
        self.0.iter().enumerate().rev().find_map(|(place, (_, index))| Some((place, index.index.find(id)?)))
    }

    /// Does any pack hold the object?
    #[must_use]
    pub fn contains(&self, id: &ObjectId) -> bool {
        self.find(id).is_some()
    }
}

impl PackSet {
    /// All packs with their indexes; what lies in the bucket is read.
    ///
    /// # Errors
    /// [`Refusal::Internal`] when the bucket fails.
    pub async fn view(&self, blobs: &impl Blobs) -> Result<PackView, Refusal> {
        let mut view = PackView::default();
        for pack in self.packs() {
            let mut index = self.index_at_hand(&pack);
            if index.is_none() {
                let lacking = yard_wire::repository::IndexedPack { pack: pack.clone(), index: None };
                self.fetch_index(blobs, lacking).await?;
                index = self.index_at_hand(&pack);
            }
            let index = index.ok_or_else(|| corrupt(&pack.key, "it left the catalogue while it was read"))?;
            view.0.push((pack, index));
        }
        Ok(view)
    }

    fn index_at_hand(&self, pack: &PackRef) -> Option<Rc<Index>> {
        let state = self.state.borrow();
        let entry = state.packs.iter().find(|entry| entry.pack.pack.key == pack.key)?;
        entry.index.clone()
    }
}
