//! What can be read of a repository: status, changes, landings.

use std::collections::{BTreeMap, BTreeSet};

use yard_common::edit_list::EditList;
use yard_common::fact::Fact;
use yard_common::{ChangeId, FactNo, LaneName, Millis, Refusal, RepoName};
use yard_objects::{Blobs as _, Calls as _};
use yard_wire::api::{ChangeDetail, ChangeStatus, StatusReply};
use yard_wire::lane::{self, EntryView, Stage};
use yard_wire::names::{self, Remote};
use yard_wire::repository::{ChangeView, Changes, Facts, Pull, Sweep};

use super::{Call, Event, Platform};
use super::{history, stage};
use crate::respond::Answer;

/// Open changes in one status.
const OPEN_MAX: usize = 500;
/// Changes, landings or records in one answer.
const PAGE_MAX: u64 = 500;

pub(super) fn parent(repo: &RepoName) -> String {
    names::repository(&Remote::parent(repo.clone()))
}

pub(super) fn limit(call: &Call<'_>) -> Result<u32, Refusal> {
    let limit = call.ask.number("limit")?.unwrap_or(100).clamp(1, PAGE_MAX);
    Ok(u32::try_from(limit).unwrap_or(100))
}

async fn lane_status<P: Platform>(
    event: &Event<P>,
    repo: &RepoName,
    lane: &LaneName,
    changes: Vec<ChangeId>,
) -> Result<lane::StatusReply, Refusal> {
    let ask = lane::Status { repo: repo.clone(), lane: lane.clone(), changes };
    event.calls().call(&names::lane(repo, lane), &ask).await
}

fn by_change(entries: Vec<EntryView>) -> BTreeMap<ChangeId, EntryView> {
    entries.into_iter().map(|entry| (entry.change.clone(), entry)).collect()
}

fn is_open(stage: Stage) -> bool {
    !matches!(stage, Stage::Landed | Stage::Withdrawn | Stage::AlreadyOnMain | Stage::Expired)
}

pub(super) async fn status<P: Platform>(event: &Event<P>, call: &Call<'_>) -> Result<Answer, Refusal> {
    let repo = call.repo()?;
    let object = parent(&repo);
    let lane = LaneName::new(names::DEFAULT_LANE)?;
    let pull = Pull { lane: lane.clone(), after: FactNo(u64::from(u32::MAX)), limit: 0 };
    let view = event.calls().call(&object, &pull).await?.view;
    let newest = Changes { ids: Vec::new(), before: None, limit: OPEN_MAX as u32 };
    let mut views = event.calls().call(&object, &newest).await?;
    let queue = lane_status(event, &repo, &lane, Vec::new()).await?;
    let entries = by_change(queue.entries);
    let seen: BTreeSet<&ChangeId> = views.iter().map(|view| &view.row.change).collect();
    let older: Vec<ChangeId> = entries.keys().filter(|change| !seen.contains(change)).cloned().collect();
    for ids in older.chunks(OPEN_MAX) {
        let ask = Changes { ids: ids.to_vec(), before: None, limit: OPEN_MAX as u32 };
        views.extend(event.calls().call(&object, &ask).await?);
    }
    let mut open: Vec<(u64, ChangeStatus)> = views
        .iter()
        .map(|view| (view.row.seq.0, stage::status(view, entries.get(&view.row.change))))
        .filter(|(_, status)| is_open(status.stage))
        .collect();
    open.sort_by_key(|(seq, _)| *seq);
    let mut stages: BTreeMap<Stage, u64> = BTreeMap::new();
    open.iter().for_each(|(_, status)| *stages.entry(status.stage).or_default() += 1);
    let outbox = event.calls().call(&object, &Sweep {}).await?.outbox + queue.outbox;
    Ok(Answer::json(&StatusReply {
        repo,
        view,
        waits: queue.waits,
        stages: stages.into_iter().collect(),
        open: open.into_iter().map(|(_, status)| status).take(OPEN_MAX).collect(),
        outbox,
    }))
}

/// The entries of these changes, from the lanes that own them.
async fn entries_of<P: Platform>(
    event: &Event<P>,
    repo: &RepoName,
    views: &[ChangeView],
) -> Result<BTreeMap<ChangeId, EntryView>, Refusal> {
    let mut by_lane: BTreeMap<&LaneName, Vec<ChangeId>> = BTreeMap::new();
    for view in views.iter().filter(|view| view.landed.is_none() && view.closed.is_none()) {
        by_lane.entry(&view.row.lane).or_default().push(view.row.change.clone());
    }
    let mut found = BTreeMap::new();
    for (lane, changes) in by_lane {
        found.extend(by_change(lane_status(event, repo, lane, changes).await?.entries));
    }
    Ok(found)
}

