//! Lanes and the board: relayed, with the address and the bearer filled in.

use yard_common::{LaneName, Refusal};
use yard_objects::Calls as _;
use yard_wire::{board, lane, names};

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
    event.calls().call(&object(call)?, &ask).await?;
    Ok(Answer::json(&serde_json::json!({})))
}

pub(super) async fn events<P: Platform>(event: &Event<P>, call: &Call<'_>) -> Result<Answer, Refusal> {
    let after = call.ask.number("after")?.unwrap_or(0);
    let reply = event.calls().call(&names::board(&call.repo()?), &board::Events { after }).await?;
    Ok(Answer::json(&reply))
}
