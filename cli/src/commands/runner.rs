//! `yard runner`: tests candidates until it is stopped.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use signal_hook::consts::{SIGINT, SIGTERM};
use yard_common::LaneName;

use crate::output;
use crate::place::Place;
use crate::runner::{Round, Runner, end_group};

/// Most runners of one repository on one machine without `--work`.
const SLOTS_MAX: u32 = 1000;
/// What git leaves in a cache when it is killed, and then refuses to work with.
const GIT_LOCKS: [&str; 5] =
    ["index.lock", "HEAD.lock", "config.lock", "packed-refs.lock", "refs/yard/candidate.lock"];

/// Arguments.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Lanes to work for
    #[arg(long, value_delimiter = ',', default_value = "main")]
    lanes: Vec<LaneName>,
    /// Folder for checkout, cache and logs, kept for the next runner; one under ~/.cache/yard-runner when absent
    #[arg(long)]
    work: Option<PathBuf>,
    /// A word that tells this environment from others (it is part of the suite)
    #[arg(long, default_value = "")]
    label: String,
    /// Stop after this many runs
    #[arg(long)]
    runs: Option<u64>,
}

/// The first folder `NAME-0`, `NAME-1`... that nobody uses, locked as long as the file is open.
///
/// The commands that a runner starts inherit the lock: what a killed runner left running keeps the folder.
fn slot(parent: &Path, name: &str) -> Result<(PathBuf, File)> {
    for number in 0..SLOTS_MAX {
        let folder = parent.join(format!("{name}-{number}"));
        std::fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
        let lock = File::create(folder.join("lock"))?;
        if lock.try_lock().is_ok() {
            rustix::io::fcntl_setfd(&lock, rustix::io::FdFlags::empty())?;
            for stale in GIT_LOCKS {
                let _ = std::fs::remove_file(folder.join("cache.git").join(stale));
            }
            return Ok((folder, lock));
        }
    }
    bail!("{SLOTS_MAX} runners work in {} already: name a folder with --work", parent.display())
}

/// The first SIGINT or SIGTERM sets the flag, the second ends the process and the command that it runs.
///
/// A runner that ended while it asks would be given a run all the same, and the run would wait for
/// its lease to end.
fn stop_on_signals(group: Arc<AtomicU32>) -> Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&stop);
    let mut signals = signal_hook::iterator::Signals::new([SIGINT, SIGTERM])?;
    std::thread::spawn(move || {
        for _ in signals.forever() {
            if flag.swap(true, Ordering::Relaxed) {
                end_group(group.load(Ordering::Relaxed));
                std::process::exit(130);
            }
            eprintln!("stops after the run in hand, or within 10 s when there is none; again: at once");
        }
    });
    Ok(stop)
}

/// Closes this process's memory and environment, where the token is, to the commands of its own user.
///
/// Root reads them all the same.
fn keep_to_itself() {
    #[cfg(target_os = "linux")]
    if rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable).is_err() {
        eprintln!("note: commands that run here can read this runner's token");
    }
}

/// Runs until it is stopped; an unreachable platform is asked again, a refusal of the token ends it.
///
/// # Errors
/// When the platform refuses the runner.
pub fn run(place: &Place, args: Args) -> Result<()> {
    let (client, repo) = (place.client()?, place.repo()?);
    let (work, _lock) = match args.work {
        Some(work) => (work, None),
        None => {
            let home = std::env::var_os("HOME").map_or_else(std::env::temp_dir, PathBuf::from);
            let (work, lock) = slot(&home.join(".cache/yard-runner"), repo.as_str())?;
            (work, Some(lock))
        }
    };
    keep_to_itself();
    let runner = Runner::new(client, repo, args.lanes, work, &args.label)?;
    eprintln!("runner {} works in {}", runner.id, runner.work.display());
    let stop = stop_on_signals(Arc::clone(&runner.group))?;
    let mut done = 0;
    while !stop.load(Ordering::Relaxed) && args.runs.is_none_or(|limit| done < limit) {
        match runner.round() {
            Ok(Round::Idle) => std::thread::sleep(Duration::from_millis(100)),
            Ok(Round::Ran(said)) => {
                done += 1;
                if place.json {
                    output::json_line(&serde_json::json!({ "ran": said }))?;
                } else {
                    eprintln!("{said}");
                }
            }
            Err(error) => match error.problem() {
                Some(problem) if matches!(problem.status, 401 | 403 | 404) => return Err(error.into()),
                _ => {
                    eprintln!("{error}: asking again");
                    std::thread::sleep(Duration::from_secs(1));
                }
            },
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_used_again_but_never_by_two_runners() {
        let dir = tempfile::tempdir().unwrap();
        let (first, lock) = slot(dir.path(), "toy").unwrap();
        let (second, _second_lock) = slot(dir.path(), "toy").unwrap();
        assert_ne!(first, second);
        let mut left_running = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        drop(lock);
        assert_ne!(slot(dir.path(), "toy").unwrap().0, first, "a command of it runs on");
        left_running.kill().unwrap();
        left_running.wait().unwrap();
        let stale = first.join("cache.git/index.lock");
        std::fs::create_dir_all(stale.parent().unwrap()).unwrap();
        std::fs::write(&stale, "").unwrap();
        // Commands of other tests that began meanwhile inherited the lock as well.
        let began = std::time::Instant::now();
        while slot(dir.path(), "toy").unwrap().0 != first {
            assert!(began.elapsed() < Duration::from_secs(30), "the folder stays in use");
            std::thread::sleep(Duration::from_millis(20));
        }
        assert!(!stale.exists());
    }
}
