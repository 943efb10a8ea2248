//! How far something long is: a bar on a terminal, a line for each tenth elsewhere.

use std::io::{IsTerminal as _, Write as _};
use std::time::Instant;

use yard_cli::output::bar;

/// The bar of one piece of work.
#[derive(Debug)]
pub struct Progress {
    name: String,
    all: usize,
    began: Instant,
    live: bool,
    tenth: Option<usize>,
}

impl Progress {
    /// Nothing is done yet of `all`.
    #[must_use]
    pub fn new(name: &str, all: usize) -> Self {
        let live = std::io::stderr().is_terminal();
        Self { name: name.to_owned(), all: all.max(1), began: Instant::now(), live, tenth: None }
    }

    /// Shows that so many are done, and what is said beside it.
    pub fn at(&mut self, done: usize, beside: &str) {
        let seconds = self.began.elapsed().as_secs_f64();
        let text = format!("{}: {done} of {}{beside}, {seconds:.1} s", self.name, self.all);
        if self.live {
            eprint!("\r\u{1b}[K{} {text}", bar(done, self.all));
            let _ = std::io::stderr().flush();
            return;
        }
        let tenth = Some(done * 10 / self.all);
        if tenth > self.tenth {
            self.tenth = tenth;
            eprintln!("{text}");
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if self.live {
            eprintln!();
        }
    }
}
