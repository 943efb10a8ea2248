//! The connectivity check of a push: nothing that is pushed may name what is not there.

use std::collections::BTreeMap;

use yard_common::{ObjectId, Refusal};
use yard_git::Kind;

use super::ids::IdMap;
use super::references;

/// An object that a push names and does not bring.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outside {
    /// The object: it must be in the catalogue.
    pub id: ObjectId,
    /// What it must be; `None` for a new tip, which may be anything.
    pub kind: Option<Kind>,
    /// Who names it: an object of the pack, or zero for a ref.
    pub named_by: ObjectId,
}

/// Gathers what the objects of a pushed pack name; 50 bytes for each id.
///
/// All that stands in the catalogue is complete, so one step outside the pack is enough. Every object of
/// the pack is checked, also one that no ref reaches.
#[derive(Debug, Default)]
pub struct Connectivity {
    kinds: IdMap<Kind>,
    named: IdMap<(Kind, ObjectId)>,
}

impl Connectivity {
    /// Takes one object of the pack.
    ///
    /// # Errors
    /// [`Refusal::Invalid`] when its bytes are no object of its kind, or when one id is named as two kinds.
    pub fn object(&mut self, id: ObjectId, kind: Kind, data: &[u8]) -> Result<(), Refusal> {
        self.kinds.insert(id, kind);
        for (named, as_kind) in references(&id, kind, data)? {
            let (before, _) = *self.named.entry(named).or_insert((as_kind, id));
            if before != as_kind {
                return Err(Refusal::Invalid {
                    why: format!(
                        "{named} is named as a {} and, by {id}, as a {}",
                        before.as_str(),
                        as_kind.as_str()
                    ),
                });
            }
        }
        Ok(())
    }

    /// The kind of an object of the pack.
    #[must_use]
    pub fn kind(&self, id: &ObjectId) -> Option<Kind> {
        self.kinds.get(id).copied()
    }

    /// What must be in the catalogue, in id order, for the refs to be moved to `tips`.
    ///
    /// # Errors
    /// [`Refusal::Invalid`] when an object of the pack is not of the kind that another names it as.
    pub fn outside(&self, tips: &[ObjectId]) -> Result<Vec<Outside>, Refusal> {
        let mut out = BTreeMap::new();
        for (id, (kind, named_by)) in &self.named {
            match self.kind(id) {
                Some(is) if is == *kind => {}
                Some(is) => {
                    let why =
                        format!("{named_by} names {id} as a {}, but it is a {}", kind.as_str(), is.as_str());
                    return Err(Refusal::Invalid { why });
                }
                None => {
                    out.insert(*id, Outside { id: *id, kind: Some(*kind), named_by: *named_by });
                }
            }
        }
        for id in tips.iter().filter(|id| !id.is_zero() && self.kind(id).is_none()) {
            out.entry(*id).or_insert(Outside { id: *id, kind: None, named_by: ObjectId::ZERO });
        }
        Ok(out.into_values().collect())
    }
}

impl Outside {
    /// The refusal of a push when this object is not in the catalogue.
    #[must_use]
    pub fn refusal(&self) -> Refusal {
        let Self { id, named_by, .. } = self;
        let why = if named_by.is_zero() {
            format!("{id} was neither pushed nor is it here: push again, or push the branch that has it")
        } else {
            format!(
                "missing necessary objects: {named_by} names {id}, which is not here: fetch, then push again"
            )
        };
        Refusal::Invalid { why }
    }
}
