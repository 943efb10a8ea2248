//! The demo's table of replays: how each was done, why it is the same change, what it cost.

use std::collections::BTreeMap;

use anyhow::Result;
use yard_cli::Client;
use yard_cli::output::{self, Colour, paint};
use yard_common::landing::How;
use yard_common::{Fact, RepoName};
use yard_wire::api::{ChangeDetail, ChangeStatus};
use yard_wire::lane::Stage;

/// Prints it.
///
/// # Errors
/// When the platform does not answer.
pub fn report(client: &Client, repo: &RepoName, changes: &[ChangeStatus]) -> Result<()> {
    let mut rows = Vec::new();
    let mut ruled: BTreeMap<String, (usize, usize)> = BTreeMap::new();
    for change in changes.iter().rev() {
        let detail = client.change(repo, change.change.as_str())?;
        let mut own: BTreeMap<String, usize> = BTreeMap::new();
        by_rule(&detail, &mut own);
        for (rule, edits) in own {
            let count = ruled.entry(rule).or_default();
            *count = (count.0 + 1, count.1 + edits);
        }
        if let Some(row) = by_model(&detail) {
            rows.push(row);
        }
    }
    println!("\nreplays: what collided with main and was redone on it\n");
    for (rule, (count, edits)) in ruled {
        let what = format!("{count} changes, {edits} edits");
        let same = "the rule is exact: the same lines, put where main has them now";
        rows.push(vec![
            what,
            format!("rule {rule}"),
            paint(Colour::Green, "landed"),
            same.into(),
            "none".into(),
        ]);
    }
    let header = ["change", "how", "outcome", "why it is the same change, or why not", "cost"];
    output::text(&output::table(&header, &rows))
}

/// Edits of a landed change that a rule merged.
fn by_rule(detail: &ChangeDetail, rules: &mut BTreeMap<String, usize>) {
    for (_, _, fact) in &detail.facts {
        let Fact::Landed { request, .. } = fact else { continue };
        let own = request.changes.iter().filter(|landed| landed.change == detail.status.change);
        for edit in own.flat_map(|landed| &landed.edits) {
            if let How::Rule(rule) = &edit.how {
                *rules.entry(rule.to_string()).or_default() += 1;
            }
        }
    }
}

/// A change that a model redid, or was to.
fn by_model(detail: &ChangeDetail) -> Option<Vec<String>> {
    let status = &detail.status;
    let asked = detail.history.iter().find(|step| step.kind == "replay");
    let landed = status.stage == Stage::Landed;
    let outcome =
        if landed { paint(Colour::Green, "landed") } else { paint(Colour::Red, "back to its author") };
    let Some(origin) = &detail.row.replay else {
        return (asked.is_some() && !landed).then(|| refused(detail, outcome));
    };
    let cost = &origin.cost;
    let how = match cost.calls {
        1 => format!("model {}, 1 call", cost.model),
        calls => format!("model {}, {calls} calls", cost.model),
    };
    let why =
        if landed { origin.compared.clone() } else { format!("{}; {}", origin.compared, status.reason) };
    #[allow(clippy::cast_precision_loss, reason = "cents")]
    let dollars = cost.micro_usd as f64 / 1e6;
    let price = format!("{} + {} tokens, ${dollars:.4}", cost.tokens_in, cost.tokens_out);
    Some(vec![status.title.clone(), how, outcome, why, price])
}

/// The row of a replay that ended without a version: its history says why, and what it cost.
fn refused(detail: &ChangeDetail, outcome: String) -> Vec<String> {
    let told = detail.history.iter().rev().find(|step| step.kind == "replay");
    let text = told.map(|step| step.text.as_str()).unwrap_or_default();
    let (cost, why) = text
        .split_once('(')
        .and_then(|(_, rest)| rest.split_once("): "))
        .unwrap_or(("", detail.status.reason.as_str()));
    let cost = cost.split_once(", ").map_or(cost, |(_, tokens)| tokens);
    vec![detail.status.title.clone(), "model".into(), outcome, why.to_owned(), cost.to_owned()]
}
