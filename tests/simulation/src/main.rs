//! `yard-simulate`: seeds of the simulation, one after the other, until a law breaks.

use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use clap::Parser as _;
use yard_loadtest::Progress;
use yard_loadtest::figures::{Figures, Target};
use yard_simulation::run::{Outcome, run};

/// Runs seeds of the simulation.
#[derive(Debug, clap::Parser)]
#[command(name = "yard-simulate", about)]
struct Args {
    /// How many seeds
    #[arg(long, default_value_t = 100)]
    seeds: u64,
    /// The first one
    #[arg(long, default_value_t = 1)]
    from: u64,
    /// Threads
    #[arg(long, default_value_t = 2)]
    threads: u64,
    /// Tell what happened, for a single seed
    #[arg(long)]
    told: bool,
    /// Go on after a broken law
    #[arg(long)]
    go_on: bool,
    /// One line of JSON a seed
    #[arg(long)]
    json: bool,
}

fn main() -> ExitCode {
    let args = Args::parse();
    if args.told {
        let outcome = run(args.from, true);
        for line in &outcome.journal {
            println!("{line}");
        }
        println!("{}", serde_json::to_string(&outcome).unwrap_or_default());
        return if outcome.broken.is_some() { ExitCode::FAILURE } else { ExitCode::SUCCESS };
    }
    println!(
        "seeds {} to {}; one again: yard-simulate --from SEED --told",
        args.from,
        args.from + args.seeds - 1
    );
    let (next, all) = (AtomicU64::new(args.from), Mutex::new(Vec::<Outcome>::new()));
    let end = args.from + args.seeds;
    let began = Instant::now();
    let progress = Mutex::new(Progress::new("seeds", usize::try_from(args.seeds).unwrap_or(usize::MAX)));
    std::thread::scope(|scope| {
        for _ in 0..args.threads.max(1) {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= end {
                        return;
                    }
                    let outcome = run(seed, false);
                    let stop = outcome.broken.is_some() && !args.go_on;
                    tell(&args, &outcome);
                    if let Ok(mut all) = all.lock() {
                        all.push(outcome);
                        if let Ok(mut progress) = progress.lock() {
                            progress.at(all.len(), "");
                        }
                    }
                    if stop {
                        next.store(end, Ordering::Relaxed);
                    }
                }
            });
        }
    });
    drop(progress);
    let all = all.into_inner().unwrap_or_default();
    let sum = |of: fn(&Outcome) -> u64| all.iter().map(of).sum::<u64>();
    let (steps, broken) = (sum(|one| one.steps), sum(|one| u64::from(one.broken.is_some())));
    let seconds = began.elapsed().as_secs_f64();
    println!(
        "{} seeds, {steps} steps, {} faults, {} changes, {} landed, {broken} broken laws, {:.0} steps a second",
        all.len(),
        sum(|one| one.faults),
        sum(|one| one.changes as u64),
        sum(|one| one.landed as u64),
        steps as f64 / seconds.max(0.001)
    );
    let mut figures = Figures::new("simulation", args.from);
    figures.add("seeds", all.len() as f64, "seeds", Target::None);
    figures.add("steps", steps as f64, "events", Target::None);
    figures.add("faults", sum(|one| one.faults) as f64, "faults", Target::None);
    figures.add("broken_laws", broken as f64, "seeds", Target::AtMost(0.0));
    figures.add("steps_per_second", steps as f64 / seconds.max(0.001), "1/s", Target::None);
    if let Err(error) = figures.finish() {
        eprintln!("the figures cannot be written: {error:#}");
        return ExitCode::FAILURE;
    }
    if broken == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn tell(args: &Args, outcome: &Outcome) {
    if args.json {
        println!("{}", serde_json::to_string(outcome).unwrap_or_default());
    } else if let Some(broken) = &outcome.broken {
        println!("seed {}: {broken}", outcome.seed);
    }
}
