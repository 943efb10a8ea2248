//! What workerd gives an object, behind the hosts' traits.

use std::time::Duration;

use wasm_bindgen::{JsCast as _, JsValue};
use worker::{Bucket, D1Database, Env, Headers, Method as Verb, Range, Request, RequestInit, Response};
use worker::{Delay, SqlStorage, SqlStorageValue, State};
use yard_common::Refusal;
use yard_wire::Method;
use yard_wire::problem::{CONTENT_TYPE, Problem};

use crate::blobs::{BlobFault, Blobs};
use crate::call::{ANSWER_MS_MAX, Calls, Object, binding_of, within};
use crate::index::{Index, IndexFault};
use crate::meter::{Operation, count};
use crate::sql::{INT_MAX, Row, Sql, SqlFault, Value};

/// The bucket's binding.
pub const PACKS: &str = "PACKS";
/// The index's binding.
pub const INDEX: &str = "INDEX";
/// The secret that signs tokens.
pub const SECRET: &str = "SWITCHYARD_SECRET";

/// An object's own SQLite.
pub struct WorkerSql(SqlStorage);

impl WorkerSql {
    /// The database of this object.
    #[must_use]
    pub fn new(state: &State) -> Self {
        Self(state.storage().sql())
    }
}

fn to_js(value: &Value) -> Result<SqlStorageValue, SqlFault> {
    Ok(match value {
        Value::Null => SqlStorageValue::Null,
        Value::Int(number) if number.abs() <= INT_MAX => SqlStorageValue::Integer(*number),
        Value::Int(number) => return Err(SqlFault(format!("{number} does not survive f64"))),
        Value::Text(text) => SqlStorageValue::String(text.clone()),
        Value::Blob(bytes) => SqlStorageValue::Blob(bytes.clone()),
    })
}

fn from_js(value: SqlStorageValue) -> Result<Value, SqlFault> {
    Ok(match value {
        SqlStorageValue::Null => Value::Null,
        SqlStorageValue::Boolean(yes) => Value::Int(i64::from(yes)),
        SqlStorageValue::Integer(number) => Value::Int(number),
        SqlStorageValue::String(text) => Value::Text(text),
        SqlStorageValue::Blob(bytes) => Value::Blob(bytes),
        SqlStorageValue::Float(_) => return Err(SqlFault("a float".into())),
    })
}

impl Sql for WorkerSql {
    fn run(&self, sql: &str, params: &[Value]) -> Result<Vec<Row>, SqlFault> {
        count(Operation::SqlStatements);
        let fault = |error: worker::Error| SqlFault(error.to_string());
        let params = params.iter().map(to_js).collect::<Result<Vec<_>, _>>()?;
        let cursor = self.0.exec(sql, params).map_err(fault)?;
        cursor
            .raw()
            .map(|row| {
                let row = row.map_err(fault)?;
                row.into_iter().map(from_js).collect::<Result<Vec<_>, _>>().map(Row)
            })
            .collect()
    }
}

/// What does not come in time is lost.
async fn in_time<T>(work: impl Future<Output = worker::Result<T>>) -> worker::Result<T> {
    let time = Delay::from(Duration::from_millis(ANSWER_MS_MAX));
    let lost = || Err(worker::Error::RustError(format!("no answer in {} s", ANSWER_MS_MAX / 1000)));
    within(work, time).await.unwrap_or_else(lost)
}

/// The bucket.
#[derive(Clone)]
pub struct R2(pub Bucket);

impl R2 {
    /// The bucket of this environment.
    ///
    /// # Errors
    /// [`worker::Error`] when the binding is missing.
    pub fn new(env: &Env) -> worker::Result<Self> {
        env.bucket(PACKS).map(Self)
    }

    async fn read(&self, key: &str, range: Option<Range>) -> Result<Option<Vec<u8>>, BlobFault> {
        count(Operation::R2Reads);
        let fault = |error: worker::Error| BlobFault(format!("{key}: {error}"));
        let mut request = self.0.get(key);
        if let Some(range) = range {
            request = request.range(range);
        }
        let read = async {
            match request.execute().await? {
                Some(object) => match object.body() {
                    Some(body) => body.bytes().await.map(Some),
                    None => Ok(None),
                },
                None => Ok(None),
            }
        };
        in_time(read).await.map_err(fault)
    }
}

impl Blobs for R2 {
    async fn get(&self, key: &str) -> Result<Option<Vec<u8>>, BlobFault> {
        self.read(key, None).await
    }

    async fn get_range(&self, key: &str, offset: u64, length: u64) -> Result<Option<Vec<u8>>, BlobFault> {
        self.read(key, Some(Range::OffsetWithLength { offset, length })).await
    }

    async fn put(&self, key: &str, bytes: Vec<u8>) -> Result<(), BlobFault> {
        count(Operation::R2Writes);
        let done = in_time(self.0.put(key, bytes).execute()).await;
        done.map(|_| ()).map_err(|error| BlobFault(format!("{key}: {error}")))
    }

    async fn head(&self, key: &str) -> Result<Option<u64>, BlobFault> {
        count(Operation::R2Reads);
        let found = in_time(self.0.head(key)).await.map_err(|error| BlobFault(format!("{key}: {error}")))?;
        Ok(found.map(|object| object.size()))
    }

    async fn delete(&self, keys: &[String]) -> Result<(), BlobFault> {
        if keys.is_empty() {
            return Ok(());
        }
        count(Operation::R2Deletes);
        let done = in_time(self.0.delete_multiple(keys.to_vec())).await;
        done.map_err(|error| BlobFault(error.to_string()))
    }
}

