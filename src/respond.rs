//! Answers: the only file that builds error responses.

use yard_common::Refusal;
use yard_wire::problem::{self, Problem};

use crate::router::Verb;

/// Headers of the board's files: scripts and styles from here alone, no frame around them, no referrer.
pub const PAGE_HEADERS: [(&str, &str); 6] = [
    (
        "content-security-policy",
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; \
         base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'",
    ),
    ("x-content-type-options", "nosniff"),
    ("referrer-policy", "no-referrer"),
    ("cross-origin-opener-policy", "same-origin"),
    ("cross-origin-resource-policy", "same-origin"),
    ("permissions-policy", "camera=(), geolocation=(), microphone=()"),
];

/// An answer that is whole in memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// The HTTP status.
    pub status: u16,
    /// Headers, names in lower case.
    pub headers: Vec<(&'static str, String)>,
    /// The body.
    pub body: Vec<u8>,
}

impl Answer {
    /// An answer of this content type.
    #[must_use]
    pub fn new(status: u16, content_type: &str, body: impl Into<Vec<u8>>) -> Self {
        let headers =
            vec![("content-type", content_type.to_owned()), ("cache-control", "no-cache".to_owned())];
        Self { status, headers, body: body.into() }
    }

    /// A JSON answer with status 200.
    #[must_use]
    pub fn json<T: serde::Serialize>(value: &T) -> Self {
        match serde_json::to_vec(value) {
            Ok(body) => Self::new(200, "application/json", body),
            Err(_) => refused(Refusal::Internal { during: "writing the answer".into() }),
        }
    }

    /// A plain text with status 200.
    #[must_use]
    pub fn text(text: impl Into<String>) -> Self {
        Self::new(200, "text/plain; charset=utf-8", text.into())
    }

    fn with(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }
}

fn with_retry(answer: Answer, refusal: &Refusal) -> Answer {
    match refusal {
        Refusal::Overloaded { retry_after } => answer.with("retry-after", retry_after.to_string()),
        _ => answer,
    }
}

/// A refusal to an API client: `application/problem+json`.
#[must_use]
pub fn refused(refusal: Refusal) -> Answer {
    let problem = Problem::from(refusal);
    let body = serde_json::to_vec(&problem).unwrap_or_default();
    let answer = Answer::new(problem.status, problem::CONTENT_TYPE, body);
    let answer = match problem.status {
        401 => answer.with("www-authenticate", "Bearer realm=\"switchyard\""),
        _ => answer,
    };
    with_retry(answer, &problem.reason)
}

/// A refusal to git, before it speaks its protocol: one line of text, which git shows after `remote:`.
///
/// 401 carries a Basic challenge: git asks its credential helper only then.
#[must_use]
pub fn refused_git(refusal: &Refusal) -> Answer {
    let (status, ..) = problem::class(refusal);
    let answer = Answer::new(status, "text/plain; charset=utf-8", format!("switchyard: {refusal}\n"));
    let answer = match status {
        401 => answer.with("www-authenticate", "Basic realm=\"switchyard\", charset=\"UTF-8\""),
        _ => answer,
    };
    with_retry(answer, refusal)
}

/// The address is there, the method is not: 405 with the methods that are.
#[must_use]
pub fn wrong_verb(asked: &str, verbs: &[Verb]) -> Answer {
    let allowed = verbs.iter().map(|verb| verb.as_str()).collect::<Vec<_>>().join(", ");
    let why = format!("{asked} is not taken here, only {allowed}");
    let mut answer = refused(Refusal::Invalid { why });
    answer.status = 405;
    answer.body =
        String::from_utf8_lossy(&answer.body).replacen("\"status\":400", "\"status\":405", 1).into_bytes();
    answer.with("allow", allowed)
}

/// The page of a kind of problem.
#[must_use]
pub fn problem_page(name: &str) -> Answer {
    Answer::text(format!(
        "{}\n\nThe field \"detail\" of the answer says what is wrong and what to do; \"retryable\" says whether the \
         same request can succeed later; \"reason\" is the typed form for programs.\n",
        name.replace('-', " ")
    ))
}

#[cfg(target_arch = "wasm32")]
mod to_worker {
    use worker::{Headers, Response};

    use super::Answer;

    impl TryFrom<Answer> for Response {
        type Error = worker::Error;

        fn try_from(answer: Answer) -> worker::Result<Self> {
            let headers = Headers::new();
            for (name, value) in &answer.headers {
                headers.set(name, value)?;
            }
            Ok(Self::from_bytes(answer.body)?.with_status(answer.status).with_headers(headers))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(answer: &Answer, name: &str) -> Option<String> {
        answer.headers.iter().rev().find(|(key, _)| *key == name).map(|(_, value)| value.clone())
    }

    #[test]
    fn an_api_client_gets_a_problem_document_that_says_what_to_do() {
        let answer = refused(Refusal::Overloaded { retry_after: 7 });
        assert_eq!(answer.status, 503);
        assert_eq!(header(&answer, "content-type").unwrap(), "application/problem+json");
        assert_eq!(header(&answer, "retry-after").unwrap(), "7");
        let problem: Problem = serde_json::from_slice(&answer.body).unwrap();
        assert_eq!(problem.reason, Refusal::Overloaded { retry_after: 7 });
    }

    #[test]
    fn git_is_asked_for_its_credentials_and_gets_text() {
        let answer = refused_git(&Refusal::Unauthenticated { why: "no token".into() });
        assert_eq!(answer.status, 401);
        assert!(header(&answer, "www-authenticate").unwrap().starts_with("Basic "));
        assert_eq!(answer.body, b"switchyard: no token\n");
    }

    #[test]
    fn a_wrong_method_is_told_the_right_ones() {
        let answer = wrong_verb("PUT", &[Verb::Get, Verb::Post]);
        assert_eq!(answer.status, 405);
        assert_eq!(header(&answer, "allow").unwrap(), "GET, POST");
        let problem: Problem = serde_json::from_slice(&answer.body).unwrap();
        assert_eq!(problem.status, 405);
    }
}
