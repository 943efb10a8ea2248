//! Revoked tokens and the sweep.

use serde::{Deserialize, Serialize};
use yard_common::TokenId;

use crate::method;

/// Revokes a token.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Revoke {
    /// Its id.
    pub token: TokenId,
}
method!(Revoke, "revoke", ());

/// Is a token still good here? Asked before what carries no token itself; refused as unauthenticated.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckToken {
    /// Its id.
    pub token: TokenId,
}
method!(CheckToken, "check-token", ());

/// Asks for what the sweep would do now: effects not yet done (0 = quiet), staged packs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sweep {}
/// What is still to do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SweepReply {
    /// Effects in the outbox.
    pub outbox: u64,
    /// Staged packs.
    pub staged: u64,
}
method!(Sweep, "sweep", SweepReply);

/// How far the log has gone to the index; answered by lanes too, for their part.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reindex {
    /// All of it is to be sent once more.
    pub restart: bool,
}
/// How far.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReindexReply {
    /// The last that was sent.
    pub sent: u64,
    /// The last that there is.
    pub total: u64,
}
method!(Reindex, "reindex", ReindexReply);
