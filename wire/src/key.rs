//! Idempotency keys as objects keep them: what a client chose, in a name space of its own.
//!
//! Two clients that choose the same key mean different requests, and no client can take a key that the
//! platform gives to its own calls (`release-7`, `close-...`): a client's begin with `client/`, no other does.

use sha2::{Digest as _, Sha256};
use yard_common::{ForkName, IdempotencyKey, Refusal, hex};

use crate::token::Claims;

/// Digits of the digest that stand for whose key it is: 128 bits.
const SCOPE_DIGITS: usize = 32;

/// A key that a client chose for one request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientKey {
    given: IdempotencyKey,
    scope: String,
}

impl ClientKey {
    /// The key of a bearer's request for `acting`: shared by all tokens of one fork, so that a repeat with a
    /// renewed token is one, and else the token's own.
    #[must_use]
    pub fn new(given: IdempotencyKey, bearer: &Claims, acting: Option<&ForkName>) -> Self {
        let subject = match &bearer.fork {
            Some(fork) => format!("fork {fork}"),
            None => format!("token {}", bearer.id),
        };
        let acting = acting.map_or("", ForkName::as_str);
        let mut scope = hex(&Sha256::digest(format!("{acting}\n{subject}")));
        scope.truncate(SCOPE_DIGITS);
        Self { given, scope }
    }

    /// The stored key: of the whole request, or of its part at a place.
    ///
    /// # Errors
    /// Never: the parts are printable, and a text above the limit of keys is replaced by its digest.
    pub fn stored(&self, place: Option<usize>) -> Result<IdempotencyKey, Refusal> {
        let text = match place {
            Some(place) => format!("client/{}/{}/{place}", self.scope, self.given),
            None => format!("client/{}/{}", self.scope, self.given),
        };
        let digest = |_| {
            let digest = hex(&Sha256::digest(&text));
            IdempotencyKey::new(format!("client/{}/sha256/{digest}", self.scope))
        };
        Ok(IdempotencyKey::new(text.as_str()).or_else(digest)?)
    }

    /// A refusal that names the key as its client knows it.
    #[must_use]
    pub fn named(&self, refusal: Refusal) -> Refusal {
        match refusal {
            Refusal::KeyReused { .. } => Refusal::KeyReused { key: self.given.to_string() },
            other => other,
        }
    }
}

#[cfg(test)]
mod tests {
    use yard_common::{Millis, TokenId};

    use super::*;
    use crate::token::Scope;

    fn claims(id: &str, fork: Option<&str>) -> Claims {
        Claims {
            id: TokenId::new(id).unwrap(),
            repo: None,
            fork: fork.map(|fork| ForkName::new(fork).unwrap()),
            scopes: vec![Scope::Submit],
            expires: Millis(1),
        }
    }

    fn stored(given: &str, claims: &Claims, place: Option<usize>) -> String {
        let key = IdempotencyKey::new(given).unwrap();
        ClientKey::new(key, claims, claims.fork.as_ref()).stored(place).unwrap().to_string()
    }

    #[test]
    fn a_key_is_shared_by_the_tokens_of_a_fork_and_by_nobody_else() {
        let (one, renewed) = (claims("t1", Some("ann")), claims("t2", Some("ann")));
        assert_eq!(stored("k", &one, None), stored("k", &renewed, None));
        let others = [claims("t1", Some("bob")), claims("t1", None), claims("t2", None)];
        let all: std::collections::BTreeSet<String> =
            others.iter().chain([&one]).map(|claims| stored("k", claims, None)).collect();
        assert_eq!(all.len(), 4);
    }

    #[test]
    fn no_client_reaches_a_key_of_the_platform_however_long_it_is() {
        let bob = claims("t1", Some("bob"));
        let long = "x".repeat(200);
        for given in ["release-1", "close-Iabc-1", "client/x", long.as_str()] {
            for place in [None, Some(0), Some(499)] {
                let stored = stored(given, &bob, place);
                assert!(stored.starts_with("client/") && stored != given, "{stored}");
            }
        }
        assert_ne!(stored(&long, &bob, Some(0)), stored(&long, &bob, Some(1)));
        assert_ne!(stored("a/1", &bob, None), stored("a", &bob, Some(2)));
    }

    #[test]
    fn a_refusal_names_the_key_that_the_client_sent() {
        let key = ClientKey::new(IdempotencyKey::new("mine").unwrap(), &claims("t", None), None);
        let refusal = key.named(Refusal::KeyReused { key: key.stored(None).unwrap().to_string() });
        assert_eq!(refusal, Refusal::KeyReused { key: "mine".into() });
    }
}
