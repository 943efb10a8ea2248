//! The index made anew from the objects, in steps that a request can take.

use yard_common::{LaneName, Refusal};
use yard_objects::Calls as _;
use yard_objects::index;
use yard_wire::api::{IndexPart, IndexReply};
use yard_wire::names::{self, Remote};
use yard_wire::repository::Reindex;

use super::{Call, Event, Platform};
use crate::respond::Answer;

/// Deletions of one request, of 1,000 rows each: D1 allows 50 statements a request at least.
const CLEARS_MAX: usize = 20;

async fn parts<P: Platform>(
    event: &Event<P>,
    call: &Call<'_>,
    restart: bool,
) -> Result<Vec<IndexPart>, Refusal> {
    let (repo, lane) = (call.repo()?, LaneName::new(names::DEFAULT_LANE)?);
    let objects = [
        ("repository".to_owned(), names::repository(&Remote::parent(repo.clone()))),
        (format!("lane {lane}"), names::lane(&repo, &lane)),
    ];
    let mut parts = Vec::new();
    for (name, object) in objects {
        let reply = event.calls().call(&object, &Reindex { restart }).await?;
        parts.push(IndexPart { name, sent: reply.sent, total: reply.total });
    }
    Ok(parts)
}

/// Deletes rows; when none is left, has everything sent once more. May be repeated at any time.
pub(super) async fn rebuild<P: Platform>(event: &Event<P>, call: &Call<'_>) -> Result<Answer, Refusal> {
    let repo = call.repo()?;
    // Refused here where there is no such repository.
    let so_far = parts(event, call, false).await?;
    let mut cleared = 0;
    for _ in 0..CLEARS_MAX {
        let gone = index::clear(event.platform.index(), repo.as_str()).await?;
        if gone == 0 {
            let parts = parts(event, call, true).await?;
            return Ok(Answer::json(&IndexReply { cleared, clearing: false, parts }));
        }
        cleared += gone;
    }
    Ok(Answer::json(&IndexReply { cleared, clearing: true, parts: so_far }))
}

/// How far the objects are with sending.
pub(super) async fn progress<P: Platform>(event: &Event<P>, call: &Call<'_>) -> Result<Answer, Refusal> {
    let parts = parts(event, call, false).await?;
    Ok(Answer::json(&IndexReply { cleared: 0, clearing: false, parts }))
}
