//! The public API as typed calls.
//!
//! Every POST carries an idempotency key; a call whose answer was lost is repeated with the same
//! key, so a repeat is harmless. 429 and 503 are waited for as `Retry-After` says.

use std::fmt::Display;
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;
use yard_common::fact::Fact;
use yard_common::{ChangeId, FactNo, Fence, LaneName, Millis, RepoName, Version};
use yard_wire::api::{
    Approval, ChangeDetail, ChangeDiff, ChangeStatus, ClaimReply, ForkReply, IndexReply, NewClaim, NewFork, NewRepo,
    NewToken, Reason, Record, RepoReply, RunLog, StatusReply, SubmitChanges, SubmitReply, TimelineEvent,
    TokenReply,
};
use yard_wire::board::EventsReply;
use yard_wire::lane::{Lease, Renew, Report, StatusReply as LaneStatus, Work};
use yard_wire::problem::Problem;

/// Tries of one call whose answer was lost or that was told to wait.
const TRIES_MAX: u32 = 6;

/// Why a call failed.
#[derive(Debug)]
pub enum ClientError {
    /// The platform said no, and why.
    Refused(Box<Problem>),
    /// The platform could not be reached, or its answer could not be read.
    Transport(String),
}

impl std::fmt::Display for ClientError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Refused(problem) => write!(f, "{} ({})", problem.detail, problem.status),
            Self::Transport(why) => f.write_str(why),
        }
    }
}

impl std::error::Error for ClientError {}

impl ClientError {
    /// The problem, when the platform itself said no.
    #[must_use]
    pub fn problem(&self) -> Option<&Problem> {
        match self {
            Self::Refused(problem) => Some(problem),
            Self::Transport(_) => None,
        }
    }
}

/// A platform, as one bearer of a token sees it.
#[derive(Debug, Clone)]
pub struct Client {
    agent: ureq::Agent,
    url: String,
    token: String,
}

impl Client {
    /// A client of the platform at `url` (`http://host:port`) with this token.
    #[must_use]
    pub fn new(url: &str, token: &str) -> Self {
        let config = ureq::Agent::config_builder()
            .http_status_as_error(false)
            .timeout_connect(Some(Duration::from_secs(10)))
            .timeout_global(Some(Duration::from_secs(120)))
            .build();
        Self { agent: config.new_agent(), url: url.trim_end_matches('/').to_owned(), token: token.to_owned() }
    }

    /// The platform's address, without a trailing slash.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The token.
    #[must_use]
    pub fn token(&self) -> &str {
        &self.token
    }

    /// `GET path`.
    ///
    /// # Errors
    /// [`ClientError`].
    pub fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, ClientError> {
        self.patiently(|| {
            self.agent
                .get(format!("{}{path}", self.url))
                .header("Authorization", format!("Bearer {}", self.token))
                .call()
        })
    }

    /// `DELETE path`.
    ///
    /// # Errors
    /// [`ClientError`].
    pub fn delete<T: DeserializeOwned>(&self, path: &str) -> Result<T, ClientError> {
        self.patiently(|| {
            self.agent
                .delete(format!("{}{path}", self.url))
                .header("Authorization", format!("Bearer {}", self.token))
                .header("Idempotency-Key", fresh_key())
                .call()
        })
    }

    /// `POST path` under a key of its own.
    ///
    /// # Errors
    /// [`ClientError`].
    pub fn post<B: Serialize, T: DeserializeOwned>(&self, path: &str, body: &B) -> Result<T, ClientError> {
        self.post_keyed(path, body, &fresh_key())
    }

    /// `POST path` under the caller's key.
    ///
    /// # Errors
    /// [`ClientError`].
    pub fn post_keyed<B: Serialize, T: DeserializeOwned>(
        &self,
        path: &str,
        body: &B,
        key: &str,
    ) -> Result<T, ClientError> {
        let body = serde_json::to_vec(body).map_err(|error| ClientError::Transport(error.to_string()))?;
        self.patiently(|| {
            self.agent
                .post(format!("{}{path}", self.url))
                .header("Authorization", format!("Bearer {}", self.token))
                .header("Idempotency-Key", key)
                .header("Content-Type", "application/json")
                .send(&body)
        })
    }

    fn patiently<T: DeserializeOwned>(
        &self,
        call: impl Fn() -> Result<ureq::http::Response<ureq::Body>, ureq::Error>,
    ) -> Result<T, ClientError> {
        let mut pause = Duration::from_millis(50);
        let mut last = String::new();
        for _ in 0..TRIES_MAX {
            match call() {
                Err(error) => last = format!("{}: {error}", self.url),
                Ok(answer) => match read(answer)? {
                    Answer::Done(value) => return Ok(value),
                    Answer::Wait(problem, seconds) => {
                        last.clone_from(&problem.detail);
                        pause = pause.max(Duration::from_secs(u64::from(seconds)));
                    }
                },
            }
            std::thread::sleep(pause);
            pause *= 2;
        }
        Err(ClientError::Transport(format!("{last} (gave up after {TRIES_MAX} tries)")))
    }
}

