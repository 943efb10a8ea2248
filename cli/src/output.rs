//! What people see: tables with aligned columns, colours on a terminal only, JSON on request.

use std::io::{IsTerminal as _, Write as _};

use anyhow::Result;
use serde::Serialize;

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

/// The text in a colour when standard output is a terminal and `NO_COLOR` is not set.
#[must_use]
pub fn paint(colour: Colour, text: &str) -> String {
    if !std::io::stdout().is_terminal() || std::env::var_os("NO_COLOR").is_some() {
        return text.to_owned();
    }
    let code = match colour {
        Colour::Green => "32",
        Colour::Red => "31",
        Colour::Yellow => "33",
        Colour::Dim => "2",
    };
    format!("\u{1b}[{code}m{text}\u{1b}[0m")
}

/// Prints one JSON document.
///
/// # Errors
/// When standard output is closed.
pub fn json<T: Serialize>(value: &T) -> Result<()> {
    let mut out = std::io::stdout().lock();
    serde_json::to_writer_pretty(&mut out, value)?;
    writeln!(out)?;
    Ok(())
}

/// Prints text as it is.
///
/// # Errors
/// When standard output is closed.
pub fn text(text: &str) -> Result<()> {
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()?;
    Ok(())
}

/// Did whoever reads standard output close it, as `head` does when it has enough?
#[must_use]
pub fn is_closed(error: &anyhow::Error) -> bool {
    let closed = |kind| kind == Some(std::io::ErrorKind::BrokenPipe);
    error.chain().any(|cause| {
        closed(cause.downcast_ref::<std::io::Error>().map(std::io::Error::kind))
            || closed(cause.downcast_ref::<serde_json::Error>().and_then(serde_json::Error::io_error_kind))
    })
}

/// `1 test`, `2 tests`.
#[must_use]
pub fn count(number: u64, one: &str) -> String {
    if number == 1 { format!("1 {one}") } else { format!("{number} {one}s") }
}

/// A table with a header; the last column is not padded.
#[must_use]
pub fn table(header: &[&str], rows: &[Vec<String>]) -> String {
    let mut widths: Vec<usize> = header.iter().map(|cell| cell.chars().count()).collect();
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(visible(cell));
        }
    }
    let mut out = line(&header.iter().map(|cell| (*cell).to_owned()).collect::<Vec<_>>(), &widths);
    for row in rows {
        out.push_str(&line(row, &widths));
    }
    out
}

/// Characters that take a place: colour codes do not.
fn visible(cell: &str) -> usize {
    let mut count = 0;
    let mut in_code = false;
    for c in cell.chars() {
        match (in_code, c) {
            (false, '\u{1b}') => in_code = true,
            (false, _) => count += 1,
            (true, 'm') => in_code = false,
            (true, _) => {}
        }
    }
    count
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
        assert!(is_closed(&anyhow::Error::from(serde_json::Error::io(broken()))));
        assert!(!is_closed(&anyhow::Error::from(std::io::Error::from(std::io::ErrorKind::NotFound))));
    }

    #[test]
    fn one_is_singular() {
        assert_eq!(count(1, "test"), "1 test");
        assert_eq!(count(0, "test"), "0 tests");
    }

    #[test]
    fn columns_line_up_and_colour_codes_take_no_place() {
        let rows = vec![
            vec!["a".into(), "\u{1b}[32mok\u{1b}[0m".into(), "x".into()],
            vec!["bbb".into(), "waits".into(), "y".into()],
        ];
        let text = table(&["id", "stage", "why"], &rows);
        assert_eq!(text, "id   stage  why\na    \u{1b}[32mok\u{1b}[0m     x\nbbb  waits  y\n");
    }
}
