//! What is searched for in the index: landed changes, and who did what when.

use yard_common::{Millis, Refusal};
use yard_objects::index::search::{self, LogQuery, TimelineQuery};

use super::reads::limit;
use super::{Ask, Call, Event, Platform};
use crate::respond::Answer;
use crate::router::filters;

/// Longest text that is searched for, in bytes: a search reads each row's text once.
const TEXT_BYTES_MAX: usize = 1_000;

fn text(ask: &Ask, name: &str) -> Result<Option<String>, Refusal> {
    let text = ask.query(name).filter(|text| !text.is_empty());
    if text.is_some_and(|text| text.len() > TEXT_BYTES_MAX) {
        return Err(Refusal::Invalid {
            why: format!("query parameter {name} has at most {TEXT_BYTES_MAX} bytes"),
        });
    }
    Ok(text.map(str::to_owned))
}

fn time(ask: &Ask, name: &str) -> Result<Option<Millis>, Refusal> {
    let bad = |_| Refusal::Invalid {
        why: format!(
            "query parameter {name} must be milliseconds since 1970 (yard log and yard timeline take dates)"
        ),
    };
    Ok(match ask.query(name) {
        Some(_) => ask.number(name).map_err(bad)?.map(Millis),
        None => None,
    })
}

/// A filter with a wrong name would find what nobody asked for.
fn only(call: &Call<'_>) -> Result<(), Refusal> {
    let known = filters(call.route.endpoint);
    match call.ask.query.iter().find(|(name, _)| !known.contains(&name.as_str())) {
        Some((name, _)) => {
            Err(Refusal::Invalid { why: format!("no filter {name:?}: there are {}", known.join(", ")) })
        }
        None => Ok(()),
    }
}

pub(super) async fn log<P: Platform>(event: &Event<P>, call: &Call<'_>) -> Result<Answer, Refusal> {
    let (repo, ask) = (call.repo()?, call.ask);
    only(call)?;
    let query = LogQuery {
        agent: text(ask, "agent")?,
        path: text(ask, "path")?,
        task: text(ask, "task")?,
        verdict: text(ask, "verdict")?,
        text: text(ask, "text")?,
        since: time(ask, "since")?,
        until: time(ask, "until")?,
        before: ask.number("before")?,
        limit: limit(call)?,
    };
    let found = search::log(event.platform.index(), repo.as_str(), &query).await;
    Ok(Answer::json(&found?))
}

pub(super) async fn timeline<P: Platform>(event: &Event<P>, call: &Call<'_>) -> Result<Answer, Refusal> {
    let (repo, ask) = (call.repo()?, call.ask);
    only(call)?;
    let bad = || Refusal::Invalid { why: "query parameter before must be the cursor of an event".into() };
    let before = text(ask, "before")?.map(|text| search::cursor(&text).ok_or_else(bad)).transpose()?;
    let query = TimelineQuery {
        agent: text(ask, "agent")?,
        path: text(ask, "path")?,
        change: super::prefix::named_change(event, call, ask.query("change")).await?,
        kind: text(ask, "kind")?,
        since: time(ask, "since")?,
        until: time(ask, "until")?,
        before,
        limit: limit(call)?,
    };
    let found = search::timeline(event.platform.index(), repo.as_str(), &query).await;
    Ok(Answer::json(&found?))
}
