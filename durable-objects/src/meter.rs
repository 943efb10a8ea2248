//! Counts of costly operations in this isolate, for benchmarks and for whoever watches the bill, and the
//! time that each class of object was at work.
//!
//! On one machine all objects and the edge share an isolate, so the counts are the platform's; in
//! production they are those of the isolate that answers, since it started.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::future::{Future, poll_fn};
use std::pin::pin;

use yard_common::Millis;

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

/// Whose time it is, under the names that `GET /api/metrics` gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    /// The Worker itself.
    Edge,
    /// Repositories and forks.
    Repository,
    /// Merge queues.
    Lane,
    /// Boards.
    Board,
    /// The registry.
    Registry,
}

impl Class {
    const ALL: [Self; 5] = [Self::Edge, Self::Repository, Self::Lane, Self::Board, Self::Registry];

    fn name(self) -> &'static str {
        match self {
            Self::Edge => "busy_ms_edge",
            Self::Repository => "busy_ms_repository",
            Self::Lane => "busy_ms_lane",
            Self::Board => "busy_ms_board",
            Self::Registry => "busy_ms_registry",
        }
    }
}

thread_local! {
    static COUNTS: RefCell<BTreeMap<Operation, u64>> = const { RefCell::new(BTreeMap::new()) };
    static BUSY: RefCell<BTreeMap<Class, u64>> = const { RefCell::new(BTreeMap::new()) };
}

/// Counts one operation.
pub fn count(operation: Operation) {
    COUNTS.with_borrow_mut(|counts| {
        let count = counts.entry(operation).or_default();
        *count = count.saturating_add(1);
    });
}

/// Runs `work` and adds the time that it is at work, not the time that it waits, to its class.
///
/// An isolate has one thread, so what passes while a future is polled is its own: its Rust, its statements
/// of SQLite, the calls that it makes into the runtime; not what the runtime does for it between polls
/// (transport, commits, garbage). The clock's milliseconds are cut off, which evens out over many polls.
/// Where the platform holds the clock still during an event's work, all this stays 0.
pub async fn timed<F: Future>(class: Class, clock: fn() -> Millis, work: F) -> F::Output {
    let mut work = pin!(work);
    poll_fn(|context| {
        let began = clock();
        let polled = work.as_mut().poll(context);
        let spent = clock().since(began);
        BUSY.with_borrow_mut(|busy| {
            let sum = busy.entry(class).or_default();
            *sum = sum.saturating_add(spent);
        });
        polled
    })
    .await
}

/// All counts by name, the milliseconds at work by class, and `wasm_memory_bytes`: the linear memory,
/// which never shrinks.
#[must_use]
pub fn counts() -> BTreeMap<&'static str, u64> {
    let mut all: BTreeMap<_, _> = COUNTS.with_borrow(|counts| {
        let count = |operation: &Operation| counts.get(operation).copied().unwrap_or(0);
        Operation::ALL.iter().map(|operation| (operation.name(), count(operation))).collect()
    });
    BUSY.with_borrow(|busy| {
        let spent = |class: &Class| busy.get(class).copied().unwrap_or(0);
        all.extend(Class::ALL.iter().map(|class| (class.name(), spent(class))));
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
        assert_eq!(counts.len(), Operation::ALL.len() + Class::ALL.len() + 1);
        for operation in Operation::ALL {
            let expected = if operation == Operation::R2Writes { 2 } else { 1 };
            assert_eq!(counts.get(operation.name()), Some(&expected), "{operation:?}");
        }
    }

    thread_local! {
        static NOW: std::cell::Cell<u64> = const { std::cell::Cell::new(0) };
    }

    /// Stands still by itself: what is at work moves it.
    fn clock() -> Millis {
        Millis(NOW.get())
    }

    #[test]
    fn time_at_work_is_counted_and_time_waited_is_not() {
        let mut polls = 0;
        let work = poll_fn(|_| {
            polls += 1;
            NOW.set(NOW.get() + 3);
            if polls < 2 { std::task::Poll::Pending } else { std::task::Poll::Ready("done") }
        });
        let mut work = pin!(timed(Class::Lane, clock, work));
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        assert!(work.as_mut().poll(&mut context).is_pending());
        NOW.set(NOW.get() + 1_000);
        assert!(work.as_mut().poll(&mut context).is_ready());
        assert_eq!(counts().get("busy_ms_lane"), Some(&6));
        assert_eq!(counts().get("busy_ms_edge"), Some(&0));
    }
}
