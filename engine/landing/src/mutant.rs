//! Single checks that a test may switch off, to prove that some test notices (feature `mutants`).
//!
//! In a product build [`off`] is the constant `false`, and the checks are all there is.

macro_rules! mutants {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// One check, binding, key or order of the kernel.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Mutant {
            $($(#[$doc])* $name,)*
        }

        impl Mutant {
            /// Every mutant, in the order of the checks.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];
        }
    };
}

mutants! {
    /// A repeated landing key is decided anew.
    Key,
    /// A repeated submission key is decided anew.
    SubmissionKey,
    /// Another content under a submission's key gets the old answer.
    SubmissionContent,
    /// The epoch is not compared.
    Epoch,
    /// The lane's owner epoch is not compared.
    OwnerEpoch,
    /// A change may be landed by a lane that does not own it.
    OwnerLane,
    /// The head is not compared.
    Head,
    /// The landing turn is not kept.
    Turn,
    /// Turns are given to the last who asked.
    TurnOrder,
    /// An older version than the newest may land.
    Newest,
    /// A withdrawn change may land.
    Withdrawn,
    /// A held change may land.
    Held,
    /// A change that main was rewritten without may land as it is.
    Rewritten,
    /// A change may land before the one it waits for.
    Parent,
    /// Row paths may be left out.
    EveryPath,
    /// A path may come twice, or one that is not the row's.
    OnlyRowPaths,
    /// An edit's base need not be the row's.
    Base,
    /// An edit's theirs need not be the row's.
    Theirs,
    /// "theirs" may have another ours than base, or another result than theirs.
    HowTheirs,
    /// "same" may have another result than ours.
    HowSame,
    /// A merge of which one side changed nothing may have any result.
    HowMerge,
    /// A submodule may be merged.
    Gitlink,
    /// A moved path's old place may still be there.
    FromAbsent,
    /// A moved path may claim to be unchanged ("theirs").
    FromHow,
    /// `ours` is not compared with what stands there.
    Ours,
    /// Modes are not compared.
    Mode,
    /// "Absent" is not looked for below and above.
    Absent,
    /// Edits are folded in path order instead of deletes first.
    DeletesFirst,
    /// Only the tip's tree is compared with the fold.
    EachTree,
    /// No tree is compared with the fold.
    Tree,
    /// A commit's parent need not be the commit before.
    CommitParent,
    /// A commit may have further parents.
    OneParent,
    /// The tip need not be the last listed commit.
    Tip,
    /// The notes commit's parent need not be the notes ref.
    NotesParent,
    /// A listed commit may have no new note.
    NoteMissing,
    /// Notes of other commits may be changed, added or removed.
    NotesOnly,
    /// A change may land twice.
    Landed,
    /// Claims do not matter.
    Fence,
    /// One fence number counts for all paths.
    FencePath,
    /// A freeze does not matter.
    Freeze,
    /// Anybody may change the configuration.
    ConfigAdmin,
    /// A replay lands however much it differs from what was reviewed.
    SecondReview,
    /// A red run lands.
    Green,
    /// An incomplete run, or one without a test, lands.
    Complete,
    /// A run of another tree lands.
    RunTree,
    /// A run of another command or configuration lands.
    Suite,
    /// A configuration change lands without a run under the new one.
    NewSuite,
    /// A run's signature does not matter.
    Signed,
    /// `paths`: what moved since the test may overlap with the train.
    PathsDisjoint,
    /// `paths`: tested tree and tip may differ anywhere.
    PathsDiffer,
    /// `paths`: adds and deletes do not look at the directory.
    PathsDirectory,
    /// The exceptions hold under `strict` as well.
    Strict,
    /// Every rule is commutative.
    Commutative,
    /// Acceptance: a version of a landed change is taken.
    LateVersion,
    /// Acceptance: a version of a withdrawn change is taken.
    WithdrawnVersion,
    /// Acceptance: a late replay is taken.
    LateReplay,
    /// Acceptance: a replay may touch any path.
    OutsideReview,
    /// Acceptance: a second replay is held against the first one, not against what was reviewed.
    ReviewedRow,
    /// Acceptance: only what is on main now is known.
    BaseEver,
    /// Acceptance: the change's own commits count as base.
    BaseOwn,
    /// Acceptance: one of several bases is enough.
    BaseAll,
    /// Acceptance: work on a withdrawn version is taken.
    BuiltOnWithdrawn,
    /// Acceptance: the change does not wait for the open one it stands on.
    WaitsFor,
    /// Acceptance: changes may wait for each other.
    Cycle,
    /// Acceptance: a part of an open change is taken.
    ContainedIn,
    /// Acceptance: somebody else's id makes a version of their change.
    ForeignId,
    /// Acceptance: a push without id is always a new change.
    WhichChange,
    /// Acceptance: stale trees are taken.
    StaleTree,
    /// Acceptance: a declared revert may take back anything.
    Reverts,
    /// Acceptance: bases are not looked for again.
    Raced,
    /// A cancel after the landing is taken.
    TooLate,
    /// A change is closed as already on main without a look at main.
    AlreadyOnMain,
    /// A direct push does not look which changes left main.
    Recompute,
    /// A direct push does not look which changes came back.
    Restore,
    /// A rewrite of main leaves the epoch as it is.
    EpochBump,
    /// A protected main takes direct pushes.
    ProtectedMain,
    /// Two forks may hold one path.
    ClaimOnce,
}

#[cfg(feature = "mutants")]
thread_local! {
    static OFF: std::cell::RefCell<Vec<Mutant>> = const { std::cell::RefCell::new(Vec::new()) };
}

/// Switches these checks off on this thread, and all others on.
#[cfg(feature = "mutants")]
pub fn switch_off(mutants: &[Mutant]) {
    OFF.with(|off| *off.borrow_mut() = mutants.to_vec());
}

/// Is this check switched off?
#[cfg(feature = "mutants")]
#[must_use]
pub fn off(mutant: Mutant) -> bool {
    OFF.with(|off| off.borrow().contains(&mutant))
}

/// Is this check switched off? Never.
#[cfg(not(feature = "mutants"))]
#[must_use]
#[inline(always)]
pub const fn off(_: Mutant) -> bool {
    false
}
