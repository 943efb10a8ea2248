//! What people see: tables with aligned columns, colours on a terminal only, JSON on request.

use std::io::{IsTerminal as _, Write as _};

use anyhow::Result;
use serde::Serialize;

/// The longest line with an escape in it that waits for its end, in bytes.
const HELD_BYTES_MAX: usize = 4096;

/// A colour of the terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Colour {
    /// Landed, good.
    Green,
    /// Sent back, wrong.
    Red,
    /// Waits.
    Yellow,
    /// Beside the point.
    Dim,
}

/// Stand for colour codes until text is printed, so that all other codes in it can be taken out: private
/// characters, of which others can make colours at most.
const MARKS: [(char, &str); 5] =
    [('\u{f8e0}', "0"), ('\u{f8e1}', "32"), ('\u{f8e2}', "31"), ('\u{f8e3}', "33"), ('\u{f8e4}', "2")];

/// The text in a colour, once [`text`] prints it on a terminal and `NO_COLOR` is not set.
#[must_use]
pub fn paint(colour: Colour, text: &str) -> String {
    let place = match colour {
        Colour::Green => 1,
        Colour::Red => 2,
        Colour::Yellow => 3,
        Colour::Dim => 4,
    };
    let mark = |place: usize| MARKS.get(place).map_or(' ', |(mark, _)| *mark);
    format!("{}{text}{}", mark(place), mark(0))
}

/// Text as [`text`] prints it: nothing in it steers a terminal but our own colours, and those on a terminal only.
#[must_use]
pub fn rendered(text: &str) -> String {
    let colours = std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none();
    let mut out = String::with_capacity(text.len());
    for c in printable(text).chars() {
        match MARKS.iter().find(|(mark, _)| *mark == c) {
            Some((_, code)) if colours => out.push_str(&format!("\u{1b}[{code}m")),
            Some(_) => {}
            None => out.push(c),
        }
    }
    out
}

/// Prints one JSON document.
///
/// # Errors
/// When standard output is closed.
pub fn json<T: Serialize>(value: &T) -> Result<()> {
    raw(&format!("{}\n", serde_json::to_string_pretty(value)?))
}

/// Prints one JSON document on one line, for commands that print several.
///
/// # Errors
/// When standard output is closed.
pub fn json_line<T: Serialize>(value: &T) -> Result<()> {
    raw(&format!("{}\n", serde_json::to_string(value)?))
}

thread_local! {
    static CAPTURED: std::cell::RefCell<Option<String>> = const { std::cell::RefCell::new(None) };
}

/// Runs a command of this thread and gives what it printed, for programs that use this library.
pub fn capture<T>(run: impl FnOnce() -> T) -> (T, String) {
    CAPTURED.with(|captured| captured.replace(Some(String::new())));
    let value = run();
    (value, CAPTURED.with(std::cell::RefCell::take).unwrap_or_default())
}

/// Prints text, made safe for a terminal: whatever is printed may hold words of others.
///
/// # Errors
/// When standard output is closed.
pub fn text(text: &str) -> Result<()> {
    raw(&rendered(text))
}

/// Prints text as it is.
///
/// # Errors
/// When standard output is closed.
pub fn raw(text: &str) -> Result<()> {
    let kept = CAPTURED.with(|captured| {
        let mut captured = captured.borrow_mut();
        captured.as_mut().map(|captured| captured.push_str(text)).is_some()
    });
    if kept {
        return Ok(());
    }
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()?;
    Ok(())
}

/// Makes text of others safe for a terminal, piece by piece: no escape sequences, no control characters
/// but tab and line feed, none that turn the direction of writing. A lone carriage return ends a line.
#[derive(Debug, Default)]
pub struct Printable {
    /// An escape sequence that may go on in the next piece.
    held: String,
    returned: bool,
}

/// A whole text, made safe for a terminal.
#[must_use]
pub fn printable(text: &str) -> String {
    let mut safe = Printable::default();
    safe.next(text) + &safe.end()
}

