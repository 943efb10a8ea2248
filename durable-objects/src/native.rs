//! The platform natively: SQLite in memory, a bucket and an index in memory that can fail, objects
//! wired to each other in one process.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::future::Future;
use std::pin::pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use rusqlite::types::{Value as SqliteValue, ValueRef};
use yard_common::{Millis, Refusal};
use yard_wire::Method;

use crate::blobs::{BlobFault, Blobs};
use crate::call::{Calls, Object};
use crate::index::{Index, IndexFault};
use crate::sql::{INT_MAX, Row, Sql, SqlFault, Value};

/// SQLite in memory, with the platform's bounds.
pub struct NativeSql {
    connection: rusqlite::Connection,
    statements: Cell<u64>,
    fail_at: Cell<Option<u64>>,
}

impl NativeSql {
    /// An empty database in memory.
    ///
    /// # Errors
    /// [`SqlFault`] when SQLite has no memory.
    pub fn new() -> Result<Self, SqlFault> {
        let connection = rusqlite::Connection::open_in_memory().map_err(fault)?;
        connection.set_prepared_statement_cache_capacity(200);
        Ok(Self { connection, statements: Cell::new(0), fail_at: Cell::new(None) })
    }

    /// Statements run so far.
    #[must_use]
    pub fn statements(&self) -> u64 {
        self.statements.get()
    }

    /// Lets the `nth` statement from now fail before it does anything (1 = the next one).
    pub fn fail_after(&self, nth: u64) {
        self.fail_at.set(Some(self.statements.get() + nth));
    }
}

fn fault(error: rusqlite::Error) -> SqlFault {
    SqlFault(error.to_string())
}

fn to_sqlite(value: &Value) -> Result<SqliteValue, SqlFault> {
    Ok(match value {
        Value::Null => SqliteValue::Null,
        Value::Int(number) if number.abs() <= INT_MAX => SqliteValue::Integer(*number),
        Value::Int(number) => return Err(SqlFault(format!("{number} does not survive f64"))),
        Value::Text(text) if text.len() > 2_000_000 => return Err(SqlFault("text over 2 MB".into())),
        Value::Blob(bytes) if bytes.len() > 2_000_000 => return Err(SqlFault("blob over 2 MB".into())),
        Value::Text(text) => SqliteValue::Text(text.clone()),
        Value::Blob(bytes) => SqliteValue::Blob(bytes.clone()),
    })
}

fn from_sqlite(value: ValueRef<'_>) -> Result<Value, SqlFault> {
    Ok(match value {
        ValueRef::Null => Value::Null,
        // As the platform has it: what does not survive f64 comes back as a float.
        ValueRef::Integer(number) if number.abs() > INT_MAX => return Err(SqlFault("a float".into())),
        ValueRef::Integer(number) => Value::Int(number),
        ValueRef::Text(text) => Value::Text(String::from_utf8_lossy(text).into_owned()),
        ValueRef::Blob(bytes) => Value::Blob(bytes.to_vec()),
        // As the platform has it: a float without a fraction comes back as an integer.
        ValueRef::Real(number) if number.fract() == 0.0 && number.abs() < 9e15 => {
            Value::Int(format!("{number:.0}").parse().unwrap_or(0))
        }
        ValueRef::Real(_) => return Err(SqlFault("a float".into())),
    })
}

impl Sql for NativeSql {
    fn run(&self, sql: &str, params: &[Value]) -> Result<Vec<Row>, SqlFault> {
        self.statements.set(self.statements.get() + 1);
        if self.fail_at.get() == Some(self.statements.get()) {
            self.fail_at.set(None);
            return Err(SqlFault("made to fail".into()));
        }
        if params.len() > yard_common::limits::SQL_PARAMETERS_MAX {
            return Err(SqlFault(format!("too many SQL variables: {}", params.len())));
        }
        let mut statement = self.connection.prepare_cached(sql).map_err(fault)?;
        let params = params.iter().map(to_sqlite).collect::<Result<Vec<_>, _>>()?;
        let columns = statement.column_count();
        let mut rows = statement.query(rusqlite::params_from_iter(params)).map_err(fault)?;
        let mut out = Vec::new();
        while let Some(row) = rows.next().map_err(fault)? {
            let values = (0..columns)
                .map(|column| from_sqlite(row.get_ref(column).map_err(fault)?))
                .collect::<Result<Vec<_>, _>>()?;
            out.push(Row(values));
        }
        Ok(out)
    }
}

/// Where a made fault strikes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fails {
    /// Before the thing is done.
    Before,
    /// After it is done: the reply is lost.
    After,
}

/// What the memory stores count and how they fail.
#[derive(Debug, Default)]
pub struct Faults {
    next: Cell<Option<Fails>>,
    calls: Cell<u64>,
}

impl Faults {
    /// Lets the next write fail.
    pub fn fail_next(&self, how: Fails) {
        self.next.set(Some(how));
    }

    /// No write fails any more.
    pub fn fail_never(&self) {
        self.next.set(None);
    }

    /// Calls so far.
    #[must_use]
    pub fn calls(&self) -> u64 {
        self.calls.get()
    }

    fn call(&self) {
        self.calls.set(self.calls.get() + 1);
    }

    fn strike(&self, now: Fails) -> bool {
        let strikes = self.next.get() == Some(now);
        if strikes {
            self.next.set(None);
        }
        strikes
    }
}

/// A bucket in memory.
#[derive(Debug, Default)]
pub struct MemoryBlobs {
    values: RefCell<BTreeMap<String, Vec<u8>>>,
    /// Counts calls, lets writes fail.
    pub faults: Faults,
}

