//! What stops a reader: objects that are not at hand yet, or bytes that are no such object.

use std::collections::BTreeSet;
use std::fmt;

use yard_common::ObjectId;

/// Objects that a function needs and that were not at hand: fetch them in one batch, call again.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Missing(pub BTreeSet<ObjectId>);

impl Missing {
    /// Is nothing missing?
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds one id.
    pub fn insert(&mut self, id: ObjectId) {
        self.0.insert(id);
    }

    /// `value` when nothing is missing.
    ///
    /// # Errors
    /// [`ReadError::Missing`] with the ids otherwise.
    pub fn or<T>(self, value: T) -> Result<T, ReadError> {
        if self.is_empty() { Ok(value) } else { Err(ReadError::Missing(self)) }
    }
}

impl From<ObjectId> for Missing {
    fn from(id: ObjectId) -> Self {
        Self(BTreeSet::from([id]))
    }
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.first() {
            Some(id) if self.0.len() == 1 => write!(f, "object {id} is not at hand"),
            Some(id) => write!(f, "{} objects are not at hand, {id} among them", self.0.len()),
            None => f.write_str("no object is missing"),
        }
    }
}

/// Bytes that are not an object of the kind they should be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Malformed {
    /// What is wrong, in git's words where `git fsck` has some.
    pub why: &'static str,
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.why)
    }
}

impl std::error::Error for Malformed {}

/// Why a reader cannot answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReadError {
    /// Objects are not at hand yet.
    Missing(Missing),
    /// An object is at hand, but it is not what its place says.
    Malformed {
        /// The object.
        id: ObjectId,
        /// What is wrong with it.
        why: &'static str,
    },
}

impl ReadError {
    /// A malformed object.
    #[must_use]
    pub fn malformed(id: ObjectId, fault: Malformed) -> Self {
        Self::Malformed { id, why: fault.why }
    }
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing(missing) => missing.fmt(f),
            Self::Malformed { id, why } => write!(f, "object {id} is malformed: {why}"),
        }
    }
}

impl std::error::Error for ReadError {}

impl From<Missing> for ReadError {
    fn from(missing: Missing) -> Self {
        Self::Missing(missing)
    }
}
