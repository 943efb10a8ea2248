//! What workerd gives the edge.

use worker::{Bucket, Env, MultipartUpload, UploadedPart};
use yard_common::Refusal;
use yard_objects::Blobs as _;
use yard_objects::meter::{Operation, count};
use yard_objects::worker::{D1, R2, Stubs};

use crate::api::Platform;
use crate::git::sink::{PART_BYTES, Sink};

/// The bindings.
pub struct Workerd {
    calls: Stubs,
    blobs: R2,
    index: D1,
}

impl Workerd {
    pub fn new(env: &Env) -> worker::Result<Self> {
        Ok(Self { calls: Stubs(env.clone()), blobs: R2::new(env)?, index: D1::new(env)? })
    }
}

impl Platform for Workerd {
    type Calls = Stubs;
    type Blobs = R2;
    type Index = D1;
    type Sink = R2Sink;

    fn calls(&self) -> &Stubs {
        &self.calls
    }

    fn blobs(&self) -> &R2 {
        &self.blobs
    }

    fn index(&self) -> &D1 {
        &self.index
    }

    fn sink(&self, key: &str) -> R2Sink {
        R2Sink {
            bucket: self.blobs.0.clone(),
            key: key.to_owned(),
            held: Vec::new(),
            written: 0,
            upload: None,
        }
    }

    fn random(&self) -> u64 {
        let mut bytes = [0; 8];
        // Only names come from here; a weak one costs a refused push.
        let _ = getrandom::fill(&mut bytes);
        u64::from_le_bytes(bytes)
    }
}

/// A pack on its way to R2: one `put` where it is small, else equal parts.
pub struct R2Sink {
    bucket: Bucket,
    key: String,
    held: Vec<u8>,
    written: u64,
    upload: Option<(MultipartUpload, Vec<UploadedPart>)>,
}

fn fault(during: &str, error: &worker::Error) -> Refusal {
    worker::console_error!("bucket: {during}: {error}");
    Refusal::Internal { during: during.to_owned() }
}

impl R2Sink {
    async fn part(&mut self, bytes: Vec<u8>) -> Result<(), Refusal> {
        let (upload, parts) = match &mut self.upload {
            Some(begun) => begun,
            none => {
                count(Operation::R2Writes);
                let begun = self.bucket.create_multipart_upload(&self.key).execute().await;
                none.insert((begun.map_err(|error| fault("storing a pack", &error))?, Vec::new()))
            }
        };
        let number = u16::try_from(parts.len() + 1)
            .map_err(|_| Refusal::Internal { during: "counting parts".into() })?;
        count(Operation::R2Writes);
        let part = upload
            .upload_part(number, bytes)
            .await
            .map_err(|error| fault("storing a part of a pack", &error))?;
        parts.push(part);
        Ok(())
    }
}

impl Sink for R2Sink {
    async fn write(&mut self, chunk: &[u8]) -> Result<(), Refusal> {
        self.held.extend_from_slice(chunk);
        self.written += chunk.len() as u64;
        while self.held.len() > PART_BYTES {
            let rest = self.held.split_off(PART_BYTES);
            let part = std::mem::replace(&mut self.held, rest);
            self.part(part).await?;
        }
        Ok(())
    }

    async fn finish(mut self) -> Result<u64, Refusal> {
        let last = std::mem::take(&mut self.held);
        if self.upload.is_none() {
            count(Operation::R2Writes);
            let put = self.bucket.put(&self.key, last).execute().await;
            put.map_err(|error| fault("storing a pack", &error))?;
            return Ok(self.written);
        }
        self.part(last).await?;
        let Some((upload, parts)) = self.upload else { return Ok(self.written) };
        count(Operation::R2Writes);
        if let Err(error) = upload.complete(parts).await {
            // The reply may be lost and the object be there.
            let there = R2(self.bucket.clone()).head(&self.key).await.ok().flatten();
            if there != Some(self.written) {
                return Err(fault("completing a pack", &error));
            }
        }
        Ok(self.written)
    }

    async fn abort(self) {
        let gone = match self.upload {
            Some((upload, _)) => upload.abort().await,
            None => Ok(()),
        };
        if gone.is_err() {
            worker::console_warn!(
                "bucket: an upload of {} was left open: the bucket ends it by itself",
                self.key
            );
        }
    }
}
