//! Changes land: cases A1 to A16, B1, B3, C5, C7 through real git, the API and a real runner.

use std::collections::BTreeSet;

use anyhow::{Context as _, Result, ensure};
use yard_common::ChangeId;
use yard_tests::{Story, change_in};
use yard_wire::lane::{Stage, Verdict};

fn start(story: &Story) -> Result<String> {
    story.git(&["rev-parse", "main"])
}

fn paths_of(story: &Story, commit: &str) -> Result<BTreeSet<String>> {
    let out = story.git(&["diff-tree", "-r", "--no-commit-id", "--name-only", commit])?;
    Ok(out.lines().map(str::to_owned).collect())
}

fn offer(
    story: &Story,
    fork: &str,
    from: &str,
    files: &[(&str, Option<&str>)],
    title: &str,
) -> Result<ChangeId> {
    let token = story.fork(fork)?;
    let commit = story.commit(from, files, title)?;
    let (ok, said) = story.offer(fork, &token, &commit, &[])?;
    ensure!(ok, "the push was refused: {said}");
    change_in(&said)
}

#[test]
fn a1_two_changes_of_two_files_land_with_their_own_edits_commit_and_note() -> Result<()> {
    let story = Story::with_files("a1", &[("a.txt", "a\n"), ("b.txt", "b\n")])?;
    let base = start(&story)?;
    let first = offer(&story, "ann", &base, &[("a.txt", Some("A\n"))], "edit a")?;
    let token = story.fork("bob")?;
    let second = story.offer_by_api("bob", &token, &base, &[("b.txt", Some("B\n"))], "edit b")?;
    let changes = story.run_until_settled(2)?;
    ensure!(changes.iter().all(|change| change.stage == Stage::Landed), "{changes:?}");
    let commits = story.landed_after(&base)?;
    ensure!(commits.len() == 2);
    ensure!(story.on_main("a.txt")? == "A" && story.on_main("b.txt")? == "B");
    for commit in &commits {
        let change = changes.iter().find(|change| change.commit.is_some_and(|id| id.to_string() == *commit));
        let change = change.context("a commit of no change")?;
        let path = if change.change == first { "a.txt" } else { "b.txt" };
        ensure!(change.change == first || change.change == second);
        ensure!(paths_of(&story, commit)? == BTreeSet::from([path.to_owned()]));
        let note = story.git(&["notes", "--ref=intent", "show", commit])?;
        ensure!(note.contains(change.change.as_str()), "{note}");
    }
    let tested = story.admin.landings(&story.repo, yard_common::FactNo(0), 1000)?;
    let tip_tree = story.git(&["rev-parse", "origin/main^{tree}"])?;
    let runs: Vec<String> = tested
        .iter()
        .filter_map(|(_, _, fact)| match fact {
            yard_common::Fact::Landed { request, .. } => {
                Some(request.runs.iter().map(|run| run.tree.to_string()))
            }
            _ => None,
        })
        .flatten()
        .collect();
    ensure!(runs.contains(&tip_tree), "main's tree {tip_tree} is none of the tested {runs:?}");
    Ok(())
}

#[test]
fn a2_a_stale_tree_is_refused_with_the_list_of_what_it_would_take_back() -> Result<()> {
    let files: Vec<(String, String)> = (0..6).map(|n| (format!("f{n}.txt"), "0\n".to_owned())).collect();
    let list: Vec<(&str, &str)> = files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
    let story = Story::with_files("a2", &list)?;
    let base = start(&story)?;
    let stale = story.git(&["rev-parse", "main^{tree}"])?;
    for n in 0..4 {
        let path = format!("f{n}.txt");
        offer(&story, &format!("agent-{n}"), &base, &[(&path, Some("1\n"))], &format!("edit {n}"))?;
    }
    story.run_until_settled(4)?;
    story.landed_after(&base)?;
    let tip = story.git(&["rev-parse", "origin/main"])?;
    let commit = story.git(&["commit-tree", &stale, "-p", &tip, "-m", "an old tree"])?;
    let token = story.fork("late")?;
    let (ok, said) = story.offer("late", &token, &commit, &[])?;
    ensure!(!ok && said.contains("f0.txt"), "{said}");
    Ok(())
}

