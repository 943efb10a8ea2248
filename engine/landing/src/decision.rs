//! What the kernel answers.

use std::collections::BTreeSet;

use yard_common::{Fact, ObjectId, Refusal};
use yard_git::ReadError;

/// The outcome of asking the kernel; `A` is the kind of answer that a key may have got before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision<A> {
    /// Store this fact and its fold, then answer with it.
    Fact(Box<Fact>),
    /// The key has its answer already (or the state is so already): say it again, store nothing.
    Answered(A),
    /// Refused without a trace: nothing is stored, the same request may come again.
    Refused(Refusal),
    /// Load these objects, then ask again; the state may have moved meanwhile.
    Missing(BTreeSet<ObjectId>),
}

/// Why a step of a decision stops: a refusal, or objects that are not at hand.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stop {
    /// The answer is no.
    No(Refusal),
    /// Load these first.
    Missing(BTreeSet<ObjectId>),
}

impl From<Refusal> for Stop {
    fn from(refusal: Refusal) -> Self {
        Self::No(refusal)
    }
}

impl From<ReadError> for Stop {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::Missing(missing) => Self::Missing(missing.0),
            malformed @ ReadError::Malformed { .. } => {
                Self::No(Refusal::Malformed { why: malformed.to_string() })
            }
        }
    }
}
