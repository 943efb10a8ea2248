//! `yard`: the command line of Switchyard.

use std::process::ExitCode;

use clap::Parser as _;
use yard_cli::commands::Yard;

fn main() -> ExitCode {
    yard_cli::runner::strays::adopt();
    match yard_cli::commands::run(Yard::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        // Whoever reads has had enough, as in `yard log | head`.
        Err(error) if yard_cli::output::is_closed(&error) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("yard: {error:#}");
            ExitCode::FAILURE
        }
    }
}
