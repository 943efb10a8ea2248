//! The command line as scripts and newcomers use it.

use std::collections::BTreeSet;

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;
use yard_cli::commands::{self, Yard};
use yard_cli::output;
use yard_tests::Story;
use yard_wire::lane::Stage;

/// Runs `yard` here and gives what it printed.
pub(super) fn yard(story: &Story, words: &[&str]) -> Result<String> {
    let place = ["--url", story.url.as_str(), "--repo", story.repo.as_str(), "--token", story.admin.token()];
    let yard = Yard::from_words(place.into_iter().chain(words.iter().copied()))?;
    let (done, printed) = output::capture(|| commands::run(yard));
    done.map(|()| printed)
}

fn refused(story: &Story, words: &[&str]) -> Result<String> {
    match yard(story, words) {
        Ok(printed) => anyhow::bail!("{words:?} was not refused: {printed}"),
        Err(error) => Ok(format!("{error:#}")),
    }
}

#[test]
fn every_command_prints_json_when_it_is_asked_to() -> Result<()> {
    let story = Story::with_files("cli-json", &[("a.txt", "a\n"), ("b.txt", "b\n")])?;
    let base = story.git(&["rev-parse", "main"])?;
    let token = story.fork("ann")?;
    let offer =
        |path: &str, title: &str| story.offer_by_api("ann", &token, &base, &[(path, Some("new\n"))], title);
    let (kept, other) = (offer("a.txt", "kept")?, offer("b.txt", "other")?);
    let (kept, other) = (kept.as_str(), other.as_str());
    let clone = story.sandbox.join("by-yard").to_string_lossy().into_owned();
    let work = story.sandbox.join("run-by-yard").to_string_lossy().into_owned();
    // Each row: the words, and where in the document something must stand.
    let table: Vec<(Vec<&str>, &str)> = vec![
        (vec!["repo", "cli-json-second"], "/token"),
        (vec!["fork", "bob"], "/url"),
        (vec!["clone", "--fork", "ann", &clone], "/dir"),
        (vec!["status"], "/open/0/change"),
        (vec!["status", "--all", "5"], "/0/change"),
        (vec!["hold", &kept[..8], "--reason", "wait"], "/change"),
        (vec!["release", kept], "/change"),
        (vec!["requeue", kept], "/change"),
        (vec!["approve", kept, "v1"], "/change"),
        (vec!["cancel", &other[..8], "--reason", "not needed"], "/change"),
        (vec!["freeze", "--reason", "wait"], ""),
        (vec!["thaw"], ""),
        (vec!["protect"], ""),
        (vec!["unprotect"], ""),
        (vec!["claim", "c.txt"], "/fence"),
        (vec!["claim", "--release", "1"], ""),
        (vec!["token", "read,submit", "--fork", "ann"], "/id"),
        (vec!["runner", "--runs", "1", "--work", &work], "/ran"),
        (vec!["logs"], ""),
        (vec!["show", &kept[..8]], "/history/0/text"),
        (vec!["log", "--agent", "ann", "--since", "1d"], ""),
        (vec!["timeline", "--kind", "submitted"], "/0/changes/0"),
        (vec!["rules", "test", "--rule", "sorted-lines", "--paths", "INDEX", "-n", "1"], ""),
        (vec!["fsck", "--landings"], ""),
        (vec!["rebuild-index"], "/parts/0/sent"),
    ];
    let mut seen = BTreeSet::new();
    for (words, place) in &table {
        let mut json = vec!["--json"];
        json.extend(words);
        let printed = yard(&story, &json).with_context(|| format!("{words:?}"))?;
        let document: Value =
            serde_json::from_str(&printed).with_context(|| format!("{words:?} printed {printed}"))?;
        ensure!(document.pointer(place).is_some(), "{words:?} has no {place}: {printed}");
        seen.insert((*words.first().context("no words")?).to_owned());
    }
    ensure!(seen == Yard::names().into_iter().collect(), "the table lacks a command: {seen:?}");
    Ok(())
}