impl Printable {
    /// The next piece; a line that has an escape in it may wait for its end.
    pub fn next(&mut self, text: &str) -> String {
        let mut whole = std::mem::take(&mut self.held);
        whole.push_str(text);
        let line = whole.rfind('\n').map_or(0, |at| at + 1);
        let rest = whole.get(line..).unwrap_or_default();
        if let Some(at) = rest.find('\u{1b}').filter(|at| rest.len() - at <= HELD_BYTES_MAX) {
            self.held = whole.split_off(line + at);
        }
        self.safe(&whole)
    }

    /// What still waits, when nothing follows.
    pub fn end(&mut self) -> String {
        let held = std::mem::take(&mut self.held);
        self.safe(&held)
    }

    fn safe(&mut self, text: &str) -> String {
        let mut out = String::with_capacity(text.len());
        for c in anstream::adapter::strip_str(text).to_string().chars() {
            if std::mem::take(&mut self.returned) && c != '\n' {
                out.push('\n');
            }
            match c {
                '\r' => self.returned = true,
                '\n' | '\t' => out.push(c),
                '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200e}' | '\u{200f}' => {}
                c if c.is_control() => {}
                c => out.push(c),
            }
        }
        out
    }
}

/// Did whoever reads standard output close it, as `head` does when it has enough?
#[must_use]
pub fn is_closed(error: &anyhow::Error) -> bool {
    let closed = |kind| kind == Some(std::io::ErrorKind::BrokenPipe);
    error.chain().any(|cause| closed(cause.downcast_ref::<std::io::Error>().map(std::io::Error::kind)))
}

/// How far a long command is, on a terminal only.
#[derive(Debug)]
pub struct Progress {
    what: &'static str,
    total: usize,
    done: std::cell::Cell<usize>,
    shown: std::cell::Cell<Option<std::time::Instant>>,
    seen: bool,
}

/// How often the line is drawn anew.
const REDRAW: std::time::Duration = std::time::Duration::from_millis(100);
/// Characters of the bar.
const BAR: usize = 30;

impl Progress {
    /// Of so many things, named in the plural.
    #[must_use]
    pub fn new(what: &'static str, total: usize) -> Self {
        let seen = std::io::stderr().is_terminal();
        Self { what, total, done: std::cell::Cell::new(0), shown: std::cell::Cell::new(None), seen }
    }

    /// One more is being done.
    pub fn step(&self) {
        self.reach(self.done.get() + 1);
    }

    /// So many are done.
    pub fn reach(&self, done: usize) {
        self.done.set(done);
        let due = self.shown.get().is_none_or(|at| at.elapsed() >= REDRAW);
        if self.seen && due {
            self.shown.set(Some(std::time::Instant::now()));
            let (done, total) = (self.done.get(), self.total);
            let bar = bar(done, total);
            let _ = write!(std::io::stderr(), "\r{bar} {done}/{total} {}\u{1b}[K", self.what);
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if self.seen && self.shown.get().is_some() {
            let _ = write!(std::io::stderr(), "\r\u{1b}[K");
        }
    }
}

/// The bar itself, 30 cells wide.
#[must_use]
pub fn bar(done: usize, total: usize) -> String {
    let full = done.saturating_mul(BAR).checked_div(total).unwrap_or(BAR).min(BAR);
    format!("[{}{}]", "=".repeat(full), " ".repeat(BAR - full))
}

/// `1 test`, `2 tests`.
#[must_use]
pub fn count(number: u64, one: &str) -> String {
    if number == 1 { format!("1 {one}") } else { format!("{number} {one}s") }
}

/// A table with a header; the last column is not padded.
#[must_use]
pub fn table(header: &[&str], rows: &[Vec<String>]) -> String {
    // A row is one line, whatever stands in its cells.
    let plain = |cell: &String| printable(cell).replace(['\n', '\t'], " ");
    let rows: Vec<Vec<String>> = rows.iter().map(|row| row.iter().map(plain).collect()).collect();
    let mut widths: Vec<usize> = header.iter().map(|cell| cell.chars().count()).collect();
    for row in &rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(visible(cell));
        }
    }
    let mut out = line(&header.iter().map(|cell| (*cell).to_owned()).collect::<Vec<_>>(), &widths);
    for row in &rows {
        out.push_str(&line(row, &widths));
    }
    out
}

