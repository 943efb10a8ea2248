//! What a merged block binds: no name twice, none that the file defines, none taken out that is used.

use std::collections::BTreeMap;

use super::Language;
use super::block::Block;

/// Bytes that are read again for each name whose uses are looked for, in all.
const READ_BYTES_MAX: usize = 64 << 20;

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_' || c == '$'
}

/// How often a name stands as a word of its own.
fn uses(text: &str, name: &str) -> usize {
    text.split(|c: char| !is_word(c)).filter(|word| *word == name).count()
}

fn binds(block: &Block<'_>) -> BTreeMap<String, usize> {
    let mut out = BTreeMap::new();
    for name in block.statements.iter().flat_map(|one| &one.binds) {
        *out.entry(name.clone()).or_insert(0) += 1;
    }
    out
}

/// Does a line at the left margin define the name, or import it?
fn defines(rest: &str, name: &str) -> bool {
    const WORDS: [&str; 14] = [
        "def",
        "class",
        "function",
        "const",
        "let",
        "var",
        "fn",
        "struct",
        "enum",
        "trait",
        "type",
        "mod",
        "static",
        "interface",
    ];
    rest.lines().filter(|line| !line.starts_with([' ', '\t', '#', '/'])).any(|line| {
        let mut words = line.split(|c: char| !is_word(c)).filter(|word| !word.is_empty());
        let first = line.split(|c: char| !is_word(c)).next().unwrap_or_default();
        let import = ["import", "from", "use"].contains(&first) && uses(line, name) > 0;
        let assigned = first == name
            && line.get(name.len()..).is_some_and(|rest| {
                let rest = rest.trim_start();
                rest.starts_with(['=', ':']) && !rest.starts_with("==")
            });
        let defined = std::iter::from_fn(|| words.next().map(str::to_owned)).take(5).collect::<Vec<_>>();
        let defined =
            defined.windows(2).any(|two| matches!(two, [a, b] if WORDS.contains(&a.as_str()) && b == name));
        import || assigned || defined
    })
}

/// Checks a merged block against the three and the merged rest.
pub(super) fn check(
    language: Language,
    [base, ours, theirs]: &[&Block<'_>; 3],
    block: &[String],
    rest: &str,
) -> Result<(), String> {
    let lines: Vec<&str> = block.iter().map(String::as_str).collect();
    let merged = Block::find(language, &lines, "the merged file");
    let merged = merged.as_ref().map(binds).unwrap_or_default();
    let (was, our, their) = (binds(base), binds(ours), binds(theirs));
    let new = merged.keys().filter(|name| !was.contains_key(*name));
    let gone = was.keys().filter(|name| !merged.contains_key(*name));
    if new.chain(gone).count().saturating_mul(rest.len()) > READ_BYTES_MAX {
        return Err("too many imports change to look for the uses of each in so large a file".to_owned());
    }
    for (name, count) in &merged {
        if *count > 1 && our.get(name) != Some(count) && their.get(name) != Some(count) {
            return Err(format!("two imports would bind {name:?}, one from each side"));
        }
        if !was.contains_key(name)
            && (our.contains_key(name) != their.contains_key(name))
            && defines(rest, name)
        {
            return Err(format!("one side imports {name:?}, the file defines or imports it too"));
        }
    }
    for name in was.keys().filter(|name| !merged.contains_key(*name)) {
        let root = name.split('.').next().unwrap_or(name);
        let own = |block: &Block<'_>| uses(&block.rest("").join("\n"), root);
        let removers =
            [(*ours, &our), (*theirs, &their)].into_iter().filter(|(_, binds)| !binds.contains_key(name));
        if let Some((remover, _)) = removers.clone().find(|(remover, _)| uses(rest, root) > own(remover)) {
            return Err(format!("{} takes out the import of {name:?}, the other side uses it", remover.side));
        }
    }
    Ok(())
}
