//! Signed tokens: `sy1.CLAIMS.MAC`, both base64url without padding.
//!
//! CLAIMS is the JSON of [`Claims`]; MAC = HMAC-SHA256(platform secret, `sy1.CLAIMS`). The edge
//! checks mac and expiry without a call; revoked ids are checked by the object asked.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, Mac as _};
use serde::{Deserialize, Serialize};
use sha2::Sha256;
use yard_common::{ForkName, Millis, Refusal, RepoName, TokenClaims, TokenId};

/// What a token allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scope {
    /// Clone, fetch, read status and records.
    Read,
    /// Push to a fork, submit changes, claim paths. Includes read.
    Submit,
    /// Lease and report runs. Includes read.
    Run,
    /// Everything, in the repository named (everywhere when none is named).
    Admin,
}

impl Scope {
    /// The name, as in tokens and messages.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Submit => "submit",
            Self::Run => "run",
            Self::Admin => "admin",
        }
    }
}

/// What a token says of its bearer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claims {
    /// The token's id, by which it is revoked.
    pub id: TokenId,
    /// The repository; every one when `None`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repo: Option<RepoName>,
    /// The fork that it is bound to, for pushes and submissions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fork: Option<ForkName>,
    /// What it allows.
    pub scopes: Vec<Scope>,
    /// When it ends.
    pub expires: Millis,
}

impl Claims {
    /// May the bearer do what needs `scope` in `repo`?
    #[must_use]
    pub fn allows(&self, scope: Scope, repo: Option<&RepoName>) -> bool {
        let here = match (&self.repo, repo) {
            (None, _) => true,
            (Some(mine), Some(asked)) => mine == asked,
            (Some(_), None) => false,
        };
        let can = self.scopes.iter().any(|mine| {
            *mine == scope || *mine == Scope::Admin || scope == Scope::Read
        });
        here && can
    }
}

const PREFIX: &str = "sy1.";

fn mac_of(secret: &[u8], text: &str) -> Vec<u8> {
    // HMAC takes keys of any length, so this constructor cannot fail.
    match Hmac::<Sha256>::new_from_slice(secret) {
        Ok(mut mac) => {
            mac.update(text.as_bytes());
            mac.finalize().into_bytes().to_vec()
        }
        Err(_) => Vec::new(),
    }
}

/// The token that says `claims`.
#[must_use]
pub fn issue(secret: &[u8], claims: &Claims) -> String {
    let body = serde_json::to_vec(claims).unwrap_or_default();
    rebuild(secret, &format!("{PREFIX}{}", URL_SAFE_NO_PAD.encode(body)))
}

/// The whole token from its public part (`sy1.CLAIMS`) and the platform's secret.
#[must_use]
pub fn rebuild(secret: &[u8], public: &str) -> String {
    format!("{public}.{}", URL_SAFE_NO_PAD.encode(mac_of(secret, public)))
}

/// The public part of a token: all before its last dot.
///
/// # Errors
/// [`Refusal::Unauthenticated`] when the text has not the form of a token.
pub fn public_part(token: &str) -> Result<TokenClaims, Refusal> {
    let bad = || Refusal::Unauthenticated { why: "this is no Switchyard token: ask an admin for one".into() };
    let (public, _) = token.rsplit_once('.').ok_or_else(bad)?;
    TokenClaims::new(public).map_err(|_| bad())
}

/// The claims of a public part, unchecked: for the bearer's own use and for rebuilt tokens.
///
/// # Errors
/// [`Refusal::Unauthenticated`] when it cannot be read.
pub fn claims(public: &TokenClaims) -> Result<Claims, Refusal> {
    let bad = || Refusal::Unauthenticated { why: "this token cannot be read: ask an admin for one".into() };
    let body = public.as_str().strip_prefix(PREFIX).ok_or_else(bad)?;
    let body = URL_SAFE_NO_PAD.decode(body).map_err(|_| bad())?;
    serde_json::from_slice(&body).map_err(|_| bad())
}

/// The claims of a token whose mac is right and whose time has not come.
///
/// # Errors
/// [`Refusal::Unauthenticated`] that says what is wrong with it.
pub fn verify(secret: &[u8], token: &str, now: Millis) -> Result<Claims, Refusal> {
    let public = public_part(token)?;
    let sent = token.rsplit_once('.').map(|(_, mac)| mac).unwrap_or_default();
    let sent = URL_SAFE_NO_PAD.decode(sent).unwrap_or_default();
    let mut mac = Hmac::<Sha256>::new_from_slice(secret)
        .map_err(|_| Refusal::Internal { during: "checking a token".into() })?;
    mac.update(public.as_str().as_bytes());
    mac.verify_slice(&sent).map_err(|_| Refusal::Unauthenticated {
        why: "this token was not signed by this platform: ask an admin for one".into(),
    })?;
    let claims = claims(&public)?;
    if claims.expires <= now {
        return Err(Refusal::Unauthenticated {
            why: "this token has expired: ask an admin for a new one".into(),
        });
    }
    Ok(claims)
}

/// HMAC-SHA256 of `text` under the whole token, as 64 hex digits: how a runner signs a run.
#[must_use]
pub fn sign_with(token: &str, text: &str) -> String {
    yard_common::hex(&mac_of(token.as_bytes(), text))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(expires: u64) -> Claims {
        Claims {
            id: TokenId::new("t1").unwrap(),
            repo: Some(RepoName::new("click").unwrap()),
            fork: None,
            scopes: vec![Scope::Submit],
            expires: Millis(expires),
        }
    }

    #[test]
    fn a_token_is_good_until_it_expires_and_only_under_its_secret() {
        let token = issue(b"secret", &sample(1000));
        assert_eq!(verify(b"secret", &token, Millis(999)).unwrap(), sample(1000));
        assert!(verify(b"secret", &token, Millis(1000)).is_err());
        assert!(verify(b"other", &token, Millis(0)).is_err());
        assert!(verify(b"secret", "garbage", Millis(0)).is_err());
    }

    #[test]
    fn changed_claims_break_the_mac() {
        let mine = issue(b"secret", &sample(1000));
        let mut more = sample(1000);
        more.scopes = vec![Scope::Admin];
        let forged = issue(b"guess", &more);
        let mixed = format!(
            "{}.{}",
            forged.rsplit_once('.').unwrap().0,
            mine.rsplit_once('.').unwrap().1
        );
        assert!(verify(b"secret", &mixed, Millis(0)).is_err());
    }

    #[test]
    fn the_whole_token_is_rebuilt_from_its_public_part() {
        let token = issue(b"secret", &sample(1000));
        let public = public_part(&token).unwrap();
        assert_eq!(rebuild(b"secret", public.as_str()), token);
    }

    #[test]
    fn scopes_stay_in_their_repository() {
        let claims = sample(1000);
        let other = RepoName::new("other").unwrap();
        assert!(claims.allows(Scope::Read, claims.repo.as_ref()));
        assert!(claims.allows(Scope::Submit, claims.repo.as_ref()));
        assert!(!claims.allows(Scope::Run, claims.repo.as_ref()));
        assert!(!claims.allows(Scope::Read, Some(&other)));
        assert!(!claims.allows(Scope::Read, None));
    }
}
