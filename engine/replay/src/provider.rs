//! How providers are asked, and what their replies mean: pure, the host makes the call.

mod anthropic;
mod openai;
mod retry;
mod workers_ai;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::answer::BadAnswer;
use crate::limits::REPLY_BYTES_MAX;
use crate::prompt::{Prompt, Role};
use crate::settings::{Kind, Settings};
use crate::text::quote;

pub use retry::{AGE_MS_MAX, CALLS_MAX, Next, next};
pub use workers_ai::{Input, Message};

/// A header's value; the host puts the key in, so that no value here holds it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HeaderValue {
    /// This text.
    Text(&'static str),
    /// The key.
    Key,
    /// `Bearer` and the key.
    Bearer,
}

/// A request by HTTP POST.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    /// The address.
    pub url: String,
    /// The headers; one that needs the key is left out where there is none.
    pub headers: Vec<(&'static str, HeaderValue)>,
    /// The body, JSON.
    pub body: String,
}

/// A reply by HTTP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reply<'a> {
    /// The status.
    pub status: u16,
    /// The header `Retry-After`, if any.
    pub retry_after: Option<&'a str>,
    /// The body, read to at most [`REPLY_BYTES_MAX`] and one byte.
    pub body: &'a [u8],
}

/// A model's answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answer {
    /// Its text.
    pub text: String,
    /// The model, as the provider names it.
    pub model: String,
    /// Tokens of the prompt; estimated where the provider does not say.
    pub tokens_in: u64,
    /// Tokens of the answer; estimated where the provider does not say.
    pub tokens_out: u64,
    /// Why the model stopped, in the provider's word.
    pub finish: String,
}

/// Whether a call is worth repeating.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Retry {
    /// After so many milliseconds at least; 0 where the provider names no time.
    After(u64),
    /// It would end the same way.
    Never,
}

/// Why there is no answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProviderFault {
    /// Whether to ask again.
    pub retry: Retry,
    /// A sentence; words of the provider in it are cut and free of control characters.
    pub why: String,
    /// Tokens that were paid for all the same.
    pub tokens_in: u64,
    /// Tokens that were paid for all the same.
    pub tokens_out: u64,
}

impl ProviderFault {
    /// A fault that cost nothing.
    #[must_use]
    pub fn new(retry: Retry, why: impl Into<String>) -> Self {
        Self { retry, why: why.into(), tokens_in: 0, tokens_out: 0 }
    }

    /// The call took longer than it may.
    #[must_use]
    pub fn timed_out(settings: &Settings) -> Self {
        let why = format!("the provider did not answer within {} s", settings.timeout_ms / 1000);
        Self::new(Retry::After(0), why)
    }

    /// The provider cannot be reached; `error` is the host's word for it.
    #[must_use]
    pub fn unreachable(error: &str) -> Self {
        Self::new(Retry::After(0), format!("the provider cannot be reached: {}", quote(error)))
    }
}

/// The request that asks the model; `None` for the binding, which takes an [`Input`].
#[must_use]
pub fn request(settings: &Settings, prompt: &Prompt) -> Option<Request> {
    match settings.kind {
        Kind::OpenAi => Some(openai::request(settings, prompt)),
        Kind::Anthropic => Some(anthropic::request(settings, prompt)),
        Kind::WorkersAi => None,
    }
}

/// What the binding's `run` takes beside the model's name.
#[must_use]
pub fn input(settings: &Settings, prompt: &Prompt) -> Input {
    workers_ai::input(settings, prompt)
}

/// Reads a reply.
///
/// # Errors
/// [`ProviderFault`]: a status that is no success, a body that is no answer, an answer that was cut.
pub fn answer(settings: &Settings, prompt: &Prompt, reply: &Reply<'_>) -> Result<Answer, ProviderFault> {
    if !(200..300).contains(&reply.status) {
        return Err(refused(reply));
    }
    if reply.body.len() > REPLY_BYTES_MAX {
        let why = format!("the provider replied with more than {REPLY_BYTES_MAX} bytes");
        return Err(ProviderFault::new(Retry::Never, why));
    }
    let body: Value = serde_json::from_slice(reply.body).map_err(|_| {
        let begins = quote(&String::from_utf8_lossy(reply.body.get(..400).unwrap_or(reply.body)));
        ProviderFault::new(Retry::After(0), format!("the provider's reply is no JSON, beginning {begins:?}"))
    })?;
    said(settings, prompt, &body)
}

