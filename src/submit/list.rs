//! Lists of edits that are too long for a fact go into the bucket before they are offered.

use yard_common::edit_list::EditList;
use yard_common::submission::RowEdit;
use yard_common::{Refusal, RepoName};
use yard_objects::Blobs as _;
use yard_wire::names;

use crate::api::{Event, Platform};

/// Puts the list into the bucket where it is long; what the row keeps of it then.
///
/// # Errors
/// [`Refusal::TooLarge`] for a list that no train could take; [`Refusal::Internal`] when the bucket fails.
pub async fn keep<P: Platform>(
    event: &Event<P>,
    repo: &RepoName,
    edits: &[RowEdit],
) -> Result<Option<EditList>, Refusal> {
    let Some((list, value)) = EditList::of(edits)? else { return Ok(None) };
    event.platform.blobs().put(&names::edit_list(repo, &list), value).await?;
    Ok(Some(list))
}
