//! Collided changes are redone by a scripted model, through the queue, and land; or it is said why not.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use yard_common::{ChangeId, Fact};
use yard_loadtest::scripted::{Act, Asked};
use yard_tests::{MODEL_TIMEOUT_SECONDS, Story, change_in, model_acts, with_model};
use yard_wire::api::ChangeStatus;
use yard_wire::lane::{Stage, Verdict};

use crate::cli::yard;

/// A list; each `want-*` file is a line that must stand in the file that it names first.
const SUITE: &str = "n=0\n{ echo '<testsuites><testsuite name=\"s\"><testcase name=\"base\"/>'\n\
    for f in want*; do [ -e \"$f\" ] || continue\nread list line <\"$f\"\n\
    if grep -qF \"$line\" \"$list\"; then echo \"<testcase name=\\\"$f\\\"/>\"; else n=1\n\
    echo \"<testcase name=\\\"$f\\\"><failure/></testcase>\"; fi\ndone\n\
    echo '</testsuite></testsuites>'; } >report.xml\n[ $n = 0 ]\n";

const LIST: &str = "export const list = [\n  \"first\",\n];\n";

fn with(line: &str) -> String {
    LIST.replace("];", &format!("  \"{line}\",\n];"))
}

/// Two changes add a line at the same place of `path`, each with a test of its own; the second one's status.
struct Pair {
    story: Story,
    base: String,
    first: ChangeId,
    second: ChangeId,
}

fn offer(
    story: &Story,
    fork: &str,
    from: &str,
    files: &[(&str, Option<&str>)],
    message: &str,
) -> Result<ChangeId> {
    let token = story.fork(fork)?;
    let commit = story.commit(from, files, message)?;
    let (ok, said) = story.offer(fork, &token, &commit, &[])?;
    ensure!(ok, "the push was refused: {said}");
    change_in(&said)
}

fn pair(story: Story, path: &str) -> Result<Pair> {
    let base = story.git(&["rev-parse", "main"])?;
    let add = |fork: &str, line: &str| {
        let (text, want) = (with(line), format!("{path} \"{line}\"\n"));
        let files = [(path, Some(text.as_str())), (&*format!("want-{fork}"), Some(want.as_str()))];
        offer(&story, fork, &base, &files, &format!("Add {line} to {path}\n\nReview: read by two"))
    };
    let first = add("ann", "from-ann")?;
    let second = add("bob", "from-bob")?;
    Ok(Pair { story, base, first, second })
}

fn model_pair(name: &str, path: &str, acts: &[Act]) -> Result<Pair> {
    model_acts(path, acts);
    pair(Story::with_model(name, &[("tests.sh", SUITE), (path, LIST)])?, path)
}

fn asked(path: &str) -> Vec<Asked> {
    with_model().1.asked().into_iter().filter(|asked| asked.paths.contains(&path.to_owned())).collect()
}

impl Pair {
    /// Lets all come to rest; the two, the one that landed first before the other.
    fn settle(&self) -> Result<[ChangeStatus; 2]> {
        let changes = self.story.run_until_settled(2)?;
        self.story.landed_after(&self.base)?;
        let find = |id: &ChangeId| {
            changes.iter().find(|change| change.change == *id).cloned().context("a change is missing")
        };
        let (first, second) = (find(&self.first)?, find(&self.second)?);
        Ok(if second.version.0 > 1 || first.version.0 == 1 && first.stage == Stage::Landed {
            [first, second]
        } else {
            [second, first]
        })
    }

    fn main_has(&self, path: &str, lines: &[&str]) -> Result<()> {
        let main = self.story.on_main(path)?;
        let there: Vec<&str> = main.lines().filter_map(|line| line.trim().strip_suffix("\",")).collect();
        let there: Vec<&str> = there.into_iter().map(|line| line.trim_start_matches('"')).collect();
        ensure!(there == lines, "{path} on main has {there:?}, not {lines:?}");
        Ok(())
    }
}

