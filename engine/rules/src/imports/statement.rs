//! One import statement: which module, which names, and how sure that reading is.

use super::Language;
use super::list::{self, List};

/// An import statement, its lines `start..end` of the file.
#[derive(Debug, Clone)]
pub(super) struct Statement<'a> {
    pub text: &'a [&'a str],
    pub start: usize,
    pub end: usize,
    /// What it is about: two statements with one key are versions of one.
    pub key: String,
    /// Where it stands among others: its kind, then its module.
    pub sort: (u8, String),
    /// Its names, where it is a plain list of them.
    pub list: Option<List>,
    /// The names that it binds in the file.
    pub binds: Vec<String>,
    /// Imported for its effect, or a star: its place matters.
    pub placed: bool,
    pub star: bool,
}

/// Lines of the statement that starts at `start`; `None` when none does.
pub(super) fn end(language: Language, lines: &[&str], start: usize) -> Option<usize> {
    let line = lines.get(start)?;
    let is = match language {
        Language::Python => line.starts_with("import ") || line.starts_with("from "),
        Language::JavaScript => {
            ["import ", "import{", "import\"", "import'"].iter().any(|head| line.starts_with(head))
        }
        Language::Rust => is_use(line) || line.starts_with("#["),
    };
    if !is {
        return None;
    }
    let mut depth = 0_i32;
    for (at, line) in lines.iter().enumerate().skip(start).take(500) {
        let code = code(language, line);
        depth +=
            code.chars().map(|c| i32::from("([{".contains(c)) - i32::from(")]}".contains(c))).sum::<i32>();
        let done = match language {
            Language::Python => !code.ends_with('\\'),
            Language::JavaScript => code.ends_with([';', '"', '\'', '}']),
            Language::Rust if code.starts_with("#[") && code.ends_with(']') => {
                // An attribute belongs to the use below it, and to nothing else here.
                if !lines.get(at + 1).is_some_and(|next| is_use(next) || next.starts_with("#[")) {
                    return None;
                }
                false
            }
            Language::Rust => code.ends_with(';'),
        };
        if depth <= 0 && done {
            return Some(at + 1);
        }
    }
    None
}

fn is_use(line: &str) -> bool {
    let rest = line.strip_prefix("pub").unwrap_or(line);
    let rest = match rest.strip_prefix('(') {
        Some(inner) if rest.len() < line.len() => inner.split_once(')').map_or(inner, |(_, rest)| rest),
        _ => rest,
    };
    rest.trim_start().starts_with("use ")
}

/// The line without a comment at its end.
fn code(language: Language, line: &str) -> &str {
    let mark = if language == Language::Python { "#" } else { "//" };
    let cut = match language {
        Language::Rust if line.starts_with("#[") => line,
        _ => line.split(mark).next().unwrap_or(line),
    };
    cut.trim_end()
}

fn commented(language: Language, text: &[&str]) -> bool {
    text.iter().any(|line| code(language, line) != line.trim_end() || line.contains("/*"))
}

fn flat(text: &[&str]) -> String {
    text.iter().flat_map(|line| line.split_whitespace()).collect::<Vec<_>>().join(" ")
}

/// The name that one item binds.
fn bound(item: &str) -> Option<String> {
    let item = item.strip_prefix("type ").unwrap_or(item);
    let name = item.rsplit(" as ").next()?.rsplit("::").next()?.trim();
    (name != "_" && !name.is_empty()).then(|| name.to_owned())
}

/// Reads the statement in lines `start..end`.
pub(super) fn read<'a>(
    language: Language,
    lines: &'a [&'a str],
    start: usize,
    end: usize,
) -> Option<Statement<'a>> {
    let text = lines.get(start..end)?;
    let plain = !commented(language, text);
    let flat = flat(&text.iter().map(|line| code(language, line)).collect::<Vec<_>>());
    let (key, sort, list, binds, star, effect) = match language {
        Language::Python => python(text, &flat),
        Language::JavaScript => javascript(text, &flat),
        Language::Rust => rust(text, &flat),
    };
    let list = list.filter(|_| plain);
    Some(Statement { text, start, end, key, sort, list, binds, placed: star || effect, star })
}

