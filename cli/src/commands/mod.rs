//! The commands: one file each, the file's name is the command's.

mod act;
mod claim;
mod clone;
mod fork;
mod fsck;
mod log;
mod repo;
mod runner;
mod show;
mod status;
mod token;

use anyhow::Result;

use crate::place::Place;

/// Many agents change one codebase at once, and their work lands by itself.
#[derive(Debug, clap::Parser)]
#[command(name = "yard", version)]
pub struct Yard {
    /// Where to work.
    #[command(flatten)]
    pub place: Place,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// What to do.
#[derive(Debug, clap::Subcommand)]
pub enum Command {
    /// Make a repository
    Repo(repo::Args),
    /// Make an agent's fork: a remote URL and a token of its own, objects shared
    Fork(fork::Args),
    /// Clone a repository or fork, with the intents of its landed changes (notes)
    Clone(clone::Args),
    /// What is open, where it stands and why it is not on main
    Status(status::Args),
    /// What landed, newest first
    Log(log::Args),
    /// One change: intent, versions, runs, and the proof of its landing
    Show(show::Args),
    /// Take a change back
    Cancel(act::ChangeArgs),
    /// Hold a change
    Hold(act::ChangeArgs),
    /// Release a held change
    Release(act::ChangeArgs),
    /// Offer a rewritten or sent-back change again as it is
    Requeue(act::ChangeArgs),
    /// Let a version change .switchyard.toml (admins, after reading it)
    Approve(act::ApproveArgs),
    /// Stop landing
    Freeze(act::RepoArgs),
    /// Let landing go on
    Thaw(act::RepoArgs),
    /// Forbid direct pushes to main
    Protect(act::RepoArgs),
    /// Allow an admin's direct pushes to main
    Unprotect(act::RepoArgs),
    /// Lease paths, or give a lease back
    Claim(claim::Args),
    /// Make a token, or revoke one
    Token(token::Args),
    /// Test candidates: lease, check out, run, report
    Runner(runner::Args),
    /// Prove again, with git, that nothing went back
    Fsck(fsck::Args),
}

impl Command {
    /// `yard clone`, for programs that use this library.
    ///
    /// # Errors
    /// When the fork's name breaks the rules.
    pub fn clone_into(fork: Option<&str>, dir: &std::path::Path) -> Result<Self> {
        Ok(Self::Clone(clone::Args::new(fork, dir)?))
    }
}

/// Does what the command line says.
///
/// # Errors
/// A sentence that says what is wrong and what to do.
pub fn run(yard: Yard) -> Result<()> {
    let place = yard.place;
    match yard.command {
        Command::Repo(args) => repo::run(&place, &args),
        Command::Fork(args) => fork::run(&place, &args),
        Command::Clone(args) => clone::run(&place, &args),
        Command::Status(args) => status::run(&place, &args),
        Command::Log(args) => log::run(&place, &args),
        Command::Show(args) => show::run(&place, &args),
        Command::Cancel(args) => act::change(&place, "cancel", &args),
        Command::Hold(args) => act::change(&place, "hold", &args),
        Command::Release(args) => act::change(&place, "release", &args),
        Command::Requeue(args) => act::change(&place, "requeue", &args),
        Command::Approve(args) => act::approve(&place, &args),
        Command::Freeze(args) => act::repo(&place, "freeze", &args),
        Command::Thaw(args) => act::repo(&place, "thaw", &args),
        Command::Protect(args) => act::repo(&place, "protect", &args),
        Command::Unprotect(args) => act::repo(&place, "unprotect", &args),
        Command::Claim(args) => claim::run(&place, &args),
        Command::Token(args) => token::run(&place, &args),
        Command::Runner(args) => runner::run(&place, args),
        Command::Fsck(args) => fsck::run(&place, &args),
    }
}
