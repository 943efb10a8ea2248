//! Cases C1 to C6 and C18: the rules of paths, and records, through git and a real runner.

use anyhow::{Context as _, Result, ensure};
use yard_common::ChangeId;
use yard_tests::{CONFIG, Story, change_in};
use yard_wire::api::ChangeStatus;
use yard_wire::lane::Stage;

/// A repository with one file under a rule.
fn under(rule: &str, name: &str, path: &str, text: &str) -> Result<Story> {
    let config = format!("{CONFIG}\n[[rules]]\npaths = \"{path}\"\nrule = \"{rule}\"\n");
    Story::with_files(name, &[(".switchyard.toml", config.as_str()), (path, text)])
}

/// Two changes from one base, offered one after another; how both end.
fn both(story: &Story, path: &str, first: &str, second: &str) -> Result<[ChangeStatus; 2]> {
    let base = story.git(&["rev-parse", "main"])?;
    let offer = |fork: &str, text: &str| -> Result<ChangeId> {
        let token = story.fork(fork)?;
        let commit = story.commit(&base, &[(path, Some(text))], fork)?;
        let (ok, said) = story.offer(fork, &token, &commit, &[])?;
        ensure!(ok, "{said}");
        change_in(&said)
    };
    let ids = [offer("ann", first)?, offer("bob", second)?];
    let changes = story.run_until_settled(2)?;
    story.landed_after(&base)?;
    let find = |id: &ChangeId| changes.iter().find(|change| change.change == *id).cloned().context("missing");
    let [a, b] = &ids;
    Ok([find(a)?, find(b)?])
}

fn all_landed(changes: &[ChangeStatus]) -> Result<()> {
    ensure!(changes.iter().all(|change| change.stage == Stage::Landed), "{changes:?}");
    Ok(())
}

fn second_collides(changes: &[ChangeStatus; 2], path: &str) -> Result<()> {
    let [first, second] = changes;
    ensure!(first.stage == Stage::Landed, "{first:?}");
    ensure!(second.stage == Stage::NeedsAuthor && second.reason.contains(path), "{second:?}");
    Ok(())
}

#[test]
fn c1_under_a_union_two_rewrites_of_one_line_collide() -> Result<()> {
    let story = under("union-exact", "c1", "list.md", "a\nb\nc\n")?;
    let changes = both(&story, "list.md", "a\nB1\nc\n", "a\nB2\nc\n")?;
    second_collides(&changes, "list.md")?;
    ensure!(story.on_main("list.md")? == "a\nB1\nc");
    Ok(())
}

const LOG: &str = "# Changelog\n\n## Unreleased\n\n- one\n- two\n\n## 1.0\n\n- zero\n";

#[test]
fn c2_an_entry_goes_under_the_newest_unreleased_heading() -> Result<()> {
    let story = under("changelog", "c2", "CHANGELOG.md", LOG)?;
    let cut = LOG.replace("## Unreleased\n", "## Unreleased\n\n## 1.1\n");
    let entry = LOG.replace("- two\n", "- two\n- three\n");
    all_landed(&both(&story, "CHANGELOG.md", &cut, &entry)?)?;
    let main = story.on_main("CHANGELOG.md")?;
    let (open, released) = main.split_once("## 1.1").context("the heading is gone")?;
    ensure!(open.contains("- three") && !released.contains("- three"), "{main}");
    ensure!(released.contains("- one") && released.contains("- two"), "{main}");
    Ok(())
}

#[test]
fn c3_an_entry_deleted_meanwhile_stays_deleted() -> Result<()> {
    let story = under("changelog", "c3", "CHANGELOG.md", LOG)?;
    let deleted = LOG.replace("- two\n", "");
    let entry = LOG.replace("- two\n", "- two\n- three\n");
    all_landed(&both(&story, "CHANGELOG.md", &deleted, &entry)?)?;
    let main = story.on_main("CHANGELOG.md")?;
    ensure!(main.contains("- three") && !main.contains("- two"), "{main}");
    Ok(())
}

