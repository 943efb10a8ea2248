//! Packs: write, index, read, receive (format: git's `gitformat-pack`).

use std::fmt;

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
    /// Something is above its limit.
    TooLarge {
        /// The thing.
        what: &'static str,
        /// Its size.
        size: u64,
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
            Self::TooLarge { what, size, limit } => {
                write!(f, "{what}: {size}, at most {limit} are taken: push in smaller steps")
            }
            Self::Misuse { why } => write!(f, "a pack was not written: {why}"),
        }
    }
}

impl std::error::Error for PackError {}

impl From<PackError> for Refusal {
    fn from(error: PackError) -> Self {
        match error {
            PackError::TooLarge { what, size, limit } => {
                Self::TooLarge { what: format!("the pack ({what})"), size, limit }
            }
            PackError::Misuse { why } => Self::Internal { during: why.to_owned() },
            other => Self::Invalid { why: other.to_string() },
        }
    }
}