/// Reads what the binding gave back.
///
/// # Errors
/// [`ProviderFault`].
pub fn said(settings: &Settings, prompt: &Prompt, body: &Value) -> Result<Answer, ProviderFault> {
    let said = match settings.kind {
        Kind::OpenAi => openai::read(body),
        Kind::Anthropic => anthropic::read(body),
        Kind::WorkersAi => workers_ai::read(body),
    };
    let Some(said) = said else {
        let why = match message(body) {
            Some(message) => format!("the provider replied {message:?} instead of an answer"),
            None => "the provider's reply has no answer in it".to_owned(),
        };
        return Err(ProviderFault::new(Retry::After(0), why));
    };
    let answer = Answer {
        tokens_in: said.tokens_in.unwrap_or(prompt.tokens_estimate),
        tokens_out: said.tokens_out.unwrap_or_else(|| crate::prompt::tokens(said.text.len())),
        model: said.model.map_or_else(|| settings.model.clone(), |model| quote(&model)),
        finish: quote(&said.finish),
        text: said.text,
    };
    let fault = |retry, why: String| ProviderFault {
        retry,
        why,
        tokens_in: answer.tokens_in,
        tokens_out: answer.tokens_out,
    };
    match answer.finish.as_str() {
        "length" | "max_tokens" | "model_context_window_exceeded" => Err(fault(
            Retry::Never,
            format!(
                "the model's answer was cut after {} tokens (SWITCHYARD_MODEL_TOKENS_OUT is {})",
                answer.tokens_out, settings.tokens_out_max
            ),
        )),
        "content_filter" | "refusal" | "declined" => {
            let begins = quote(&answer.text);
            Err(fault(Retry::Never, format!("the model declined: {begins:?}")))
        }
        _ => Ok(answer),
    }
}

/// What a reply says, before it is judged.
struct Said {
    text: String,
    model: Option<String>,
    tokens_in: Option<u64>,
    tokens_out: Option<u64>,
    finish: String,
}

fn refused(reply: &Reply<'_>) -> ProviderFault {
    let body = reply.body.get(..64 * 1024).unwrap_or(reply.body);
    let said = serde_json::from_slice::<Value>(body).ok().as_ref().and_then(message);
    let said = said.map(|message| format!(": {message:?}")).unwrap_or_default();
    let status = reply.status;
    let after = retry_after(reply.retry_after);
    let (retry, what) = match status {
        429 => (Retry::After(after), "the provider limits the rate"),
        408 | 409 | 425 | 500..=599 => (Retry::After(after), "the provider is in trouble"),
        401 | 403 => (Retry::Never, "the provider refuses the key (SWITCHYARD_MODEL_KEY)"),
        402 => (Retry::Never, "the provider wants to be paid"),
        404 => (Retry::Never, "the provider does not know this model or address"),
        413 => (Retry::Never, "the prompt is too large for the provider (SWITCHYARD_MODEL_TOKENS_IN)"),
        300..=399 => {
            (Retry::Never, "the provider sends elsewhere (set SWITCHYARD_MODEL_URL to that address)")
        }
        _ => (Retry::Never, "the provider refuses the request"),
    };
    ProviderFault::new(retry, format!("{what} (status {status}{said})"))
}

/// A provider's own words in an error's body.
fn message(body: &Value) -> Option<String> {
    let error = body.get("error").or_else(|| body.get("errors")?.get(0)).unwrap_or(body);
    let text = error.get("message").unwrap_or(error).as_str()?;
    Some(quote(text))
}

/// `Retry-After` in milliseconds; a date counts as no time, for nothing here knows the time.
fn retry_after(header: Option<&str>) -> u64 {
    let seconds: Option<f64> = header.and_then(|text| text.trim().parse().ok());
    let seconds = seconds.filter(|seconds| seconds.is_finite() && *seconds >= 0.0).unwrap_or(0.0);
    // An hour is more than any call waits.
    (seconds.min(3600.0) * 1000.0) as u64
}

fn role(role: Role) -> &'static str {
    match role {
        Role::User => "user",
        Role::Assistant => "assistant",
    }
}

/// A count in a reply.
fn count(usage: Option<&Value>, names: &[&str]) -> Option<u64> {
    let usage = usage?;
    names.iter().find_map(|name| usage.get(name)?.as_u64())
}

/// Does a fault of the answer call for another question, in this round (from 0)?
#[must_use]
pub fn asks_again(bad: &BadAnswer, round: u32) -> bool {
    !bad.is_final() && round < ROUNDS_MAX
}

/// Further questions after a bad answer.
pub const ROUNDS_MAX: u32 = 2;

#[cfg(test)]
mod tests;
