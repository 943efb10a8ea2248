//! The JSON API: one function an endpoint, over whatever carries the calls.

mod changes;
mod diff;
mod history;
mod index;
mod lanes;
mod numbers;
mod prefix;
mod reads;
mod repos;
mod search;
pub mod stage;
pub(crate) mod submit;

use std::cell::RefCell;
use std::collections::BTreeMap;

use serde::de::DeserializeOwned;
use yard_common::limits::API_REQUEST_BYTES_MAX;
use yard_common::{BadId, ForkName, IdempotencyKey, LaneName, Millis, Refusal, RepoName};
use yard_objects::{Blobs, Calls, Index};
use yard_wire::lane;
use yard_wire::names::{self, Remote};
use yard_wire::repository::CheckToken;

use crate::auth::{self, Bearer};
use crate::git::sink::Sink;
use crate::respond::{self, Answer};
use crate::router::{self, Endpoint, Found, Parts, Route, Verb};
use crate::{openapi, router::Need};

/// Largest number of the tables: 2^53 - 1.
pub const NUMBER_MAX: u64 = (1 << 53) - 1;

/// Characters of a JSON fault that are told.
const FAULT_CHARS_MAX: usize = 300;

/// What the edge stands on: workerd, or a test.
pub trait Platform {
    /// Calls to the objects.
    type Calls: Calls;
    /// The bucket.
    type Blobs: Blobs + Clone + 'static;
    /// The index.
    type Index: Index;
    /// A value of the bucket that is being written.
    type Sink: Sink;
    /// Calls to the objects.
    fn calls(&self) -> &Self::Calls;
    /// The bucket.
    fn blobs(&self) -> &Self::Blobs;
    /// The index.
    fn index(&self) -> &Self::Index;
    /// Begins a value of the bucket.
    fn sink(&self, key: &str) -> Self::Sink;
    /// A number that nobody foresees, for names.
    fn random(&self) -> u64;
}

/// One event of the edge: the platform, and what is fixed while it lasts.
pub struct Event<P> {
    /// The platform.
    pub platform: P,
    /// The secret that signs tokens.
    pub secret: Vec<u8>,
    /// When it began.
    pub now: Millis,
    /// `https://host`, for the URLs in answers.
    pub origin: String,
    /// Lanes to wake when the answer is on its way; losing one costs time only.
    pub hints: RefCell<Vec<lane::Hint>>,
}

impl<P: Platform> Event<P> {
    /// The calls.
    pub fn calls(&self) -> &P::Calls {
        self.platform.calls()
    }

    /// Has a lane woken after the answer.
    pub fn hint(&self, repo: &RepoName, lane: LaneName) {
        self.hints.borrow_mut().push(lane::Hint { repo: repo.clone(), lane });
    }

    /// Wakes the lanes that were asked for.
    pub async fn send_hints(&self) {
        let hints = std::mem::take(&mut *self.hints.borrow_mut());
        for hint in hints {
            if self.calls().call(&names::lane(&hint.repo, &hint.lane), &hint).await.is_err() {
                yard_objects::points::log("a hint was lost: the lane's alarm or the cron pulls");
            }
        }
    }
}

/// A request as it came in.
#[derive(Debug, Clone, Default)]
pub struct Ask {
    /// The method's name.
    pub verb: String,
    /// The path, percent-decoded.
    pub path: String,
    /// The query, decoded, in order.
    pub query: Vec<(String, String)>,
    /// The headers that the edge reads, names in lower case.
    pub headers: BTreeMap<String, String>,
    /// The whole body; empty for git, whose body is a stream.
    pub body: Vec<u8>,
}

impl Ask {
    /// A header's value.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(String::as_str)
    }

    /// The last value of a query parameter.
    #[must_use]
    pub fn query(&self, name: &str) -> Option<&str> {
        self.query.iter().rev().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// A number in the query; more than any table holds is as much as it holds.
    ///
    /// # Errors
    /// [`Refusal::Invalid`] when it is none.
    pub fn number(&self, name: &str) -> Result<Option<u64>, Refusal> {
        let bad = |_| Refusal::Invalid { why: format!("query parameter {name} must be a number") };
        let number = self.query(name).map(|text| text.parse().map_err(bad)).transpose()?;
        Ok(number.map(|number: u64| number.min(NUMBER_MAX)))
    }
}

/// A request whose route is found and whose bearer may go there.
#[derive(Clone)]
pub struct Call<'a> {
    /// The request.
    pub ask: &'a Ask,
    /// The route.
    pub route: &'static Route,
    /// The named parts of the address.
    pub parts: Parts,
    /// The bearer; `None` where the route needs nobody.
    pub bearer: Option<Bearer>,
}

