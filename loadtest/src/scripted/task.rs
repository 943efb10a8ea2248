//! What the scripted model understands of a prompt.
//!
//! Where a path collides, it keeps both sides: main's lines, and at the same place the lines that the reviewed
//! change adds; lines that the reviewed change takes away go where main still has them. Where the tests are
//! red together with a change that renamed a word, it renames that word in the reviewed change as well.

use std::collections::BTreeMap;

/// A question, as far as the prompt tells.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Question {
    /// The title of the change's intent.
    pub title: String,
    /// The paths that need an answer.
    pub collided: Vec<String>,
    /// Further paths that may be edited.
    pub merged: Vec<String>,
    /// The files shown, by path.
    pub files: BTreeMap<String, String>,
    /// The reviewed differences, by path on main.
    pub reviewed: BTreeMap<String, String>,
    /// What others did that landed meanwhile.
    pub rivals: Vec<String>,
}

const MARKS: (&str, &str) =
    (" on newest main, collided", " on newest main with the reviewed change already merged in");

impl Question {
    /// Reads the message that asks.
    #[must_use]
    pub fn read(text: &str) -> Self {
        let mut question = Self::default();
        for (name, body) in pieces(text) {
            if name == "intent of the change" {
                let title = body.lines().find_map(|line| line.strip_prefix("title: "));
                title.unwrap_or_default().clone_into(&mut question.title);
            } else if let Some(path) = name.strip_prefix("reviewed difference of ") {
                let path = path.split_once(", which main has renamed to ").map_or(path, |(_, now)| now);
                question.reviewed.insert(path.to_owned(), body);
            } else if name.starts_with("what change ") {
                question.rivals.push(body);
            } else if let Some(rest) = name.strip_prefix("file ")
                && let Some(path) = rest.strip_suffix(MARKS.0).or_else(|| rest.strip_suffix(MARKS.1))
            {
                question.files.insert(path.to_owned(), body);
            }
        }
        let list = |head: &str| {
            let after = text.rsplit_once(head).map(|(_, after)| after).unwrap_or_default();
            after.lines().take_while(|line| !line.is_empty()).map(str::to_owned).collect()
        };
        question.collided = list("\nCollided paths, each needs at least one block:\n");
        question.merged = list("\nAllowed paths that are merged already:\n");
        question
    }

    /// The paths that it is about: those that collided, else all that may be edited.
    #[must_use]
    pub fn paths(&self) -> Vec<String> {
        if self.collided.is_empty() { self.merged.clone() } else { self.collided.clone() }
    }

    /// The answer, right or not, with an edit of one more path if wanted.
    ///
    /// One that is not right keeps main's lines and writes the reviewed ones in other words.
    #[must_use]
    pub fn answer(&self, right: bool, outside: Option<&str>) -> String {
        let mut out = "This is a scripted answer, no model's: ".to_owned();
        out.push_str(if right { "both sides are kept.\n\n" } else { "the reviewed lines are garbled.\n\n" });
        for path in &self.collided {
            let Some(main) = self.files.get(path) else {
                return "<<<<<<< CANNOT\nthe file is not on newest main\n>>>>>>> CANNOT\n".to_owned();
            };
            let diff = self.reviewed.get(path).map(String::as_str).unwrap_or_default();
            out.push_str(&block(path, main, &redo(main, diff, right)));
        }
        if self.collided.is_empty() {
            let renamed: Vec<_> = self.rivals.iter().flat_map(|diff| renames(diff)).collect();
            for path in &self.merged {
                let Some(text) = self.files.get(path) else { continue };
                let new = if right { rename(text, &renamed) } else { format!("{text}// scripted\n") };
                if new != *text {
                    out.push_str(&block(path, text, &new));
                }
            }
        }
        if let Some(path) = outside {
            out.push_str(&format!("{path}\n<<<<<<< FILE\nscripted\n>>>>>>> FILE\n"));
        }
        out
    }
}

/// What stands between the prompt's fences, by name.
fn pieces(text: &str) -> Vec<(String, String)> {
    let mut all = Vec::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let Some((word, name)) = line.strip_prefix("<data ").and_then(|rest| rest.split_once(' ')) else {
            continue;
        };
        let end = format!("</data {word}>");
        let body = lines.by_ref().take_while(|line| *line != end);
        let body: String = body.flat_map(|line| [line, "\n"]).collect();
        all.push((name.trim_end_matches('>').to_owned(), body));
    }
    all
}

