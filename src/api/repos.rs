//! Repositories, forks, tokens.

use yard_common::{ForkName, IdempotencyKey, RefName, Refusal, RepoName, TokenId};
use yard_objects::Calls as _;
use yard_wire::api::{ForkReply, NewFork, NewRepo, NewToken, RepoReply, TokenReply};
use yard_wire::names::{self, REGISTRY, Remote};
use yard_wire::token::{self, Claims, Scope};
use yard_wire::{registry, repository};

use super::{Call, Event, Platform};
use crate::respond::Answer;

const DAY_MS: u64 = 24 * 3600 * 1000;
/// How long the tokens last that come with a repository and with a fork.
const REPO_TOKEN_MS: u64 = 90 * DAY_MS;
const FORK_TOKEN_MS: u64 = 30 * DAY_MS;
const TOKEN_SECONDS_MAX: u64 = 366 * 24 * 3600;

impl<P: Platform> Event<P> {
    /// A remote URL.
    fn url(&self, remote: &Remote) -> String {
        match &remote.fork {
            None => format!("{}/{}.git", self.origin, remote.repo),
            Some(fork) => format!("{}/{}/forks/{fork}.git", self.origin, remote.repo),
        }
    }

    /// A token's id follows from the request's key, so a repeat makes no second token.
    fn token_id(&self, repo: &RepoName, key: &IdempotencyKey) -> Result<TokenId, Refusal> {
        let secret = String::from_utf8_lossy(&self.secret);
        let mac = token::sign_with(&secret, &format!("token-id\n{repo}\n{key}"));
        Ok(TokenId::new(format!("t-{}", mac.get(..20).unwrap_or(&mac)))?)
    }
}

pub(super) async fn create<P: Platform>(event: &Event<P>, call: &Call<'_>) -> Result<Answer, Refusal> {
    let asked: NewRepo = call.body()?;
    let key = call.key()?;
    let branch = asked.default_branch.as_deref().unwrap_or("main");
    let default_branch = RefName::new(format!("refs/heads/{branch}"))?;
    let remote = Remote::parent(asked.name.clone());
    let create = repository::Create {
        repo: asked.name.clone(),
        fork: None,
        default_branch,
        refs: Vec::new(),
        key: Some(key.clone()),
    };
    let made = event.calls().call(&names::repository(&remote), &create).await;
    // The object comes first and is the one judge of its name: what lists it may have been lost to a crash.
    if matches!(made, Ok(()) | Err(Refusal::Exists { .. })) {
        event.calls().call(REGISTRY, &registry::AddRepo { repo: asked.name.clone() }).await?;
    }
    made?;
    let claims = Claims {
        id: event.token_id(&asked.name, &key)?,
        repo: Some(asked.name.clone()),
        fork: None,
        scopes: vec![Scope::Admin],
        expires: event.now.plus(REPO_TOKEN_MS),
    };
    let token = issue(event, &asked.name, claims).await?.token;
    Ok(Answer::json(&RepoReply { url: event.url(&remote), repo: asked.name, token }))
}

pub(super) async fn list<P: Platform>(event: &Event<P>) -> Result<Answer, Refusal> {
    let repos = event.calls().call(REGISTRY, &registry::ListRepos { repo: None }).await?;
    Ok(Answer::json(&repos))
}

pub(super) async fn create_fork<P: Platform>(event: &Event<P>, call: &Call<'_>) -> Result<Answer, Refusal> {
    let asked: NewFork = call.body()?;
    let (repo, key, bearer) = (call.repo()?, call.key()?, call.bearer()?);
    bearer.may_write(Some(&asked.name))?;
    let parent = names::repository(&Remote::parent(repo.clone()));
    let refs = repository::Refs { without_changes: true, token: Some(bearer.id().clone()) };
    let refs = event.calls().call(&parent, &refs).await?;
    let shared =
        |name: &RefName| ["refs/heads/", "refs/tags/"].iter().any(|of| name.as_str().starts_with(of));
    let remote = Remote { repo: repo.clone(), fork: Some(asked.name.clone()) };
    let create = repository::Create {
        repo: repo.clone(),
        fork: Some(asked.name.clone()),
        default_branch: refs.head,
        key: Some(key.clone()),
        refs: refs
            .refs
            .into_iter()
            .filter(|entry| shared(&entry.name))
            .map(|entry| (entry.name, entry.id))
            .collect(),
    };
    let made = event.calls().call(&names::repository(&remote), &create).await;
    if matches!(made, Ok(()) | Err(Refusal::Exists { .. })) {
        let add = registry::AddFork { repo: repo.clone(), fork: asked.name.clone() };
        event.calls().call(REGISTRY, &add).await?;
    }
    made?;
    let claims = fork_claims(event, &repo, &asked.name, &key)?;
    let token = issue(event, &repo, claims).await?.token;
    Ok(Answer::json(&ForkReply { url: event.url(&remote), repo, fork: asked.name, token }))
}

