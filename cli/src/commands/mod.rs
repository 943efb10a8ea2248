//! The commands: one file each, the file's name is the command's.

mod act;
mod claim;
mod clone;
mod fork;
mod fsck;
mod help;
mod log;
mod logs;
mod rebuild;
mod repo;
mod rules;
mod runner;
mod show;
mod status;
mod timeline;
mod token;

use anyhow::Result;

use crate::place::Place;

/// Many agents change one codebase at once, and their work lands by itself.
#[derive(Debug, clap::Parser)]
#[command(name = "yard", version, after_help = help::YARD)]
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
    /// Make a repository (the platform's admin)
    #[command(after_help = help::REPO)]
    Repo(repo::Args),
    /// Make an agent's fork: a remote URL and a token of its own, objects shared
    #[command(after_help = help::FORK)]
    Fork(fork::Args),
    /// Clone a repository or fork, with the intents of its landed changes (notes)
    #[command(after_help = help::CLONE)]
    Clone(clone::Args),
    /// What is open, where it stands and why it is not on main; claims
    #[command(after_help = help::STATUS)]
    Status(status::Args),
    /// What landed, newest first
    #[command(after_help = help::LOG)]
    Log(log::Args),
    /// What a run printed, also while it runs; without a run: which runs there are
    #[command(after_help = help::LOGS)]
    Logs(logs::Args),
    /// Who did what when, newest first
    #[command(after_help = help::TIMELINE)]
    Timeline(timeline::Args),
    /// One change: intent, versions, runs, and the proof of its landing; or the log of a run
    #[command(after_help = help::SHOW)]
    Show(show::Args),
    /// Take a change back
    #[command(after_help = help::CANCEL)]
    Cancel(act::ChangeArgs),
    /// Hold a change
    #[command(after_help = help::HOLD)]
    Hold(act::ChangeArgs),
    /// Release a held change
    Release(act::ChangeArgs),
    /// Offer a rewritten or sent-back change again as it is
    #[command(after_help = help::REQUEUE)]
    Requeue(act::ChangeArgs),
    /// Let a version change .switchyard.toml (admins, after reading it)
    #[command(after_help = help::APPROVE)]
    Approve(act::ApproveArgs),
    /// Stop landing
    #[command(after_help = help::FREEZE)]
    Freeze(act::RepoArgs),
    /// Let landing go on
    Thaw(act::RepoArgs),
    /// Forbid direct pushes to main
    Protect(act::RepoArgs),
    /// Allow an admin's direct pushes to main
    #[command(after_help = help::UNPROTECT)]
    Unprotect(act::RepoArgs),
    /// Lease paths, or give a lease back
    #[command(after_help = help::CLAIM)]
    Claim(claim::Args),
    /// Make a token, or revoke one
    #[command(after_help = help::TOKEN)]
    Token(token::Args),
    /// Test candidates: lease, check out, run, report
    #[command(after_help = help::RUNNER)]
    Runner(runner::Args),
    /// Try merge rules on the repository's own past merges
    #[command(after_help = help::RULES)]
    Rules(rules::Args),
    /// Make the search index anew from the objects (admins); nothing is lost when it is broken off
    #[command(name = "rebuild-index", after_help = help::REBUILD)]
    RebuildIndex(rebuild::Args),
    /// Prove again, with git and the rules, that nothing went back
    #[command(after_help = help::FSCK)]
    Fsck(fsck::Args),
}

impl Yard {
    /// A command line as words without the program's name, for programs that use this library.
    ///
    /// # Errors
    /// What the command line would be told.
    pub fn from_words<'a>(words: impl IntoIterator<Item = &'a str>) -> Result<Self> {
        Ok(<Self as clap::Parser>::try_parse_from(std::iter::once("yard").chain(words))?)
    }

    /// The names of all commands.
    #[must_use]
    pub fn names() -> Vec<String> {
        let yard = <Self as clap::CommandFactory>::command();
        yard.get_subcommands().map(|command| command.get_name().to_owned()).collect()
    }
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
        Command::Logs(args) => logs::run(&place, &args),
        Command::Timeline(args) => timeline::run(&place, &args),
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
        Command::Rules(args) => rules::run(&place, &args),
        Command::RebuildIndex(args) => rebuild::run(&place, &args),
        Command::Fsck(args) => fsck::run(&place, &args),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    #[test]
    fn every_command_and_argument_says_what_it_is() {
        let yard = super::Yard::command();
        yard.clone().debug_assert();
        for command in yard.get_subcommands() {
            assert!(command.get_about().is_some(), "{}", command.get_name());
            for argument in command.get_arguments() {
                assert!(argument.get_help().is_some(), "{} {}", command.get_name(), argument.get_id());
            }
        }
    }
}
