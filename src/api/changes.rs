//! What people and agents do to changes and to landing as a whole.

use yard_common::{ChangeId, Fence, ForkName, IdempotencyKey, LaneName, Refusal};
use yard_objects::Calls as _;
use yard_wire::api::{Approval, ClaimReply, NewClaim, Reason};
use yard_wire::key::ClientKey;
use yard_wire::names::{self, Remote};
use yard_wire::repository::{Act, Do};

use super::{Call, Event, Platform};
use crate::respond::Answer;
use crate::router::{Endpoint as E, Verb};

const CLAIM_SECONDS_MAX: u64 = 24 * 3600;

fn reason(call: &Call<'_>, otherwise: &str) -> Result<String, Refusal> {
    let given: Reason = call.body()?;
    let text = given.reason.trim();
    Ok(if text.is_empty() { otherwise.to_owned() } else { text.chars().take(1000).collect() })
}

fn act_of(call: &Call<'_>) -> Result<Act, Refusal> {
    let change = || call.part::<ChangeId>("change");
    Ok(match call.route.endpoint {
        E::CancelChange => Act::Cancel { change: change()?, reason: reason(call, "")? },
        E::HoldChange => Act::Hold { change: change()?, reason: Some(reason(call, "no reason was given")?) },
        E::ReleaseChange => Act::Hold { change: change()?, reason: None },
        E::RequeueChange => Act::Requeue { change: change()? },
        E::ApproveChange => {
            let given: Approval = call.body()?;
            Act::Approve { change: change()?, version: given.version }
        }
        E::Freeze => Act::Freeze { reason: Some(reason(call, "an admin gave no reason")?) },
        E::Thaw => Act::Freeze { reason: None },
        E::Protect => Act::Protect { protected: true },
        E::Unprotect => Act::Protect { protected: false },
        E::Claim => claim(&call.body()?)?,
        E::ReleaseClaim => Act::Release { fence: Fence(call.number_part("fence")?) },
        _ => return Err(Refusal::Internal { during: "routing".into() }),
    })
}

fn claim(asked: &NewClaim) -> Result<Act, Refusal> {
    if asked.paths.is_empty() || asked.paths.len() > 1000 {
        return Err(Refusal::Invalid { why: "a claim names 1 to 1000 paths".into() });
    }
    if asked.ttl_seconds == 0 || asked.ttl_seconds > CLAIM_SECONDS_MAX {
        return Err(Refusal::Invalid {
            why: format!("ttl_seconds must be 1 to {CLAIM_SECONDS_MAX} (24 hours)"),
        });
    }
    Ok(Act::Claim { paths: asked.paths.clone(), for_ms: asked.ttl_seconds * 1000 })
}

pub(super) async fn act<P: Platform>(event: &Event<P>, call: &Call<'_>) -> Result<Answer, Refusal> {
    let (repo, bearer, act) = (call.repo()?, call.bearer()?, act_of(call)?);
    let chosen = match call.route.verb {
        Verb::Post => Some(ClientKey::new(call.key()?, &bearer.claims, bearer.claims.fork.as_ref())),
        _ => None,
    };
    let key = match &chosen {
        Some(chosen) => chosen.stored(None)?,
        // A DELETE is the same each time it is asked.
        None => {
            let fork = bearer.claims.fork.as_ref().map_or("-", ForkName::as_str);
            IdempotencyKey::new(format!("release-{}/{fork}", call.text("fence")))?
        }
    };
    let ask =
        Do { key, act, fork: bearer.claims.fork.clone(), admin: bearer.is_admin(&repo), by: bearer.name() };
    let done = event.calls().call(&names::repository(&Remote::parent(repo.clone())), &ask).await;
    let fence = done.map_err(|refusal| match &chosen {
        Some(chosen) => chosen.named(refusal),
        None => refusal,
    })?;
    event.hint(&repo, LaneName::new(names::DEFAULT_LANE)?);
    match (call.route.endpoint, fence) {
        (E::Claim, Some(fence)) => Ok(Answer::json(&ClaimReply { fence })),
        (E::Claim, None) => Err(Refusal::Internal { during: "claiming paths".into() }),
        // Its whole id, for whoever gave the first characters.
        _ if !call.text("change").is_empty() => {
            Ok(Answer::json(&serde_json::json!({ "change": call.text("change") })))
        }
        _ => Ok(Answer::json(&serde_json::json!({}))),
    }
}