/// The index.
pub struct D1(pub D1Database);

impl D1 {
    /// The index of this environment.
    ///
    /// # Errors
    /// [`worker::Error`] when the binding is missing.
    pub fn new(env: &Env) -> worker::Result<Self> {
        env.d1(INDEX).map(Self)
    }
}

impl Index for D1 {
    #[allow(clippy::cast_precision_loss, reason = "numbers above 2^53 are refused before")]
    async fn run(&self, sql: &str, params: &[Value]) -> Result<Vec<Row>, IndexFault> {
        count(Operation::D1Calls);
        let fault = |error: worker::Error| IndexFault(error.to_string());
        let bad = |fault: SqlFault| IndexFault(fault.0);
        let params: Vec<JsValue> = params
            .iter()
            .map(|value| to_js(value).map(JsValue::from))
            .collect::<Result<_, _>>()
            .map_err(bad)?;
        let mut statement = self.0.prepare(sql);
        if !params.is_empty() {
            statement = statement.bind(&params).map_err(fault)?;
        }
        let rows = in_time(statement.raw_js_value()).await.map_err(fault)?;
        rows.into_iter()
            .map(|row| {
                let array: worker::js_sys::Array = row.dyn_into().map_err(|_| IndexFault("no row".into()))?;
                array
                    .iter()
                    .map(|value| from_js(SqlStorageValue::try_from(value).map_err(fault)?).map_err(bad))
                    .collect::<Result<Vec<_>, _>>()
                    .map(Row)
            })
            .collect()
    }
}

/// Calls to other objects by `fetch`.
#[derive(Clone)]
pub struct Stubs(pub Env);

impl Stubs {
    async fn send(&self, name: &str, method: &str, body: String) -> worker::Result<(u16, Vec<u8>)> {
        count(Operation::ObjectCalls);
        let stub = self.0.durable_object(binding_of(name))?.get_by_name(name)?;
        let headers = Headers::new();
        headers.set("content-type", "application/json")?;
        let mut init = RequestInit::new();
        init.with_method(Verb::Post).with_headers(headers).with_body(Some(JsValue::from_str(&body)));
        let request = Request::new_with_init(&format!("http://object/{method}"), &init)?;
        let mut response = stub.fetch_with_request(request).await?;
        Ok((response.status_code(), response.bytes().await?))
    }
}

impl Calls for Stubs {
    async fn call<M: Method>(&self, name: &str, request: &M) -> Result<M::Reply, Refusal> {
        let lost = |what: String| {
            crate::points::log(&format!("call {name} {}: {what}", M::NAME));
            if what.contains("overloaded") {
                Refusal::Overloaded { retry_after: 2 }
            } else {
                Refusal::Internal { during: format!("calling {}", M::NAME) }
            }
        };
        let body = serde_json::to_string(request).map_err(|error| lost(error.to_string()))?;
        let sent = in_time(self.send(name, M::NAME, body)).await;
        let (status, bytes) = sent.map_err(|error| lost(error.to_string()))?;
        if status == 200 {
            return serde_json::from_slice(&bytes).map_err(|error| lost(error.to_string()));
        }
        match serde_json::from_slice::<Problem>(&bytes) {
            Ok(problem) => Err(problem.reason),
            Err(_) => Err(lost(String::from_utf8_lossy(&bytes).chars().take(300).collect())),
        }
    }

    async fn enqueue(&self, queue: &str, messages: Vec<String>) -> Result<(), Refusal> {
        let lost = |error: worker::Error| {
            crate::points::log(&format!("queue {queue}: {error}"));
            Refusal::Internal { during: format!("putting into queue {queue}") }
        };
        let batch: Vec<_> = messages
            .into_iter()
            .map(|text| {
                worker::RawMessageBuilder::new(JsValue::from_str(&text))
                    .build_with_content_type(worker::QueueContentType::Text)
            })
            .collect();
        let queue = self.0.queue(queue).map_err(lost)?;
        in_time(queue.send_raw_batch(batch)).await.map_err(lost)
    }
}

/// Answers one request of an object: `POST /{method}` with JSON.
///
/// # Errors
/// [`worker::Error`] only when the answer itself cannot be made.
pub async fn answer(object: &dyn Object, mut request: Request) -> worker::Result<Response> {
    let now = crate::clock::now();
    let path = request.path();
    let body = request.bytes().await?;
    match object.handle(path.trim_start_matches('/'), &body, now).await {
        Ok(bytes) => {
            let response = Response::from_bytes(bytes)?;
            response.headers().set("content-type", "application/json")?;
            Ok(response)
        }
        Err(refusal) => problem(refusal),
    }
}

/// A refusal as a response.
///
/// # Errors
/// [`worker::Error`] only when the response cannot be made.
pub fn problem(refusal: Refusal) -> worker::Result<Response> {
    let problem = Problem::from(refusal);
    let response = Response::from_bytes(serde_json::to_vec(&problem).unwrap_or_default())?;
    response.headers().set("content-type", CONTENT_TYPE)?;
    if let Some(seconds) = problem.retry_after {
        response.headers().set("retry-after", &seconds.to_string())?;
    }
    Ok(response.with_status(problem.status))
}

/// Reads the variable that selects points; answers with the platform's secret.
pub fn settings(env: &Env) -> String {
    let points = env.var(crate::points::VARIABLE).map(|text| text.to_string()).ok();
    crate::points::select(points.as_deref());
    let secret = env.secret(SECRET).or_else(|_| env.var(SECRET));
    secret.map(|text| text.to_string()).unwrap_or_default()
}