#[test]
fn a5_a_suite_without_a_test_lands_nothing() -> Result<()> {
    let story = Story::with_files("a5", &[("a.txt", "a\n")])?;
    let base = start(&story)?;
    let none = "echo '<testsuites><testsuite name=\"s\"></testsuite></testsuites>' >report.xml\nexit 0\n";
    story.commit(&base, &[("tests.sh", Some(none))], "a suite of nothing")?;
    story.git(&["push", "-q", "origin", "HEAD:refs/heads/main"])?;
    let base = story.git(&["rev-parse", "HEAD"])?;
    let change = offer(&story, "ann", &base, &[("a.txt", Some("A\n"))], "edit a")?;
    let mut runner = story.runner("runner")?;
    runner.lanes.truncate(1);
    for _ in 0..6 {
        runner.round()?;
        let status = story.admin.change(&story.repo, &change)?.status;
        ensure!(status.stage != Stage::Landed, "a run of zero tests landed a change");
        if status.stage == Stage::Held {
            break;
        }
    }
    ensure!(story.landed_after(&base)?.is_empty());
    Ok(())
}

#[test]
fn a11_a_change_lands_although_its_forks_branch_is_deleted() -> Result<()> {
    let story = Story::with_files("a11", &[("a.txt", "a\n")])?;
    let base = start(&story)?;
    let token = story.fork("ann")?;
    let commit = story.commit(&base, &[("a.txt", Some("A\n"))], "edit a")?;
    let fork = story.fork_remote("ann");
    let branch = format!("{commit}:refs/heads/work");
    story.sandbox.git("clone", Some(&token), &["push", "-q", &fork, &branch])?;
    let (ok, said) = story.offer("ann", &token, &commit, &[])?;
    ensure!(ok, "{said}");
    story.sandbox.git("clone", Some(&token), &["push", "-q", &fork, ":refs/heads/work"])?;
    let changes = story.run_until_settled(1)?;
    ensure!(changes.iter().all(|change| change.stage == Stage::Landed), "{changes:?}");
    Ok(())
}

#[test]
fn a12_a_direct_push_during_the_test_makes_the_train_assemble_anew() -> Result<()> {
    let story = Story::with_files("a12", &[("a.txt", "a\n"), ("b.txt", "b\n")])?;
    let base = start(&story)?;
    let change = offer(&story, "ann", &base, &[("a.txt", Some("A\n"))], "edit a")?;
    story.wait_for(&change, Stage::Testing)?;
    let direct = story.commit(&base, &[("b.txt", Some("direct\n"))], "a direct push")?;
    story.git(&["push", "-q", "origin", &format!("{direct}:refs/heads/main")])?;
    story.run_until_settled(1)?;
    let commits = story.landed_after(&base)?;
    ensure!(commits.len() == 2 && commits.first() == Some(&direct), "{commits:?}");
    ensure!(story.on_main("a.txt")? == "A" && story.on_main("b.txt")? == "direct");
    Ok(())
}

#[test]
fn a14_the_same_diff_twice_lands_once() -> Result<()> {
    let story = Story::with_files("a14", &[("a.txt", "a\n")])?;
    let base = start(&story)?;
    offer(&story, "ann", &base, &[("a.txt", Some("A\n"))], "edit a")?;
    offer(&story, "bob", &base, &[("a.txt", Some("A\n"))], "edit a too")?;
    let changes = story.run_until_settled(2)?;
    let stages: BTreeSet<Stage> = changes.iter().map(|change| change.stage).collect();
    ensure!(stages == BTreeSet::from([Stage::Landed, Stage::AlreadyOnMain]), "{changes:?}");
    ensure!(story.landed_after(&base)?.len() == 1, "an empty commit landed");
    Ok(())
}

#[test]
fn a16_a_new_version_of_a_landed_change_is_answered_make_a_new_one() -> Result<()> {
    let story = Story::with_files("a16", &[("a.txt", "a\n")])?;
    let base = start(&story)?;
    let token = story.fork("ann")?;
    let message = "edit a\n\nChange-Id: I00000000000000000000000000000000000000a1";
    let commit = story.commit(&base, &[("a.txt", Some("A\n"))], message)?;
    let (ok, said) = story.offer("ann", &token, &commit, &[])?;
    ensure!(ok, "{said}");
    story.run_until_settled(1)?;
    let again = story.commit(&commit, &[("a.txt", Some("AA\n"))], message)?;
    let (ok, said) = story.offer("ann", &token, &again, &[])?;
    ensure!(!ok && said.contains("landed") && said.contains("new change"), "{said}");
    Ok(())
}

