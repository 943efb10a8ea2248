//! Anthropic's Messages: `POST {url}/v1/messages`, version 2023-06-01.

use serde_json::{Value, json};

use super::{HeaderValue, Request, Said, count, role};
use crate::prompt::Prompt;
use crate::settings::Settings;

pub fn request(settings: &Settings, prompt: &Prompt) -> Request {
    let turns = prompt.turns.iter().map(|(who, text)| json!({ "role": role(*who), "content": text }));
    // No temperature: newer models refuse one.
    let body = json!({
        "model": settings.model,
        "max_tokens": settings.tokens_out_max,
        "system": prompt.system,
        "messages": turns.collect::<Vec<_>>(),
    });
    let base = settings.url.strip_suffix("/v1").unwrap_or(&settings.url);
    let path = "/v1/messages";
    let url = if base.ends_with(path) { base.to_owned() } else { format!("{base}{path}") };
    let headers = vec![
        ("content-type", HeaderValue::Text("application/json")),
        ("anthropic-version", HeaderValue::Text("2023-06-01")),
        ("x-api-key", HeaderValue::Key),
    ];
    Request { url, headers, body: body.to_string() }
}

pub fn read(body: &Value) -> Option<Said> {
    let parts = body.get("content")?.as_array()?;
    let is_text = |part: &&Value| part.get("type").and_then(Value::as_str) == Some("text");
    let text = parts.iter().filter(is_text).filter_map(|part| part.get("text")?.as_str()).collect();
    let usage = body.get("usage");
    let cached: u64 = ["cache_creation_input_tokens", "cache_read_input_tokens"]
        .iter()
        .filter_map(|name| count(usage, &[name]))
        .sum();
    Some(Said {
        text,
        model: body.get("model").and_then(Value::as_str).map(str::to_owned),
        tokens_in: count(usage, &["input_tokens"]).map(|tokens| tokens.saturating_add(cached)),
        tokens_out: count(usage, &["output_tokens"]),
        finish: body.get("stop_reason").and_then(Value::as_str).unwrap_or("end_turn").to_owned(),
    })
}
