//! An object's own SQLite: synchronous, so that statements without an await between them are one
//! transaction.
//!
//! Limits of the platform: 100 bound parameters, 2 MB a row or value, integers through `f64`. A fault
//! in the middle of a block does NOT undo the statements before it; so every block puts the row that
//! decides (a fact) where a half-done rest can be made anew from it.

use std::fmt;

use yard_common::{ObjectId, Refusal};

/// Largest integer that survives the platform's way through `f64`: 2^53 - 1.
pub const INT_MAX: i64 = (1 << 53) - 1;
/// Largest text or blob given to one statement, in bytes: below the platform's 2 MB with room for the row.
pub const VALUE_BYTES_MAX: usize = 1_900_000;

/// A value of a statement or a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    /// NULL.
    Null,
    /// An integer, at most [`INT_MAX`] either way.
    Int(i64),
    /// Text.
    Text(String),
    /// Bytes.
    Blob(Vec<u8>),
}

impl From<i64> for Value {
    fn from(number: i64) -> Self {
        Self::Int(number)
    }
}

impl From<u64> for Value {
    fn from(number: u64) -> Self {
        Self::Int(i64::try_from(number).unwrap_or(i64::MAX))
    }
}

impl From<u32> for Value {
    fn from(number: u32) -> Self {
        Self::Int(i64::from(number))
    }
}

impl From<bool> for Value {
    fn from(yes: bool) -> Self {
        Self::Int(i64::from(yes))
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<Vec<u8>> for Value {
    fn from(bytes: Vec<u8>) -> Self {
        Self::Blob(bytes)
    }
}

impl From<&ObjectId> for Value {
    fn from(id: &ObjectId) -> Self {
        Self::Text(id.to_string())
    }
}

impl From<ObjectId> for Value {
    fn from(id: ObjectId) -> Self {
        Self::from(&id)
    }
}

impl<T: Into<Value>> From<Option<T>> for Value {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, Into::into)
    }
}

/// What went wrong in a statement: a fault of the platform or of this code, never of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SqlFault(pub String);

impl fmt::Display for SqlFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for SqlFault {}

impl From<SqlFault> for Refusal {
    fn from(fault: SqlFault) -> Self {
        crate::points::log(&format!("sql: {fault}"));
        Self::Internal { during: "reading or writing the object's tables".into() }
    }
}

/// One row of an answer, read column by column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row(pub Vec<Value>);

impl Row {
    fn bad(column: usize, wanted: &str) -> SqlFault {
        SqlFault(format!("column {column} of a row is no {wanted}"))
    }

    /// An integer.
    ///
    /// # Errors
    /// [`SqlFault`] when the column holds something else.
    pub fn int(&self, column: usize) -> Result<i64, SqlFault> {
        match self.0.get(column) {
            Some(Value::Int(number)) => Ok(*number),
            _ => Err(Self::bad(column, "integer")),
        }
    }

    /// An integer that is not negative.
    ///
    /// # Errors
    /// As [`Row::int`].
    pub fn number(&self, column: usize) -> Result<u64, SqlFault> {
        u64::try_from(self.int(column)?).map_err(|_| Self::bad(column, "number"))
    }

    /// Text.
    ///
    /// # Errors
    /// As [`Row::int`].
    pub fn text(&self, column: usize) -> Result<&str, SqlFault> {
        match self.0.get(column) {
            Some(Value::Text(text)) => Ok(text),
            _ => Err(Self::bad(column, "text")),
        }
    }

    /// Bytes.
    ///
    /// # Errors
    /// As [`Row::int`].
    pub fn blob(&self, column: usize) -> Result<&[u8], SqlFault> {
        match self.0.get(column) {
            Some(Value::Blob(bytes)) => Ok(bytes),
            _ => Err(Self::bad(column, "blob")),
        }
    }

    /// An object id, kept as its hex digits: JSON arrays carry it into statements as it is.
    ///
    /// # Errors
    /// As [`Row::int`].
    pub fn id(&self, column: usize) -> Result<ObjectId, SqlFault> {
        self.parse(column, "object id")
    }

    /// A checked id kept as text.
    ///
    /// # Errors
    /// As [`Row::int`].
    pub fn parse<T: std::str::FromStr>(&self, column: usize, wanted: &str) -> Result<T, SqlFault> {
        self.text(column)?.parse().map_err(|_| Self::bad(column, wanted))
    }

    /// Is the column NULL (or not there)?
    #[must_use]
    pub fn is_null(&self, column: usize) -> bool {
        matches!(self.0.get(column), None | Some(Value::Null))
    }

    /// Text, or `None` for NULL.
    ///
    /// # Errors
    /// As [`Row::int`].
    pub fn maybe_text(&self, column: usize) -> Result<Option<&str>, SqlFault> {
        if self.is_null(column) { Ok(None) } else { self.text(column).map(Some) }
    }

    /// An object id, or `None` for NULL.
    ///
    /// # Errors
    /// As [`Row::int`].
    pub fn maybe_id(&self, column: usize) -> Result<Option<ObjectId>, SqlFault> {
        if self.is_null(column) { Ok(None) } else { self.id(column).map(Some) }
    }

