//! A model's output, read as edits of the reviewed paths.
//!
//! ```text
//! src/harbour.py
//! <<<<<<< SEARCH
//! whole lines of the file as it was shown, that stand there exactly once
//! =======
//! what stands there instead
//! >>>>>>> REPLACE
//! ```
//!
//! Three further blocks stand below a path line: `<<<<<<< FILE` ... `>>>>>>> FILE` with a file's whole new
//! contents, `<<<<<<< DELETE` `>>>>>>> DELETE`, and `<<<<<<< KEEP` `>>>>>>> KEEP` (nothing to do here); one
//! stands alone, `<<<<<<< CANNOT` reason `>>>>>>> CANNOT`. Where a text has a line that reads like a marker,
//! all markers of its block bear one word more: `<<<<<<< SEARCH k1`, `======= k1`, `>>>>>>> REPLACE k1`.
//!
//! All SEARCH texts are looked for in the file as it was shown, never in the result of another block, so the
//! order of blocks means nothing. Everything outside of blocks is a remark and has no effect. One fault
//! refuses the whole answer. All work is linear in the bytes of answer and files, but for a logarithm.

mod apply;
mod bad;
mod find;
mod parse;

pub use bad::BadAnswer;

use std::collections::BTreeSet;

use yard_common::RepoPath;

use crate::brief::BriefFile;

/// A reviewed path as the replay leaves it, where that differs from main.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResultFile {
    /// The path on main.
    pub path: RepoPath,
    /// The contents, `None` when the file is gone.
    pub content: Option<Vec<u8>>,
    /// Did the model write them? Else they are the clean merge's.
    pub edited: bool,
}

/// What an answer comes to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Replayed {
    /// These paths differ from main, in path order; never empty.
    Files(Vec<ResultFile>),
    /// The model says that main has all of it.
    AlreadyThere,
}

/// Reads an answer and applies it; nothing of a bad one is applied. `partly` are the paths that the model has
/// not seen whole.
///
/// # Errors
/// [`BadAnswer`], each kind with its sentence.
pub fn read(files: &[BriefFile], partly: &BTreeSet<RepoPath>, text: &str) -> Result<Replayed, BadAnswer> {
    let blocks = parse::blocks(files, text)?;
    apply::apply(files, partly, blocks)
}

#[cfg(test)]
mod tests;