#[test]
fn a_collided_change_is_redone_by_the_model_and_lands_with_its_note() -> Result<()> {
    let path = "right.js";
    let pair = model_pair("replay-right", path, &[Act::Right])?;
    let [first, second] = pair.settle()?;
    ensure!(first.stage == Stage::Landed && second.stage == Stage::Landed, "{first:?} {second:?}");
    ensure!(second.version.0 == 2 && first.version.0 == 1, "{second:?}");
    pair.main_has(path, &["first", "from-ann", "from-bob"])?;
    ensure!(asked(path).len() == 1, "{:?}", asked(path));
    let commits = pair.story.landed_after(&pair.base)?;
    ensure!(commits.len() == 2, "{commits:?}");
    let commit = second.commit.context("no commit")?.to_string();
    let note = pair.story.git(&["notes", "--ref=intent", "show", &commit])?;
    ensure!(
        note.contains("Replay:") && note.contains("scripted") && note.contains("Review: read by two"),
        "{note}"
    );
    let detail = pair.story.admin.change(&pair.story.repo, &second.change)?;
    let origin = detail.row.replay.context("the row does not say how it came about")?;
    ensure!(origin.of.0 == 1 && origin.reviewed.0 == 1 && !origin.compared.is_empty(), "{origin:?}");
    ensure!(
        origin.cost.model == "scripted" && origin.rivals == std::slice::from_ref(&first.change),
        "{origin:?}"
    );
    pair.story.git(&["fsck", "--strict"])?;
    // What a reviewer reads, without leaving the terminal.
    let told = yard(&pair.story, &["show", second.change.as_str()])?;
    let rival = format!("{}  ", first.change);
    for part in [
        "because  it collides with main",
        &rival,
        "reviewed: version 1",
        "redone on newest main: version 2",
        "+  \"from-",
    ] {
        ensure!(told.contains(part), "{part:?} is not in {told}");
    }
    let told = yard(&pair.story, &["show", "-p", first.change.as_str()])?;
    ensure!(told.contains("diff: version 1") && told.contains(path), "{told}");
    Ok(())
}

#[test]
fn a_wrong_answer_is_caught_by_the_tests_and_main_keeps_the_rival() -> Result<()> {
    let path = "wrong.js";
    let pair = model_pair("replay-wrong", path, &[Act::Wrong])?;
    let [first, second] = pair.settle()?;
    ensure!(first.stage == Stage::Landed, "{first:?}");
    ensure!(second.stage == Stage::NeedsAuthor && second.verdict == Some(Verdict::BrokenAlone), "{second:?}");
    ensure!(second.reason.contains("want-bob"), "{second:?}");
    pair.main_has(path, &["first", "from-ann"])
}

#[test]
fn an_answer_outside_of_the_reviewed_paths_is_refused_with_the_reason() -> Result<()> {
    let path = "outside.js";
    let pair = model_pair("replay-outside", path, &[Act::Outside(".switchyard.toml".into())])?;
    let [_, second] = pair.settle()?;
    ensure!(second.stage == Stage::NeedsAuthor && second.version.0 == 1, "{second:?}");
    ensure!(second.reason.contains("no path of the reviewed change"), "{second:?}");
    ensure!(second.reason.contains(".switchyard.toml"), "{second:?}");
    pair.main_has(path, &["first", "from-ann"])
}

#[test]
fn garbage_is_asked_again_with_its_fault_and_then_explained() -> Result<()> {
    let path = "garbage.js";
    let pair = model_pair("replay-garbage", path, &[Act::Say("Sure! Here you go.".into())])?;
    let [_, second] = pair.settle()?;
    ensure!(second.stage == Stage::NeedsAuthor && second.reason.contains("without an edit"), "{second:?}");
    ensure!(second.reason.contains("in 3 tries"), "{second:?}");
    pair.main_has(path, &["first", "from-ann"])?;
    // A fault that the model mends when it is told costs a question and nothing else.
    let path = "half.js";
    let half = format!("{path}\n<<<<<<< SEARCH\n];\n");
    let pair = model_pair("replay-half", path, &[Act::Say(half), Act::Right])?;
    let [_, second] = pair.settle()?;
    ensure!(second.stage == Stage::Landed, "{second:?}");
    pair.main_has(path, &["first", "from-ann", "from-bob"])
}

#[test]
fn a_provider_in_trouble_is_asked_again_and_one_that_refuses_is_named() -> Result<()> {
    let path = "trouble.js";
    let pair = model_pair("replay-trouble", path, &[Act::Status(503), Act::Right])?;
    let [_, second] = pair.settle()?;
    ensure!(second.stage == Stage::Landed && asked(path).len() == 2, "{second:?} {:?}", asked(path));
    let path = "refused.js";
    let pair = model_pair("replay-refused", path, &[Act::Status(401)])?;
    let [_, second] = pair.settle()?;
    ensure!(
        second.stage == Stage::NeedsAuthor && second.reason.contains("SWITCHYARD_MODEL_KEY"),
        "{second:?}"
    );
    Ok(())
}

#[test]
fn an_answer_after_the_time_limit_counts_for_nothing_and_the_question_is_asked_again() -> Result<()> {
    let path = "late.js";
    let late = Act::Late(1000 * MODEL_TIMEOUT_SECONDS + 2000);
    let pair = model_pair("replay-late", path, &[late, Act::Right])?;
    let [_, second] = pair.settle()?;
    ensure!(second.stage == Stage::Landed && second.version.0 == 2, "{second:?}");
    std::thread::sleep(Duration::from_secs(2));
    let changes = pair.story.run_until_settled(2)?;
    ensure!(changes.iter().all(|change| change.stage == Stage::Landed), "{changes:?}");
    ensure!(pair.story.landed_after(&pair.base)?.len() == 2, "a late answer landed");
    pair.main_has(path, &["first", "from-ann", "from-bob"])
}

