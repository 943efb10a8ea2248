//! The index (D1): what people search, written from outboxes; nothing that decides reads it.
//!
//! Every row belongs to one object's outbox and carries its number there (`seq`): a row that is sent
//! again, late, or in another order changes nothing unless it is newer. So the index can be thrown away
//! and made anew by sending everything once more.

mod rows;
mod schema;
pub mod search;

use std::cell::Cell;
use std::fmt;

use serde::Serialize;

use yard_common::Refusal;

use crate::sql::{Row, Value};
pub use rows::{Bundle, RecordRow, ReplayRow, RunRow, TimelineRow, VerdictRow, VersionRow, lines};
pub(crate) use schema::GENERATION;
pub use schema::{TABLES, Table};

/// The index did not do what was asked; it may have, when the fault came after.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexFault(pub String);

impl fmt::Display for IndexFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for IndexFault {}

impl From<IndexFault> for Refusal {
    fn from(fault: IndexFault) -> Self {
        crate::points::log(&format!("index: {fault}"));
        Self::Internal { during: "reading or writing the index".into() }
    }
}

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

/// One statement's parameter, in bytes: half of what a value of D1 may have.
const BUNDLE_BYTES_MAX: usize = 900_000;
/// Rows that one statement deletes: D1 asks for steps of about 1,000.
pub const DELETE_ROWS_MAX: u64 = 1_000;

/// Does the fault say that the index has no such table yet?
#[must_use]
pub fn lacks_table(fault: &IndexFault) -> bool {
    fault.0.contains("no such table")
}

/// Writes rows into the index; makes its tables when they are not there.
pub struct Writer {
    repo: String,
    ready: Cell<bool>,
}

impl Writer {
    /// For the rows of one repository.
    #[must_use]
    pub fn new(repo: &str) -> Self {
        Self { repo: repo.to_owned(), ready: Cell::new(true) }
    }

    /// Writes rows, one statement for as many as fit; what is older than what is there changes nothing.
    ///
    /// # Errors
    /// [`IndexFault`]: some may be written.
    pub async fn put<R: Serialize>(
        &self,
        index: &impl Index,
        table: &Table,
        rows: &[R],
    ) -> Result<(), IndexFault> {
        let statement = table.put();
        for text in bundles(rows) {
            let params = [Value::Text(text), self.repo.as_str().into()];
            match index.run(&statement, &params).await {
                Err(fault) if lacks_table(&fault) || !self.ready.get() => {
                    self.ready.set(false);
                    schema::prepare(index).await?;
                    index.run(&statement, &params).await?;
                }
                done => drop(done?),
            }
            self.ready.set(true);
        }
        Ok(())
    }

    /// Writes a bundle of rows of all kinds.
    ///
    /// # Errors
    /// As [`Writer::put`].
    pub async fn put_all(&self, index: &impl Index, bundle: &Bundle) -> Result<(), IndexFault> {
        self.put(index, &schema::VERSIONS, &bundle.versions).await?;
        self.put(index, &schema::RECORDS, &bundle.records).await?;
        self.put(index, &schema::RUNS, &bundle.runs).await?;
        self.put(index, &schema::VERDICTS, &bundle.verdicts).await?;
        self.put(index, &schema::REPLAYS, &bundle.replays).await?;
        self.put(index, &schema::TIMELINE, &bundle.timeline).await
    }
}

/// Deletes up to [`DELETE_ROWS_MAX`] rows of a repository; answers how many there were.
///
/// # Errors
/// [`IndexFault`]: some may be deleted.
pub async fn clear(index: &impl Index, repo: &str) -> Result<u64, IndexFault> {
    for table in TABLES {
        let statement = format!(
            "DELETE FROM {0} WHERE rowid IN (SELECT rowid FROM {0} WHERE repo = ?1 LIMIT ?2) RETURNING 1",
            table.name
        );
        match index.run(&statement, &[repo.into(), DELETE_ROWS_MAX.into()]).await {
            Ok(rows) if rows.is_empty() => {}
            Ok(rows) => return Ok(rows.len() as u64),
            Err(fault) if lacks_table(&fault) => {}
            Err(fault) => return Err(fault),
        }
    }
    Ok(0)
}

/// JSON arrays of at most [`BUNDLE_BYTES_MAX`] bytes each, but for a row that is larger alone.
fn bundles<R: Serialize>(rows: &[R]) -> Vec<String> {
    let mut out: Vec<String> = Vec::new();
    for row in rows {
        let text = serde_json::to_string(row).unwrap_or_default();
        match out.last_mut() {
            Some(last) if last.len() + text.len() < BUNDLE_BYTES_MAX => {
                last.push(',');
                last.push_str(&text);
            }
            _ => out.push(format!("[{text}")),
        }
    }
    out.iter_mut().for_each(|text| text.push(']'));
    out
}

#[cfg(test)]
mod tests;