    /// JSON text, read as `T`.
    ///
    /// # Errors
    /// [`SqlFault`] when the column is no text or the text no such JSON.
    pub fn json<T: serde::de::DeserializeOwned>(&self, column: usize) -> Result<T, SqlFault> {
        serde_json::from_str(self.text(column)?)
            .map_err(|fault| SqlFault(format!("column {column} of a row: {fault}")))
    }
}

/// SQLite as an object has it.
pub trait Sql {
    /// Runs one statement and reads all its rows.
    ///
    /// # Errors
    /// [`SqlFault`]; statements before this one stay done.
    fn run(&self, sql: &str, params: &[Value]) -> Result<Vec<Row>, SqlFault>;
}

impl<T: Sql + ?Sized> Sql for &T {
    fn run(&self, sql: &str, params: &[Value]) -> Result<Vec<Row>, SqlFault> {
        (**self).run(sql, params)
    }
}

impl<T: Sql + ?Sized> Sql for std::rc::Rc<T> {
    fn run(&self, sql: &str, params: &[Value]) -> Result<Vec<Row>, SqlFault> {
        (**self).run(sql, params)
    }
}

/// Brings the tables to the newest form: `steps` are numbered from 1 and only ever appended to.
///
/// A step is one or more statements, each repeatable (`IF NOT EXISTS`), because a fault between a
/// step and its number makes it run again. `module` keeps the numbers of several users of one object
/// apart.
///
/// # Errors
/// [`SqlFault`] of the first statement that fails.
pub fn migrate(sql: &impl Sql, module: &str, steps: &[&[&str]]) -> Result<(), SqlFault> {
    sql.run("CREATE TABLE IF NOT EXISTS migrations (module TEXT PRIMARY KEY, step INTEGER NOT NULL)", &[])?;
    let rows = sql.run("SELECT step FROM migrations WHERE module = ?", &[module.into()])?;
    let done = rows.first().map_or(Ok(0), |row| row.number(0))?;
    for (number, step) in (1u64..).zip(steps) {
        if number <= done {
            continue;
        }
        for statement in *step {
            sql.run(statement, &[])?;
        }
        sql.run(
            "INSERT INTO migrations (module, step) VALUES (?, ?)
             ON CONFLICT (module) DO UPDATE SET step = excluded.step",
            &[module.into(), number.into()],
        )?;
    }
    Ok(())
}

/// Runs a statement once for every bundle of `items`, each bundle a JSON array of at most
/// [`VALUE_BYTES_MAX`] bytes in its first parameter (read it with `json_each(?1)`); `rest` follows.
///
/// # Errors
/// [`SqlFault`]; bundles before the faulty one stay done.
pub fn each_json<T: serde::Serialize>(
    sql: &impl Sql,
    statement: &str,
    items: impl IntoIterator<Item = T>,
    rest: &[Value],
) -> Result<Vec<Row>, SqlFault> {
    let mut rows = Vec::new();
    let mut text = String::from("[");
    let flush = |text: &mut String, rows: &mut Vec<Row>| -> Result<(), SqlFault> {
        if text.len() > 1 {
            text.push(']');
            let mut params = vec![Value::Text(std::mem::replace(text, String::from("[")))];
            params.extend_from_slice(rest);
            rows.extend(sql.run(statement, &params)?);
        }
        Ok(())
    };
    let mut bytes = Vec::new();
    for item in items {
        bytes.clear();
        serde_json::to_writer(&mut bytes, &item).map_err(|fault| SqlFault(fault.to_string()))?;
        let item = std::str::from_utf8(&bytes).map_err(|fault| SqlFault(fault.to_string()))?;
        if text.len() + item.len() + 2 > VALUE_BYTES_MAX {
            flush(&mut text, &mut rows)?;
        }
        if text.len() > 1 {
            text.push(',');
        }
        text.push_str(item);
    }
    flush(&mut text, &mut rows)?;
    Ok(rows)
}

/// Runs a statement once for every bundle of ids; it reads them from the table `ids (id)`, made by
/// [`IDS`] at its start, and `rest` from `?2` on.
///
/// # Errors
/// As [`each_json`].
pub fn each_ids(
    sql: &impl Sql,
    statement: &str,
    ids: &[ObjectId],
    rest: &[Value],
) -> Result<Vec<Row>, SqlFault> {
    each_json(sql, &format!("{IDS} {statement}"), ids, rest)
}

/// The JSON array `?1` of ids as the table `ids (id)`.
pub const IDS: &str = "WITH ids (id) AS (SELECT value FROM json_each(?1))";

/// How far a page goes: the last number among rows of (number, bytes) after `after` that together have at most
/// `bytes_max`; a row that is larger is a page of its own.
///
/// # Errors
/// [`SqlFault`] for rows of another form.
pub fn page_end(rows: &[Row], after: u64, bytes_max: u64) -> Result<u64, SqlFault> {
    let (mut upto, mut bytes) = (after, 0);
    for row in rows {
        bytes += row.number(1)?;
        if bytes > bytes_max && upto > after {
            break;
        }
        upto = row.number(0)?;
    }
    Ok(upto)
}

#[cfg(test)]
mod tests;
