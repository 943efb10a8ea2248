//! Every bound of a replay, with its unit in its name and the reason.

use yard_common::limits::{API_FILE_BYTES_MAX, API_REQUEST_BYTES_MAX};

/// One file of an answer, in bytes: as in a submission by the API.
pub const FILE_BYTES_MAX: usize = API_FILE_BYTES_MAX;
/// All files of an answer together, in bytes: as in a submission by the API.
pub const RESULT_BYTES_MAX: usize = API_REQUEST_BYTES_MAX;
/// The text of an answer, in bytes: all files, and half as much for what is searched and said.
pub const ANSWER_BYTES_MAX: usize = RESULT_BYTES_MAX / 2 * 3;
/// The body of a provider's reply, in bytes: an answer whose every second byte is escaped in JSON, with what
/// surrounds it.
pub const REPLY_BYTES_MAX: usize = 2 * ANSWER_BYTES_MAX;
/// Blocks of one answer: ten for each file of a change of 1,000 files.
pub const BLOCKS_MAX: usize = 10_000;
/// Characters of a model's or a provider's words that go into a sentence of the record.
pub const QUOTE_CHARS_MAX: usize = 200;
/// A coverage report, in bytes: 100,000 files' names and 500,000 lines of 14 bytes.
pub const COVERAGE_BYTES_MAX: usize = 8 * 1024 * 1024;
/// The text of a proof, in bytes: what a reviewer reads at a terminal, and a sixteenth of a fact's row.
pub const PROOF_BYTES_MAX: usize = 64 * 1024;
/// One file's part of a proof, in bytes.
pub const PROOF_FILE_BYTES_MAX: usize = 16 * 1024;

const _: () = assert!(FILE_BYTES_MAX <= RESULT_BYTES_MAX);
const _: () = assert!(PROOF_FILE_BYTES_MAX <= PROOF_BYTES_MAX);
