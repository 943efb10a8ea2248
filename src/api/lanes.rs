//! Lanes and the board: relayed, with the address and the bearer filled in.

use yard_common::landing::SignedRun;
use yard_common::{LaneName, Refusal, RunId};
use yard_objects::{Blobs as _, Calls as _};
use yard_wire::api::RunLog;
use yard_wire::{board, lane, names, token};

use super::{Call, Event, Platform};
use crate::respond::Answer;

/// Longest wait of a lease for work, in milliseconds.
const LEASE_WAIT_MS_MAX: u64 = 20_000;

fn object(call: &Call<'_>) -> Result<String, Refusal> {
    Ok(names::lane(&call.repo()?, &call.part::<LaneName>("lane")?))
}

pub(super) async fn status<P: Platform>(event: &Event<P>, call: &Call<'_>) -> Result<Answer, Refusal> {
    let ask = lane::Status { repo: call.repo()?, lane: call.part("lane")?, changes: Vec::new() };
    Ok(Answer::json(&event.calls().call(&object(call)?, &ask).await?))
}

pub(super) async fn lease<P: Platform>(event: &Event<P>, call: &Call<'_>) -> Result<Answer, Refusal> {
    let mut ask: lane::Lease = call.body()?;
    ask.repo = call.repo()?;
    ask.lane = call.part("lane")?;
    ask.token = Some(call.bearer()?.id().clone());
    ask.wait_ms = ask.wait_ms.min(LEASE_WAIT_MS_MAX);
    Ok(Answer::json(&event.calls().call(&object(call)?, &ask).await?))
}

pub(super) async fn renew<P: Platform>(event: &Event<P>, call: &Call<'_>) -> Result<Answer, Refusal> {
    let ask: lane::Renew = call.body()?;
    Ok(Answer::json(&event.calls().call(&object(call)?, &ask).await?))
}

pub(super) async fn report<P: Platform>(event: &Event<P>, call: &Call<'_>) -> Result<Answer, Refusal> {
    let ask: lane::Report = call.body()?;
    signed_by(&call.bearer()?.token, &ask.run)?;
    event.calls().call(&object(call)?, &ask).await?;
    Ok(Answer::json(&serde_json::json!({})))
}

/// A result counts only when it was signed with the token that it comes with: a false red would send
/// an author back, and no landing would ever look at it.
fn signed_by(whole: &str, run: &SignedRun) -> Result<(), Refusal> {
    let own = token::public_part(whole)? == run.token;
    if own && token::sign_with(whole, &run.signed_text()) == run.mac {
        return Ok(());
    }
    Err(Refusal::Forbidden { needs: "run, and the report signed with this very token".into() })
}

pub(super) async fn run_log<P: Platform>(event: &Event<P>, call: &Call<'_>) -> Result<Answer, Refusal> {
    let run: RunId = call.part("run")?;
    let key = names::run_log(&call.repo()?, run.as_str());
    let fault = |_| Refusal::Internal { during: "reading a log".into() };
    let Some(bytes) = event.platform.blobs().get(&key).await.map_err(fault)? else {
        return Err(Refusal::NotFound {
            kind: "log (logs of green runs are not kept) of run".into(),
            name: run.to_string(),
        });
    };
    Ok(Answer::json(&RunLog { run, log: String::from_utf8_lossy(&bytes).into_owned() }))
}

pub(super) async fn events<P: Platform>(event: &Event<P>, call: &Call<'_>) -> Result<Answer, Refusal> {
    let after = call.ask.number("after")?.unwrap_or(0);
    let reply = event.calls().call(&names::board(&call.repo()?), &board::Events { after }).await?;
    Ok(Answer::json(&reply))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_that_its_sender_did_not_sign_is_refused() {
        let claims = |id: &str| token::Claims {
            id: yard_common::TokenId::new(id).unwrap(),
            repo: None,
            fork: None,
            scopes: vec![token::Scope::Run],
            expires: yard_common::Millis(1),
        };
        let (mine, other) = (token::issue(b"s", &claims("mine")), token::issue(b"s", &claims("other")));
        let mut run: SignedRun = serde_json::from_value(serde_json::json!({
            "run": "r", "lease": 1, "tree": yard_common::ObjectId::ZERO, "suite": "s", "command": "c",
            "config": null, "token": token::public_part(&mine).unwrap(), "mac": "",
            "result": { "complete": true, "green": true, "ran": 1, "failed": [], "skipped": 0 }
        }))
        .unwrap();
        assert!(signed_by(&mine, &run).is_err(), "unsigned");
        run.mac = token::sign_with(&mine, &run.signed_text());
        assert!(signed_by(&mine, &run).is_ok());
        assert!(signed_by(&other, &run).is_err(), "another's token");
        run.result.green = false;
        assert!(signed_by(&mine, &run).is_err(), "changed after it was signed");
    }
}
