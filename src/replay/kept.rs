//! Answers at hand, kept in R2 by the hash of their question; with the question they are the evidence.

use serde::{Deserialize, Serialize};
use yard_common::replay::Cost;
use yard_common::{ReplayNo, RepoName};
use yard_objects::Blobs;
use yard_replay::prompt::{Prompt, Role};
use yard_replay::provider::Answer;

/// A question with its answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kept {
    /// What the model is told always.
    pub system: String,
    /// What was said: who (`user` or `assistant`), and the text.
    pub turns: Vec<(String, String)>,
    /// What was left out of the prompt.
    pub cut: Vec<String>,
    /// The answer.
    pub answer: Answer,
    /// What it cost when it was given.
    pub cost: Cost,
    /// The replay that asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replay: Option<ReplayNo>,
}

/// Where the answer to a question is kept.
pub fn key(repo: &RepoName, hash: &str) -> String {
    format!("{repo}/replays/{hash}.json")
}

impl Kept {
    /// A question that was answered.
    pub fn new(prompt: &Prompt, answer: Answer, cost: Cost, replay: ReplayNo) -> Self {
        let who = |role: &Role| match role {
            Role::User => "user".to_owned(),
            Role::Assistant => "assistant".to_owned(),
        };
        let turns = prompt.turns.iter().map(|(role, text)| (who(role), text.clone())).collect();
        let (system, cut) = (prompt.system.clone(), prompt.cut.clone());
        Self { system, turns, cut, answer, cost, replay: Some(replay) }
    }

    /// The answer that was given before, if any; one that cannot be read is asked for again.
    pub async fn find(blobs: &impl Blobs, key: &str) -> Option<Self> {
        let bytes = blobs.get(key).await.ok().flatten()?;
        serde_json::from_slice(&bytes).ok()
    }

    /// Keeps it; losing it costs one more call.
    pub async fn keep(&self, blobs: &impl Blobs, key: &str) {
        let stored = match serde_json::to_vec(self) {
            Ok(bytes) => blobs.put(key, bytes).await.is_ok(),
            Err(_) => false,
        };
        if !stored {
            yard_objects::points::log("a model's answer was not kept: the same question is asked again");
        }
    }
}