#[test]
fn c4_two_keys_added_to_one_json_object_are_both_there() -> Result<()> {
    let story = under("json", "c4", "data.json", "{\n  \"a\": 1\n}\n")?;
    let with = |key: &str| format!("{{\n  \"a\": 1,\n  \"{key}\": 2\n}}\n");
    all_landed(&both(&story, "data.json", &with("b"), &with("c"))?)?;
    let main: serde_json::Value = serde_json::from_str(&story.on_main("data.json")?)?;
    ensure!(main == serde_json::json!({ "a": 1, "b": 2, "c": 2 }), "{main}");
    Ok(())
}

#[test]
fn c5_a_line_that_both_add_stands_there_once() -> Result<()> {
    let story = under("union-exact", "c5", "list.md", "a\nz\n")?;
    all_landed(&both(&story, "list.md", "a\nsame\nb\nz\n", "a\nsame\nc\nz\n")?)?;
    let main = story.on_main("list.md")?;
    ensure!(main.matches("same").count() == 1 && main.contains("\nb\n") && main.contains("\nc\n"), "{main}");
    Ok(())
}

#[test]
fn c6_two_edits_of_the_record_with_one_id_collide_and_others_do_not() -> Result<()> {
    let line = |id: u8, n: u8| format!("{{\"id\":{id},\"n\":{n}}}\n");
    let text = |seven: u8, eight: u8| [line(7, seven), line(8, eight)].concat();
    let story = under("jsonl", "c6", "data.jsonl", &text(0, 0))?;
    second_collides(&both(&story, "data.jsonl", &text(1, 0), &text(2, 0))?, "data.jsonl")?;
    ensure!(
        story.on_main("data.jsonl")?.lines().collect::<Vec<_>>().concat() == text(1, 0).replace('\n', "")
    );
    let story = under("jsonl", "c6-apart", "data.jsonl", &text(0, 0))?;
    all_landed(&both(&story, "data.jsonl", &text(1, 0), &text(0, 2))?)?;
    ensure!(format!("{}\n", story.on_main("data.jsonl")?) == text(1, 2));
    Ok(())
}

#[test]
fn c18_a_record_is_found_by_its_change_whatever_becomes_of_the_commit() -> Result<()> {
    let story = Story::with_files("c18", &[("a.txt", "a\n"), ("b.txt", "b\n")])?;
    let base = story.git(&["rev-parse", "main"])?;
    let token = story.fork("ann")?;
    let commit = story.commit(&base, &[("a.txt", Some("A\n"))], "edit a\n\nTask: task 18")?;
    let (ok, said) = story.offer("ann", &token, &commit, &[])?;
    ensure!(ok, "{said}");
    let change = change_in(&said)?;
    story.run_until_settled(1)?;
    let landed = story.landed_after(&base)?.first().context("nothing landed")?.clone();
    // Rebased, cherry-picked, amended: other commits, and git has no note for them.
    let side = story.commit(&base, &[("b.txt", Some("B\n"))], "side")?;
    story.git(&["checkout", "-q", "--detach", &side])?;
    story.git(&["cherry-pick", &landed])?;
    let picked = story.git(&["rev-parse", "HEAD"])?;
    story.git(&["commit", "-q", "--amend", "-m", &format!("other words\n\nChange-Id: {change}")])?;
    let amended = story.git(&["rev-parse", "HEAD"])?;
    for copy in [&picked, &amended] {
        ensure!(story.git(&["notes", "--ref=intent", "show", copy]).is_err());
        let format = "--format=%(trailers:key=Change-Id,valueonly)";
        let id = ChangeId::new(story.git(&["log", "-1", format, copy])?.trim())?;
        let detail = story.admin.change(&story.repo, &id)?;
        ensure!(detail.status.commit.is_some_and(|id| id.to_string() == landed), "{:?}", detail.status);
        ensure!(detail.row.intent.task == "task 18", "{:?}", detail.row.intent);
        let records = story.admin.records(&story.repo, "limit=100")?;
        ensure!(records.iter().any(|record| record.change == id), "{records:?}");
    }
    // The record itself is still where it was.
    ensure!(story.git(&["notes", "--ref=intent", "show", &landed])?.contains(change.as_str()));
    Ok(())
}
