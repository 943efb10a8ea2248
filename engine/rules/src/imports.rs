//! `imports`: the import block at the top of a Python, JavaScript, TypeScript or Rust file as a set.
//!
//! Adding a name or a module never conflicts with adding another. What is not sure is a collision:
//! one name bound by two imports, a removed import that the other side uses, comments, star imports
//! and imports for their effect that both sides touched. The rest of the file is merged as lines.

mod block;
mod list;
mod names;
mod statement;

use crate::Sides;
use crate::lines::{self, BASE, OURS, THEIRS};
use block::Block;

/// Stands for the block in the merge of the rest.
const MARK: &str = "\u{0001}the import block\u{0001}";

/// Statements of a block, and names that it binds, at most: each is compared with all others.
const STATEMENTS_MAX: usize = 1_000;

/// What imports look like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Language {
    Python,
    JavaScript,
    Rust,
}

fn language(path: &[u8]) -> Option<Language> {
    let end = path.rsplit(|byte| *byte == b'.').next()?;
    match end {
        b"py" | b"pyi" => Some(Language::Python),
        b"js" | b"mjs" | b"cjs" | b"jsx" | b"ts" | b"mts" | b"cts" | b"tsx" => Some(Language::JavaScript),
        b"rs" => Some(Language::Rust),
        _ => None,
    }
}

/// The union of both sides' imports over the merged rest.
pub(crate) fn merge(sides: Sides<'_>) -> Result<Vec<u8>, String> {
    let Some(language) = language(sides.path.as_bytes()) else {
        return Err("imports are known in Python, JavaScript, TypeScript and Rust files".to_owned());
    };
    let three = lines::read(&sides)?;
    let find = |lines, side| Block::find(language, lines, side);
    let (base, ours) = (find(&three.base, BASE), find(&three.ours, OURS));
    let theirs = find(&three.theirs, THEIRS);
    let whole = || sides.text.merge(sides.base.unwrap_or_default(), sides.ours, sides.theirs);
    let (Some(mut base), Some(mut ours), Some(mut theirs)) = (base, ours, theirs) else {
        return whole().map_err(|why| format!("a version has no imports at its top, and {why}"));
    };
    for block in [&base, &ours, &theirs] {
        let names: usize = block.statements.iter().map(|one| one.binds.len()).sum();
        if block.statements.len().max(names) > STATEMENTS_MAX {
            return Err(format!("{} has more than {STATEMENTS_MAX} imports", block.side));
        }
    }
    let repeated = [&base, &ours, &theirs].into_iter().flat_map(Block::repeated).collect();
    [&mut base, &mut ours, &mut theirs].into_iter().try_for_each(|block| block.single(&repeated))?;
    let rest = |block: &Block<'_>| three.shape.write(&block.rest(MARK));
    let (from, our, their) = (rest(&base), rest(&ours), rest(&theirs));
    let merged = if from == our || our == their {
        their.clone()
    } else if from == their {
        our.clone()
    } else {
        sides.text.merge(&from, &our, &their).map_err(|why| format!("besides the imports, {why}"))?
    };
    let merged = String::from_utf8(merged).map_err(|_| "the merged file is not UTF-8".to_owned())?;
    if merged.matches(MARK).count() != 1 {
        return Err("the import block moved".to_owned());
    }
    let block = block::merge(&base, &ours, &theirs)?;
    names::check(language, &[&base, &ours, &theirs], &block, &merged)?;
    let text = String::from_utf8(three.shape.write(&block)).map_err(|_| "not UTF-8".to_owned())?;
    let text = text.trim_start_matches('\u{feff}').trim_end_matches(['\r', '\n']);
    Ok(merged.replace(MARK, text).into_bytes())
}

#[cfg(test)]
mod tests;
