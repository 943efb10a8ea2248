//! The benchmarks: each prints its table and writes `target/figures/NAME.jsonl`.

mod baseline;
mod corpus;
mod cpu;
mod heap;
mod landing;
mod offers;
mod replay_index;
mod replay_model;
mod replay_rules;

use std::process::ExitCode;

use clap::Parser as _;

/// The benchmarks.
#[derive(Debug, clap::Parser)]
#[command(name = "yard-bench", about)]
enum Bench {
    /// Land many changes of one repository, beside git fast-import and a shell loop of git
    Landing(landing::Args),
    /// Merge generated collisions by the rules, beside git's union driver
    ReplayRules(replay_rules::Args),
    /// Land many changes of one index and one changelog, beside changes apart
    ReplayIndex(replay_index::Args),
    /// Land many collisions, redone by a scripted model
    ReplayModel(replay_model::Args),
}

fn main() -> ExitCode {
    let done = match Bench::parse() {
        Bench::Landing(args) => landing::run(&args),
        Bench::ReplayRules(args) => replay_rules::run(&args),
        Bench::ReplayIndex(args) => replay_index::run(&args),
        Bench::ReplayModel(args) => replay_model::run(&args),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bench: {error:#}");
            ExitCode::FAILURE
        }
    }
}
