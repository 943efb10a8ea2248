//! The list of names of one import statement: read, changed as a set, written in its own style.

/// How a list is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Style {
    /// All up to the first name, and all after the last.
    open: String,
    close: String,
    /// One name a line, with this indent.
    indent: Option<String>,
    /// Does a comma follow the last name?
    comma: bool,
}

/// The names between the brackets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct List {
    pub style: Style,
    pub names: Vec<String>,
}

fn split(inner: &str) -> Option<(Vec<String>, bool)> {
    let mut names: Vec<String> =
        inner.split(',').map(|name| name.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
    let comma = names.last().is_some_and(String::is_empty);
    if comma {
        names.pop();
    }
    let odd =
        |name: &String| name.is_empty() || name.contains(['{', '}', '(', ')', '*', '/', '#', '\\', ';']);
    (!names.is_empty() && !names.iter().any(odd)).then_some((names, comma))
}

/// A list between brackets; `None` when it holds more than plain names.
pub(super) fn bracketed(lines: &[&str], brackets: [char; 2]) -> Option<List> {
    let [open, close] = brackets;
    let (first, last) = (lines.first()?, lines.last()?);
    let start = first.find(open)? + open.len_utf8();
    let end = last.rfind(close)?;
    if let [line] = lines {
        let inner = line.get(start..end)?;
        let (names, comma) = split(inner)?;
        let lead = inner.len() - inner.trim_start().len();
        let tail = inner.trim_end().len();
        let (open, close) = (line.get(..start + lead)?, line.get(start + tail..)?);
        let style = Style { open: open.to_owned(), close: close.to_owned(), indent: None, comma };
        return Some(List { style, names });
    }
    if start != first.len() || !last.trim_start().starts_with(close) {
        return None;
    }
    let inner = lines.get(1..lines.len() - 1)?;
    let mut names = Vec::new();
    let indent = inner.first()?.len() - inner.first()?.trim_start().len();
    let indent = inner.first()?.get(..indent)?;
    let mut comma = true;
    for (index, line) in inner.iter().enumerate() {
        let (one, own) = split(line.strip_prefix(indent)?)?;
        let [name] = one.as_slice() else { return None };
        if line.strip_prefix(indent)?.trim_end_matches(',') != name || (!own && index + 1 < inner.len()) {
            return None;
        }
        comma = own;
        names.push(name.clone());
    }
    let style = Style {
        open: (*first).to_owned(),
        close: (*last).to_owned(),
        indent: Some(indent.to_owned()),
        comma,
    };
    Some(List { style, names })
}

/// `from m import a, b`: a list without brackets after `head`.
pub(super) fn bare(line: &str, head: usize) -> Option<List> {
    let (names, comma) = split(line.get(head..)?)?;
    let style =
        Style { open: line.get(..head)?.to_owned(), close: String::new(), indent: None, comma: false };
    (!comma).then_some(List { style, names })
}

type Order = fn(&str) -> (u8, String);

/// The orders that lists are kept in: by byte, regardless of case, constants before classes.
const ORDERS: [Order; 3] = [
    |name| (0, name.to_owned()),
    |name| (0, name.to_lowercase()),
    |name| {
        let upper = name.starts_with(char::is_uppercase);
        let constant = upper && name.len() > 1 && !name.chars().any(char::is_lowercase);
        (
            if constant {
                0
            } else if upper {
                1
            } else {
                2
            },
            name.to_owned(),
        )
    },
];

impl List {
    pub fn write(&self) -> Vec<String> {
        let Style { open, close, indent, comma } = &self.style;
        let Some(indent) = indent else {
            let comma = if *comma { "," } else { "" };
            return vec![format!("{open}{}{comma}{close}", self.names.join(", "))];
        };
        let mut out = vec![open.clone()];
        for (index, name) in self.names.iter().enumerate() {
            let comma = if *comma || index + 1 < self.names.len() { "," } else { "" };
            out.push(format!("{indent}{name}{comma}"));
        }
        out.push(close.clone());
        out
    }

    fn insert(&mut self, name: &str, theirs: &Self) {
        let sorted = |order: &Order, names: &[String]| {
            names.windows(2).all(|two| matches!(two, [a, b] if order(a) <= order(b)))
        };
        let order = ORDERS.iter().find(|order| sorted(order, &self.names) && sorted(order, &theirs.names));
        let at = order.and_then(|order| self.names.iter().position(|other| order(other) > order(name)));
        self.names.insert(at.unwrap_or(self.names.len()), name.to_owned());
    }
}

/// Both sides' changes of one list as a set; `None` when no name is left.
///
/// # Errors
/// When both sides rewrote it in another style.
pub(super) fn merge(
    base: Option<&List>,
    ours: Option<&List>,
    theirs: Option<&List>,
) -> Result<Option<List>, String> {
    let none = Vec::new();
    let names = |list: Option<&List>| list.map_or_else(|| none.clone(), |list| list.names.clone());
    let (was, their) = (names(base), names(theirs));
    let Some(style) = style(base, ours, theirs)? else { return Ok(None) };
    let mut out = List { style, names: names(ours) };
    out.names.retain(|name| !was.contains(name) || their.contains(name));
    for name in their.iter().filter(|name| !was.contains(name)) {
        if !out.names.contains(name)
            && let Some(theirs) = theirs
        {
            out.insert(name, theirs);
        }
    }
    Ok((!out.names.is_empty()).then_some(out))
}

fn style(base: Option<&List>, ours: Option<&List>, theirs: Option<&List>) -> Result<Option<Style>, String> {
    let of = |list: Option<&List>| list.map(|list| list.style.clone());
    match (of(base), of(ours), of(theirs)) {
        (_, None, theirs) => Ok(theirs),
        (_, ours, None) => Ok(ours),
        (base, ours, theirs) if theirs == base || ours == theirs => Ok(ours),
        (base, ours, theirs) if ours == base => Ok(theirs),
        _ => Err("both sides write it in another style".to_owned()),
    }
}
