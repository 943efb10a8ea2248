//! The intent of a change: what was asked, and by whom it was done.

use serde::{Deserialize, Serialize};

/// What a change is meant to do: the thing that is reviewed and, on a collision, replayed.
///
/// All fields are free text but for `title`, the first line of the commit message. Together at
/// most [`crate::limits::INTENT_BYTES_MAX`] bytes.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Intent {
    /// The first line of the commit message.
    pub title: String,
    /// The rest of the message, without its trailers.
    pub body: String,
    /// What was asked for (trailer `Task`).
    pub task: String,
    /// How it was to be done (trailer `Plan`).
    pub plan: String,
    /// What the review said (trailer `Review`).
    pub review: String,
    /// The tests that belong to it (trailer `Tests`).
    pub tests: String,
    /// The agent (trailer `Agent`).
    pub agent: String,
    /// The model the agent ran on (trailer `Model`).
    pub model: String,
    /// Further messages of the pushed commits, oldest first, and the note on the pushed commit.
    pub notes: Vec<String>,
    /// `Name <email>` of other authors of the pushed commits.
    pub co_authors: Vec<String>,
}

impl Intent {
    /// The sum of all text in bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let fields = [
            &self.title, &self.body, &self.task, &self.plan, &self.review, &self.tests, &self.agent,
            &self.model,
        ];
        fields.iter().map(|text| text.len()).sum::<usize>()
            + self.notes.iter().chain(&self.co_authors).map(String::len).sum::<usize>()
    }
}

/// Who wrote a commit and when, as git keeps it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Signature {
    /// The name, without `<`, `>` and line feeds.
    pub name: String,
    /// The address, without `<`, `>` and line feeds.
    pub email: String,
    /// Seconds since the Unix epoch.
    pub seconds: u64,
    /// Offset from UTC in minutes, east positive.
    pub offset_minutes: i16,
}
