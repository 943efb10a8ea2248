//! The index (D1): what people search, written from outboxes; nothing that decides reads it.

use std::fmt;

use crate::sql::{Row, Value};

/// The index did not do what was asked; it may have, when the fault came after.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexFault(pub String);

impl fmt::Display for IndexFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for IndexFault {}

/// A database that many objects write to and people search.
pub trait Index {
    /// Runs one statement, numbers as `f64` (D1's integers have 32 bits), and reads its rows.
    ///
    /// # Errors
    /// [`IndexFault`]: done or not.
    async fn run(&self, sql: &str, params: &[Value]) -> Result<Vec<Row>, IndexFault>;
}

impl<T: Index + ?Sized> Index for std::rc::Rc<T> {
    async fn run(&self, sql: &str, params: &[Value]) -> Result<Vec<Row>, IndexFault> {
        (**self).run(sql, params).await
    }
}