/// A reviewed difference made again on main's text.
fn redo(main: &str, diff: &str, right: bool) -> String {
    let main: Vec<&str> = main.lines().collect();
    let mut out: Vec<String> = Vec::new();
    let mut at = 0;
    let mut added: Vec<String> = Vec::new();
    for line in diff.lines() {
        let rest = main.get(at..).unwrap_or_default();
        if let Some(line) = line.strip_prefix('+') {
            added.push(if right { line.to_owned() } else { garbled(line) });
        } else if let Some(line) = line.strip_prefix('-') {
            if rest.first() == Some(&line) {
                at += 1;
            }
        } else if let Some(line) = line.strip_prefix(' ')
            && let Some(ahead) = rest.iter().position(|there| *there == line)
        {
            let theirs = rest.get(..ahead).unwrap_or_default();
            // Between two lines that nobody touched lies what main has put there meanwhile.
            out.extend(theirs.iter().map(|line| (*line).to_owned()));
            out.append(&mut added);
            out.push(line.to_owned());
            at += ahead + 1;
        }
    }
    out.extend(main.get(at..).unwrap_or_default().iter().map(|line| (*line).to_owned()));
    out.append(&mut added);
    out.into_iter().map(|line| line + "\n").collect()
}

/// The line with its last word turned round, or doubled where that changes nothing.
fn garbled(line: &str) -> String {
    let chars: Vec<char> = line.chars().collect();
    let end = chars.iter().rposition(|c| c.is_alphanumeric()).map_or(0, |at| at + 1);
    let start = chars.iter().take(end).rposition(|c| !c.is_alphanumeric()).map_or(0, |at| at + 1);
    let part = |from: usize, to: usize| chars.get(from..to).unwrap_or_default().iter().collect::<String>();
    let word = part(start, end);
    let turned: String = word.chars().rev().collect();
    let turned = if turned == word { format!("{word}{word}") } else { turned };
    format!("{}{turned}{}", part(0, start), part(end, chars.len()))
}

/// The block that turns one text into another.
fn block(path: &str, before: &str, after: &str) -> String {
    if before == after {
        return format!("{path}\n<<<<<<< KEEP\n>>>>>>> KEEP\n");
    }
    let (old, new): (Vec<&str>, Vec<&str>) = (before.lines().collect(), after.lines().collect());
    let same = |pairs: &mut dyn Iterator<Item = (&&str, &&str)>| pairs.take_while(|(a, b)| a == b).count();
    let head = same(&mut old.iter().zip(&new));
    let tail = same(&mut old.iter().rev().zip(new.iter().rev())).min(old.len().min(new.len()) - head);
    let count = |search: &[&str]| old.windows(search.len().max(1)).filter(|lines| *lines == search).count();
    for more in 1..=old.len() {
        let (from, tail) = (head.saturating_sub(more), tail.saturating_sub(more));
        let search = old.get(from..old.len() - tail).unwrap_or_default();
        if count(search) == 1 {
            let replace = new.get(from..new.len() - tail).unwrap_or_default();
            let text = |lines: &[&str]| lines.iter().flat_map(|line| [*line, "\n"]).collect::<String>();
            return format!(
                "{path}\n<<<<<<< SEARCH\n{}=======\n{}>>>>>>> REPLACE\n",
                text(search),
                text(replace)
            );
        }
    }
    format!("{path}\n<<<<<<< FILE\n{after}>>>>>>> FILE\n")
}

fn words(line: &str) -> Vec<&str> {
    line.split(|c: char| !(c.is_alphanumeric() || c == '_')).filter(|word| !word.is_empty()).collect()
}

/// Words that a difference replaces: a line that goes and the one in its place differ in one word.
fn renames(diff: &str) -> Vec<(String, String)> {
    let lines: Vec<&str> = diff.lines().collect();
    let pairs = lines.windows(2).filter_map(|pair| match pair {
        [old, new] => Some((words(old.strip_prefix('-')?), words(new.strip_prefix('+')?))),
        _ => None,
    });
    pairs
        .filter(|(old, new)| old.len() == new.len())
        .filter_map(|(old, new)| {
            let mut differ = old.iter().zip(&new).filter(|(a, b)| a != b);
            let (from, to) = differ.next()?;
            differ.next().is_none().then(|| ((*from).to_owned(), (*to).to_owned()))
        })
        .collect()
}

fn rename(text: &str, renamed: &[(String, String)]) -> String {
    let mut out = text.to_owned();
    for (from, to) in renamed {
        let mut parts = Vec::new();
        let mut rest = out.as_str();
        while let Some((before, after)) = rest.split_once(from.as_str()) {
            let inside = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
            let whole = !inside(before.chars().next_back()) && !inside(after.chars().next());
            parts.extend([before, if whole { to.as_str() } else { from.as_str() }]);
            rest = after;
        }
        parts.push(rest);
        out = parts.concat();
    }
    out
}

#[cfg(test)]
mod tests;
