use super::*;
use crate::router::{Endpoint, ROUTES, Route};

const SECRET: &[u8] = b"a secret of the platform";

fn repo() -> RepoName {
    RepoName::new("click").unwrap()
}

fn token(scopes: &[Scope], repo: Option<&str>, fork: Option<&str>, expires: u64) -> String {
    token::issue(
        SECRET,
        &Claims {
            id: TokenId::new("t1").unwrap(),
            repo: repo.map(|name| RepoName::new(name).unwrap()),
            fork: fork.map(|name| ForkName::new(name).unwrap()),
            scopes: scopes.to_vec(),
            expires: Millis(expires),
        },
    )
}

fn ask(route: &Route, token: &str) -> Result<Option<Bearer>, Refusal> {
    let header = format!("Bearer {token}");
    check(SECRET, Some(&header), route.need, Some(&repo()), Millis(10))
}

/// A token that is good for much, and yet not allowed at the endpoint; `None` where nobody is asked.
/// A new endpoint does not compile until its case is added here.
fn not_allowed(endpoint: Endpoint) -> Option<String> {
    use Endpoint::*;
    let here = Some("click");
    match endpoint {
        Health | OpenApi | ProblemPage => None,
        CreateRepo | ListRepos | Metrics => Some(token(&[Scope::Admin], here, None, 100)),
        RepoStatus | ListChanges | ShowChange | DiffChange | Landings | Log | Timeline | LaneStatus
        | Events | IndexProgress | RunLog | InfoRefs | UploadPack => {
            Some(token(&[Scope::Admin], Some("other"), None, 100))
        }
        CreateFork | SubmitChanges | CancelChange | HoldChange | ReleaseChange | RequeueChange | Claim
        | ReleaseClaim | ReceivePack => Some(token(&[Scope::Read, Scope::Run], here, None, 100)),
        CreateToken | RevokeToken | ApproveChange | Freeze | RebuildIndex | Thaw | Protect | Unprotect => {
            Some(token(&[Scope::Read, Scope::Submit, Scope::Run], here, None, 100))
        }
        Lease | Renew | Report => Some(token(&[Scope::Read, Scope::Submit], here, None, 100)),
    }
}

#[test]
fn every_route_refuses_a_token_that_does_not_allow_it() {
    for route in ROUTES {
        match not_allowed(route.endpoint) {
            None => assert_eq!(route.need, Need::Nothing, "{}", route.pattern),
            Some(token) => {
                assert!(matches!(ask(route, &token), Err(Refusal::Forbidden { .. })), "{}", route.pattern);
            }
        }
    }
}

#[test]
fn every_route_refuses_no_token_an_expired_one_and_a_forged_one() {
    let all = [Scope::Read, Scope::Submit, Scope::Run, Scope::Admin];
    for route in ROUTES.iter().filter(|route| route.need != Need::Nothing) {
        let refused = |answer: Result<Option<Bearer>, Refusal>| {
            assert!(matches!(answer, Err(Refusal::Unauthenticated { .. })), "{}", route.pattern);
        };
        refused(check(SECRET, None, route.need, Some(&repo()), Millis(10)));
        refused(ask(route, &token(&all, None, None, 10)));
        refused(ask(route, "sy1.e30.AAAA"));
        refused(check(
            b"another secret",
            Some(&format!("Bearer {}", token(&all, None, None, 100))),
            route.need,
            Some(&repo()),
            Millis(10),
        ));
        assert!(ask(route, &token(&all, None, None, 100)).is_ok(), "{}", route.pattern);
    }
}

#[test]
fn git_gives_the_token_as_password_or_as_user_name() {
    let basic = |text: &str| format!("Basic {}", STANDARD.encode(text));
    assert_eq!(token_of(Some(&basic("agent:sy1.a.b"))).unwrap(), "sy1.a.b");
    assert_eq!(token_of(Some(&basic("sy1.a.b:"))).unwrap(), "sy1.a.b");
    assert_eq!(token_of(Some("bearer sy1.a.b")).unwrap(), "sy1.a.b");
    for bad in ["Basic !", "Basic", "Digest x", "", &basic("nocolon")] {
        assert!(token_of(Some(bad)).is_err(), "{bad}");
    }
}

#[test]
fn a_token_of_a_fork_writes_and_submits_for_that_fork_only() {
    let bound = token(&[Scope::Submit], Some("click"), Some("a1"), 100);
    let bearer = Bearer { claims: token::verify(SECRET, &bound, Millis(0)).unwrap(), token: bound };
    let (mine, other) = (ForkName::new("a1").unwrap(), ForkName::new("a2").unwrap());
    assert!(bearer.may_write(Some(&mine)).is_ok());
    assert!(bearer.may_write(Some(&other)).is_err());
    assert!(bearer.may_write(None).is_err());
    assert_eq!(bearer.acting_fork(None).unwrap(), Some(mine));
    assert!(bearer.acting_fork(Some(other)).is_err());
    assert!(!bearer.is_admin(&repo()));
}