#[test]
fn a_broken_change_is_sent_back_with_proof_and_the_others_land() -> Result<()> {
    let story = Story::with_files("broken", &[("a.txt", "a\n"), ("b.txt", "b\n")])?;
    let base = start(&story)?;
    let good = offer(&story, "ann", &base, &[("a.txt", Some("A\n"))], "good")?;
    let bad = offer(&story, "bob", &base, &[("red-1", Some("x\n"))], "bad")?;
    let also = offer(&story, "cid", &base, &[("b.txt", Some("B\n"))], "also good")?;
    story.run_until_settled(3)?;
    for change in [&good, &also] {
        ensure!(story.admin.change(&story.repo, change)?.status.stage == Stage::Landed);
    }
    let detail = story.admin.change(&story.repo, &bad)?;
    ensure!(detail.status.stage == Stage::NeedsAuthor, "{:?}", detail.status);
    ensure!(detail.status.verdict == Some(Verdict::BrokenAlone), "{:?}", detail.status);
    let runs = detail.entry.context("no entry")?.runs;
    let log = story.admin.run_log(&story.repo, runs.last().context("a verdict without runs")?, 0)?;
    ensure!(log.log.contains("the suite says"), "the log of the red run: {log:?}");
    Ok(())
}

#[test]
fn a_collision_waits_for_its_author_and_names_the_path() -> Result<()> {
    let story = Story::with_files("collision", &[("a.txt", "a\n")])?;
    let base = start(&story)?;
    offer(&story, "ann", &base, &[("a.txt", Some("from ann\n"))], "ann's")?;
    offer(&story, "bob", &base, &[("a.txt", Some("from bob\n"))], "bob's")?;
    let changes = story.run_until_settled(2)?;
    let landed = changes.iter().filter(|change| change.stage == Stage::Landed).count();
    let back =
        changes.iter().find(|change| change.stage == Stage::NeedsAuthor).context("nobody was sent back")?;
    ensure!(landed == 1 && back.reason.contains("a.txt"), "{changes:?}");
    Ok(())
}

#[test]
fn c5_an_index_that_everyone_touches_never_collides_and_is_complete() -> Result<()> {
    let story = Story::with_files("index", &[("index.txt", "base\n")])?;
    let base = start(&story)?;
    let words = ["delta", "alpha", "charlie", "bravo", "alpha"];
    for (n, word) in words.iter().enumerate() {
        let mut lines = ["base", word];
        lines.sort_unstable();
        let index = lines.join("\n") + "\n";
        let own = format!("own-{n}.txt");
        offer(
            &story,
            &format!("agent-{n}"),
            &base,
            &[("index.txt", Some(&index)), (&own, Some(word))],
            word,
        )?;
    }
    let changes = story.run_until_settled(words.len())?;
    ensure!(changes.iter().all(|change| change.stage == Stage::Landed), "{changes:?}");
    story.landed_after(&base)?;
    ensure!(story.on_main("index.txt")? == "alpha\nbase\nbravo\ncharlie\ndelta");
    Ok(())
}

#[test]
fn c7_an_executable_bit_and_new_content_are_both_kept() -> Result<()> {
    let story = Story::with_files("bits", &[("run.sh", "echo 1\n")])?;
    let base = start(&story)?;
    story.git(&["checkout", "-q", "--detach", &base])?;
    story.git(&["update-index", "--chmod=+x", "run.sh"])?;
    story.git(&["commit", "-q", "-m", "make it executable"])?;
    let commit = story.git(&["rev-parse", "HEAD"])?;
    story.git(&["reset", "-q", "--hard"])?;
    let token = story.fork("ann")?;
    let (ok, said) = story.offer("ann", &token, &commit, &[])?;
    ensure!(ok, "{said}");
    offer(&story, "bob", &base, &[("run.sh", Some("echo 2\n"))], "new content")?;
    let changes = story.run_until_settled(2)?;
    ensure!(changes.iter().all(|change| change.stage == Stage::Landed), "{changes:?}");
    story.landed_after(&base)?;
    let entry = story.git(&["ls-tree", "origin/main", "run.sh"])?;
    ensure!(entry.starts_with("100755") && story.on_main("run.sh")? == "echo 2", "{entry}");
    Ok(())
}

