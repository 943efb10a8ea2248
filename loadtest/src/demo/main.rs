//! `make demo`: a platform, a small real project, many agents at once, real test runs, replays; checks
//! its own outcome for any seed.

mod agent;
mod check;
mod model;
mod plan;
mod project;
mod replays;
mod run;
mod watch;

use std::process::ExitCode;

use clap::Parser as _;

/// The demo and its agents.
#[derive(Debug, clap::Parser)]
#[command(name = "yard-demo", about)]
enum Demo {
    /// Run the demo
    Run(run::Args),
    /// One agent's work, in a process of its own (the demo starts these)
    Agent(agent::Args),
    /// The scripted model, in a process of its own (the demo starts it)
    Model(model::Args),
}

fn main() -> ExitCode {
    let done = match Demo::parse() {
        Demo::Run(args) => run::run(&args),
        Demo::Agent(args) => agent::run(&args),
        Demo::Model(args) => model::run(&args),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("demo: {error:#}");
            ExitCode::FAILURE
        }
    }
}
