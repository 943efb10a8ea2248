//! The consumer of the queue `replay` on workerd: six pointers at once, each acknowledged by itself.

use std::cell::RefCell;
use std::time::Duration;

use futures_util::future::{Either, join_all, select};
use futures_util::{StreamExt as _, pin_mut};
use worker::{
    AbortController, Delay, Env, Fetch, Headers, Message, MessageBatch, MessageExt as _, Method,
    QueueRetryOptionsBuilder, RequestInit, RequestRedirect, Response,
};
use yard_common::Millis;
use yard_objects::worker::platform;
use yard_replay::limits::REPLY_BYTES_MAX;
use yard_replay::provider::{HeaderValue, Input, Request};
use yard_replay::settings::Settings;
use yard_wire::lane::ReplayPointer;

use super::platform::Workerd;
use crate::api::Event;
use crate::hand::Room;
use crate::replay::{self, Batch, Configured, Delivery, Failure, Models, Raw};

/// The queue's name in wrangler.toml.
pub const QUEUE: &str = "replay";
/// The provider's key.
const KEY: &str = "SWITCHYARD_MODEL_KEY";
/// The optional binding of Workers AI.
const AI: &str = "AI";

/// A variable or a secret.
fn setting(env: &Env, name: &str) -> Option<String> {
    let secret = env.secret(name).map(|text| text.to_string());
    secret.or_else(|_| env.var(name).map(|text| text.to_string())).ok()
}

/// Takes a batch; a message that is no pointer is dropped, said so in the log.
pub async fn take(batch: MessageBatch<serde_json::Value>, env: Env) -> worker::Result<()> {
    let event = Event {
        platform: Workerd::new(&env)?,
        secret: platform::settings(&env).into_bytes(),
        now: yard_objects::clock::now(),
        origin: String::new(),
        hints: RefCell::default(),
    };
    let configured: Configured = Settings::read(|name| setting(&env, name));
    let models = Provider { key: setting(&env, KEY).filter(|key| !key.is_empty()), env };
    let messages = batch.messages()?;
    let batch = Batch { event: &event, models: &models, configured: &configured, room: Room::default() };
    join_all(messages.iter().map(|message| one(&batch, message))).await;
    event.send_hints().await;
    Ok(())
}

async fn one(batch: &Batch<'_, Workerd, Provider>, message: &Message<serde_json::Value>) {
    // The lane sends text, for what it sends as an object comes as a Map.
    let pointer = match message.body() {
        serde_json::Value::String(text) => serde_json::from_str::<ReplayPointer>(text),
        other => serde_json::from_value(other.clone()),
    };
    let Ok(pointer) = pointer else {
        worker::console_warn!("queue {QUEUE}: message {} is no pointer and is dropped", message.id());
        return message.ack();
    };
    let age = batch.event.now.since(Millis(message.timestamp().as_millis()));
    match replay::one(batch, &pointer, age).await {
        Delivery::Ack => message.ack(),
        Delivery::Again(seconds) => {
            let options = QueueRetryOptionsBuilder::new().with_delay_seconds(seconds).build();
            message.retry_with_options(&options);
        }
    }
}

/// The configured provider.
struct Provider {
    env: Env,
    key: Option<String>,
}

impl Provider {
    fn headers(&self, request: &Request) -> worker::Result<Headers> {
        let headers = Headers::new();
        for (name, value) in &request.headers {
            match (value, &self.key) {
                (HeaderValue::Text(text), _) => headers.set(name, text)?,
                (HeaderValue::Key, Some(key)) => headers.set(name, key)?,
                (HeaderValue::Bearer, Some(key)) => headers.set(name, &format!("Bearer {key}"))?,
                (HeaderValue::Key | HeaderValue::Bearer, None) => {}
            }
        }
        Ok(headers)
    }

    async fn send(&self, request: &Request, abort: &AbortController) -> worker::Result<Raw> {
        let mut init = RequestInit::new();
        init.with_method(Method::Post)
            .with_headers(self.headers(request)?)
            .with_body(Some(request.body.as_str().into()))
            // The key goes to the address that the operator has set, and nowhere else.
            .with_redirect(RequestRedirect::Manual);
        let request = worker::Request::new_with_init(&request.url, &init)?;
        let mut response = Fetch::Request(request).send_with_signal(&abort.signal()).await?;
        let retry_after = response.headers().get("retry-after")?;
        let body = body(&mut response).await?;
        Ok(Raw { status: response.status_code(), retry_after, body })
    }
}

/// The body, read no further than one byte over the limit.
async fn body(response: &mut Response) -> worker::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut stream = response.stream()?;
    while let Some(chunk) = stream.next().await {
        bytes.extend_from_slice(&chunk?);
        if bytes.len() > REPLY_BYTES_MAX {
            bytes.truncate(REPLY_BYTES_MAX + 1);
            break;
        }
    }
    Ok(bytes)
}

/// The outcome, or [`Failure::TimedOut`] when it does not come in time.
async fn within<T>(work: impl Future<Output = worker::Result<T>>, ms: u64) -> Result<T, Failure> {
    let time = Delay::from(Duration::from_millis(ms));
    pin_mut!(work, time);
    match select(work, time).await {
        Either::Left((done, _)) => done.map_err(|error| Failure::Unreachable(error.to_string())),
        Either::Right(_) => Err(Failure::TimedOut),
    }
}

impl Models for Provider {
    async fn post(&self, request: &Request, timeout_ms: u64) -> Result<Raw, Failure> {
        let abort = AbortController::default();
        let answered = within(self.send(request, &abort), timeout_ms).await;
        if matches!(answered, Err(Failure::TimedOut)) {
            abort.abort();
        }
        answered
    }

    async fn run(&self, model: &str, input: &Input, timeout_ms: u64) -> Result<serde_json::Value, Failure> {
        let ai = self.env.ai(AI).map_err(|_| {
            Failure::Unreachable("the binding AI is not in wrangler.toml ([ai] binding = \"AI\")".into())
        })?;
        within(ai.run(model, input), timeout_ms).await
    }

    async fn pause(&self, ms: u64) {
        Delay::from(Duration::from_millis(ms)).await;
    }
}