enum Answer<T> {
    Done(T),
    Wait(Problem, u32),
}

fn read<T: DeserializeOwned>(mut answer: ureq::http::Response<ureq::Body>) -> Result<Answer<T>, ClientError> {
    let status = answer.status().as_u16();
    let limit = 64 * 1024 * 1024;
    let body = answer
        .body_mut()
        .with_config()
        .limit(limit)
        .read_to_vec()
        .map_err(|error| ClientError::Transport(format!("the answer broke off: {error}")))?;
    if (200..300).contains(&status) {
        let body = if body.is_empty() { b"null".as_slice() } else { &body };
        return serde_json::from_slice(body)
            .map(Answer::Done)
            .map_err(|error| ClientError::Transport(format!("the answer cannot be read: {error}")));
    }
    match serde_json::from_slice::<Problem>(&body) {
        Ok(problem) if matches!(status, 429 | 503) => {
            let seconds = problem.retry_after.unwrap_or(1);
            Ok(Answer::Wait(problem, seconds))
        }
        Ok(problem) => Err(ClientError::Refused(Box::new(problem))),
        Err(_) => Err(ClientError::Transport(format!(
            "HTTP {status}: {}",
            String::from_utf8_lossy(&body).chars().take(300).collect::<String>()
        ))),
    }
}

/// A key that no other call has: process, time and a counter.
#[must_use]
pub fn fresh_key() -> String {
    use std::sync::atomic::{AtomicU64, Ordering};
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let nanos =
        std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0, |span| span.as_nanos());
    format!("cli-{}-{nanos}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed))
}

/// Percent-encodes what is not unreserved in a path or a query.
#[must_use]
pub fn escape(text: &str) -> String {
    text.bytes()
        .map(|byte| match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => {
                char::from(byte).to_string()
            }
            _ => format!("%{byte:02X}"),
        })
        .collect()
}

/// The calls by name, one line each: see the table in `yard_wire::api`.
impl Client {
    /// Makes a repository.
    ///
    /// # Errors
    /// [`ClientError`], as for all calls below.
    pub fn new_repo(&self, body: &NewRepo) -> Result<RepoReply, ClientError> {
        self.post("/api/repos", body)
    }

    /// Makes a fork.
    ///
    /// # Errors
    /// [`ClientError`].
    pub fn new_fork(&self, repo: &RepoName, body: &NewFork) -> Result<ForkReply, ClientError> {
        self.post(&format!("/api/repos/{repo}/forks"), body)
    }

    /// Makes a token.
    ///
    /// # Errors
    /// [`ClientError`].
    pub fn new_token(&self, repo: &RepoName, body: &NewToken) -> Result<TokenReply, ClientError> {
        self.post(&format!("/api/repos/{repo}/tokens"), body)
    }

    /// Ends a token before its time: by its id, or by the whole token.
    ///
    /// # Errors
    /// [`ClientError`].
    pub fn revoke(&self, repo: &RepoName, token: impl Display) -> Result<serde_json::Value, ClientError> {
        self.delete(&format!("/api/repos/{repo}/tokens/{}", escape(&token.to_string())))
    }

    /// Offers changes under a key.
    ///
    /// # Errors
    /// [`ClientError`].
    pub fn submit(
        &self,
        repo: &RepoName,
        body: &SubmitChanges,
        key: &str,
    ) -> Result<SubmitReply, ClientError> {
        self.post_keyed(&format!("/api/repos/{repo}/changes"), body, key)
    }

    /// The state of a repository.
    ///
    /// # Errors
    /// [`ClientError`].
    pub fn status(&self, repo: &RepoName) -> Result<StatusReply, ClientError> {
        self.get(&format!("/api/repos/{repo}"))
    }

    /// The newest changes.
    ///
    /// # Errors
    /// [`ClientError`].
    pub fn changes(&self, repo: &RepoName, limit: u32) -> Result<Vec<ChangeStatus>, ClientError> {
        self.get(&format!("/api/repos/{repo}/changes?limit={limit}"))
    }

    /// One change, whole.
    ///
    /// # Errors
    /// [`ClientError`].
    pub fn change(&self, repo: &RepoName, change: impl Display) -> Result<ChangeDetail, ClientError> {
        self.get(&format!("/api/repos/{repo}/changes/{}", escape(&change.to_string())))
    }

    /// What a version of a change does to its paths.
    ///
    /// # Errors
    /// [`ClientError`].
    pub fn diff(&self, repo: &RepoName, change: &ChangeId, version: Version) -> Result<ChangeDiff, ClientError> {
        self.get(&format!("/api/repos/{repo}/changes/{change}/diff?version={}", version.0))
    }

    /// Does `cancel`, `hold`, `release` or `requeue` to a change.
    ///
    /// # Errors
    /// [`ClientError`].
    pub fn act_on_change(
        &self,
        repo: &RepoName,
        change: impl Display,
        act: &str,
        reason: &str,
    ) -> Result<serde_json::Value, ClientError> {
        let body = Reason { reason: reason.to_owned() };
        self.post(&format!("/api/repos/{repo}/changes/{}/{act}", escape(&change.to_string())), &body)
    }

