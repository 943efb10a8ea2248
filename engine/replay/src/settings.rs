//! The operator's settings of the model.
//!
//! ```text
//! SWITCHYARD_MODEL_KIND             openai (the default: any endpoint that speaks it), anthropic, workers-ai
//! SWITCHYARD_MODEL_URL              https://host/v1; openai has no default
//! SWITCHYARD_MODEL                  the model's name; without it nothing is replayed by a model
//! SWITCHYARD_MODEL_KEY              the provider's key (a secret; not read here)
//! SWITCHYARD_MODEL_TIMEOUT_SECONDS  how long one call may take (120)
//! SWITCHYARD_MODEL_TOKENS_IN        the largest prompt, in tokens (60000)
//! SWITCHYARD_MODEL_TOKENS_OUT       the largest answer, in tokens (8192)
//! SWITCHYARD_MODEL_PRICE_IN, _OUT   US dollars for a million tokens (0)
//! SWITCHYARD_MODEL_BUDGET_DAY_USD   US dollars of one repository on one day (no limit)
//! SWITCHYARD_MODEL_BUDGET_CHANGE_TOKENS, _CHANGE_USD    of one change (no limit)
//! ```
//!
//! All are of the platform: nothing that a repository contains chooses where a call goes.

use crate::price::{Budget, Limit, Prices, Spent};
use crate::prompt::Prompt;
use crate::text::digest;

/// Which protocol the provider speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Chat completions as OpenAI has them: Ollama, vLLM, llama.cpp, gateways.
    OpenAi,
    /// Anthropic's Messages.
    Anthropic,
    /// The Workers AI binding.
    WorkersAi,
}

/// The settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// The protocol.
    pub kind: Kind,
    /// Where the provider answers, without a slash at the end; empty for the binding.
    pub url: String,
    /// The model's name.
    pub model: String,
    /// How long one call may take, in milliseconds.
    pub timeout_ms: u64,
    /// The largest prompt, in tokens.
    pub tokens_in_max: u64,
    /// The largest answer, in tokens.
    pub tokens_out_max: u64,
    /// Prices.
    pub prices: Prices,
    /// Limits of spending.
    pub budget: Budget,
}

const TIMEOUT_SECONDS: u64 = 120;
/// A consumer's event may take 15 minutes of wall time; two calls fit.
const TIMEOUT_SECONDS_MAX: u64 = 400;
const TOKENS_IN: u64 = 60_000;
const TOKENS_OUT: u64 = 8_192;
const TOKENS_MAX: u64 = 2_000_000;

impl Settings {
    /// Reads the settings; `Ok(None)` when no model is set.
    ///
    /// # Errors
    /// A sentence that names the variable and what it should be.
    pub fn read(var: impl Fn(&str) -> Option<String>) -> Result<Option<Self>, String> {
        let text = |name: &str| var(name).map(|text| text.trim().to_owned()).filter(|text| !text.is_empty());
        let Some(model) = text("SWITCHYARD_MODEL") else { return Ok(None) };
        let kind = match text("SWITCHYARD_MODEL_KIND").as_deref() {
            None | Some("openai") => Kind::OpenAi,
            Some("anthropic") => Kind::Anthropic,
            Some("workers-ai") => Kind::WorkersAi,
            Some(other) => {
                return Err(format!(
                    "SWITCHYARD_MODEL_KIND is {other:?}: it is openai, anthropic or workers-ai"
                ));
            }
        };
        let number = |name: &str, default: u64, most: u64| match text(name) {
            None => Ok(default),
            Some(given) => given
                .parse()
                .ok()
                .filter(|number| (1..=most).contains(number))
                .ok_or_else(|| format!("{name} is {given:?}: it is a whole number from 1 to {most}")),
        };
        let dollars = |name: &str| text(name).map(|given| micro(name, &given)).transpose();
        let count = |name: &str| {
            let set = text(name).is_some();
            number(name, 0, 1 << 53).map(|number| set.then_some(number))
        };
        Ok(Some(Self {
            kind,
            url: url(kind, text("SWITCHYARD_MODEL_URL"))?,
            model,
            timeout_ms: 1000
                * number("SWITCHYARD_MODEL_TIMEOUT_SECONDS", TIMEOUT_SECONDS, TIMEOUT_SECONDS_MAX)?,
            tokens_in_max: number("SWITCHYARD_MODEL_TOKENS_IN", TOKENS_IN, TOKENS_MAX)?,
            tokens_out_max: number("SWITCHYARD_MODEL_TOKENS_OUT", TOKENS_OUT, TOKENS_MAX)?,
            prices: Prices {
                micro_usd_per_million_in: dollars("SWITCHYARD_MODEL_PRICE_IN")?.unwrap_or(0),
                micro_usd_per_million_out: dollars("SWITCHYARD_MODEL_PRICE_OUT")?.unwrap_or(0),
            },
            budget: Budget {
                day: Limit { tokens: None, micro_usd: dollars("SWITCHYARD_MODEL_BUDGET_DAY_USD")? },
                change: Limit {
                    tokens: count("SWITCHYARD_MODEL_BUDGET_CHANGE_TOKENS")?,
                    micro_usd: dollars("SWITCHYARD_MODEL_BUDGET_CHANGE_USD")?,
                },
            },
        }))
    }

    /// The name under which the answer to a prompt is kept: the same question to the same model.
    #[must_use]
    pub fn answer_key(&self, prompt: &Prompt) -> String {
        let kind: &[u8] = match self.kind {
            Kind::OpenAi => b"openai",
            Kind::Anthropic => b"anthropic",
            Kind::WorkersAi => b"workers-ai",
        };
        let most = self.tokens_out_max.to_be_bytes();
        digest([kind, self.url.as_bytes(), self.model.as_bytes(), &most, prompt.hash.as_bytes()])
    }

    /// The most that one call with this prompt may use, for the budget.
    #[must_use]
    pub fn at_most(&self, prompt: &Prompt) -> Spent {
        self.prices.of(prompt.tokens_estimate, self.tokens_out_max)
    }
}

/// Dollars as text, in millionths: digits, and at most six behind a point.
fn micro(name: &str, text: &str) -> Result<u64, String> {
    let bad = || format!("{name} is {text:?}: it is an amount in US dollars, such as 0.25");
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || whole.len() > 9 || part.len() > 6 || !digits(whole) || !digits(part) {
        return Err(bad());
    }
    format!("{whole}{part:0<6}").parse().map_err(|_| bad())
}

fn url(kind: Kind, given: Option<String>) -> Result<String, String> {
    let default = match kind {
        Kind::OpenAi => None,
        Kind::Anthropic => Some("https://api.anthropic.com"),
        Kind::WorkersAi => return Ok(String::new()),
    };
    let url = given.or_else(|| default.map(str::to_owned)).ok_or(
        "SWITCHYARD_MODEL_URL is not set: it is where the provider answers, such as http://127.0.0.1:11434/v1",
    )?;
    let rest = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://"));
    let host = rest.and_then(|rest| rest.split('/').next()).unwrap_or_default();
    // A key in the address would come into logs.
    if host.is_empty() || host.contains('@') || url.contains(['?', '#']) || url.contains(char::is_whitespace)
    {
        return Err(
            "SWITCHYARD_MODEL_URL is no address such as https://host/v1, without a name, a key or a query"
                .to_owned(),
        );
    }
    Ok(url.trim_end_matches('/').to_owned())
}

#[cfg(test)]
mod tests;
