//! Counts of costly operations in this isolate, for benchmarks and for whoever watches the bill.
//!
//! On one machine all objects and the edge share an isolate, so the counts are the platform's; in
//! production they are those of the isolate that answers, since it started.

use std::cell::RefCell;
use std::collections::BTreeMap;

/// What is counted, under the names that `GET /api/metrics` gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Operation {
    /// Requests that came to the edge.
    Requests,
    /// Calls of an object.
    ObjectCalls,
    /// Reads and look-ups in R2.
    R2Reads,
    /// Writes to R2; each part of a multipart upload, its start and its end are one.
    R2Writes,
    /// Deletions in R2, of up to 1,000 keys each.
    R2Deletes,
    /// Statements sent to D1.
    D1Calls,
    /// Statements of the objects' own SQLite.
    SqlStatements,
}

impl Operation {
    const ALL: [Self; 7] = [
        Self::Requests,
        Self::ObjectCalls,
        Self::R2Reads,
        Self::R2Writes,
        Self::R2Deletes,
        Self::D1Calls,
        Self::SqlStatements,
    ];

    fn name(self) -> &'static str {
        match self {
            Self::Requests => "requests",
            Self::ObjectCalls => "object_calls",
            Self::R2Reads => "r2_reads",
            Self::R2Writes => "r2_writes",
            Self::R2Deletes => "r2_deletes",
            Self::D1Calls => "d1_calls",
            Self::SqlStatements => "sql_statements",
        }
    }
}

thread_local! {
    static COUNTS: RefCell<BTreeMap<Operation, u64>> = const { RefCell::new(BTreeMap::new()) };
}

/// Counts one operation.
pub fn count(operation: Operation) {
    COUNTS.with_borrow_mut(|counts| {
        let count = counts.entry(operation).or_default();
        *count = count.saturating_add(1);
    });
}

/// All counts by name, and `wasm_memory_bytes`: the linear memory, which never shrinks.
#[must_use]
pub fn counts() -> BTreeMap<&'static str, u64> {
    let mut all: BTreeMap<_, _> = COUNTS.with_borrow(|counts| {
        let count = |operation: &Operation| counts.get(operation).copied().unwrap_or(0);
        Operation::ALL.iter().map(|operation| (operation.name(), count(operation))).collect()
    });
    all.insert("wasm_memory_bytes", memory_bytes());
    all
}

#[cfg(target_arch = "wasm32")]
fn memory_bytes() -> u64 {
    core::arch::wasm32::memory_size::<0>() as u64 * 65_536
}

#[cfg(not(target_arch = "wasm32"))]
fn memory_bytes() -> u64 {
    0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_operation_is_counted_under_its_own_name() {
        for operation in Operation::ALL {
            count(operation);
        }
        count(Operation::R2Writes);
        let counts = counts();
        assert_eq!(counts.len(), Operation::ALL.len() + 1);
        for operation in Operation::ALL {
            let expected = if operation == Operation::R2Writes { 2 } else { 1 };
            assert_eq!(counts.get(operation.name()), Some(&expected), "{operation:?}");
        }
    }
}
