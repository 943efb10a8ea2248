//! Processes that a command leaves behind outside of its group: they would act on the next run's files.
//!
//! Linux hands orphans to the nearest ancestor that asks for them; a runner's process has no children of its own
//! between two commands, so whoever is its child then is a stray.

use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitOptions, kill_process, set_child_subreaper, waitpid};

/// How long strays are ended that start others.
const PATIENCE: Duration = Duration::from_secs(5);

/// Is this process a command and nothing else, so that its children are its commands'?
static ALONE: AtomicBool = AtomicBool::new(false);

/// Says that this process is `yard` and nothing else, and asks for orphans.
pub fn adopt() {
    ALONE.store(set_child_subreaper(Some(rustix::process::getpid())).is_ok(), Ordering::Relaxed);
}

/// Ends all children of this process and theirs; does nothing in a process that is something else.
pub fn end() {
    if !ALONE.load(Ordering::Relaxed) {
        return;
    }
    let began = Instant::now();
    while began.elapsed() < PATIENCE {
        let strays = children();
        if strays.is_empty() {
            return;
        }
        for stray in strays {
            let _ = kill_process(stray, Signal::KILL);
            let _ = waitpid(Some(stray), WaitOptions::empty());
        }
    }
}

fn children() -> Vec<Pid> {
    let own = std::process::id().to_string();
    let Ok(processes) = fs::read_dir("/proc") else { return Vec::new() };
    let numbers = processes.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<i32>().ok());
    let is_child = |number: &i32| {
        // PID (NAME) STATE PARENT ...; the name may have brackets and spaces.
        let stat = fs::read_to_string(format!("/proc/{number}/stat")).unwrap_or_default();
        let parent = stat.rsplit_once(')').and_then(|(_, rest)| rest.split_whitespace().nth(1));
        parent == Some(own.as_str())
    };
    numbers.filter(is_child).filter_map(Pid::from_raw).collect()
}
