//! What calls cost, and the budget that stops them.

use serde::{Deserialize, Serialize};
use yard_common::Millis;

/// What was used: tokens, and money in millionths of a US dollar.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Spent {
    /// Tokens of prompts.
    pub tokens_in: u64,
    /// Tokens of answers.
    pub tokens_out: u64,
    /// Millionths of a US dollar.
    pub micro_usd: u64,
}

impl Spent {
    /// Both together.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            tokens_in: self.tokens_in.saturating_add(other.tokens_in),
            tokens_out: self.tokens_out.saturating_add(other.tokens_out),
            micro_usd: self.micro_usd.saturating_add(other.micro_usd),
        }
    }

    /// All tokens.
    #[must_use]
    pub fn tokens(&self) -> u64 {
        self.tokens_in.saturating_add(self.tokens_out)
    }
}

/// Prices, in millionths of a US dollar for a million tokens (so in picodollars a token).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Prices {
    /// Of a prompt.
    pub micro_usd_per_million_in: u64,
    /// Of an answer.
    pub micro_usd_per_million_out: u64,
}

impl Prices {
    /// What so many tokens cost; a part of a millionth counts as one.
    #[must_use]
    pub fn of(&self, tokens_in: u64, tokens_out: u64) -> Spent {
        let pico = u128::from(tokens_in) * u128::from(self.micro_usd_per_million_in)
            + u128::from(tokens_out) * u128::from(self.micro_usd_per_million_out);
        let micro_usd = u64::try_from(pico.div_ceil(1_000_000)).unwrap_or(u64::MAX);
        Spent { tokens_in, tokens_out, micro_usd }
    }
}

/// How much may be used; `None` is no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Limit {
    /// Tokens, in and out.
    pub tokens: Option<u64>,
    /// Millionths of a US dollar.
    pub micro_usd: Option<u64>,
}

/// The limits that a platform sets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Budget {
    /// Of one repository on one day (UTC).
    pub day: Limit,
    /// Of one change, over all its versions.
    pub change: Limit,
}

impl Budget {
    /// May a call that uses at most `next` be made after what was spent?
    ///
    /// # Errors
    /// The sentence for the record.
    pub fn allows(&self, today: Spent, change: Spent, next: Spent) -> Result<(), String> {
        within(&self.day, today, next, "this repository's budget for today")?;
        within(&self.change, change, next, "the budget of this change")
    }
}

fn within(limit: &Limit, spent: Spent, next: Spent, whose: &str) -> Result<(), String> {
    if let Some(most) = limit.tokens.filter(|most| spent.plus(next).tokens() > *most) {
        return Err(format!(
            "{whose} is {most} tokens: {} are spent, and the call may take {}",
            spent.tokens(),
            next.tokens()
        ));
    }
    if let Some(most) = limit.micro_usd.filter(|most| spent.plus(next).micro_usd > *most) {
        return Err(format!(
            "{whose} is {} USD: {} are spent, and the call may cost {}",
            usd(most),
            usd(spent.micro_usd),
            usd(next.micro_usd)
        ));
    }
    Ok(())
}

/// An amount in US dollars, with all its digits.
#[must_use]
pub fn usd(micro: u64) -> String {
    let text = format!("{}.{:06}", micro / 1_000_000, micro % 1_000_000);
    let short = text.trim_end_matches('0');
    // At least two digits behind the point.
    let least = text.len() - 4;
    text.get(..short.len().max(least)).unwrap_or(&text).to_owned()
}

/// The number of the day (UTC) since 1970-01-01, by which budgets of a day are kept.
#[must_use]
pub fn day(at: Millis) -> u64 {
    at.0 / (24 * 3600 * 1000)
}

#[cfg(test)]
mod tests;
