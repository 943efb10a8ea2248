//! Every bound, with its unit in its name, the reason and the sum.

/// Text of one intent, in bytes: 64 kB, so that 1,000 rows of D1 stay under 64 MB.
pub const INTENT_BYTES_MAX: usize = 64 * 1024;
/// One file of an API submission, in bytes.
pub const API_FILE_BYTES_MAX: usize = 1024 * 1024;
/// One API submission request, in bytes of JSON body.
pub const API_REQUEST_BYTES_MAX: usize = 4 * 1024 * 1024;
/// One fact row, in bytes: half of SQLite's 2 MB row on the platform.
pub const FACT_BYTES_MAX: usize = 1024 * 1024;
/// One change's list of edits kept inline in a fact, in bytes; a longer one is an R2 object.
pub const EDIT_LIST_BYTES_MAX: usize = 256 * 1024;
/// A list of edits that is a value of the bucket, in bytes: some 40,000 paths with four values each, and 1/8
/// of the isolate's 128 MB.
pub const EDIT_LIST_OBJECT_BYTES_MAX: usize = 16 * 1024 * 1024;
/// One candidate pack, in bytes: read whole by the Repository, 1/16 of the isolate's 128 MB.
pub const CANDIDATE_PACK_BYTES_MAX: usize = 8 * 1024 * 1024;
/// One pushed pack, in bytes: the platform's request body limit is 100 MB on the smallest plans.
pub const PUSH_PACK_BYTES_MAX: u64 = 95 * 1024 * 1024;
/// One inflated object that is held in memory, in bytes: 1/8 of the isolate's 128 MB.
pub const OBJECT_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Objects in one pushed pack: 250,000 at 28 bytes of index each are 7 MB.
pub const PUSH_OBJECTS_MAX: u32 = 250_000;
/// An index of at most this many bytes is kept in the catalogue row itself (9,000 objects).
pub const INLINE_INDEX_BYTES_MAX: usize = 256 * 1024;
/// Changes in one train.
pub const TRAIN_CHANGES_MAX: usize = 500;
/// How long a change may wait in needs-author, in milliseconds: 30 days.
pub const NEEDS_AUTHOR_MS_MAX: u64 = 30 * 24 * 3600 * 1000;
/// Mains before the base that a stale tree is looked for in.
pub const STALE_MAINS_MAX: usize = 12;
/// Bound parameters of one SQL statement on the platform.
pub const SQL_PARAMETERS_MAX: usize = 100;

const _: () = assert!(FACT_BYTES_MAX * 2 <= 2 * 1024 * 1024);
const _: () = assert!(API_FILE_BYTES_MAX <= API_REQUEST_BYTES_MAX);
const _: () = assert!(API_REQUEST_BYTES_MAX <= CANDIDATE_PACK_BYTES_MAX);
const _: () = assert!(EDIT_LIST_BYTES_MAX <= FACT_BYTES_MAX);
