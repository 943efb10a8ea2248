//! What the hosts and the edge stand on here: calls, bucket and index that are slow, fail and lose answers.

use std::rc::Rc;

use yard_common::Refusal;
use yard_objects::blobs::BlobFault;
use yard_objects::index::IndexFault;
use yard_objects::native::{MemoryBlobs, MemoryIndex, NativeSql};
use yard_objects::sql::{Row, Value};
use yard_objects::{Blobs, Calls, Index};
use yard_wire::Method;

use crate::objects::World;

/// Everything, as the hosts see it.
pub struct Simulated;

impl yard_objects::Platform for Simulated {
    type Sql = Rc<NativeSql>;
    type Blobs = Bucket;
    type Index = Database;
    type Calls = Network;
}

/// Calls to objects, over a network.
#[derive(Clone)]
pub struct Network(pub Rc<World>);

fn lost(what: &str) -> Refusal {
    Refusal::Internal { during: format!("reaching {what}") }
}

impl Calls for Network {
    async fn call<M: Method>(&self, name: &str, request: &M) -> Result<M::Reply, Refusal> {
        let body = serde_json::to_vec(request).map_err(|_| lost(name))?;
        let answer = World::call(&self.0, name, M::NAME, body).await?;
        serde_json::from_slice(&answer).map_err(|_| lost(name))
    }

    async fn enqueue(&self, queue: &str, messages: Vec<String>) -> Result<(), Refusal> {
        if self.0.arrives().await {
            World::enqueue(&self.0, queue, messages);
            if self.0.arrives().await {
                return Ok(());
            }
        }
        Err(lost(queue))
    }
}

/// The bucket. Whatever is written is shown to the all-seeing eye.
#[derive(Clone)]
pub struct Bucket(pub Rc<World>);

impl Bucket {
    fn memory(&self) -> &MemoryBlobs {
        &self.0.blobs
    }

    async fn arrives(&self) -> Result<(), BlobFault> {
        if self.0.arrives().await { Ok(()) } else { Err(BlobFault("lost on the way".into())) }
    }
}

impl Blobs for Bucket {
    async fn get(&self, key: &str) -> Result<Option<Vec<u8>>, BlobFault> {
        self.arrives().await?;
        self.memory().get(key).await
    }

    async fn get_range(&self, key: &str, offset: u64, length: u64) -> Result<Option<Vec<u8>>, BlobFault> {
        self.arrives().await?;
        self.memory().get_range(key, offset, length).await
    }

    async fn put(&self, key: &str, bytes: Vec<u8>) -> Result<(), BlobFault> {
        self.arrives().await?;
        if key.ends_with(".pack") {
            self.0.god.borrow_mut().take_pack(&bytes);
        }
        self.memory().put(key, bytes).await?;
        self.arrives().await
    }

    async fn head(&self, key: &str) -> Result<Option<u64>, BlobFault> {
        self.arrives().await?;
        self.memory().head(key).await
    }

    async fn delete(&self, keys: &[String]) -> Result<(), BlobFault> {
        self.arrives().await?;
        self.memory().delete(keys).await?;
        self.arrives().await
    }
}

/// The index.
#[derive(Clone)]
pub struct Database(pub Rc<World>);

impl Database {
    fn memory(&self) -> &MemoryIndex {
        &self.0.index
    }
}

impl Index for Database {
    async fn run(&self, sql: &str, params: &[Value]) -> Result<Vec<Row>, IndexFault> {
        let fault = || IndexFault("lost on the way".into());
        if !self.0.arrives().await {
            return Err(fault());
        }
        let rows = self.memory().run(sql, params).await?;
        if self.0.arrives().await { Ok(rows) } else { Err(fault()) }
    }
}

/// What the edge stands on.
pub struct Edge {
    network: Network,
    bucket: Bucket,
    database: Database,
}

impl Edge {
    /// Over a world.
    #[must_use]
    pub fn new(world: &Rc<World>) -> Self {
        let world = || Rc::clone(world);
        Self { network: Network(world()), bucket: Bucket(world()), database: Database(world()) }
    }
}

/// A value of the bucket that is being written.
pub struct Written {
    bucket: Bucket,
    key: String,
    bytes: Vec<u8>,
}

impl switchyard::git::sink::Sink for Written {
    async fn write(&mut self, chunk: &[u8]) -> Result<(), Refusal> {
        self.bytes.extend_from_slice(chunk);
        Ok(())
    }

    async fn finish(self) -> Result<u64, Refusal> {
        let length = self.bytes.len() as u64;
        self.bucket.put(&self.key, self.bytes).await?;
        Ok(length)
    }

    async fn abort(self) {}
}

impl switchyard::api::Platform for Edge {
    type Calls = Network;
    type Blobs = Bucket;
    type Index = Database;
    type Sink = Written;

    fn calls(&self) -> &Network {
        &self.network
    }

    fn blobs(&self) -> &Bucket {
        &self.bucket
    }

    fn index(&self) -> &Database {
        &self.database
    }

    fn sink(&self, key: &str) -> Written {
        Written { bucket: self.bucket.clone(), key: key.to_owned(), bytes: Vec::new() }
    }

    fn random(&self) -> u64 {
        self.network.0.clock.below(u64::MAX)
    }
}