#[test]
fn b3_a_test_that_fails_once_is_run_again_and_nobody_is_sent_back() -> Result<()> {
    let story = Story::with_files("flaky", &[("a.txt", "a\n")])?;
    let marker = story.sandbox.join("was-red");
    let suite = format!(
        "if [ -e {0} ]; then \
         echo '<testsuites><testsuite name=\"s\"><testcase name=\"moody\"/></testsuite></testsuites>' \
         >report.xml; exit 0; fi\ntouch {0}\necho '<testsuites><testsuite name=\"s\"><testcase \
         name=\"moody\"><failure/></testcase></testsuite></testsuites>' >report.xml\nexit 1\n",
        marker.display()
    );
    let base = start(&story)?;
    let base = story.commit(&base, &[("tests.sh", Some(&suite))], "a moody suite")?;
    story.git(&["push", "-q", "origin", &format!("{base}:refs/heads/main")])?;
    offer(&story, "ann", &base, &[("a.txt", Some("A\n"))], "edit a")?;
    let changes = story.run_until_settled(1)?;
    ensure!(changes.iter().all(|change| change.stage == Stage::Landed), "{changes:?}");
    let lane = story.admin.lane(&story.repo, &yard_common::LaneName::new("main")?)?;
    ensure!(lane.flaky.iter().any(|(name, _)| name == "moody"), "the flaky test is hidden: {:?}", lane.flaky);
    Ok(())
}

#[test]
fn d10_a_clone_by_yard_has_the_notes_and_a_push_says_how_others_get_them() -> Result<()> {
    let story = Story::with_files("d10", &[("a.txt", "a\n")])?;
    let base = start(&story)?;
    let token = story.fork("ann")?;
    let commit = story.commit(&base, &[("a.txt", Some("A\n"))], "edit a")?;
    let (ok, said) = story.offer("ann", &token, &commit, &[])?;
    ensure!(ok && said.contains("refs/notes/"), "{said}");
    story.run_until_settled(1)?;
    let place = yard_cli::place::Place {
        url: Some(story.url.clone()),
        token: Some(token.clone()),
        repo: Some(story.repo.to_string()),
        json: false,
    };
    let target = story.sandbox.join("by-yard");
    let yard = yard_cli::commands::Yard {
        place,
        command: yard_cli::commands::Command::clone_into(Some("ann"), &target)?,
    };
    yard_cli::commands::run(yard)?;
    let log = story.sandbox.git("by-yard", None, &["log", "-1", "--notes=intent"])?;
    ensure!(log.contains("Change-Id:"), "{log}");
    let push = story.sandbox.git("by-yard", None, &["config", "remote.origin.pushurl"])?;
    ensure!(push == story.fork_remote("ann"), "{push}");
    Ok(())
}

#[test]
fn work_goes_on_from_ones_own_landed_commit_without_bringing_anything_back() -> Result<()> {
    let story = Story::with_files("goes-on", &[("a.txt", "a\n"), ("b.txt", "b\n")])?;
    let base = start(&story)?;
    let token = story.fork("ann")?;
    let first = story.commit(&base, &[("a.txt", Some("A\n"))], "first")?;
    ensure!(story.offer("ann", &token, &first, &[])?.0);
    story.run_until_settled(1)?;
    let second = story.commit(&first, &[("b.txt", Some("B\n"))], "second")?;
    let (ok, said) = story.offer("ann", &token, &second, &[])?;
    ensure!(ok, "{said}");
    story.run_until_settled(2)?;
    let commits = story.landed_after(&base)?;
    ensure!(commits.len() == 2);
    ensure!(paths_of(&story, commits.last().context("no commit")?)? == BTreeSet::from(["b.txt".to_owned()]));
    Ok(())
}
