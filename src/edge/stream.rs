//! Bodies in and out.

use std::time::Duration;

use futures_util::{StreamExt as _, stream};
use worker::{ByteStream, Delay, Env, Response};
use yard_common::Refusal;
use yard_common::limits::PUSH_PACK_BYTES_MAX;
use yard_objects::Calls as _;
use yard_objects::worker::Stubs;
use yard_wire::{board, names};

use crate::api::{Call, NUMBER_MAX};
use crate::git::Body;
use crate::git::inflate::Gunzip;
use crate::respond;

/// A request's body, inflated where the client has compressed it.
pub struct Incoming {
    stream: Option<ByteStream>,
    gunzip: Option<Gunzip>,
}

impl Incoming {
    pub fn new(stream: Option<ByteStream>, encoding: Option<&str>) -> Self {
        let gzipped = encoding.is_some_and(|encoding| encoding.eq_ignore_ascii_case("gzip"));
        Self { stream, gunzip: gzipped.then(|| Gunzip::new(PUSH_PACK_BYTES_MAX)) }
    }
}

impl Body for Incoming {
    async fn next(&mut self) -> Result<Option<Vec<u8>>, Refusal> {
        let Some(stream) = &mut self.stream else { return Ok(None) };
        match (stream.next().await, &mut self.gunzip) {
            (Some(Ok(chunk)), None) => Ok(Some(chunk)),
            (Some(Ok(chunk)), Some(gunzip)) => gunzip.push(&chunk).map(Some),
            (Some(Err(_)), _) => Err(Refusal::Invalid {
                why: "the connection was cut while the body arrived: send it again".into(),
            }),
            (None, gunzip) => {
                self.stream = None;
                gunzip.as_mut().map(Gunzip::end).transpose()
            }
        }
    }
}

/// How often the board is asked for events of an SSE stream.
const POLL: Duration = Duration::from_millis(1000);
/// Polls of one SSE stream: ten minutes; the client comes back with its cursor.
const POLLS_MAX: u32 = 600;

/// Events as server-sent events, from a cursor on.
pub fn events(env: &Env, call: &Call<'_>) -> worker::Result<Response> {
    let last = call.ask.header("last-event-id").and_then(|id| id.parse().ok());
    let last = last.map(|id: u64| id.min(NUMBER_MAX));
    let asked = call.ask.number("after").and_then(|after| Ok((call.repo()?, last.or(after).unwrap_or(0))));
    let (repo, after) = match asked {
        Ok(asked) => asked,
        Err(refusal) => return respond::refused(refusal).try_into(),
    };
    let (stubs, name) = (Stubs(env.clone()), names::board(&repo));
    let pieces = stream::unfold((stubs, name, after, 0u32), |(stubs, name, after, polls)| async move {
        if polls >= POLLS_MAX {
            return None;
        }
        if polls > 0 {
            Delay::from(POLL).await;
        }
        let reply = stubs.call(&name, &board::Events { after, last: None }).await.ok()?;
        let mut text = String::from(if polls == 0 { "retry: 1000\n\n" } else { ":\n\n" });
        for (cursor, event) in &reply.events {
            let data = serde_json::to_string(event).unwrap_or_default();
            text.push_str(&format!("id: {cursor}\nevent: {}\ndata: {data}\n\n", event.kind));
        }
        let piece: worker::Result<Vec<u8>> = Ok(text.into_bytes());
        Some((piece, (stubs, name, reply.next.max(after), polls + 1)))
    });
    let response = Response::from_stream(pieces)?;
    response.headers().set("content-type", "text/event-stream")?;
    response.headers().set("cache-control", "no-cache")?;
    Ok(response)
}