type Parts = (String, (u8, String), Option<List>, Vec<String>, bool, bool);

fn python(text: &[&str], flat: &str) -> Parts {
    let Some(rest) = flat.strip_prefix("from ") else {
        let module = flat.strip_prefix("import ").unwrap_or(flat).to_owned();
        // `import a.b` binds a, and as many others may: only an alias or a plain name is one's own.
        let binds = module.split(',').map(|one| one.rsplit(" as ").next().unwrap_or(one).trim().to_owned());
        return (flat.to_owned(), (0, module.clone()), None, binds.collect(), false, false);
    };
    let (module, items) =
        rest.split_once(" import ").or_else(|| rest.split_once(" import(")).unwrap_or((rest, ""));
    let items = items.trim_matches(['(', ')', ' ']);
    let star = items == "*";
    let list = match text {
        _ if star => None,
        [line] if !line.contains('(') => line.find(" import ").and_then(|at| list::bare(line, at + 8)),
        _ => list::bracketed(text, ['(', ')']),
    };
    let rank = if module == "__future__" { 0 } else { 1 };
    let key = format!("from {module}{}", if star { " *" } else { "" });
    let binds = if star { Vec::new() } else { items.split(',').filter_map(bound).collect() };
    (key, (rank, module.to_owned()), list, binds, star, false)
}

fn javascript(text: &[&str], flat: &str) -> Parts {
    let flat = flat.trim_end_matches(';');
    let quoted = flat.split(['"', '\'']).nth(1).unwrap_or_default().to_owned();
    let clause = flat.strip_prefix("import").unwrap_or(flat);
    let clause = clause.split(['"', '\'']).next().unwrap_or_default().trim();
    if clause.is_empty() {
        return (flat.to_owned(), (0, quoted), None, Vec::new(), false, true);
    }
    let clause = clause.strip_suffix("from").unwrap_or(clause).trim();
    let (typed, clause) = match clause.strip_prefix("type ") {
        Some(rest) if !rest.starts_with("from") => (true, rest.trim()),
        _ => (false, clause),
    };
    let (head, inner) = match clause.split_once('{') {
        Some((head, inner)) => (head, inner.trim_end_matches('}')),
        None => (clause, ""),
    };
    let mut binds: Vec<String> = inner.split(',').map(str::trim).filter_map(bound).collect();
    let whole = head.split(',').map(|name| name.trim().trim_start_matches("* as ").trim());
    binds.extend(whole.filter(|name| !name.is_empty()).map(str::to_owned));
    let odd = flat.contains(" with ") || flat.contains(" assert ") || flat.contains(" = require");
    let list = if clause.contains('{') && !odd { list::bracketed(text, ['{', '}']) } else { None };
    let key = match (&list, typed) {
        (Some(_), true) => format!("type {{}} {quoted}"),
        (Some(_), false) => format!("{{}} {quoted}"),
        (None, _) => flat.replace('\'', "\""),
    };
    (key, (0, quoted), list, binds, false, false)
}

fn rust(text: &[&str], flat: &str) -> Parts {
    let attributes = text.iter().any(|line| line.starts_with("#["));
    let at = flat.find("use ").map_or(0, |at| at + 4);
    let path = flat.get(at..).unwrap_or_default().trim_end_matches(';');
    let public = flat.get(..at).unwrap_or_default();
    let star = path.ends_with("::*") || path.contains("::*,") || path.contains("*}");
    let Some((module, inner)) = path.split_once("::{") else {
        let binds = if star { Vec::new() } else { bound(path).into_iter().collect() };
        return (flat.to_owned(), (0, path.to_owned()), None, binds, star, attributes);
    };
    let inner = inner.trim_end_matches('}');
    let own = module.rsplit("::").next().unwrap_or(module);
    let leaves =
        inner.split([',', '{', '}']).map(str::trim).filter(|leaf| !leaf.is_empty() && !leaf.ends_with("::"));
    let binds = leaves.filter_map(|leaf| if leaf == "self" { Some(own.to_owned()) } else { bound(leaf) });
    let list = if attributes || star { None } else { list::bracketed(text, ['{', '}']) };
    (format!("{public}{module}::{{}}"), (0, module.to_owned()), list, binds.collect(), star, attributes)
}
