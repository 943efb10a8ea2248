//! What a model is asked.
//!
//! All text of repositories and agents is data: it stands between fences that bear a word derived from the
//! contents themselves and that occurs in none of them, so no content can close its fence. The same contents
//! make the same prompt, byte for byte: nothing of time, attempt, token, address or commit is in it, and
//! answers are kept by its hash.

mod excerpt;
mod pieces;
mod words;

use std::collections::BTreeSet;
use std::fmt;

use yard_common::RepoPath;

use crate::brief::Brief;
use crate::text::{cut, digest};

/// Bytes that count as one token: source code in English, by tokenizers of today, has 3 to 4.
const TOKEN_BYTES_TIMES_2: u64 = 7;
/// Of a faulty answer, what is shown to the model again, in bytes.
const AGAIN_BYTES_MAX: usize = 32 * 1024;

/// An estimate of the tokens in so many bytes: one for 3.5, rounded up.
#[must_use]
pub fn tokens(bytes: usize) -> u64 {
    (2 * bytes as u64).div_ceil(TOKEN_BYTES_TIMES_2)
}

/// The bytes that so many tokens hold by the same estimate.
fn bytes(tokens: u64) -> usize {
    usize::try_from(tokens.saturating_mul(TOKEN_BYTES_TIMES_2) / 2).unwrap_or(usize::MAX)
}

/// Who speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// The platform.
    User,
    /// The model.
    Assistant,
}

/// A question to a model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prompt {
    /// What it is to do, always.
    pub system: String,
    /// What is said, in turns; the first and the last by the platform.
    pub turns: Vec<(Role, String)>,
    /// The tokens of all of it, by [`tokens`].
    pub tokens_estimate: u64,
    /// SHA-256 of all of it, 64 hex digits.
    pub hash: String,
    /// What was left out or cut for want of room, a sentence each; the prompt says it too.
    pub cut: Vec<String>,
    /// Paths that may be edited and were not shown whole.
    pub partly: BTreeSet<RepoPath>,
}

/// Why there is nothing to ask.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NoPrompt {
    /// It collides at a file that no model can read.
    NotText {
        /// The path.
        path: RepoPath,
    },
    /// What the model has to see does not fit.
    TooLarge {
        /// Tokens needed.
        needed: u64,
        /// Tokens allowed.
        budget: u64,
    },
}

impl fmt::Display for NoPrompt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotText { path } => {
                write!(f, "no model can redo it: {path} is no text file (binary, a link or a submodule)")
            }
            Self::TooLarge { needed, budget } => write!(
                f,
                "no model can redo it: the collided parts and the reviewed difference need about {needed} tokens, \
                 and a prompt has at most {budget}"
            ),
        }
    }
}

impl std::error::Error for NoPrompt {}

/// Builds the question within a budget of tokens, largest relevance first: intent, collided files, reviewed
/// difference, rivals, the rest.
///
/// # Errors
/// [`NoPrompt`].
pub fn build(brief: &Brief, budget: u64) -> Result<Prompt, NoPrompt> {
    let nonce = nonce(brief);
    let system = words::system(&nonce);
    let room = bytes(budget).saturating_sub(system.len());
    let chosen = pieces::choose(brief, &nonce, room)
        .map_err(|why| why.unwrap_or_else(|needed| too_large(needed + system.len(), budget)))?;
    Ok(Prompt::of(system, vec![(Role::User, chosen.text)], chosen.cut, chosen.partly))
}

fn too_large(needed: usize, budget: u64) -> NoPrompt {
    NoPrompt::TooLarge { needed: tokens(needed), budget }
}

impl Prompt {
    fn of(system: String, turns: Vec<(Role, String)>, cut: Vec<String>, partly: BTreeSet<RepoPath>) -> Self {
        let parts = || std::iter::once(&system).chain(turns.iter().map(|(_, text)| text));
        let hash = digest(parts().map(|text| text.as_bytes()));
        let tokens_estimate = tokens(parts().map(String::len).sum());
        Self { system, turns, tokens_estimate, hash, cut, partly }
    }

    /// The question once more, with the answer given and what is wrong with it.
    #[must_use]
    pub fn again(&self, answer: &str, fault: &str) -> Self {
        let mut turns = self.turns.clone();
        let shown = cut(answer, AGAIN_BYTES_MAX);
        // An empty turn is refused by some providers.
        let shown = if shown.trim().is_empty() { "(nothing)" } else { shown };
        turns.push((Role::Assistant, shown.to_owned()));
        turns.push((Role::User, words::again(fault)));
        Self::of(self.system.clone(), turns, self.cut.clone(), self.partly.clone())
    }
}

/// A word for the fences: of the contents' hash, and in none of them.
fn nonce(brief: &Brief) -> String {
    let texts = brief_texts(brief);
    let hash = digest(texts.iter().map(|text| text.as_ref()));
    let mut round: u64 = 0;
    loop {
        let word: String = digest([hash.as_bytes(), &round.to_be_bytes()]).chars().take(12).collect();
        let occurs = |text: &[u8]| text.windows(word.len()).any(|window| window == word.as_bytes());
        if !texts.iter().any(|text| occurs(text.as_ref())) {
            return word;
        }
        round += 1;
    }
}

/// Every text of a brief that can come into its prompt.
fn brief_texts(brief: &Brief) -> Vec<std::borrow::Cow<'_, [u8]>> {
    use std::borrow::Cow;
    let mut all: Vec<Cow<'_, [u8]>> = Vec::new();
    let mut json = |value: serde_json::Result<Vec<u8>>| all.push(Cow::Owned(value.unwrap_or_default()));
    json(serde_json::to_vec(&brief.intent));
    json(serde_json::to_vec(&brief.cause));
    for rival in &brief.rivals {
        json(serde_json::to_vec(&(&rival.change, &rival.intent)));
    }
    for file in &brief.files {
        all.push(Cow::Borrowed(file.reviewed.as_bytes()));
        all.push(Cow::Borrowed(file.path.as_bytes()));
        let merged = file.start();
        for content in [file.base.as_deref(), file.theirs.as_deref(), file.main.as_deref(), merged] {
            all.push(Cow::Borrowed(content.unwrap_or_default()));
        }
    }
    for file in brief.rivals.iter().flat_map(|rival| &rival.files) {
        all.push(Cow::Borrowed(file.path.as_bytes()));
        all.push(Cow::Borrowed(file.before.as_deref().unwrap_or_default()));
        all.push(Cow::Borrowed(file.after.as_deref().unwrap_or_default()));
    }
    for (path, content) in &brief.context {
        all.push(Cow::Borrowed(path.as_bytes()));
        all.push(Cow::Borrowed(content));
    }
    all.push(Cow::Borrowed(brief.contract.as_deref().unwrap_or_default().as_bytes()));
    all
}

#[cfg(test)]
mod tests;
