//! The Workers AI binding: `AI.run(model, input)` for text generation.

use serde::Serialize;
use serde_json::Value;

use super::{Said, count, openai, role};
use crate::prompt::Prompt;
use crate::settings::Settings;

/// One message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Message {
    /// `system`, `user` or `assistant`.
    pub role: &'static str,
    /// The text.
    pub content: String,
}

/// What `run` takes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Input {
    /// The messages.
    pub messages: Vec<Message>,
    /// The largest answer, in tokens; numbers over 2^32 make no sense here, and the binding takes no larger ones.
    pub max_tokens: u32,
    /// 0.
    pub temperature: u8,
}

pub fn input(settings: &Settings, prompt: &Prompt) -> Input {
    let system = Message { role: "system", content: prompt.system.clone() };
    let turns = prompt.turns.iter().map(|(who, text)| Message { role: role(*who), content: text.clone() });
    Input {
        messages: std::iter::once(system).chain(turns).collect(),
        max_tokens: u32::try_from(settings.tokens_out_max).unwrap_or(u32::MAX),
        temperature: 0,
    }
}

/// Models answer `{response, usage}`, newer ones as OpenAI's.
pub fn read(body: &Value) -> Option<Said> {
    let body = body.get("result").unwrap_or(body);
    if body.get("choices").is_some() {
        return openai::read(body);
    }
    let usage = body.get("usage");
    let tokens_out = count(usage, &["completion_tokens"]);
    Some(Said {
        text: body.get("response")?.as_str()?.to_owned(),
        model: None,
        tokens_in: count(usage, &["prompt_tokens"]),
        tokens_out,
        finish: body.get("finish_reason").and_then(Value::as_str).unwrap_or("stop").to_owned(),
    })
}
