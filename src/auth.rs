//! Who is asking, and may they: tokens from the header, scopes by the route.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use yard_common::{ForkName, Millis, Refusal, RepoName, TokenId};
use yard_wire::board::TOKEN_PROTOCOL;
use yard_wire::token::{self, Claims, Scope};

use crate::router::Need;

/// The bearer of a checked token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bearer {
    /// What the token says.
    pub claims: Claims,
    /// The token itself: runs are signed with it.
    pub token: String,
}

impl Bearer {
    /// The token's id, by which objects know a revoked one.
    #[must_use]
    pub fn id(&self) -> &TokenId {
        &self.claims.id
    }

    /// Who it is, in words that are kept with what it does.
    #[must_use]
    pub fn name(&self) -> String {
        match &self.claims.fork {
            Some(fork) => fork.to_string(),
            None if self.claims.scopes.contains(&Scope::Admin) => format!("an admin (token {})", self.id()),
            None => format!("the bearer of token {}", self.id()),
        }
    }

    /// Is it an admin of the repository?
    #[must_use]
    pub fn is_admin(&self, repo: &RepoName) -> bool {
        self.claims.allows(Scope::Admin, Some(repo))
    }

    /// The fork that acts: the one named, or the one that the token is bound to.
    ///
    /// # Errors
    /// [`Refusal::Forbidden`] when the token is bound to another fork than the one named.
    pub fn acting_fork(&self, named: Option<ForkName>) -> Result<Option<ForkName>, Refusal> {
        match (&self.claims.fork, named) {
            (Some(bound), Some(named)) if *bound != named => Err(other_fork(bound)),
            (Some(bound), _) => Ok(Some(bound.clone())),
            (None, named) => Ok(named),
        }
    }

    /// May the bearer write to this remote? A token that is bound to a fork writes to that one only.
    ///
    /// # Errors
    /// [`Refusal::Forbidden`] that names the fork it may write to.
    pub fn may_write(&self, fork: Option<&ForkName>) -> Result<(), Refusal> {
        match &self.claims.fork {
            Some(bound) if fork != Some(bound) => Err(other_fork(bound)),
            _ => Ok(()),
        }
    }
}

fn other_fork(bound: &ForkName) -> Refusal {
    Refusal::Forbidden { needs: format!("submit for another fork: it is bound to the fork {bound}") }
}

/// The token in an `Authorization` header: `Bearer TOKEN`, or git's `Basic` with the token as password.
///
/// # Errors
/// [`Refusal::Unauthenticated`] when there is none or it cannot be read.
pub fn token_of(header: Option<&str>) -> Result<String, Refusal> {
    let bad = |why: &str| Refusal::Unauthenticated { why: why.to_owned() };
    let missing = "this needs a token: send it as 'Authorization: Bearer TOKEN', or as git's password";
    let header = header.ok_or_else(|| bad(missing))?;
    let (scheme, value) = header.trim().split_once(' ').ok_or_else(|| bad(missing))?;
    let value = value.trim();
    if scheme.eq_ignore_ascii_case("bearer") {
        return Ok(value.to_owned());
    }
    if !scheme.eq_ignore_ascii_case("basic") {
        return Err(bad(missing));
    }
    let unreadable = || bad("the Basic credentials cannot be read: give the token as the password");
    let text = STANDARD.decode(value).map_err(|_| unreadable())?;
    let text = String::from_utf8(text).map_err(|_| unreadable())?;
    let (user, password) = text.split_once(':').ok_or_else(unreadable)?;
    // git asks for a user name first: a token given there, with no password, is meant.
    Ok(if password.is_empty() { user.to_owned() } else { password.to_owned() })
}

/// The `Authorization` header that a socket's offered protocols stand for, where they carry a token.
#[must_use]
pub fn offered_token(protocols: &str) -> Option<String> {
    let token = protocols.split(',').find_map(|protocol| protocol.trim().strip_prefix(TOKEN_PROTOCOL))?;
    Some(format!("Bearer {token}"))
}

/// Checks the token against a route's need.
///
/// Returns the bearer; `None` where the route needs nobody.
///
/// # Errors
/// [`Refusal::Unauthenticated`] without a good token; [`Refusal::Forbidden`] when it does not allow this.
pub fn check(
    secret: &[u8],
    header: Option<&str>,
    need: Need,
    repo: Option<&RepoName>,
    now: Millis,
) -> Result<Option<Bearer>, Refusal> {
    let scope = match need {
        Need::Nothing => return Ok(None),
        Need::Read => Scope::Read,
        Need::Submit => Scope::Submit,
        Need::Run => Scope::Run,
        Need::Admin | Need::PlatformAdmin => Scope::Admin,
    };
    let token = token_of(header)?;
    let claims = token::verify(secret, &token, now)?;
    let asked = if need == Need::PlatformAdmin { None } else { repo };
    if !claims.allows(scope, asked) {
        return Err(Refusal::Forbidden { needs: needed(scope, asked) });
    }
    Ok(Some(Bearer { claims, token }))
}

fn needed(scope: Scope, repo: Option<&RepoName>) -> String {
    match repo {
        Some(repo) => format!("{} of repository {repo:?}", scope.as_str(), repo = repo.as_str()),
        None => format!("{} of the whole platform", scope.as_str()),
    }
}

#[cfg(test)]
mod tests;
