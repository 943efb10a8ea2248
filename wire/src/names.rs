//! How an id becomes an object's name and an R2 key. Changing one loses the object's data.

use yard_common::edit_list::EditList;
use yard_common::{ForkName, LaneName, RepoName, RunId};

/// A repository, or a fork of it: the thing a remote URL names.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Remote {
    /// The repository.
    pub repo: RepoName,
    /// The fork; the repository itself when `None`.
    pub fork: Option<ForkName>,
}

impl Remote {
    /// The repository itself.
    #[must_use]
    pub fn parent(repo: RepoName) -> Self {
        Self { repo, fork: None }
    }
}

/// The Repository object of a remote.
#[must_use]
pub fn repository(remote: &Remote) -> String {
    match &remote.fork {
        None => format!("repo:{}", remote.repo),
        Some(fork) => format!("repo:{}/forks/{fork}", remote.repo),
    }
}

/// The Lane object of a repository's lane.
#[must_use]
pub fn lane(repo: &RepoName, lane: &LaneName) -> String {
    format!("lane:{repo}/{lane}")
}

/// The Board object of a repository.
#[must_use]
pub fn board(repo: &RepoName) -> String {
    format!("board:{repo}")
}

/// The one Registry object.
pub const REGISTRY: &str = "registry";

/// The name of the one lane of a repository without lanes in its configuration.
pub const DEFAULT_LANE: &str = "main";

/// The R2 key of a pushed pack: shared by a repository and its forks.
#[must_use]
pub fn push_pack(repo: &RepoName, push_id: &str) -> String {
    format!("{repo}/packs/{push_id}.pack")
}

/// The R2 key of a candidate's pack; deleted when it does not land.
#[must_use]
pub fn candidate_pack(repo: &RepoName, attempt: &str) -> String {
    format!("{repo}/candidates/{attempt}.pack")
}

/// The R2 key of the notes' pack of a candidate.
#[must_use]
pub fn notes_pack(repo: &RepoName, attempt: &str) -> String {
    format!("{repo}/candidates/{attempt}.notes.pack")
}

/// The R2 key of a list of edits that is too long for a fact: shared by all facts with the same list.
#[must_use]
pub fn edit_list(repo: &RepoName, list: &EditList) -> String {
    format!("{repo}/edits/{}.json", list.sha256)
}

/// The R2 key of a run's log.
#[must_use]
pub fn run_log(repo: &RepoName, run: &str) -> String {
    format!("{repo}/logs/{run}.log")
}

/// The lane that a run belongs to: its id is `LANE-TRAIN-NUMBER`.
#[must_use]
pub fn lane_of_run(run: &RunId) -> Option<LaneName> {
    let (train, _) = run.as_str().rsplit_once('-')?;
    LaneName::new(train.rsplit_once('-')?.0).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_pinned_because_changing_one_loses_data() {
        let repo = RepoName::new("click").unwrap();
        let fork = Remote { repo: repo.clone(), fork: Some(ForkName::new("a1").unwrap()) };
        assert_eq!(repository(&Remote::parent(repo.clone())), "repo:click");
        assert_eq!(repository(&fork), "repo:click/forks/a1");
        assert_eq!(lane(&repo, &LaneName::new("main").unwrap()), "lane:click/main");
        assert_eq!(board(&repo), "board:click");
        let run = RunId::new("a-lane-12-3").unwrap();
        assert_eq!(lane_of_run(&run), Some(LaneName::new("a-lane").unwrap()));
        assert_eq!(lane_of_run(&RunId::new("run-1").unwrap()), None);
        assert_eq!(REGISTRY, "registry");
        let list = EditList { sha256: "ab12".into(), bytes: 1, count: 1 };
        assert_eq!(edit_list(&repo, &list), "click/edits/ab12.json");
        assert_eq!(push_pack(&repo, "p1"), "click/packs/p1.pack");
        assert_eq!(candidate_pack(&repo, "main-1-1"), "click/candidates/main-1-1.pack");
    }
}
