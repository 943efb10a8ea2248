//! What a command leaves running is ended. Alone in its process, for it ends all of that process's children.
#![allow(clippy::unwrap_used)]

use std::process::Command;
use std::time::{Duration, Instant};

use yard_cli::runner::strays;

#[test]
fn what_left_its_group_and_its_parent_is_ended_too() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("alive");
    let left = format!(
        "for n in 1 2; do setsid sh -c 'while :; do date >{}; sleep 0.05; done' >/dev/null 2>&1 & done",
        file.display()
    );
    strays::end();
    strays::adopt();
    assert!(Command::new("sh").args(["-c", &left]).status().unwrap().success());
    let began = Instant::now();
    while !file.exists() {
        assert!(began.elapsed() < Duration::from_secs(10), "it never started");
        std::thread::sleep(Duration::from_millis(10));
    }
    strays::end();
    std::fs::remove_file(&file).unwrap();
    std::thread::sleep(Duration::from_millis(300));
    assert!(!file.exists(), "it still runs");
}
