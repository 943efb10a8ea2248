//! Objects at hand for one event: what pure functions look at, loaded as they ask for it.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::rc::Rc;
use std::sync::Arc;

use yard_common::{ObjectId, Refusal};
use yard_git::{MemoryObjects, Object, Objects, ReadError};

use crate::submit::build::BuildError;

/// Objects that one event may hold, in bytes: 1/4 of the isolate's 128 MB. All replays of a batch are one event, and
/// what they copy out of their objects into briefs is at most as much again.
const HAND_BYTES_MAX: usize = 32 * 1024 * 1024;
/// One that found no room beside the others tries again after this, in seconds.
const ROOM_AGAIN_SECONDS: u32 = 5;

/// What several hands of one event hold together, in bytes; clones are the same room.
#[derive(Debug, Clone, Default)]
pub struct Room(Rc<Cell<usize>>);

impl Room {
    fn add(&self, bytes: usize) {
        self.0.set(self.0.get().saturating_add(bytes));
    }

    fn free(&self, bytes: usize) {
        self.0.set(self.0.get().saturating_sub(bytes));
    }
}

/// Where objects come from.
pub trait Source {
    /// Reads objects; those that are not there are left out.
    ///
    /// # Errors
    /// [`Refusal::Internal`] when reading fails.
    async fn read(&self, wanted: &BTreeSet<ObjectId>) -> Result<Vec<(ObjectId, Arc<Object>)>, Refusal>;
}

/// The objects that one event has at hand.
#[derive(Debug, Default)]
pub struct Hand {
    held: MemoryObjects,
    bytes: usize,
    room: Room,
}

impl Drop for Hand {
    fn drop(&mut self) {
        self.room.free(self.bytes);
    }
}

impl Hand {
    /// An empty one that shares its bound with others.
    #[must_use]
    pub fn within(room: &Room) -> Self {
        Self { held: MemoryObjects::default(), bytes: 0, room: room.clone() }
    }

    /// Puts an object.
    pub fn insert(&mut self, id: ObjectId, object: Arc<Object>) {
        self.bytes += object.data.len();
        self.room.add(object.data.len());
        self.held.insert(id, object);
    }

    /// Runs `read` until nothing is missing any more; each round loads one batch.
    ///
    /// # Errors
    /// What `read` refuses with; [`Refusal::Internal`] for an object that is nowhere;
    /// [`Refusal::TooLarge`] when more must be read than an event may hold; [`Refusal::Overloaded`] when there is
    /// no room beside what others hold.
    pub async fn until<T, E: Into<Lacking>>(
        &mut self,
        source: &impl Source,
        mut read: impl FnMut(&Self) -> Result<T, E>,
    ) -> Result<T, Refusal> {
        loop {
            match read(self).map_err(Into::into) {
                Ok(done) => return Ok(done),
                Err(Lacking::Refused(refusal)) => return Err(refusal),
                Err(Lacking::Objects(missing)) => self.load(source, missing).await?,
            }
        }
    }

    /// Loads a batch of objects.
    ///
    /// # Errors
    /// As [`Hand::until`].
    pub async fn load(
        &mut self,
        source: &impl Source,
        mut missing: BTreeSet<ObjectId>,
    ) -> Result<(), Refusal> {
        for (id, object) in source.read(&missing).await? {
            missing.remove(&id);
            self.insert(id, object);
        }
        if let Some(id) = missing.first() {
            yard_objects::points::log(&format!("{} objects are in no pack, {id} among them", missing.len()));
            return Err(Refusal::Internal { during: format!("reading object {id}") });
        }
        if self.bytes > HAND_BYTES_MAX {
            let what = "what must be read to answer (offer smaller changes)".to_owned();
            return Err(Refusal::TooLarge { what, size: self.bytes as u64, limit: HAND_BYTES_MAX as u64 });
        }
        if self.room.0.get() > HAND_BYTES_MAX {
            return Err(Refusal::Overloaded { retry_after: ROOM_AGAIN_SECONDS });
        }
        Ok(())
    }
}

impl Objects for Hand {
    fn get(&self, id: &ObjectId) -> Option<Arc<Object>> {
        self.held.get(id)
    }
}

/// What stops a reader: objects to load, or a refusal.
#[derive(Debug)]
pub enum Lacking {
    /// These are to be loaded.
    Objects(BTreeSet<ObjectId>),
    /// It ends here.
    Refused(Refusal),
}

impl From<ReadError> for Lacking {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::Missing(missing) => Self::Objects(missing.0),
            malformed @ ReadError::Malformed { .. } => {
                Self::Refused(Refusal::Invalid { why: malformed.to_string() })
            }
        }
    }
}

impl From<BuildError> for Lacking {
    fn from(error: BuildError) -> Self {
        match error {
            BuildError::Read(error) => error.into(),
            BuildError::Refused(refusal) => Self::Refused(refusal),
        }
    }
}

#[cfg(test)]
mod tests;
