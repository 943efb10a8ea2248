use super::*;
use yard_common::TokenId;
use yard_wire::problem::Problem;
use yard_wire::token::{self, Claims, Scope};

const SECRET: &[u8] = b"a secret";

fn ask(verb: &str, path: &str, token: Option<&str>) -> Ask {
    let mut ask = Ask { verb: verb.into(), path: path.into(), ..Ask::default() };
    if let Some(token) = token {
        ask.headers.insert("authorization".into(), format!("Bearer {token}"));
    }
    ask
}

fn token_of(scopes: &[Scope]) -> String {
    let claims = Claims {
        id: TokenId::new("t").unwrap(),
        repo: Some(RepoName::new("click").unwrap()),
        fork: None,
        scopes: scopes.to_vec(),
        expires: Millis(1000),
    };
    token::issue(SECRET, &claims)
}

fn answered(secret: &[u8], ask: &Ask) -> Answer {
    match admit(secret, Millis(0), ask) {
        Admitted::Answer(answer) => answer,
        Admitted::Call(call) => panic!("admitted to {}", call.route.pattern),
        Admitted::Files => panic!("sent to the files"),
    }
}

#[test]
fn without_its_secret_the_platform_says_so_and_lets_nobody_in() {
    let read = token_of(&[Scope::Admin]);
    let answer = answered(b"", &ask("GET", "/api/repos/click", Some(&read)));
    assert_eq!(answer.status, 500);
    assert!(String::from_utf8_lossy(&answer.body).contains("SWITCHYARD_SECRET is not set"));
    assert!(matches!(admit(b"", Millis(0), &ask("GET", "/healthz", None)), Admitted::Call(_)));
}

#[test]
fn an_unknown_address_of_the_api_is_a_problem_and_any_other_a_file() {
    let answer = answered(SECRET, &ask("GET", "/api/nothing", None));
    let problem: Problem = serde_json::from_slice(&answer.body).unwrap();
    assert_eq!((problem.status, problem.detail.as_str()), (404, "there is no address \"/api/nothing\""));
    assert!(matches!(admit(SECRET, Millis(0), &ask("GET", "/board.css", None)), Admitted::Files));
    assert_eq!(answered(SECRET, &ask("PUT", "/api/repos", None)).status, 405);
}

#[test]
fn git_is_asked_for_credentials_and_api_clients_get_a_problem() {
    let git = answered(SECRET, &ask("GET", "/click.git/info/refs", None));
    assert!(
        git.headers.iter().any(|(name, value)| *name == "www-authenticate" && value.starts_with("Basic"))
    );
    let api = answered(SECRET, &ask("GET", "/api/repos/click", None));
    assert!(api.headers.contains(&("content-type", "application/problem+json".to_owned())));
    assert_eq!((git.status, api.status), (401, 401));
}

#[test]
fn a_name_that_no_repository_can_have_is_not_found_whoever_asks() {
    let all = token_of(&[Scope::Admin]);
    assert_eq!(answered(SECRET, &ask("GET", "/api/repos/NO", Some(&all))).status, 404);
}

#[test]
fn a_post_needs_a_key_and_a_body_that_fits() {
    let token = token_of(&[Scope::Submit]);
    let mut ask = ask("POST", "/api/repos/click/changes", Some(&token));
    ask.body = b"{\"changes\":[],\"extra\":1}".to_vec();
    let Admitted::Call(call) = admit(SECRET, Millis(0), &ask) else { panic!("not admitted") };
    assert!(matches!(call.key(), Err(Refusal::Invalid { .. })));
    let body = call.body::<yard_wire::api::SubmitChanges>();
    assert!(matches!(body, Err(Refusal::Invalid { why }) if why.contains("extra")));
    assert_eq!(call.repo().unwrap().as_str(), "click");
}

#[test]
fn an_object_that_was_never_made_is_told_by_the_name_asked_for() {
    let token = token_of(&[Scope::Read]);
    let ask = ask("GET", "/click/forks/a1.git/info/refs", Some(&token));
    let Admitted::Call(call) = admit(SECRET, Millis(0), &ask) else { panic!("not admitted") };
    let unnamed = Refusal::NotFound { kind: "repository".into(), name: "of this name".into() };
    assert_eq!(call.named(unnamed), Refusal::NotFound { kind: "fork".into(), name: "a1".into() });
}

#[test]
fn a_socket_offers_its_token_as_a_protocol_and_no_other_address_takes_one_so() {
    let read = token_of(&[Scope::Read]);
    let mut socket = ask("GET", "/api/repos/click/events", None);
    let offered = format!("switchyard.events, switchyard.token.{read}");
    socket.headers.insert("sec-websocket-protocol".into(), offered);
    assert!(matches!(admit(SECRET, Millis(0), &socket), Admitted::Call(_)));
    socket.path = "/api/repos/click".into();
    assert_eq!(answered(SECRET, &socket).status, 401);
    socket.path = "/api/repos/click/events".into();
    socket.headers.insert("sec-websocket-protocol".into(), "switchyard.token.sy1.e30.AAAA".into());
    assert_eq!(answered(SECRET, &socket).status, 401);
}
