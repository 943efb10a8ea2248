//! Packs: write, index, read, receive (format: git's `gitformat-pack`).

use std::fmt;

use yard_common::limits::OBJECT_BYTES_MAX;
use yard_common::{ObjectId, Refusal};

pub mod delta;
pub mod index;
pub mod read;
pub mod receive;
pub mod write;

mod header;
mod zlib;

pub use index::{IndexEntry, PackIndex};
pub use read::{PackBytes, Windows};
pub use write::PackWriter;

/// Longest chain of deltas that is followed: git's own packs end at 50, `--depth` at 4,095.
pub const CHAIN_DEPTH_MAX: u16 = 4096;

/// What is wrong with a pack, or with an object in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PackError {
    /// The bytes end before the pack does, or go on after it.
    Length {
        /// What was being read.
        reading: &'static str,
    },
    /// Not a pack, or of another version than 2 and 3.
    Version,
    /// The checksum at the end is not that of the bytes before it.
    Checksum,
    /// An entry cannot be read.
    Entry {
        /// Where it starts, in bytes from the start of the pack.
        offset: u64,
        /// What is wrong with it.
        why: &'static str,
    },
    /// An object is not what `git fsck --strict` takes.
    Object {
        /// The object.
        id: ObjectId,
        /// What is wrong with it, in git's words where git has some.
        why: &'static str,
    },
    /// One object is above [`yard_common::limits::OBJECT_BYTES_MAX`].
    ObjectTooLarge {
        /// Its inflated size in bytes.
        size: u64,
    },
    /// Something has more bytes than are taken.
    TooLarge {
        /// The thing, as a noun.
        what: &'static str,
        /// Its size in bytes.
        size: u64,
        /// The limit in bytes.
        limit: u64,
    },
    /// The pack has more objects than are taken.
    TooManyObjects {
        /// How many it has.
        count: u64,
        /// The limit.
        limit: u64,
    },
    /// A writer was used against its rules (a count that does not hold, a base that is not there).
    Misuse {
        /// What is wrong.
        why: &'static str,
    },
}

impl fmt::Display for PackError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Length { reading } => {
                write!(f, "the pack is cut or goes on too long ({reading}): send it again")
            }
            Self::Version => f.write_str("this is no pack of version 2 or 3"),
            Self::Checksum => {
                f.write_str("the pack's checksum does not match: it is corrupt, send it again")
            }
            Self::Entry { offset, why } => write!(f, "the pack is corrupt at byte {offset}: {why}"),
            Self::Object { id, why } => write!(f, "object {id} is not taken: {why}"),
            Self::ObjectTooLarge { size } => {
                let limit = OBJECT_BYTES_MAX;
                write!(
                    f,
                    "an object has {size} bytes, at most {limit} are taken: keep large files elsewhere"
                )
            }
            Self::TooLarge { what, size, limit } => {
                write!(f, "{what} has {size} bytes, at most {limit} are taken: push in smaller steps")
            }
            Self::TooManyObjects { count, limit } => {
                write!(f, "the pack has {count} objects, at most {limit} are taken: push in smaller steps")
            }
            Self::Misuse { why } => write!(f, "a pack was not written: {why}"),
        }
    }
}

impl std::error::Error for PackError {}

/// `size` as the size of one object to be held in memory.
fn object_size(size: u64) -> Result<usize, PackError> {
    let size_or_none = usize::try_from(size).ok().filter(|size| *size <= OBJECT_BYTES_MAX);
    size_or_none.ok_or(PackError::ObjectTooLarge { size })
}

/// The number of objects of a pack, as its header has it.
fn object_count(count: usize) -> Result<u32, PackError> {
    let limit = u64::from(u32::MAX);
    u32::try_from(count).map_err(|_| PackError::TooManyObjects { count: count as u64, limit })
}

impl From<PackError> for Refusal {
    fn from(error: PackError) -> Self {
        match error {
            PackError::TooLarge { what, size, limit } => {
                Self::TooLarge { what: what.to_owned(), size, limit }
            }
            PackError::ObjectTooLarge { size } => {
                Self::TooLarge { what: "an object".to_owned(), size, limit: OBJECT_BYTES_MAX as u64 }
            }
            PackError::Misuse { why } => Self::Internal { during: why.to_owned() },
            other => Self::Invalid { why: other.to_string() },
        }
    }
}
