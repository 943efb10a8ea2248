//! What speaks to the platform from outside: requests to the real edge, whose answers may be lost.

use std::cell::RefCell;
use std::rc::Rc;

use anyhow::{Result, ensure};
use serde_json::Value;
use switchyard::api::{Admitted, Ask, Event, admit};
use switchyard::git::{self, Body};
use yard_common::{Millis, ObjectId, Refusal, TokenId};
use yard_wire::token::{self, Claims, Scope};

use crate::clockwork::gate;
use crate::objects::{SECRET, World};
use crate::platform::Edge;

/// The status and body of an answer.
pub type Answered = (u16, Value);

/// How often a client repeats a request whose answer was lost or that was told to wait.
const TRIES: u32 = 8;

/// An event of the edge, now.
#[must_use]
pub fn event(world: &Rc<World>) -> Event<Edge> {
    Event {
        platform: Edge::new(world),
        secret: SECRET.into(),
        now: world.clock.now(),
        origin: "https://yard".into(),
        hints: RefCell::default(),
    }
}

/// A platform admin's token.
#[must_use]
pub fn admin() -> String {
    let id = TokenId::new("operator").unwrap_or_else(|_| unreachable!("a plain word"));
    let expires = Millis(1 << 50);
    token::issue(
        SECRET.as_bytes(),
        &Claims { id, repo: None, fork: None, scopes: vec![Scope::Admin], expires },
    )
}

fn asked(verb: &str, path: &str, token: &str, key: &str, body: &Value) -> Ask {
    let mut ask = Ask { verb: verb.into(), path: path.into(), ..Ask::default() };
    ask.headers.insert("authorization".into(), format!("Bearer {token}"));
    ask.headers.insert("idempotency-key".into(), key.to_owned());
    if !body.is_null() {
        ask.body = body.to_string().into_bytes();
    }
    ask
}

/// One request; `None` when it or its answer was lost.
async fn once(world: &Rc<World>, ask: Ask) -> Option<Answered> {
    if !world.arrives().await {
        return None;
    }
    let (sender, receiver) = gate(&world.clock);
    let inner = Rc::clone(world);
    world.clock.spawn("edge", async move {
        let event = event(&inner);
        let answer = match admit(&event.secret, event.now, &ask) {
            Admitted::Call(call) => switchyard::api::answer(&event, &call).await,
            Admitted::Answer(answer) => answer,
            Admitted::Files => return,
        };
        let body = serde_json::from_slice(&answer.body).unwrap_or(Value::Null);
        sender.send((answer.status, body));
        event.send_hints().await;
    });
    let answer = receiver.await?;
    world.arrives().await.then_some(answer)
}

/// A request, repeated under its key while it gets no answer; `None` when that never comes.
pub async fn request(
    world: &Rc<World>,
    (verb, path): (&str, &str),
    token: &str,
    body: Value,
) -> Option<Answered> {
    let key = format!("k{:016x}", world.clock.below(u64::MAX));
    for attempt in 0..TRIES {
        let answer = once(world, asked(verb, path, token, &key, &body)).await;
        match answer {
            Some((status, _)) if status == 429 || status >= 500 => {}
            Some(answer) => return Some(answer),
            None => {}
        }
        world.clock.sleep(500 << attempt).await;
    }
    None
}

struct Whole(Option<Vec<u8>>);

impl Body for Whole {
    async fn next(&mut self) -> Result<Option<Vec<u8>>, Refusal> {
        Ok(self.0.take())
    }
}

/// A git push of one ref to the repository.
///
/// # Errors
/// What git would say.
pub async fn push(
    world: &Rc<World>,
    repo: &str,
    (reference, old, new): (&str, ObjectId, ObjectId),
    pack: Vec<u8>,
) -> Result<()> {
    let line = format!("{old} {new} {reference}\0report-status");
    let mut body = format!("{:04x}{line}0000", line.len() + 4).into_bytes();
    body.extend_from_slice(&pack);
    let (sender, receiver) = gate(&world.clock);
    let (inner, path) = (Rc::clone(world), format!("/{repo}.git/git-receive-pack"));
    world.clock.spawn("edge", async move {
        let event = event(&inner);
        let ask = asked("POST", &path, &admin(), "git", &Value::Null);
        if let Admitted::Call(call) = admit(&event.secret, event.now, &ask) {
            sender.send(git::receive(&event, &call, Whole(Some(body))).await);
            event.send_hints().await;
        }
    });
    let answer = receiver.await.map(|answer| String::from_utf8_lossy(&answer.body).into_owned());
    let answer = answer.unwrap_or_else(|| "lost".into());
    ensure!(answer.contains(&format!("ok {reference}")), "{answer}");
    Ok(())
}