impl MemoryBlobs {
    /// The keys, in order.
    #[must_use]
    pub fn keys(&self) -> Vec<String> {
        self.values.borrow().keys().cloned().collect()
    }

    fn write(&self, act: impl FnOnce(&mut BTreeMap<String, Vec<u8>>)) -> Result<(), BlobFault> {
        self.faults.call();
        if self.faults.strike(Fails::Before) {
            return Err(BlobFault("made to fail before".into()));
        }
        act(&mut self.values.borrow_mut());
        if self.faults.strike(Fails::After) {
            return Err(BlobFault("made to fail after".into()));
        }
        Ok(())
    }
}

impl Blobs for MemoryBlobs {
    async fn get(&self, key: &str) -> Result<Option<Vec<u8>>, BlobFault> {
        self.faults.call();
        Ok(self.values.borrow().get(key).cloned())
    }

    async fn get_range(&self, key: &str, offset: u64, length: u64) -> Result<Option<Vec<u8>>, BlobFault> {
        self.faults.call();
        let values = self.values.borrow();
        let Some(value) = values.get(key) else { return Ok(None) };
        let start = usize::try_from(offset).unwrap_or(usize::MAX);
        let end = start.saturating_add(usize::try_from(length).unwrap_or(usize::MAX)).min(value.len());
        match value.get(start..end) {
            Some(part) if !part.is_empty() => Ok(Some(part.to_vec())),
            _ => Err(BlobFault("the range is not satisfiable".into())),
        }
    }

    async fn put(&self, key: &str, bytes: Vec<u8>) -> Result<(), BlobFault> {
        self.write(|values| {
            values.insert(key.to_owned(), bytes);
        })
    }

    async fn head(&self, key: &str) -> Result<Option<u64>, BlobFault> {
        self.faults.call();
        Ok(self.values.borrow().get(key).map(|value| value.len() as u64))
    }

    async fn delete(&self, keys: &[String]) -> Result<(), BlobFault> {
        self.write(|values| {
            for key in keys {
                values.remove(key);
            }
        })
    }
}

/// The index in memory: SQLite that can fail before or after.
pub struct MemoryIndex {
    /// The database.
    pub sql: NativeSql,
    /// Counts calls, lets them fail.
    pub faults: Faults,
}

impl MemoryIndex {
    /// An empty index.
    ///
    /// # Errors
    /// As [`NativeSql::new`].
    pub fn new() -> Result<Self, SqlFault> {
        Ok(Self { sql: NativeSql::new()?, faults: Faults::default() })
    }
}

impl Index for MemoryIndex {
    async fn run(&self, sql: &str, params: &[Value]) -> Result<Vec<Row>, IndexFault> {
        self.faults.call();
        if self.faults.strike(Fails::Before) {
            return Err(IndexFault("made to fail before".into()));
        }
        let rows = self.sql.run(sql, params).map_err(|fault| IndexFault(fault.0))?;
        if self.faults.strike(Fails::After) {
            return Err(IndexFault("made to fail after".into()));
        }
        Ok(rows)
    }
}

/// Objects of one process that call each other through JSON, as on the platform.
#[derive(Default)]
pub struct Wired {
    objects: RefCell<BTreeMap<String, Rc<dyn Object>>>,
    now: Cell<u64>,
    queued: RefCell<Vec<(String, String)>>,
    /// Counts calls, lets them fail.
    pub faults: Faults,
}

impl Wired {
    /// Puts an object under its name.
    pub fn insert(&self, name: &str, object: Rc<dyn Object>) {
        self.objects.borrow_mut().insert(name.to_owned(), object);
    }

    /// Takes what was put into queues: the binding and the message of each.
    pub fn take_queued(&self) -> Vec<(String, String)> {
        std::mem::take(&mut self.queued.borrow_mut())
    }

    /// Sets the clock.
    pub fn set_now(&self, now: Millis) {
        self.now.set(now.0);
    }

    /// The clock.
    #[must_use]
    pub fn now(&self) -> Millis {
        Millis(self.now.get())
    }
}

impl Calls for Wired {
    async fn call<M: Method>(&self, name: &str, request: &M) -> Result<M::Reply, Refusal> {
        let lost = || Refusal::Internal { during: format!("calling {name}") };
        self.faults.call();
        let object = self.objects.borrow().get(name).cloned().ok_or_else(lost)?;
        let body = serde_json::to_vec(request).map_err(|_| lost())?;
        if self.faults.strike(Fails::Before) {
            return Err(lost());
        }
        let answer = object.handle(M::NAME, &body, self.now()).await;
        if self.faults.strike(Fails::After) {
            return Err(lost());
        }
        serde_json::from_slice(&answer?).map_err(|_| lost())
    }

    async fn enqueue(&self, queue: &str, messages: Vec<String>) -> Result<(), Refusal> {
        let lost = || Refusal::Internal { during: format!("putting into queue {queue}") };
        self.faults.call();
        if self.faults.strike(Fails::Before) {
            return Err(lost());
        }
        self.queued.borrow_mut().extend(messages.into_iter().map(|message| (queue.to_owned(), message)));
        if self.faults.strike(Fails::After) {
            return Err(lost());
        }
        Ok(())
    }
}

/// Runs a future to its end; ours never wait for anything outside natively.
pub fn block_on<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    let mut context = Context::from_waker(Waker::noop());
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
            return output;
        }
    }
}
