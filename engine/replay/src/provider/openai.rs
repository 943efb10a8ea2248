//! Chat completions: `POST {url}/chat/completions`, as OpenAI documents them and others speak them.

use serde_json::{Value, json};

use super::{HeaderValue, Request, Said, count, role};
use crate::prompt::Prompt;
use crate::settings::Settings;

pub fn request(settings: &Settings, prompt: &Prompt) -> Request {
    let turns = prompt.turns.iter().map(|(who, text)| json!({ "role": role(*who), "content": text }));
    let system = json!({ "role": "system", "content": prompt.system });
    let messages: Vec<Value> = std::iter::once(system).chain(turns).collect();
    let body = json!({
        "model": settings.model,
        "messages": messages,
        "max_tokens": settings.tokens_out_max,
        "temperature": 0,
        "stream": false,
    });
    let path = "/chat/completions";
    let url =
        if settings.url.ends_with(path) { settings.url.clone() } else { format!("{}{path}", settings.url) };
    let headers =
        vec![("content-type", HeaderValue::Text("application/json")), ("authorization", HeaderValue::Bearer)];
    Request { url, headers, body: body.to_string() }
}

pub fn read(body: &Value) -> Option<Said> {
    let choice = body.get("choices")?.get(0)?;
    let message = choice.get("message")?;
    let declined = message.get("refusal").and_then(Value::as_str).filter(|text| !text.is_empty());
    let text = match (declined, message.get("content")) {
        (Some(refusal), _) => refusal.to_owned(),
        (None, Some(Value::String(text))) => text.clone(),
        (None, Some(Value::Array(parts))) => {
            parts.iter().filter_map(|part| part.get("text")?.as_str()).collect()
        }
        (None, _) => String::new(),
    };
    let finish = choice.get("finish_reason").and_then(Value::as_str).unwrap_or("stop");
    let usage = body.get("usage");
    Some(Said {
        text,
        model: body.get("model").and_then(Value::as_str).map(str::to_owned),
        tokens_in: count(usage, &["prompt_tokens"]),
        tokens_out: count(usage, &["completion_tokens"]),
        finish: if declined.is_some() { "declined".to_owned() } else { finish.to_owned() },
    })
}