/// Characters that take a place: those that stand for colours do not.
fn visible(cell: &str) -> usize {
    cell.chars().filter(|c| MARKS.iter().all(|(mark, _)| mark != c)).count()
}

fn line(cells: &[String], widths: &[usize]) -> String {
    let mut out = String::new();
    for (index, (cell, width)) in cells.iter().zip(widths).enumerate() {
        out.push_str(cell);
        if index + 1 < cells.len() {
            out.push_str(&" ".repeat(width.saturating_sub(visible(cell)) + 2));
        }
    }
    out.push('\n');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_closed_reader_is_told_from_other_errors() {
        let broken = || std::io::Error::from(std::io::ErrorKind::BrokenPipe);
        assert!(is_closed(&anyhow::Error::from(broken()).context("printing")));
        assert!(!is_closed(&anyhow::Error::from(std::io::Error::from(std::io::ErrorKind::NotFound))));
    }

    #[test]
    fn what_a_command_prints_can_be_captured() {
        let ((), printed) = capture(|| {
            text("a\n").unwrap();
            json_line(&1).unwrap();
        });
        assert_eq!(printed, "a\n1\n");
        assert_eq!(capture(|| ()).1, "");
    }

    #[test]
    fn a_bar_fills_up() {
        assert_eq!(bar(1, 2), format!("[{}{}]", "=".repeat(15), " ".repeat(15)));
        assert_eq!(bar(0, 0), format!("[{}]", "=".repeat(30)));
    }

    #[test]
    fn what_programs_print_cannot_steer_the_terminal() {
        let all = |pieces: &[&str]| {
            let mut safe = Printable::default();
            let shown: String = pieces.iter().map(|piece| safe.next(piece)).collect();
            shown + &safe.end()
        };
        assert_eq!(all(&["\u{1b}[31mred\u{1b}[0m\tplain\n"]), "red\tplain\n");
        assert_eq!(all(&["\u{1b}[3", "1mred"]), "red", "an escape that two pieces share");
        assert_eq!(all(&["\u{1b}]0;title\u{7}text"]), "text");
        assert_eq!(all(&["\u{1b}]52;c;aGk=\u{1b}\\text"]), "text", "nor the clipboard");
        assert_eq!(all(&["a\u{8}\u{7}\u{9b}b\u{202e}c\0"]), "abc");
        assert_eq!(all(&["10 %\r20 %\r\ndone\r", "\nend"]), "10 %\n20 %\ndone\nend");
        assert_eq!(all(&["größer 你好 🚂\n"]), "größer 你好 🚂\n");
    }

    #[test]
    fn what_is_printed_is_safe_and_json_is_left_as_it_is() {
        let evil = "t \u{1b}]0;pwned\u{7}\u{1b}[2J\u{202e}x";
        let ((), printed) = capture(|| {
            text(&format!("{evil} {}\n", paint(Colour::Red, evil))).unwrap();
            json_line(&evil).unwrap();
        });
        let (text, json) = printed.split_once('\n').unwrap();
        assert_eq!(text, "t x t x");
        assert_eq!(serde_json::from_str::<String>(json).unwrap(), evil);
    }

    #[test]
    fn one_is_singular() {
        assert_eq!(count(1, "test"), "1 test");
        assert_eq!(count(0, "test"), "0 tests");
    }

    #[test]
    fn columns_line_up_and_colour_codes_take_no_place() {
        let rows = vec![
            vec!["a".into(), paint(Colour::Green, "ok"), "x".into()],
            vec!["bbb".into(), "waits".into(), "y\u{1b}[2J\nz".into()],
        ];
        let text = table(&["id", "stage", "why"], &rows);
        assert_eq!(rendered(&text), "id   stage  why\na    ok     x\nbbb  waits  y z\n");
    }
}
