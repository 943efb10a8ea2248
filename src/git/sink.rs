//! Where a pushed pack goes while it arrives.

use yard_common::Refusal;

/// A pack up to this size is stored by one `put`; a larger one in equal parts of this size.
/// The platform asks for at least 5 MiB a part; 95 MiB are 12 parts.
pub const PART_BYTES: usize = 8 * 1024 * 1024;

/// A value of the bucket that is being written.
pub trait Sink {
    /// Adds bytes.
    ///
    /// # Errors
    /// [`Refusal::Internal`] when the bucket fails.
    async fn write(&mut self, chunk: &[u8]) -> Result<(), Refusal>;

    /// Ends it and gives its length in bytes: the value is there from now on.
    ///
    /// # Errors
    /// [`Refusal::Internal`] when the bucket fails: there or not.
    async fn finish(self) -> Result<u64, Refusal>;

    /// Gives it up: nothing is there, or will not be for long.
    async fn abort(self);
}
