//! The methods of the Registry object: which repositories and forks there are.

use serde::{Deserialize, Serialize};
use yard_common::{ForkName, LaneName, Millis, RepoName};

use crate::method;

/// Takes a repository's name; the same name under the same key is no conflict.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AddRepo {
    /// The name.
    pub repo: RepoName,
}
method!(AddRepo, "add-repo", ());

/// Takes a fork's name.
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
