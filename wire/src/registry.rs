//! The methods of the Registry object: which repositories and forks there are.

use serde::{Deserialize, Serialize};
use yard_common::{ForkName, LaneName, Millis, RepoName, TokenId};

use crate::method;
use crate::token::Scope;

/// Lists a repository that was made; a repeat is harmless.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AddRepo {
    /// The name.
    pub repo: RepoName,
}
method!(AddRepo, "add-repo", ());

/// Lists a fork that was made; a repeat is harmless.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AddFork {
    /// The repository.
    pub repo: RepoName,
    /// The fork.
    pub fork: ForkName,
}
method!(AddFork, "add-fork", ());

/// One repository.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RepoEntry {
    /// The name.
    pub repo: RepoName,
    /// When it was made.
    pub at: Millis,
    /// Its lanes.
    pub lanes: Vec<LaneName>,
    /// Its forks.
    pub forks: Vec<ForkName>,
}
/// All repositories, or one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListRepos {
    /// This one only.
    pub repo: Option<RepoName>,
}
method!(ListRepos, "list-repos", Vec<RepoEntry>);

/// What is known of a token that the platform has given out; the token itself is not kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TokenEntry {
    /// Its id.
    pub id: TokenId,
    /// The fork that it is bound to.
    pub fork: Option<ForkName>,
    /// What it allows.
    pub scopes: Vec<Scope>,
    /// When it ends.
    pub expires: Millis,
}

/// Notes a token before it is given out; refused when its repository or fork does not exist.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AddToken {
    /// The repository.
    pub repo: RepoName,
    /// The token.
    pub token: TokenEntry,
}
method!(AddToken, "add-token", ());

/// A token of the repository that was given out and has not ended by itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FindToken {
    /// The repository.
    pub repo: RepoName,
    /// The token.
    pub id: TokenId,
}
method!(FindToken, "find-token", Option<TokenEntry>);
