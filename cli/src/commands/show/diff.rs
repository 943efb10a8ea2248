//! What versions of a change do to its paths, on a terminal.

use yard_common::replay::{Cause, Cost, Origin};
use yard_common::submission::Mode;
use yard_wire::api::{ChangeDiff, FileDiff};

use crate::output::{Colour, count, paint, printable};

/// A version's diff, path by path, under a heading.
pub(super) fn version(heading: &str, diff: &ChangeDiff) -> String {
    let mut out = format!("\n{heading}: version {}\n", diff.version);
    for file in &diff.files {
        out.push_str(&format!(
            "  {}{}\n",
            paint(Colour::Yellow, &printable(&file.path.to_string())),
            kind(file)
        ));
        for line in printable(&file.text).lines() {
            out.push_str(&format!("    {}\n", coloured(line)));
        }
        if let Some(note) = &file.note {
            out.push_str(&format!("    ({note})\n"));
        }
    }
    if diff.left_out > 0 {
        out.push_str(&format!("  and {} more\n", count(diff.left_out, "path")));
    }
    out
}

/// What happens to the path besides its lines.
fn kind(file: &FileDiff) -> String {
    let octal = |mode: Mode| match mode {
        Mode::File => "100644",
        Mode::Executable => "100755",
        Mode::Symlink => "120000",
        Mode::Gitlink => "160000",
    };
    match (file.before, file.after) {
        (None, Some(Mode::File)) => "  new".to_owned(),
        (None, Some(mode)) => format!("  new, mode {}", octal(mode)),
        (Some(_), None) => "  deleted".to_owned(),
        (Some(before), Some(after)) if before != after => {
            format!("  mode {} -> {}", octal(before), octal(after))
        }
        _ => String::new(),
    }
}

/// A line of a unified diff in its colour.
fn coloured(line: &str) -> String {
    match line.as_bytes().first() {
        Some(b'+') => paint(Colour::Green, line),
        Some(b'-') => paint(Colour::Red, line),
        Some(b'@') => paint(Colour::Dim, line),
        _ => line.to_owned(),
    }
}

/// How a model made `version`: why, against what, at what cost, and how it differs from what was reviewed.
///
/// The diffs are those of the reviewed version and of `version`; they may be missing.
pub(super) fn replay(version_no: &str, origin: &Origin, rivals: &[String], diffs: &[ChangeDiff]) -> String {
    let mut out = format!(
        "\nreplay {}: version {} was redone as version {version_no} by {}\n",
        origin.no,
        origin.of,
        printable(&by(&origin.cost))
    );
    let mut line = |name: &str, text: &str| {
        let text = printable(text);
        out.push_str(&format!("  {name:<9}{}\n", text.trim_end().replace('\n', "\n           ")));
    };
    line("because", &because(&origin.cause));
    if !rivals.is_empty() {
        line("landed", &format!("meanwhile on its paths: {}", rivals.join("\n")));
    }
    for (was, is) in &origin.renames {
        line("renamed", &format!("on main: {was} -> {is}"));
    }
    line("cost", &cost(&origin.cost));
    line("compared", &origin.compared);
    if let [reviewed, replayed] = diffs {
        out.push_str(&version("reviewed", reviewed));
        out.push_str(&version("redone on newest main", replayed));
    }
    out.push_str(&difference(origin));
    out
}

/// The two diffs against each other; the first line says in a sentence what has been said already.
fn difference(origin: &Origin) -> String {
    let text = printable(&origin.range_diff);
    let lines: Vec<&str> = text.lines().skip(1).skip_while(|line| line.is_empty()).collect();
    if lines.is_empty() {
        return "\nboth diffs have the same lines\n".to_owned();
    }
    let mut out = "\nwhere they differ (< reviewed only, > redone only)\n".to_owned();
    for line in lines {
        let painted = match line.as_bytes().first() {
            Some(b'>') => paint(Colour::Green, line),
            Some(b'<') => paint(Colour::Red, line),
            Some(b'@') => paint(Colour::Dim, line),
            _ => line.to_owned(),
        };
        out.push_str(&format!("  {painted}\n"));
    }
    out
}

fn because(cause: &Cause) -> String {
    match cause {
        Cause::Collision { paths } => {
            let at: Vec<String> = paths.iter().map(|(path, why)| format!("{path} ({why})")).collect();
            format!("it collides with main at {}", at.join("\n"))
        }
        Cause::Interaction { with, detail, .. } => {
            let with: Vec<&str> = with.iter().map(yard_common::ChangeId::as_str).collect();
            format!("it merges, but is red together with {}: {detail}", with.join(", "))
        }
    }
}

fn by(cost: &Cost) -> String {
    if cost.model.is_empty() { "a model".to_owned() } else { format!("model {}", cost.model) }
}

fn cost(cost: &Cost) -> String {
    let calls = match cost.calls {
        0 => "no call: its answer was at hand".to_owned(),
        calls => count(calls.into(), "call"),
    };
    let dollars = cost.micro_usd / 1_000_000;
    let rest = cost.micro_usd % 1_000_000;
    format!("{calls}, {} + {} tokens, ${dollars}.{rest:06}", cost.tokens_in, cost.tokens_out)
}

#[cfg(test)]
mod tests;