fn fork_claims<P: Platform>(
    event: &Event<P>,
    repo: &RepoName,
    fork: &ForkName,
    key: &IdempotencyKey,
) -> Result<Claims, Refusal> {
    Ok(Claims {
        id: event.token_id(repo, key)?,
        repo: Some(repo.clone()),
        fork: Some(fork.clone()),
        scopes: vec![Scope::Read, Scope::Submit],
        expires: event.now.plus(FORK_TOKEN_MS),
    })
}

/// Notes a token and signs it.
async fn issue<P: Platform>(
    event: &Event<P>,
    repo: &RepoName,
    claims: Claims,
) -> Result<TokenReply, Refusal> {
    let (id, expires) = (claims.id.clone(), claims.expires);
    let entry = registry::TokenEntry {
        id: id.clone(),
        fork: claims.fork.clone(),
        scopes: claims.scopes.clone(),
        expires,
    };
    event.calls().call(REGISTRY, &registry::AddToken { repo: repo.clone(), token: entry }).await?;
    Ok(TokenReply { token: token::issue(&event.secret, &claims), id, expires })
}

pub(super) async fn create_token<P: Platform>(event: &Event<P>, call: &Call<'_>) -> Result<Answer, Refusal> {
    let asked: NewToken = call.body()?;
    let (repo, key) = (call.repo()?, call.key()?);
    if asked.scopes.is_empty() {
        return Err(Refusal::Invalid { why: "scopes is empty: name read, submit, run or admin".into() });
    }
    if asked.ttl_seconds == 0 || asked.ttl_seconds > TOKEN_SECONDS_MAX {
        return Err(Refusal::Invalid {
            why: format!("ttl_seconds must be 1 to {TOKEN_SECONDS_MAX} (366 days)"),
        });
    }
    let claims = Claims {
        id: event.token_id(&repo, &key)?,
        repo: Some(repo.clone()),
        fork: asked.fork,
        scopes: asked.scopes,
        expires: event.now.plus(asked.ttl_seconds.saturating_mul(1000)),
    };
    Ok(Answer::json(&issue(event, &repo, claims).await?))
}

/// The id of a token to be revoked: given out by the platform, or proven by the whole token, as one
/// that was signed with the secret elsewhere is known to nobody.
async fn known_token<P: Platform>(
    event: &Event<P>,
    repo: &RepoName,
    given: &str,
) -> Result<TokenId, Refusal> {
    let no_such = |name: &str| Refusal::NotFound {
        kind: "token of this repository that is still good (give its id, or the whole token)".into(),
        name: name.to_owned(),
    };
    if given.starts_with("sy1.") {
        let claims = token::verify(&event.secret, given, event.now).map_err(|_| no_such("given"))?;
        let here = claims.repo.as_ref().is_none_or(|bound| bound == repo);
        return if here { Ok(claims.id) } else { Err(no_such(claims.id.as_str())) };
    }
    let find = registry::FindToken { repo: repo.clone(), id: TokenId::new(given)? };
    let found = event.calls().call(REGISTRY, &find).await?;
    found.map(|entry| entry.id).ok_or_else(|| no_such(given))
}

pub(super) async fn revoke_token<P: Platform>(event: &Event<P>, call: &Call<'_>) -> Result<Answer, Refusal> {
    let repo = call.repo()?;
    let id = known_token(event, &repo, call.text("id")).await?;
    let revoke = repository::Revoke { token: id.clone() };
    event.calls().call(&names::repository(&Remote::parent(repo.clone())), &revoke).await?;
    // Each fork's object checks the requests that come to it.
    let listed = event.calls().call(REGISTRY, &registry::ListRepos { repo: Some(repo.clone()) }).await?;
    for fork in listed.into_iter().flat_map(|entry| entry.forks) {
        let remote = Remote { repo: repo.clone(), fork: Some(fork) };
        event.calls().call(&names::repository(&remote), &revoke).await?;
    }
    Ok(Answer::json(&serde_json::json!({ "id": id })))
}

#[cfg(test)]
mod tests;
