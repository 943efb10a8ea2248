//! Why an answer cannot be used.

use std::fmt;

use serde::{Deserialize, Serialize};
use yard_common::RepoPath;

use crate::limits::{ANSWER_BYTES_MAX, BLOCKS_MAX, FILE_BYTES_MAX, RESULT_BYTES_MAX};

/// Why an answer cannot be used. Its `Display` is the sentence for the record and for the model's next try;
/// words of the model in it are cut and free of control characters.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "bad", rename_all = "kebab-case")]
pub enum BadAnswer {
    /// Nothing but white space.
    Empty,
    /// More than [`ANSWER_BYTES_MAX`] bytes.
    TooLong {
        /// The answer's bytes.
        bytes: u64,
    },
    /// Words, and no block; the provider's own refusal too.
    NoBlocks {
        /// How it begins.
        begins: String,
    },
    /// The model says that it cannot.
    Cannot {
        /// Its reason.
        why: String,
    },
    /// A block without its end, or an end without its block.
    HalfBlock {
        /// The line of the answer, from 1.
        line: u64,
    },
    /// Several lines could be the block's separator.
    TwoSeparators {
        /// The line of the answer where the block begins, from 1.
        line: u64,
    },
    /// No path stands before a block.
    NoPath {
        /// The line of the answer where the block begins, from 1.
        line: u64,
    },
    /// More blocks than [`BLOCKS_MAX`].
    TooManyBlocks,
    /// A path that the reviewed change does not have.
    OutOfPaths {
        /// As the model wrote it, cut.
        path: String,
    },
    /// A link, a submodule or a file that is no text.
    NotText {
        /// The path.
        path: RepoPath,
    },
    /// A whole file, a deletion or KEEP beside other blocks for the same path.
    MixedBlocks {
        /// The path.
        path: RepoPath,
    },
    /// A SEARCH without text on a file that has some.
    EmptySearch {
        /// The path.
        path: RepoPath,
    },
    /// A SEARCH that is nowhere in the file.
    NoMatch {
        /// The path.
        path: RepoPath,
        /// What was found of it.
        hint: String,
    },
    /// A SEARCH that stands in the file more than once.
    ManyMatches {
        /// The path.
        path: RepoPath,
        /// Its first line, cut.
        begins: String,
    },
    /// Two blocks that want the same lines.
    Overlap {
        /// The path.
        path: RepoPath,
    },
    /// Edits of a file that is not there.
    NoFile {
        /// The path.
        path: RepoPath,
    },
    /// A deletion that was not reviewed.
    DeletesUnreviewed {
        /// The path.
        path: RepoPath,
    },
    /// A whole file for a path of which the model has seen parts only.
    PartlyShown {
        /// The path.
        path: RepoPath,
    },
    /// A collided path without a block.
    Unanswered {
        /// The path.
        path: RepoPath,
    },
    /// Conflict markers in the result.
    MarkersLeft {
        /// The path.
        path: RepoPath,
    },
    /// A remark stands for lines that the model did not write.
    Elided {
        /// The path.
        path: RepoPath,
        /// That line, cut.
        line: String,
    },
    /// Lines are gone that neither the reviewed change nor main has touched: a file that was cut off.
    CutOff {
        /// The path.
        path: RepoPath,
        /// How many.
        lines: u64,
    },
    /// Lines are gone that main has got since the change was made, and nothing stands in their place.
    TakesBack {
        /// The path.
        path: RepoPath,
        /// How many.
        lines: u64,
        /// One of them, cut.
        line: String,
    },
    /// A NUL in the result.
    Binary {
        /// The path.
        path: RepoPath,
    },
    /// A file, or all together, is too large.
    TooLarge {
        /// The path; all files together when `None`.
        path: Option<RepoPath>,
        /// Bytes.
        bytes: u64,
    },
}

impl BadAnswer {
    /// Would asking again with this sentence be of no use? A model that declines, or that leaves the
    /// reviewed paths, is not asked again.
    #[must_use]
    pub fn is_final(&self) -> bool {
        matches!(self, Self::Cannot { .. } | Self::OutOfPaths { .. } | Self::NotText { .. })
    }
}