impl Call<'_> {
    /// A named part of the address, as the id that it should be.
    ///
    /// # Errors
    /// [`Refusal::Invalid`] that says what such an id looks like.
    pub fn part<T: std::str::FromStr<Err = BadId>>(&self, name: &str) -> Result<T, Refusal> {
        Ok(self.text(name).parse()?)
    }

    /// A named part of the address as it stands there.
    #[must_use]
    pub fn text(&self, name: &str) -> &str {
        self.parts.iter().find(|(key, _)| *key == name).map_or("", |(_, value)| value.as_str())
    }

    /// The repository of the address.
    ///
    /// # Errors
    /// [`Refusal::NotFound`] when no repository can have this name.
    pub fn repo(&self) -> Result<RepoName, Refusal> {
        repo_of(&self.parts)?.ok_or_else(|| Refusal::Internal { during: "routing".into() })
    }

    /// The fork of the address, if it names one.
    ///
    /// # Errors
    /// [`Refusal::NotFound`] when no fork can have this name.
    pub fn fork(&self) -> Result<Option<ForkName>, Refusal> {
        let fork = self.parts.iter().find(|(key, _)| *key == "fork");
        let no_such = |name: &str| Refusal::NotFound { kind: "fork".into(), name: name.into() };
        fork.map(|(_, name)| ForkName::new(name.as_str()).map_err(|_| no_such(name))).transpose()
    }

    /// A refusal with the name that was asked for: an object that was never made does not know its own.
    #[must_use]
    pub fn named(&self, refusal: Refusal) -> Refusal {
        match refusal {
            Refusal::NotFound { kind, name } if kind == "repository" && name == "of this name" => {
                let (repo, fork) = (self.text("repo"), self.text("fork"));
                let (kind, name) = if fork.is_empty() { (kind, repo) } else { ("fork".into(), fork) };
                Refusal::NotFound { kind, name: name.to_owned() }
            }
            other => other,
        }
    }

    /// The bearer.
    ///
    /// # Errors
    /// [`Refusal::Unauthenticated`] when there is none.
    pub fn bearer(&self) -> Result<&Bearer, Refusal> {
        self.bearer.as_ref().ok_or_else(|| Refusal::Unauthenticated { why: "this needs a token".into() })
    }

    /// The body as JSON of a type of `wire::api`.
    ///
    /// # Errors
    /// [`Refusal::TooLarge`], or [`Refusal::Invalid`] that says where it does not fit.
    pub fn body<T: DeserializeOwned>(&self) -> Result<T, Refusal> {
        let body = self.ask.body.as_slice();
        let body = if body.is_empty() { b"{}" } else { body };
        if let Some(number) = numbers::too_large(body) {
            let why = format!("the body has the number {number}, at most {NUMBER_MAX} is taken");
            return Err(Refusal::Invalid { why });
        }
        serde_json::from_slice(body).map_err(|fault| {
            // It repeats what stands there, however long that is.
            let fault: String = fault.to_string().chars().take(FAULT_CHARS_MAX).collect();
            let why = format!("the body is not a {} as /openapi.json describes it: {fault}", self.route.body);
            Refusal::Invalid { why }
        })
    }

    /// A named part of the address that is a number of the tables.
    ///
    /// # Errors
    /// [`Refusal::Invalid`] when it is none, or larger than any that was given out.
    pub fn number_part(&self, name: &str) -> Result<u64, Refusal> {
        let text = self.text(name);
        let number = text.parse().ok().filter(|number| *number <= NUMBER_MAX);
        number.ok_or_else(|| Refusal::Invalid { why: format!("{text:?} is no {name} number") })
    }

    /// The idempotency key.
    ///
    /// # Errors
    /// [`Refusal::Invalid`] when the header is absent or not a key.
    pub fn key(&self) -> Result<IdempotencyKey, Refusal> {
        let why = "a POST needs the header Idempotency-Key: choose a new one for each new request, and repeat it \
                   when you repeat the request";
        let text = self.ask.header("idempotency-key").ok_or_else(|| Refusal::Invalid { why: why.into() })?;
        Ok(IdempotencyKey::new(text)?)
    }
}

fn repo_of(parts: &Parts) -> Result<Option<RepoName>, Refusal> {
    let no_such = |name: &str| Refusal::NotFound { kind: "repository".into(), name: name.into() };
    let repo = parts.iter().find(|(key, _)| *key == "repo");
    repo.map(|(_, name)| RepoName::new(name.as_str()).map_err(|_| no_such(name))).transpose()
}

/// Where a request goes.
pub enum Admitted<'a> {
    /// To an endpoint, with leave.
    Call(Call<'a>),
    /// It is answered already: a wrong method, no leave.
    Answer(Answer),
    /// No route: the board's files.
    Files,
}

