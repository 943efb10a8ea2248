//! The bucket: packs, indexes, large lists, logs. Multipart uploads stay in the edge.

use std::fmt;

use yard_common::Refusal;

/// The bucket did not do what was asked; it may have, when the fault came after.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlobFault(pub String);

impl fmt::Display for BlobFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for BlobFault {}

impl From<BlobFault> for Refusal {
    fn from(fault: BlobFault) -> Self {
        crate::points::log(&format!("bucket: {fault}"));
        Self::Internal { during: "reading or writing the bucket".into() }
    }
}

/// Keys deleted by one call at most: the platform's bound.
pub const DELETE_KEYS_MAX: usize = 1000;

/// Values by key.
pub trait Blobs {
    /// The whole value; `None` when there is none.
    ///
    /// # Errors
    /// [`BlobFault`].
    async fn get(&self, key: &str) -> Result<Option<Vec<u8>>, BlobFault>;

    /// `length` bytes from `offset`, fewer where the value ends before; `None` when there is no value.
    ///
    /// # Errors
    /// [`BlobFault`], also for an offset at or behind the end.
    async fn get_range(&self, key: &str, offset: u64, length: u64) -> Result<Option<Vec<u8>>, BlobFault>;

    /// Stores a value, over one that is there.
    ///
    /// # Errors
    /// [`BlobFault`]: stored or not.
    async fn put(&self, key: &str, bytes: Vec<u8>) -> Result<(), BlobFault>;

    /// The value's length in bytes; `None` when there is none.
    ///
    /// # Errors
    /// [`BlobFault`].
    async fn head(&self, key: &str) -> Result<Option<u64>, BlobFault>;

    /// Deletes values, at most [`DELETE_KEYS_MAX`]; those that are not there are no fault.
    ///
    /// # Errors
    /// [`BlobFault`]: some may be deleted.
    async fn delete(&self, keys: &[String]) -> Result<(), BlobFault>;
}

impl<T: Blobs + ?Sized> Blobs for std::rc::Rc<T> {
    async fn get(&self, key: &str) -> Result<Option<Vec<u8>>, BlobFault> {
        (**self).get(key).await
    }

    async fn get_range(&self, key: &str, offset: u64, length: u64) -> Result<Option<Vec<u8>>, BlobFault> {
        (**self).get_range(key, offset, length).await
    }

    async fn put(&self, key: &str, bytes: Vec<u8>) -> Result<(), BlobFault> {
        (**self).put(key, bytes).await
    }

    async fn head(&self, key: &str) -> Result<Option<u64>, BlobFault> {
        (**self).head(key).await
    }

    async fn delete(&self, keys: &[String]) -> Result<(), BlobFault> {
        (**self).delete(keys).await
    }
}