#[test]
fn the_whole_story_of_a_change_is_told_in_order() -> Result<()> {
    let story = Story::with_files("cli-story", &[("a.txt", "a\n")])?;
    let base = story.git(&["rev-parse", "main"])?;
    let (ann, bob) = (story.fork("ann")?, story.fork("bob")?);
    let red = story.offer_by_api("ann", &ann, &base, &[("red-1", Some("x\n"))], "breaks")?;
    story.run_until_settled(1)?;
    let first = story.offer_by_api("bob", &bob, &base, &[("a.txt", Some("b\n"))], "first")?;
    story.run_until_settled(2)?;
    let late = story.offer_by_api("ann", &ann, &base, &[("a.txt", Some("c\n"))], "collides")?;
    let changes = story.run_until_settled(3)?;
    let stage = |change: &yard_common::ChangeId| {
        changes.iter().find(|status| status.change == *change).map(|status| status.stage)
    };
    ensure!(stage(&first) == Some(Stage::Landed) && stage(&late) == Some(Stage::NeedsAuthor), "{changes:?}");
    let cut = |id: &str| id.chars().take(9).collect::<String>();
    let in_order = |told: &str, parts: &[&str]| {
        let mut rest = told;
        parts.iter().all(|part| match rest.split_once(part) {
            Some((_, after)) => {
                rest = after;
                true
            }
            None => false,
        })
    };
    let told = yard(&story, &["show", &cut(red.as_str())])?;
    let parts = ["version 1 accepted", "attempt main/", "aboard", "red, 1 of 2 tests: "];
    ensure!(in_order(&told, &parts) && told.contains("sent back: red alone"), "{told}");
    ensure!(told.contains("end of the log of run"), "{told}");
    let told = yard(&story, &["show", &cut(late.as_str())])?;
    ensure!(
        in_order(&told, &["version 1 accepted", "collides with main at a.txt", "replay 1 failed"]),
        "{told}"
    );
    yard(&story, &["cancel", &cut(late.as_str()), "--reason", "ann does it otherwise"])?;
    let told = yard(&story, &["show", late.as_str()])?;
    ensure!(told.contains("taken back by an admin") && told.contains(": ann does it otherwise"), "{told}");
    let told = yard(&story, &["show", &cut(first.as_str())])?;
    ensure!(in_order(&told, &["version 1 accepted", "(the train): green", "landed as", "proof:"]), "{told}");
    Ok(())
}

#[test]
fn an_id_may_be_cut_short_while_it_is_the_only_one() -> Result<()> {
    let story = Story::with_files("cli-prefix", &[("a.txt", "a\n"), ("b.txt", "b\n")])?;
    let base = story.git(&["rev-parse", "main"])?;
    let token = story.fork("ann")?;
    for (name, path) in [("same-begin-one", "a.txt"), ("same-begin-two", "b.txt")] {
        let commit = story.commit(&base, &[(path, Some("x\n"))], &format!("t\n\nChange-Id: {name}"))?;
        let (ok, said) = story.offer("ann", &token, &commit, &[])?;
        ensure!(ok, "{said}");
    }
    let said = refused(&story, &["hold", "same-begin"])?;
    ensure!(said.contains("ambiguous") && said.contains("same-begin-one, same-begin-two"), "{said}");
    ensure!(yard(&story, &["hold", "same-begin-t"])? == "held same-begin-two\n");
    let said = refused(&story, &["show", "sam"])?;
    ensure!(said.contains("at least 4 characters"), "{said}");
    let said = refused(&story, &["show", "nothing-like-it"])?;
    ensure!(said.contains("there is no change"), "{said}");
    Ok(())
}

#[test]
fn a_configuration_that_cannot_be_read_is_refused_with_line_and_key() -> Result<()> {
    let story = Story::with_files("cli-config", &[("a.txt", "a\n")])?;
    let base = story.git(&["rev-parse", "main"])?;
    let token = story.fork("ann")?;
    let bad = "[lane]\ntrain_max = 8\n\n[checks]\ncomand = \"x\"\n";
    let commit = story.commit(&base, &[(".switchyard.toml", Some(bad))], "misspelt")?;
    let (ok, said) = story.offer("ann", &token, &commit, &[])?;
    ensure!(!ok && said.contains("line 5") && said.contains("comand"), "{said}");
    let by_api = story.offer_by_api("ann", &token, &base, &[(".switchyard.toml", Some(bad))], "misspelt");
    let said = by_api.err().context("it was taken by the API")?.to_string();
    ensure!(said.contains("line 5") && said.contains("comand"), "{said}");
    ensure!(story.admin.changes(&story.repo, 10)?.is_empty());
    Ok(())
}

#[test]
fn a_claim_is_shown_with_its_holder_and_until_when() -> Result<()> {
    let story = Story::with_files("cli-claims", &[("a.txt", "a\n")])?;
    yard(&story, &["claim", "src", "--seconds", "240"])?;
    let told = yard(&story, &["status"])?;
    ensure!(told.contains("held by") && told.contains("(in 4 min)") && told.contains("src"), "{told}");
    yard(&story, &["freeze"])?;
    let told = yard(&story, &["status"])?;
    ensure!(told.matches("frozen").count() == 1, "{told}");
    let said = refused(&story, &["token", "read", "--fork", "nobody"])?;
    ensure!(said.contains("there is no fork \"nobody\""), "{said}");
    let said = refused(&story, &["token", "--revoke", "t-unknown"])?;
    ensure!(said.contains("there is no token"), "{said}");
    let said = refused(&story, &["repo", "cli-claims"])?;
    ensure!(said.contains("choose another name"), "{said}");
    Ok(())
}
