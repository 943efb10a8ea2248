//! Objects at hand for one event: what pure functions look at, loaded as they ask for it.

use std::collections::BTreeSet;
use std::sync::Arc;

use yard_common::{ObjectId, Refusal};
use yard_git::{MemoryObjects, Object, Objects, ReadError};

use crate::submit::build::BuildError;

/// Objects that one event may hold, in bytes: 1/4 of the isolate's 128 MB.
const HAND_BYTES_MAX: usize = 32 * 1024 * 1024;

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
}

impl Hand {
    /// Puts an object.
    pub fn insert(&mut self, id: ObjectId, object: Arc<Object>) {
        self.bytes += object.data.len();
        self.held.insert(id, object);
    }

    /// Runs `read` until nothing is missing any more; each round loads one batch.
    ///
    /// # Errors
    /// What `read` refuses with; [`Refusal::Internal`] for an object that is nowhere;
    /// [`Refusal::TooLarge`] when more must be read than an event may hold.
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
