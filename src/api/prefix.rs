//! The first characters of an id stand for the whole one where nothing else begins with them, as in git.

use yard_common::{ChangeId, LaneName, Refusal, RunId};
use yard_objects::{Blobs as _, Calls as _};
use yard_wire::names::{self, Remote};
use yard_wire::{lane, repository};

use super::{Call, Event, Platform};

/// Characters that an abbreviated change id has at least, as in git.
const PREFIX_MIN: usize = 4;
/// Length of the ids that the platform makes: `I` and 40 hex digits.
const OWN_ID_LENGTH: usize = 41;

/// The call with its abbreviated ids made whole; `None` when they were.
///
/// # Errors
/// [`Refusal::Invalid`] when an id is ambiguous; [`Refusal::NotFound`] when nothing begins with it.
pub(super) async fn resolved<'a, P: Platform>(
    event: &Event<P>,
    call: &Call<'a>,
) -> Result<Option<Call<'a>>, Refusal> {
    let mut whole = None;
    for (place, (name, given)) in call.parts.iter().enumerate() {
        let found = match *name {
            "change" => change(event, call, given).await?,
            "run" => run(event, call, given).await?,
            _ => None,
        };
        let Some(found) = found.filter(|found| found != given) else { continue };
        let call = whole.get_or_insert_with(|| call.clone());
        if let Some(part) = call.parts.get_mut(place) {
            part.1 = found;
        }
    }
    Ok(whole)
}

/// The only one of these that the text can mean.
fn only(kind: &str, given: &str, found: &[String]) -> Result<Option<String>, Refusal> {
    match found {
        [] => Ok(None),
        [one] => Ok(Some(one.clone())),
        many => {
            let why = format!("ambiguous: {given:?} begins the {kind}s {}: give more of it", many.join(", "));
            Err(Refusal::Invalid { why })
        }
    }
}

async fn change<P: Platform>(
    event: &Event<P>,
    call: &Call<'_>,
    given: &str,
) -> Result<Option<String>, Refusal> {
    let id_like = given.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    let own = given.len() == OWN_ID_LENGTH && given.starts_with('I');
    if own || !id_like || given.len() > 64 {
        return Ok(None);
    }
    if given.len() < PREFIX_MIN {
        let why = format!("{given:?} is too short for a change id: give at least {PREFIX_MIN} characters");
        return Err(Refusal::Invalid { why });
    }
    let find = repository::Find { prefix: given.to_owned() };
    let found = event.calls().call(&names::repository(&Remote::parent(call.repo()?)), &find).await?;
    let found: Vec<String> = found.iter().map(ChangeId::to_string).collect();
    let one = only("change", given, &found)?;
    one.map(Some).ok_or_else(|| Refusal::NotFound { kind: "change".into(), name: given.to_owned() })
}

/// The change that a filter names, by its id or its first characters.
///
/// # Errors
/// As [`resolved`].
pub(super) async fn named_change<P: Platform>(
    event: &Event<P>,
    call: &Call<'_>,
    given: Option<&str>,
) -> Result<Option<ChangeId>, Refusal> {
    let Some(given) = given else { return Ok(None) };
    let whole = change(event, call, given).await?;
    Ok(Some(ChangeId::new(whole.unwrap_or_else(|| given.to_owned()))?))
}

/// Runs are known to their lane while they are new; a log is kept by the run's whole id.
async fn run<P: Platform>(event: &Event<P>, call: &Call<'_>, given: &str) -> Result<Option<String>, Refusal> {
    let (repo, lane) = (call.repo()?, LaneName::new(names::DEFAULT_LANE)?);
    let whole = match RunId::new(given) {
        Ok(run) => event.platform.blobs().head(&names::run_log(&repo, run.as_str())).await?.is_some(),
        Err(_) => true,
    };
    if whole {
        return Ok(None);
    }
    let ask = lane::Status { repo: repo.clone(), lane: lane.clone(), changes: Vec::new() };
    let runs = event.calls().call(&names::lane(&repo, &lane), &ask).await?.runs;
    let mut found: Vec<String> =
        runs.iter().map(|view| view.run.to_string()).filter(|run| run.starts_with(given)).collect();
    found.sort();
    found.dedup();
    if found.iter().any(|run| run == given) {
        return Ok(None);
    }
    only("run", given, &found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_begins_several_ids_is_told_with_them() {
        let ids = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        assert_eq!(only("run", "main-4", &ids(&[])), Ok(None));
        assert_eq!(only("run", "main-4", &ids(&["main-4-1"])), Ok(Some("main-4-1".into())));
        let why = only("run", "main-4", &ids(&["main-4-1", "main-4-2"])).unwrap_err().to_string();
        assert_eq!(why, "ambiguous: \"main-4\" begins the runs main-4-1, main-4-2: give more of it");
    }
}