impl BadAnswer {
    /// The sentences about files as they would be.
    fn of_the_result(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::MarkersLeft { path } => write!(f, "the answer leaves conflict markers in {path}"),
            Self::Elided { path, line } => {
                write!(f, "the answer leaves lines of {path} out where it says {line:?}: write them all")
            }
            Self::CutOff { path, lines } => write!(
                f,
                "the answer loses {lines} lines of {path} that neither the reviewed change nor main has touched: \
                 write the file to its end, or use SEARCH blocks"
            ),
            Self::TakesBack { path, lines, line } => write!(
                f,
                "the answer takes {lines} lines out of {path} that came to main after the change was made, {line:?} \
                 among them: keep what main has"
            ),
            Self::Binary { path } => write!(f, "the answer puts a NUL byte into {path}"),
            Self::TooLarge { path: Some(path), bytes } => {
                write!(f, "{path} would have {bytes} bytes, and a file has at most {FILE_BYTES_MAX}")
            }
            Self::TooLarge { path: None, bytes } => {
                write!(f, "the files would have {bytes} bytes, and together have at most {RESULT_BYTES_MAX}")
            }
            _ => Ok(()),
        }
    }
}

impl fmt::Display for BadAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => write!(f, "the model answered nothing"),
            Self::TooLong { bytes } => {
                write!(f, "the model answered {bytes} bytes, and an answer has at most {ANSWER_BYTES_MAX}")
            }
            Self::NoBlocks { begins } => {
                write!(f, "the model answered words without an edit, beginning {begins:?}")
            }
            Self::Cannot { why } => write!(f, "the model says that it cannot: {why:?}"),
            Self::HalfBlock { line } => {
                write!(f, "the answer has half a block at its line {line}: a block needs all its markers")
            }
            Self::TwoSeparators { line } => write!(
                f,
                "the block at line {line} of the answer has several lines of \"=======\", so that SEARCH and \
                 REPLACE cannot be told apart: put one word after all three markers"
            ),
            Self::NoPath { line } => {
                write!(f, "the block at line {line} of the answer has no path on the line before it")
            }
            Self::TooManyBlocks => write!(f, "the answer has more than {BLOCKS_MAX} blocks"),
            Self::OutOfPaths { path } => {
                write!(f, "the answer edits {path:?}, which is no path of the reviewed change")
            }
            Self::NotText { path } => {
                write!(f, "the answer edits {path}, which is no text file (binary, a link or a submodule)")
            }
            Self::MixedBlocks { path } => write!(
                f,
                "the answer has several blocks for {path} that exclude each other (FILE, DELETE and KEEP stand \
                 alone)"
            ),
            Self::EmptySearch { path } => {
                write!(f, "a SEARCH for {path} is empty, but the file is not: name the lines to replace")
            }
            Self::NoMatch { path, hint } => write!(f, "a SEARCH for {path} is not in the file: {hint}"),
            Self::ManyMatches { path, begins } => write!(
                f,
                "a SEARCH for {path} that begins {begins:?} stands in the file more than once: take more lines"
            ),
            Self::Overlap { path } => write!(f, "two blocks for {path} want the same lines"),
            Self::NoFile { path } => write!(
                f,
                "the answer edits {path}, which is not on main: only a FILE block can write it, and only where \
                 the reviewed change has it"
            ),
            Self::DeletesUnreviewed { path } => {
                write!(f, "the answer deletes {path}, which the reviewed change does not")
            }
            Self::PartlyShown { path } => {
                write!(f, "the answer writes {path} whole, of which only parts were shown: use SEARCH blocks")
            }
            Self::Unanswered { path } => write!(
                f,
                "the answer says nothing about {path}, which collides: edit it, or KEEP it as main has it"
            ),
            Self::MarkersLeft { .. }
            | Self::Elided { .. }
            | Self::CutOff { .. }
            | Self::TakesBack { .. }
            | Self::Binary { .. }
            | Self::TooLarge { .. } => self.of_the_result(f),
        }
    }
}

impl std::error::Error for BadAnswer {}
