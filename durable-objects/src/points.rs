//! Named points around every write and every effect, at which a test harness kills the process.
//!
//! The variable `SWITCHYARD_POINTS` selects what happens: unset, nothing; `list`, each hit is one
//! console line `POINT NAME`; `NAME#N`, the N-th hit of NAME prints that line and never goes on.
//! Harnesses read the names from [`NAMES`].

use std::cell::RefCell;

/// The variable's name.
pub const VARIABLE: &str = "SWITCHYARD_POINTS";

/// Every point there is; a point that is not listed here never stops anything.
pub const NAMES: &[&str] = &[
    "repository.create.before",
    "repository.create.after",
    "repository.stage.before",
    "repository.stage.after",
    "repository.candidate.before",
    "repository.candidate.after",
    "repository.revoke.before",
    "repository.revoke.after",
    "repository.before-save",
    "repository.after-fact",
    "repository.after-fold",
    "repository.saved",
    "repository.durable",
    "repository.index.before",
    "repository.index.after",
    "repository.board.before",
    "repository.board.after",
    "repository.sweep.tombstoned",
    "repository.sweep.deleted",
    "lane.before-save",
    "lane.saved",
    "lane.pull.before",
    "lane.pull.after",
    "lane.close.before",
    "lane.close.after",
    "lane.stage.before",
    "lane.stage.after",
    "lane.candidate.put",
    "lane.notes.put",
    "lane.replay.before",
    "lane.replay.after",
    "lane.land.before",
    "lane.land.after",
    "lane.log.before",
    "lane.log.put",
    "lane.board.before",
    "lane.board.after",
    "lane.index.before",
    "lane.index.after",
    "board.before-save",
    "board.saved",
    "registry.before-save",
    "registry.saved",
];

#[derive(Debug, Default)]
struct State {
    list: bool,
    kill: Option<(String, u64)>,
    hits: Vec<String>,
}

thread_local! {
    static STATE: RefCell<State> = RefCell::new(State::default());
}

/// Selects by the variable's text; `None` or an empty one switches all points off.
///
/// A count that runs already goes on when the same text comes again: every object calls this.
pub fn select(text: Option<&str>) {
    let text = text.unwrap_or_default();
    let kill = text.split_once('#').map(|(name, nth)| (name.to_owned(), nth.trim().parse().unwrap_or(1u64)));
    STATE.with_borrow_mut(|state| {
        state.list = text == "list";
        if state.kill.as_ref().map(|(name, _)| name) != kill.as_ref().map(|(name, _)| name) {
            state.kill = kill;
        }
    });
}

/// Is any point switched on?
#[must_use]
pub fn on() -> bool {
    STATE.with_borrow(|state| state.list || state.kill.is_some())
}

/// Passes the point `name`.
pub fn point(name: &str) {
    let stop = STATE.with_borrow_mut(|state| {
        if !cfg!(target_arch = "wasm32") && state.list {
            state.hits.push(name.to_owned());
        }
        if state.list {
            log(&format!("POINT {name}"));
        }
        match &mut state.kill {
            Some((wanted, left)) if wanted == name => {
                *left = left.saturating_sub(1);
                *left == 0
            }
            _ => false,
        }
    });
    if stop {
        log(&format!("POINT {name}"));
        hold();
    }
}

#[cfg(target_arch = "wasm32")]
fn hold() {
    loop {
        std::hint::spin_loop();
    }
}

#[cfg(not(target_arch = "wasm32"))]
fn hold() {}

/// The points passed on this thread since the last call, while `list` was selected.
#[cfg(not(target_arch = "wasm32"))]
#[must_use]
pub fn take_hits() -> Vec<String> {
    STATE.with_borrow_mut(|state| std::mem::take(&mut state.hits))
}

/// One line to the platform's log.
#[cfg(target_arch = "wasm32")]
pub fn log(line: &str) {
    worker::console_log!("{line}");
}

/// One line to the log: natively nobody reads it.
#[cfg(not(target_arch = "wasm32"))]
pub fn log(_line: &str) {}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::NAMES;

    fn read(folder: &Path, texts: &mut Vec<String>) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                read(&path, texts);
            } else if path.extension().is_some_and(|end| end == "rs") {
                texts.push(std::fs::read_to_string(path).unwrap());
            }
        }
    }

    #[test]
    fn every_point_that_is_passed_is_listed_and_every_listed_one_is_passed_once() {
        let mut texts = Vec::new();
        read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut texts);
        let call = concat!("point", "(");
        let mut passed: Vec<&str> = Vec::new();
        for text in &texts {
            for (at, _) in text.match_indices(call) {
                let rest = text[at + call.len()..].trim_start();
                let declared = text[..at].ends_with("fn ");
                let name = rest.strip_prefix('"').and_then(|rest| rest.split('"').next());
                assert!(
                    declared || name.is_some(),
                    "a point's name is written where it is passed: {:.60}",
                    rest
                );
                passed.extend(name);
            }
        }
        passed.sort_unstable();
        let mut listed = NAMES.to_vec();
        listed.sort_unstable();
        assert_eq!(passed, listed);
    }
}