#[test]
fn an_answer_has_no_effect_when_the_author_was_faster() -> Result<()> {
    let path = "overtaken.js";
    let pair = model_pair("replay-overtaken", path, &[Act::Late(2500)])?;
    let story = &pair.story;
    let runner = story.runner("early")?;
    while story.landed_after(&pair.base)?.is_empty() {
        runner.round()?;
    }
    let began = std::time::Instant::now();
    while asked(path).is_empty() {
        ensure!(began.elapsed() < yard_tests::PATIENCE, "the model was never asked");
        std::thread::sleep(Duration::from_millis(20));
    }
    // The author does it otherwise, while the model thinks.
    let tip = story.git(&["rev-parse", "origin/main"])?;
    let text = story.on_main(path)?.replace("];", "  \"by-hand\",\n];\n");
    let message = format!("Add by hand\n\nChange-Id: {}", pair.second);
    let again = offer(story, "bob", &tip, &[(path, Some(&text))], &message)?;
    ensure!(again == pair.second);
    let [_, second] = pair.settle()?;
    std::thread::sleep(Duration::from_secs(4));
    let [_, later] = pair.settle()?;
    ensure!(
        second.stage == Stage::Landed && second.version.0 == 2 && later == second,
        "{second:?} {later:?}"
    );
    let facts = story.admin.change(&story.repo, &pair.second)?.facts;
    let landed = facts.iter().filter(|(_, _, fact)| matches!(fact, Fact::Landed { .. })).count();
    ensure!(landed == 1, "landed {landed} times");
    pair.main_has(path, &["first", "from-ann", "by-hand"])
}

#[test]
fn without_a_model_the_author_is_told_that_there_is_none() -> Result<()> {
    let path = "nobody.js";
    let pair = pair(Story::with_files("replay-nobody", &[("tests.sh", SUITE), (path, LIST)])?, path)?;
    let [_, second] = pair.settle()?;
    ensure!(
        second.stage == Stage::NeedsAuthor && second.reason.contains("no model is configured"),
        "{second:?}"
    );
    ensure!(second.reason.contains(path), "{second:?}");
    pair.main_has(path, &["first", "from-ann"])
}

/// A suite that runs every `use-*.sh` after `lib.sh`.
const CALLS: &str = "n=0\n{ echo '<testsuites><testsuite name=\"s\"><testcase name=\"base\"/>'\n\
    for f in use-*.sh; do [ -e \"$f\" ] || continue\n\
    if sh -c \". ./lib.sh; . ./$f\" >/dev/null 2>&1; then echo \"<testcase name=\\\"$f\\\"/>\"; else n=1\n\
    echo \"<testcase name=\\\"$f\\\"><failure/></testcase>\"; fi\ndone\n\
    echo '</testsuite></testsuites>'; } >report.xml\n[ $n = 0 ]\n";

fn a8(story: &Story) -> Result<(String, [ChangeStatus; 3])> {
    let base = story.git(&["rev-parse", "main"])?;
    let lib = "fresh_name() { :; }\n";
    let renames = offer(story, "ann", &base, &[("lib.sh", Some(lib))], "rename")?;
    let calls = offer(story, "bob", &base, &[("use-bob.sh", Some("set -e\nold_name\n"))], "calls")?;
    let other = offer(story, "cid", &base, &[("other.txt", Some("other\n"))], "other")?;
    let changes = story.run_until_settled(3)?;
    story.landed_after(&base)?;
    let find = |id: &ChangeId| changes.iter().find(|change| change.change == *id).cloned().context("missing");
    Ok((base, [find(&renames)?, find(&calls)?, find(&other)?]))
}

#[test]
fn a8_an_interaction_is_replayed_with_the_rival_shown() -> Result<()> {
    let story = Story::with_model("a8-model", &[("tests.sh", CALLS), ("lib.sh", "old_name() { :; }\n")])?;
    let (_, [renames, calls, other]) = a8(&story)?;
    for change in [&renames, &calls, &other] {
        ensure!(change.stage == Stage::Landed, "{change:?}");
    }
    ensure!(story.on_main("lib.sh")?.starts_with("fresh_name"));
    ensure!(story.on_main("use-bob.sh")? == "set -e\nfresh_name");
    let origin = story.admin.change(&story.repo, &calls.change)?.row.replay.context("no replay")?;
    ensure!(origin.rivals.contains(&renames.change), "{origin:?}");
    Ok(())
}

#[test]
fn a8_without_a_model_the_author_is_told_with_what_it_interacts() -> Result<()> {
    let story = Story::with_files("a8-nobody", &[("tests.sh", CALLS), ("lib.sh", "old_name() { :; }\n")])?;
    let (_, [renames, calls, other]) = a8(&story)?;
    ensure!(renames.stage == Stage::Landed && other.stage == Stage::Landed, "{renames:?} {other:?}");
    ensure!(calls.stage == Stage::NeedsAuthor, "{calls:?}");
    ensure!(calls.reason.contains(renames.change.as_str()) && calls.reason.contains("no model"), "{calls:?}");
    Ok(())
}
