//! One request: read, admitted, answered.

use std::cell::RefCell;
use std::rc::Rc;

use futures_util::{StreamExt as _, stream};
use worker::{Context, Env, Request, Response, Result};
use yard_common::limits::API_REQUEST_BYTES_MAX;
use yard_objects::clock;
use yard_objects::meter::{Class, Operation, count, timed};
use yard_objects::worker::platform;
use yard_transfer::advertise::Service;
use yard_wire::names;

use super::platform::Workerd;
use super::stream::{Incoming, events};
use crate::api::{self, Admitted, Ask, Call, Event};
use crate::git;
use crate::respond::{self, Answer};
use crate::router::{Endpoint, Verb};

/// The headers that the edge reads.
const HEADERS: [&str; 10] = [
    "authorization",
    "idempotency-key",
    "content-type",
    "content-encoding",
    "content-length",
    "git-protocol",
    "accept",
    "upgrade",
    "last-event-id",
    "sec-websocket-protocol",
];

pub async fn answer(mut request: Request, env: Env, context: &Context) -> Result<Response> {
    count(Operation::Requests);
    // A body that is first touched after an await can fail: take hold of it now.
    let body = request.stream().ok();
    let url = request.url()?;
    let mut ask = Ask {
        verb: request.inner().method(),
        path: decoded(url.path()),
        query: url.query_pairs().map(|(name, value)| (name.into_owned(), value.into_owned())).collect(),
        ..Ask::default()
    };
    for name in HEADERS {
        if let Some(value) = request.headers().get(name)? {
            ask.headers.insert(name.to_owned(), value);
        }
    }
    let secret = platform::settings(&env).into_bytes();
    let now = clock::now();
    let (route, parts, bearer) = match api::admit(&secret, now, &ask) {
        Admitted::Answer(answer) => {
            whole(body).await?;
            return answer.try_into();
        }
        Admitted::Files => return page(env.assets("ASSETS")?.fetch_request(request).await?),
        Admitted::Call(Call { route, parts, bearer, .. }) => (route, parts, bearer),
    };
    let origin = url.origin().ascii_serialization();
    let event = Rc::new(Event {
        platform: Workerd::new(&env)?,
        secret,
        now,
        origin,
        hints: RefCell::new(Vec::new()),
    });
    if !route.endpoint.is_git() && route.verb == Verb::Post {
        ask.body = whole(body).await?;
        let call = Call { ask: &ask, route, parts, bearer };
        return finish(api::answer(&*event, &call).await, &event, context);
    }
    let call = Call { ask: &ask, route, parts, bearer };
    if route.endpoint == Endpoint::Events
        && let Err(refusal) = api::not_revoked(&*event, &call).await
    {
        return respond::refused(call.named(refusal)).try_into();
    }
    match route.endpoint {
        Endpoint::Events if wants_socket(&ask) => socket(request, &env, &call).await,
        Endpoint::Events
            if ask.header("accept").is_some_and(|accept| accept.contains("text/event-stream")) =>
        {
            events(&env, &call)
        }
        Endpoint::InfoRefs => finish(git::info_refs(&*event, &call).await, &event, context),
        Endpoint::UploadPack => git_upload(&event, &call, body).await,
        Endpoint::ReceivePack => {
            let body = Incoming::new(body, ask.header("content-encoding"));
            finish(git::receive(&event, &call, body).await, &event, context)
        }
        _ => finish(api::answer(&*event, &call).await, &event, context),
    }
}

/// A file of the board, with the headers that keep what agents wrote from acting in a browser.
fn page(file: Response) -> Result<Response> {
    let headers = file.headers().clone();
    for (name, value) in respond::PAGE_HEADERS {
        headers.set(name, value)?;
    }
    Ok(file.with_headers(headers))
}

/// Percent-decodes a path; what is no UTF-8 leads nowhere.
fn decoded(path: &str) -> String {
    let mut bytes = Vec::with_capacity(path.len());
    let mut rest = path.bytes();
    while let Some(byte) = rest.next() {
        let mut ahead = rest.clone();
        let pair =
            [ahead.next(), ahead.next()].map(|digit| digit.and_then(|digit| char::from(digit).to_digit(16)));
        match (byte, pair) {
            (b'%', [Some(high), Some(low)]) => {
                bytes.push(u8::try_from(high * 16 + low).unwrap_or(b'?'));
                rest = ahead;
            }
            _ => bytes.push(byte),
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The body, kept up to the first chunk over the limit: the rest is taken and forgotten, for a client that
/// still sends when the answer ends sees a cut connection in place of it.
async fn whole(body: Option<worker::ByteStream>) -> Result<Vec<u8>> {
    let (mut bytes, mut taken) = (Vec::new(), 0);
    let Some(mut body) = body else { return Ok(bytes) };
    while let Some(chunk) = body.next().await {
        let chunk = chunk?;
        taken += chunk.len();
        if bytes.len() <= API_REQUEST_BYTES_MAX {
            bytes.extend_from_slice(&chunk);
        }
        if taken > git::DRAIN_BYTES_MAX {
            break;
        }
    }
    Ok(bytes)
}

fn finish(answer: Answer, event: &Rc<Event<Workerd>>, context: &Context) -> Result<Response> {
    if !event.hints.borrow().is_empty() {
        let event = Rc::clone(event);
        context.wait_until(timed(Class::Edge, clock::now, async move { event.send_hints().await }));
    }
    answer.try_into()
}

async fn git_upload(
    event: &Rc<Event<Workerd>>,
    call: &Call<'_>,
    body: Option<worker::ByteStream>,
) -> Result<Response> {
    let body = Incoming::new(body, call.ask.header("content-encoding"));
    match git::upload(event, call, body).await {
        Ok(git::Upload::Whole(answer)) => answer.try_into(),
        Ok(git::Upload::Stream(emitter)) => {
            let pieces = stream::unfold(emitter, |mut emitter| async move {
                let piece = emitter.next().await?;
                Some((Ok::<_, worker::Error>(piece), emitter))
            });
            let response = Response::from_stream(pieces)?;
            response.headers().set("content-type", Service::UploadPack.result_type())?;
            response.headers().set("cache-control", "no-cache")?;
            Ok(response)
        }
        Err(refusal) => respond::refused_git(&refusal).try_into(),
    }
}

fn wants_socket(ask: &Ask) -> bool {
    ask.header("upgrade").is_some_and(|upgrade| upgrade.eq_ignore_ascii_case("websocket"))
}

/// The board keeps the socket; the edge passes the request on, its token checked.
async fn socket(request: Request, env: &Env, call: &Call<'_>) -> Result<Response> {
    let repo = match call.repo() {
        Ok(repo) => repo,
        Err(refusal) => return respond::refused(refusal).try_into(),
    };
    let board = env.durable_object("BOARD")?.get_by_name(&names::board(&repo))?;
    board.fetch_with_request(request).await
}