    /// Does `freeze`, `thaw`, `protect` or `unprotect` to a repository.
    ///
    /// # Errors
    /// [`ClientError`].
    pub fn act_on_repo(
        &self,
        repo: &RepoName,
        act: &str,
        reason: &str,
    ) -> Result<serde_json::Value, ClientError> {
        let body = Reason { reason: reason.to_owned() };
        self.post(&format!("/api/repos/{repo}/{act}"), &body)
    }

    /// Takes a step of making the index anew: it empties it, then has all rows sent once more.
    ///
    /// # Errors
    /// [`ClientError`].
    pub fn rebuild_index(&self, repo: &RepoName) -> Result<IndexReply, ClientError> {
        self.post(&format!("/api/repos/{repo}/rebuild-index"), &serde_json::json!({}))
    }

    /// How far the objects are with sending their rows to the index.
    ///
    /// # Errors
    /// [`ClientError`].
    pub fn index_progress(&self, repo: &RepoName) -> Result<IndexReply, ClientError> {
        self.get(&format!("/api/repos/{repo}/rebuild-index"))
    }

    /// Lets one version of a change touch the configuration.
    ///
    /// # Errors
    /// [`ClientError`].
    pub fn approve(
        &self,
        repo: &RepoName,
        change: impl Display,
        version: Version,
    ) -> Result<serde_json::Value, ClientError> {
        let path = format!("/api/repos/{repo}/changes/{}/approve", escape(&change.to_string()));
        self.post(&path, &Approval { version })
    }

    /// Leases paths.
    ///
    /// # Errors
    /// [`ClientError`].
    pub fn claim(&self, repo: &RepoName, body: &NewClaim) -> Result<ClaimReply, ClientError> {
        self.post(&format!("/api/repos/{repo}/claims"), body)
    }

    /// Gives a claim back.
    ///
    /// # Errors
    /// [`ClientError`].
    pub fn release(&self, repo: &RepoName, fence: Fence) -> Result<serde_json::Value, ClientError> {
        self.delete(&format!("/api/repos/{repo}/claims/{fence}"))
    }

    /// Facts after a number, whole.
    ///
    /// # Errors
    /// [`ClientError`].
    pub fn landings(
        &self,
        repo: &RepoName,
        after: FactNo,
        limit: u32,
    ) -> Result<Vec<(FactNo, Millis, Fact)>, ClientError> {
        self.get(&format!("/api/repos/{repo}/landings?after={after}&limit={limit}"))
    }

    /// Records of landed changes from the index, newest first.
    ///
    /// # Errors
    /// [`ClientError`].
    pub fn records(&self, repo: &RepoName, query: &str) -> Result<Vec<Record>, ClientError> {
        self.get(&format!("/api/repos/{repo}/log?{query}"))
    }

    /// Who did what when, from the index, newest first.
    ///
    /// # Errors
    /// [`ClientError`].
    pub fn timeline(&self, repo: &RepoName, query: &str) -> Result<Vec<TimelineEvent>, ClientError> {
        self.get(&format!("/api/repos/{repo}/timeline?{query}"))
    }

    /// What a run printed from a place on.
    ///
    /// # Errors
    /// [`ClientError`].
    pub fn run_log(&self, repo: &RepoName, run: impl Display, from: u64) -> Result<RunLog, ClientError> {
        self.get(&format!("/api/repos/{repo}/runs/{}/log?from={from}", escape(&run.to_string())))
    }

    /// Events after a cursor.
    ///
    /// # Errors
    /// [`ClientError`].
    pub fn events(&self, repo: &RepoName, after: u64) -> Result<EventsReply, ClientError> {
        self.get(&format!("/api/repos/{repo}/events?after={after}"))
    }

    /// The state of a lane.
    ///
    /// # Errors
    /// [`ClientError`].
    pub fn lane(&self, repo: &RepoName, lane: &LaneName) -> Result<LaneStatus, ClientError> {
        self.get(&format!("/api/repos/{repo}/lanes/{lane}"))
    }

    /// Asks for a run to do.
    ///
    /// # Errors
    /// [`ClientError`].
    pub fn lease(&self, body: &Lease) -> Result<Option<Work>, ClientError> {
        self.post(&format!("/api/repos/{}/lanes/{}/lease", body.repo, body.lane), body)
    }

    /// Keeps a lease alive.
    ///
    /// # Errors
    /// [`ClientError`].
    pub fn renew(&self, repo: &RepoName, lane: &LaneName, body: &Renew) -> Result<Millis, ClientError> {
        self.post(&format!("/api/repos/{repo}/lanes/{lane}/renew"), body)
    }

    /// Reports a run.
    ///
    /// # Errors
    /// [`ClientError`].
    pub fn report(
        &self,
        repo: &RepoName,
        lane: &LaneName,
        body: &Report,
    ) -> Result<serde_json::Value, ClientError> {
        self.post(&format!("/api/repos/{repo}/lanes/{lane}/report"), body)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_keeps_its_bytes() {
        assert_eq!(escape("a b&c=ä"), "a%20b%26c%3D%C3%A4");
    }
}
