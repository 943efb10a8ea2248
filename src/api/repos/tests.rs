use super::*;
use crate::api::{Admitted, admit, answer};
use crate::git::tests::{Native, ask, event};
use serde_json::{Value, json};
use yard_objects::native::block_on;

fn send(event: &Event<Native>, verb: &str, path: &str, key: &str, body: &Value) -> (u16, Value) {
    let mut ask = ask(path);
    ask.verb = verb.into();
    ask.headers.insert("idempotency-key".into(), key.into());
    ask.body = body.to_string().into_bytes();
    let Admitted::Call(call) = admit(&event.secret, event.now, &ask) else { panic!("not admitted") };
    let answer = block_on(answer(event, &call));
    (answer.status, serde_json::from_slice(&answer.body).unwrap())
}

fn post(event: &Event<Native>, path: &str, key: &str, body: &Value) -> (u16, Value) {
    send(event, "POST", path, key, body)
}

#[test]
fn a_name_that_is_taken_gives_no_second_token_but_to_its_makers_own_repeat() {
    let event = event("made-before");
    for object in ["repo:fresh", "repo:fresh/forks/a1"] {
        event.platform.add_object(object);
    }
    let repo = json!({ "name": "fresh" });
    let (status, first) = post(&event, "/api/repos", "k1", &repo);
    assert_eq!(status, 200, "{first}");
    assert_eq!(post(&event, "/api/repos", "k1", &repo), (200, first));
    let (status, said) = post(&event, "/api/repos", "k2", &repo);
    assert_eq!(status, 409);
    assert!(said["detail"].as_str().unwrap().contains("choose another name"), "{said}");
    assert_eq!(post(&event, "/api/repos", "k1", &json!({ "name": "made-before" })).0, 409);
    let (fork, forks) = (json!({ "name": "a1" }), "/api/repos/fresh/forks");
    let (status, first) = post(&event, forks, "k3", &fork);
    assert_eq!(status, 200, "{first}");
    assert_eq!(post(&event, forks, "k3", &fork), (200, first));
    assert_eq!(post(&event, forks, "k4", &fork).0, 409);
}

#[test]
fn tokens_are_made_for_what_exists_and_revoked_when_they_are_known() {
    let event = event("tokens");
    event.platform.add_object("repo:own");
    let whole = post(&event, "/api/repos", "k1", &json!({ "name": "own" })).1;
    let asked = |fork: Option<&str>| json!({ "scopes": ["read"], "fork": fork, "ttl_seconds": 60 });
    let (status, said) = post(&event, "/api/repos/own/tokens", "k2", &asked(Some("nobody")));
    assert_eq!((status, said["detail"].as_str().unwrap()), (404, "there is no fork \"nobody\""));
    let (status, made) = post(&event, "/api/repos/own/tokens", "k3", &asked(None));
    assert_eq!(status, 200, "{made}");
    let revoke =
        |name: &str| send(&event, "DELETE", &format!("/api/repos/own/tokens/{name}"), "k", &json!(null));
    assert_eq!(revoke("t-unknown").0, 404);
    assert_eq!(revoke("sy1.e30.AAAA").0, 404);
    assert_eq!(revoke(made["id"].as_str().unwrap()), (200, json!({ "id": made["id"] })));
    assert_eq!(revoke(whole["token"].as_str().unwrap()).0, 200, "known by itself");
    let signed = token::issue(
        &event.secret,
        &Claims {
            id: TokenId::new("signed-elsewhere").unwrap(),
            repo: None,
            fork: None,
            scopes: vec![Scope::Read],
            expires: event.now.plus(1),
        },
    );
    assert_eq!(revoke(&signed), (200, json!({ "id": "signed-elsewhere" })));
}