pub(super) async fn list_changes<P: Platform>(event: &Event<P>, call: &Call<'_>) -> Result<Answer, Refusal> {
    let repo = call.repo()?;
    let ask = Changes { ids: Vec::new(), before: call.ask.number("before")?, limit: limit(call)? };
    let views = event.calls().call(&parent(&repo), &ask).await?;
    let entries = entries_of(event, &repo, &views).await?;
    let all: Vec<ChangeStatus> =
        views.iter().map(|view| stage::status(view, entries.get(&view.row.change))).collect();
    Ok(Answer::json(&all))
}

pub(super) async fn show_change<P: Platform>(event: &Event<P>, call: &Call<'_>) -> Result<Answer, Refusal> {
    let (repo, change) = (call.repo()?, call.part::<ChangeId>("change")?);
    let object = parent(&repo);
    let ask = Changes { ids: vec![change.clone()], before: None, limit: 1 };
    let views = event.calls().call(&object, &ask).await?;
    let mut entries = entries_of(event, &repo, &views).await?;
    let no_such = || Refusal::NotFound { kind: "change".into(), name: change.to_string() };
    let view = views.into_iter().next().ok_or_else(no_such)?;
    let entry = entries.remove(&change);
    let facts = Facts { after: FactNo(0), limit: 1000, change: Some(change.clone()) };
    let facts = event.calls().call(&object, &facts).await?;
    let lane = view.row.lane.clone();
    let ask = lane::History { repo: repo.clone(), lane: lane.clone(), change: change.clone() };
    let told = event.calls().call(&names::lane(&repo, &lane), &ask).await?;
    let mut status = stage::status(&view, entry.as_ref());
    if let (Stage::Withdrawn, Some(reason)) = (status.stage, history::closing_reason(&facts)) {
        status.reason = reason;
    }
    let history = history::merged(&facts, told, &change);
    Ok(Answer::json(&ChangeDetail { status, row: view.row, entry, facts, history }))
}

/// Pages of facts read for one answer at most: 50 of up to 4 MiB.
const FACT_PAGES_MAX: usize = 50;

pub(super) async fn landings<P: Platform>(event: &Event<P>, call: &Call<'_>) -> Result<Answer, Refusal> {
    let object = parent(&call.repo()?);
    let limit = limit(call)? as usize;
    let mut after = FactNo(call.ask.number("after")?.unwrap_or(0));
    let mut found: Vec<(FactNo, Millis, Fact)> = Vec::new();
    for _ in 0..FACT_PAGES_MAX {
        let page = event.calls().call(&object, &Facts { after, limit: 500, change: None }).await?;
        let Some(last) = page.last() else { break };
        after = last.0;
        found.extend(page.into_iter().filter(|(_, _, fact)| {
            matches!(fact, Fact::Submitted { .. } | Fact::Landed { .. } | Fact::DirectPush { .. })
        }));
        if found.len() >= limit {
            break;
        }
    }
    found.truncate(limit);
    whole(event, &call.repo()?, &mut found).await?;
    Ok(Answer::json(&found))
}

/// Bytes of lists read for one answer: what would be more is left for the next page.
const LISTS_BYTES_MAX: u64 = 24 * 1024 * 1024;

/// Puts the edits that are values of the bucket into their facts.
async fn whole<P: Platform>(
    event: &Event<P>,
    repo: &RepoName,
    facts: &mut Vec<(FactNo, Millis, Fact)>,
) -> Result<(), Refusal> {
    let mut bytes = 0;
    for at in 0..facts.len() {
        let Some((_, _, fact)) = facts.get_mut(at) else { break };
        let lists: Vec<EditList> = match &*fact {
            Fact::Submitted { row, .. } => row.list.iter().cloned().collect(),
            Fact::Landed { request, .. } => {
                request.changes.iter().filter_map(|listed| listed.list.clone()).collect()
            }
            _ => continue,
        };
        bytes += lists.iter().map(|list| list.bytes).sum::<u64>();
        if bytes > LISTS_BYTES_MAX && at > 0 {
            facts.truncate(at);
            break;
        }
        for list in lists {
            let value = event.platform.blobs().get(&names::edit_list(repo, &list)).await?;
            match fact {
                Fact::Submitted { row, .. } => row.edits = list.read(value.as_deref())?,
                Fact::Landed { request, .. } => {
                    for listed in request.changes.iter_mut().filter(|one| one.list.as_ref() == Some(&list)) {
                        listed.edits = list.read(value.as_deref())?;
                    }
                }
                _ => {}
            }
        }
    }
    Ok(())
}
