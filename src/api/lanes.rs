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

/// A lane that the repository has, checked before its object is called: the call alone would make one.
///
/// Every repository has the default lane and no other. Lanes of its configuration are to be asked of
/// the repository here.
fn known(lane: LaneName) -> Result<LaneName, Refusal> {
    if lane.as_str() == names::DEFAULT_LANE {
        return Ok(lane);
    }
    Err(Refusal::NotFound { kind: "lane".into(), name: lane.to_string() })
}

fn lane_of(call: &Call<'_>) -> Result<LaneName, Refusal> {
    known(call.part("lane")?)
}

fn object(call: &Call<'_>) -> Result<String, Refusal> {
    Ok(names::lane(&call.repo()?, &lane_of(call)?))
}

pub(super) async fn status<P: Platform>(event: &Event<P>, call: &Call<'_>) -> Result<Answer, Refusal> {
    let ask = lane::Status { repo: call.repo()?, lane: lane_of(call)?, changes: Vec::new() };
    Ok(Answer::json(&event.calls().call(&object(call)?, &ask).await?))
}

pub(super) async fn lease<P: Platform>(event: &Event<P>, call: &Call<'_>) -> Result<Answer, Refusal> {
    let mut ask: lane::Lease = call.body()?;
    ask.repo = call.repo()?;
    ask.lane = lane_of(call)?;
    ask.token = Some(call.bearer()?.id().clone());
    ask.wait_ms = ask.wait_ms.min(LEASE_WAIT_MS_MAX);
    Ok(Answer::json(&event.calls().call(&object(call)?, &ask).await?))
}

pub(super) async fn renew<P: Platform>(event: &Event<P>, call: &Call<'_>) -> Result<Answer, Refusal> {
    let mut ask: lane::Renew = call.body()?;
    ask.token = Some(call.bearer()?.id().clone());
    Ok(Answer::json(&event.calls().call(&object(call)?, &ask).await?))
}

pub(super) async fn report<P: Platform>(event: &Event<P>, call: &Call<'_>) -> Result<Answer, Refusal> {
    let mut ask: lane::Report = call.body()?;
    ask.token = Some(call.bearer()?.id().clone());
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

/// The lane has the log of a run that goes on, and of the last green ones; the bucket the others.
pub(super) async fn run_log<P: Platform>(event: &Event<P>, call: &Call<'_>) -> Result<Answer, Refusal> {
    let (repo, run) = (call.repo()?, call.part::<RunId>("run")?);
    let from = call.ask.number("from")?.unwrap_or(0);
    let none = || Refusal::NotFound { kind: "log of run".into(), name: run.to_string() };
    let lane = names::lane_of_run(&run).and_then(|lane| known(lane).ok()).ok_or_else(none)?;
    let ask = lane::Log { run: run.clone(), from };
    let found = match event.calls().call(&names::lane(&repo, &lane), &ask).await? {
        Some(found) => found,
        None => {
            let fault = |_| Refusal::Internal { during: "reading a log".into() };
            let kept = event.platform.blobs().get(&names::run_log(&repo, run.as_str())).await;
            stored_log(&kept.map_err(fault)?.ok_or_else(none)?, from)
        }
    };
    Ok(Answer::json(&shown(run, from, &found)))
}

/// A log as the bucket has it.
fn stored_log(bytes: &[u8], from: u64) -> lane::LogReply {
    let mut whole: lane::LogReply = serde_json::from_slice(bytes).unwrap_or_else(|_| {
        let segment = lane::Segment { start: 0, text: String::from_utf8_lossy(bytes).into_owned() };
        lane::LogReply { segments: vec![segment], ended: true, ..lane::LogReply::default() }
    });
    whole.segments = whole.segments.into_iter().filter_map(|segment| segment.after(from)).collect();
    whole
}

/// The text of a log, each gap as a line that names its size.
fn shown(run: RunId, from: u64, found: &lane::LogReply) -> RunLog {
    let (mut log, mut next) = (String::new(), from);
    for segment in &found.segments {
        if segment.start > next {
            let gap = segment.start - next;
            log.push_str(&format!("\n[... {gap} bytes of the log are left out here ...]\n"));
        }
        log.push_str(&segment.text);
        next = segment.end();
    }
    RunLog { run, log, next, lease: found.lease, ended: found.ended }
}

pub(super) async fn events<P: Platform>(event: &Event<P>, call: &Call<'_>) -> Result<Answer, Refusal> {
    let after = call.ask.number("after")?.unwrap_or(0);
    let ask = board::Events { after, last: call.ask.number("last")? };
    let reply = event.calls().call(&names::board(&call.repo()?), &ask).await?;
    Ok(Answer::json(&reply))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_lanes_that_a_repository_has_are_called() {
        let lane = |name: &str| known(LaneName::new(name).unwrap());
        assert!(lane("main").is_ok());
        assert!(matches!(lane("other"), Err(Refusal::NotFound { .. })));
    }

    #[test]
    fn a_log_is_shown_from_a_place_on_with_its_gaps_named() {
        let segment = |start, text: &str| lane::Segment { start, text: text.into() };
        let whole = lane::LogReply {
            lease: yard_common::LeaseNo(2),
            segments: vec![segment(0, "head\n"), segment(105, "tail\n")],
            ended: true,
        };
        let run = || RunId::new("main-1-1").unwrap();
        let log = shown(run(), 0, &whole);
        let gap = "\n[... 100 bytes of the log are left out here ...]\n";
        assert_eq!(log.log, format!("head\n{gap}tail\n"));
        assert_eq!((log.next, log.lease, log.ended), (110, whole.lease, true));
        let stored = serde_json::to_vec(&whole).unwrap();
        assert_eq!(shown(run(), 107, &stored_log(&stored, 107)).log, "il\n");
        let rest = shown(run(), 110, &stored_log(&stored, 110));
        assert_eq!((rest.log.as_str(), rest.next), ("", 110));
        assert_eq!(shown(run(), 0, &stored_log(b"plain \xff text", 0)).log, "plain \u{fffd} text");
    }

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