/// Finds the route and checks the token. Nothing is read or called.
#[must_use]
pub fn admit<'a>(secret: &[u8], now: Millis, ask: &'a Ask) -> Admitted<'a> {
    let (route, parts) = match router::find(Verb::from_name(&ask.verb), &ask.path) {
        Found::Route(route, parts) => (route, parts),
        Found::WrongVerb(verbs) => return Admitted::Answer(respond::wrong_verb(&ask.verb, &verbs)),
        Found::Nothing if ask.path == "/api" || ask.path.starts_with("/api/") => {
            let refusal = Refusal::NotFound { kind: "address".into(), name: ask.path.clone() };
            return Admitted::Answer(respond::refused(refusal));
        }
        Found::Nothing => return Admitted::Files,
    };
    let checked = repo_of(&parts).and_then(|repo| {
        if secret.is_empty() && route.need != Need::Nothing {
            let during = "checking a token (SWITCHYARD_SECRET is not set: set it and start again)";
            return Err(Refusal::Internal { during: during.into() });
        }
        let offered = match route.endpoint {
            Endpoint::Events => ask.header("sec-websocket-protocol").and_then(auth::offered_token),
            _ => None,
        };
        let header = ask.header("authorization").or(offered.as_deref());
        auth::check(secret, header, route.need, repo.as_ref(), now)
    });
    match checked {
        Ok(bearer) => Admitted::Call(Call { ask, route, parts, bearer }),
        Err(refusal) if route.endpoint.is_git() => Admitted::Answer(respond::refused_git(&refusal)),
        Err(refusal) => Admitted::Answer(respond::refused(refusal)),
    }
}

/// Answers a call of the JSON API.
pub async fn answer<P: Platform>(event: &Event<P>, call: &Call<'_>) -> Answer {
    let size = call.ask.body.len();
    let answered = if size > API_REQUEST_BYTES_MAX {
        let (size, limit) = (size as u64, API_REQUEST_BYTES_MAX as u64);
        Err(Refusal::TooLarge { what: "the request (send fewer changes at once)".into(), size, limit })
    } else {
        match not_revoked(event, call).await {
            Ok(()) => match prefix::resolved(event, call).await {
                Ok(Some(whole)) => dispatch(event, &whole).await,
                Ok(None) => dispatch(event, call).await,
                Err(refusal) => Err(refusal),
            },
            Err(refusal) => Err(refusal),
        }
    };
    answered.unwrap_or_else(|refusal| respond::refused(call.named(refusal)))
}

/// Asks the repository whether the token is revoked, where what follows does not ask by itself.
///
/// # Errors
/// [`Refusal::Unauthenticated`] when it is.
pub async fn not_revoked<P: Platform>(event: &Event<P>, call: &Call<'_>) -> Result<(), Refusal> {
    let asks_itself = matches!(call.route.endpoint, Endpoint::SubmitChanges | Endpoint::CreateFork);
    let (Some(bearer), Some(repo), false) = (&call.bearer, repo_of(&call.parts)?, asks_itself) else {
        return Ok(());
    };
    let check = CheckToken { token: bearer.id().clone() };
    event.calls().call(&names::repository(&Remote::parent(repo)), &check).await
}

async fn dispatch<P: Platform>(event: &Event<P>, call: &Call<'_>) -> Result<Answer, Refusal> {
    use Endpoint as E;
    match call.route.endpoint {
        E::Health => Ok(Answer::json(&serde_json::json!({ "ok": true }))),
        E::OpenApi => Ok(Answer::json(&openapi::document())),
        E::Metrics => Ok(Answer::json(&yard_objects::meter::counts())),
        E::ProblemPage => Ok(respond::problem_page(call.text("problem"))),
        E::CreateRepo => repos::create(event, call).await,
        E::ListRepos => repos::list(event).await,
        E::RepoStatus => reads::status(event, call).await,
        E::CreateFork => repos::create_fork(event, call).await,
        E::CreateToken => repos::create_token(event, call).await,
        E::RevokeToken => repos::revoke_token(event, call).await,
        E::SubmitChanges => submit::submit(event, call).await,
        E::ListChanges => reads::list_changes(event, call).await,
        E::ShowChange => reads::show_change(event, call).await,
        E::DiffChange => diff::diff(event, call).await,
        E::Landings => reads::landings(event, call).await,
        E::Log => search::log(event, call).await,
        E::Timeline => search::timeline(event, call).await,
        E::CancelChange
        | E::HoldChange
        | E::ReleaseChange
        | E::RequeueChange
        | E::ApproveChange
        | E::Freeze
        | E::Thaw
        | E::Protect
        | E::Unprotect
        | E::Claim
        | E::ReleaseClaim => changes::act(event, call).await,
        E::RebuildIndex => index::rebuild(event, call).await,
        E::IndexProgress => index::progress(event, call).await,
        E::LaneStatus => lanes::status(event, call).await,
        E::Lease => lanes::lease(event, call).await,
        E::Renew => lanes::renew(event, call).await,
        E::Report => lanes::report(event, call).await,
        E::Events => lanes::events(event, call).await,
        E::RunLog => lanes::run_log(event, call).await,
        E::InfoRefs | E::UploadPack | E::ReceivePack => Err(Refusal::Internal { during: "routing".into() }),
    }
}

#[cfg(test)]
mod tests;
