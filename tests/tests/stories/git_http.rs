//! git over HTTP: cases D1 to D10 and their kinds.

use std::collections::BTreeSet;

use anyhow::{Result, ensure};
use yard_tests::Story;

/// `git fsck --strict` and the same refs on both sides.
fn same_refs(story: &Story, clone: &str, kinds: &str) -> Result<()> {
    story.sandbox.git(clone, None, &["fsck", "--strict", "--no-dangling"])?;
    let here = story.git(&["for-each-ref", "--format=%(refname) %(objectname)", kinds])?;
    let there =
        story.sandbox.git(clone, None, &["for-each-ref", "--format=%(refname) %(objectname)", kinds])?;
    ensure!(here == there, "pushed:\n{here}\ncloned:\n{there}");
    Ok(())
}

/// A history with merges, tags, renames, large and binary files.
fn history(story: &Story, commits: usize) -> Result<()> {
    story.git(&["init", "-q"])?;
    for n in 0..commits {
        story.sandbox.write(
            &format!("clone/dir{}/file{}.txt", n % 7, n % 31),
            &format!("line {n}\n").repeat(n % 40 + 1),
        )?;
        if n % 50 == 7 {
            let noise: String =
                (0..20_000u32).map(|i| char::from((i.wrapping_mul(7919) % 94 + 33) as u8)).collect();
            story.sandbox.write(&format!("clone/big{n}.bin"), &noise)?;
        }
        story.git(&["add", "-A"])?;
        story.git(&["commit", "-q", "--allow-empty", "-m", &format!("commit {n}")])?;
        if n % 20 == 19 {
            story.git(&["checkout", "-q", "-b", &format!("side{n}"), "HEAD~5"])?;
            story.sandbox.write(&format!("clone/side/{n}.txt"), "side\n")?;
            story.git(&["add", "-A"])?;
            story.git(&["commit", "-q", "-m", "side"])?;
            story.git(&["checkout", "-q", "main"])?;
            story.git(&["merge", "-q", "--no-ff", "-m", "merge", &format!("side{n}")])?;
            story.git(&["tag", "-a", "-m", "a tag", &format!("v{n}")])?;
        }
    }
    story.git(&["remote", "add", "origin", &story.remote()])?;
    Ok(())
}

fn fresh(name: &str) -> Result<Story> {
    let story = Story::empty(name)?;
    std::fs::create_dir_all(story.sandbox.join("clone"))?;
    Ok(story)
}

#[test]
fn a_full_history_clones_back_with_the_same_refs_and_passes_fsck() -> Result<()> {
    let story = fresh("full-history")?;
    history(&story, 120)?;
    story.git(&["push", "-q", "origin", "refs/heads/*:refs/heads/*", "refs/tags/*:refs/tags/*"])?;
    for version in ["0", "1", "2"] {
        let target = format!("back{version}");
        let config = format!("protocol.version={version}");
        story.sandbox.git(
            ".",
            Some(&story.token),
            &["-c", &config, "clone", "-q", "--mirror", &story.remote(), &target],
        )?;
        same_refs(&story, &target, "refs/heads")?;
        same_refs(&story, &target, "refs/tags")?;
    }
    Ok(())
}

#[test]
fn an_incremental_fetch_brings_what_is_new_and_nothing_else() -> Result<()> {
    let story = fresh("incremental")?;
    history(&story, 45)?;
    story.git(&["push", "-q", "origin", "main~10:refs/heads/main"])?;
    story.sandbox.git(".", Some(&story.token), &["clone", "-q", &story.remote(), "second"])?;
    let before = story.sandbox.git("second", None, &["count-objects", "-v"])?;
    story.git(&["push", "-q", "origin", "main"])?;
    story.sandbox.git("second", Some(&story.token), &["pull", "-q", "--ff-only"])?;
    let tip = story.sandbox.git("second", None, &["rev-parse", "HEAD"])?;
    ensure!(tip == story.git(&["rev-parse", "main"])?);
    story.sandbox.git("second", None, &["fsck", "--strict"])?;
    let new = story.git(&["rev-list", "--objects", "main~10..main"])?.lines().count();
    let after = story.sandbox.git("second", None, &["count-objects", "-v"])?;
    let count = |text: &str| -> usize {
        text.lines()
            .filter(|line| line.starts_with("count:") || line.starts_with("in-pack:"))
            .filter_map(|line| line.rsplit(' ').next()?.parse::<usize>().ok())
            .sum()
    };
    let brought = count(&after) - count(&before);
    ensure!(brought <= new + 2, "{brought} objects came for {new} new ones");
    Ok(())
}

#[test]
fn d1_a_clone_of_60_tags_whose_request_is_gzipped_works() -> Result<()> {
    let story = fresh("tags60")?;
    history(&story, 65)?;
    for n in 0..60 {
        story.git(&["tag", &format!("t{n}"), &format!("main~{n}")])?;
    }
    story.git(&["push", "-q", "origin", "main", "--tags"])?;
    for version in ["0", "2"] {
        let config = format!("protocol.version={version}");
        let target = format!("back{version}");
        story.sandbox.git(
            ".",
            Some(&story.token),
            &["-c", &config, "clone", "-q", &story.remote(), &target],
        )?;
        same_refs(&story, &target, "refs/tags")?;
    }
    Ok(())
}

#[test]
fn d2_a_push_of_3_mb_of_noise_in_chunks_works() -> Result<()> {
    let story = fresh("noise")?;
    story.git(&["init", "-q"])?;
    let mut state = 88_172_645_463_325_252u64;
    let noise: Vec<u8> = (0..3_000_000)
        .map(|_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 32) as u8
        })
        .collect();
    std::fs::write(story.sandbox.join("clone/noise.bin"), &noise)?;
    story.git(&["add", "-A"])?;
    story.git(&["commit", "-q", "-m", "noise"])?;
    story.git(&["remote", "add", "origin", &story.remote()])?;
    story.git(&["push", "-q", "origin", "HEAD:refs/heads/main"])?;
    story.sandbox.git(".", Some(&story.token), &["clone", "-q", &story.remote(), "back"])?;
    ensure!(std::fs::read(story.sandbox.join("back/noise.bin"))? == noise);
    Ok(())
}

#[test]
fn d3_head_of_an_empty_repository_is_its_default_branch_in_a_clone() -> Result<()> {
    use yard_wire::api::NewRepo;
    let platform = yard_tests::platform();
    let admin = platform.admin()?;
    let name = yard_common::RepoName::new("trunk")?;
    let made = admin.new_repo(&NewRepo { name, default_branch: Some("trunk".into()) })?;
    let sandbox = yard_loadtest::Sandbox::new()?;
    sandbox.git(".", Some(&made.token), &["clone", "-q", &made.url, "back"])?;
    let head = sandbox.git("back", None, &["symbolic-ref", "HEAD"])?;
    ensure!(head == "refs/heads/trunk", "{head}");
    Ok(())
}

#[test]
fn d4_a_thin_pack_is_accepted_and_the_result_is_whole() -> Result<()> {
    let story = fresh("thin")?;
    story.git(&["init", "-q"])?;
    let large: String = (0..20_000).map(|n| format!("line {n}\n")).collect();
    story.sandbox.write("clone/large.txt", &large)?;
    story.git(&["add", "-A"])?;
    story.git(&["commit", "-q", "-m", "large"])?;
    story.git(&["remote", "add", "origin", &story.remote()])?;
    story.git(&["push", "-q", "origin", "HEAD:refs/heads/main"])?;
    story.sandbox.write("clone/large.txt", &large.replace("line 777\n", "line seven\n"))?;
    story.git(&["commit", "-qam", "one line"])?;
    story.git(&["push", "-q", "--thin", "origin", "HEAD:refs/heads/main"])?;
    story.sandbox.git(".", Some(&story.token), &["clone", "-q", &story.remote(), "back"])?;
    story.sandbox.git("back", None, &["fsck", "--strict"])?;
    ensure!(story.sandbox.git("back", None, &["rev-parse", "HEAD"])? == story.git(&["rev-parse", "HEAD"])?);
    Ok(())
}

#[test]
fn d5_a_reachable_commit_can_be_fetched_by_id_with_depth_1() -> Result<()> {
    let story = fresh("by-id")?;
    history(&story, 12)?;
    story.git(&["push", "-q", "origin", "main"])?;
    let id = story.git(&["rev-parse", "main~4"])?;
    story.sandbox.git(".", None, &["init", "-q", "back"])?;
    story.sandbox.git("back", Some(&story.token), &["fetch", "-q", "--depth", "1", &story.remote(), &id])?;
    let commits = story.sandbox.git("back", None, &["rev-list", "--count", "FETCH_HEAD"])?;
    ensure!(commits == "1", "{commits} commits came");
    story.sandbox.git("back", None, &["checkout", "-q", "FETCH_HEAD"])?;
    Ok(())
}

#[test]
fn a_shallow_clone_has_its_depth_and_can_be_deepened() -> Result<()> {
    let story = fresh("shallow")?;
    history(&story, 30)?;
    story.git(&["push", "-q", "origin", "main"])?;
    let remote = story.remote();
    story.sandbox.git(".", Some(&story.token), &["clone", "-q", "--depth", "3", &remote, "back"])?;
    let depth = story.sandbox.git("back", None, &["rev-list", "--count", "--first-parent", "HEAD"])?;
    ensure!(depth == "3", "depth {depth}");
    story.sandbox.git("back", Some(&story.token), &["fetch", "-q", "--unshallow"])?;
    let all = story.sandbox.git("back", None, &["rev-list", "--count", "HEAD"])?;
    ensure!(all == story.git(&["rev-list", "--count", "main"])?);
    story.sandbox.git("back", None, &["fsck", "--strict"])?;
    Ok(())
}

#[test]
fn d7_a_tag_object_on_a_branch_is_refused_for_that_ref() -> Result<()> {
    let story = fresh("tag-on-branch")?;
    history(&story, 21)?;
    story.git(&["push", "-q", "origin", "main"])?;
    let (ok, said) = story.git_says(&["push", "origin", "v19:refs/heads/wrong"])?;
    ensure!(!ok && said.contains("refs/heads/wrong") || said.contains("wrong"), "{said}");
    ensure!(!ok, "{said}");
    let refs = story.git(&["ls-remote", "origin", "refs/heads/*"])?;
    ensure!(!refs.contains("wrong"), "{refs}");
    Ok(())
}

#[test]
fn d8_each_ref_of_a_push_is_reported_and_atomic_is_honoured() -> Result<()> {
    let story = fresh("two-refs")?;
    history(&story, 5)?;
    story.git(&["push", "-q", "origin", "main", "main:refs/heads/other"])?;
    story.git(&["checkout", "-q", "--detach", "main~2"])?;
    story.git(&["commit", "-q", "--allow-empty", "-m", "elsewhere"])?;
    let refs = || story.git(&["ls-remote", "origin"]);
    let before = refs()?;
    // `changes` are the platform's own: that ref is refused, the other is not.
    let wrong = "HEAD:refs/changes/x/1";
    let (ok, said) = story.git_says(&["push", "--atomic", "origin", "HEAD:refs/heads/fine", wrong])?;
    ensure!(!ok && said.contains("refs/changes/x/1"), "{said}");
    ensure!(refs()? == before, "an atomic push moved a ref");
    let (ok, said) = story.git_says(&["push", "origin", "HEAD:refs/heads/fine", wrong])?;
    ensure!(!ok && said.contains("fine") && said.contains("refs/changes/x/1"), "{said}");
    ensure!(refs()?.contains("refs/heads/fine"));
    Ok(())
}

#[test]
fn d9_a_branch_inside_another_branch_is_refused_and_both_are_named() -> Result<()> {
    let story = fresh("inside")?;
    history(&story, 3)?;
    story.git(&["push", "-q", "origin", "main", "main:refs/heads/feat"])?;
    let (ok, said) = story.git_says(&["push", "origin", "main:refs/heads/feat/x"])?;
    ensure!(
        !ok && said.contains("feat/x") && said.matches("feat").count() > said.matches("feat/x").count(),
        "{said}"
    );
    Ok(())
}

#[test]
fn branches_can_be_made_moved_and_deleted() -> Result<()> {
    let story = fresh("branches")?;
    history(&story, 6)?;
    story.git(&["push", "-q", "origin", "main", "main~2:refs/heads/topic"])?;
    story.git(&["push", "-q", "origin", "main~1:refs/heads/topic"])?;
    let (ok, said) = story.git_says(&["push", "origin", "main~3:refs/heads/topic"])?;
    ensure!(!ok, "git itself refuses this: {said}");
    story.git(&["push", "-q", "origin", ":refs/heads/topic"])?;
    let refs = story.git(&["ls-remote", "origin", "refs/heads/*"])?;
    let names: BTreeSet<&str> = refs.lines().filter_map(|line| line.split('\t').nth(1)).collect();
    ensure!(names == BTreeSet::from(["refs/heads/main"]), "{names:?}");
    Ok(())
}

#[test]
fn c15_names_with_umlauts_spaces_line_feeds_and_wrong_utf_8_come_back_byte_for_byte() -> Result<()> {
    use std::os::unix::ffi::OsStrExt as _;
    let story = fresh("names")?;
    story.git(&["init", "-q"])?;
    let names: [&[u8]; 5] = [
        "ä ö.txt".as_bytes(),
        b"two\nlines",
        "sep\u{2028}.txt".as_bytes(),
        b"latin\xe4.txt",
        b"quote\"'.txt",
    ];
    for name in names {
        std::fs::write(story.sandbox.join("clone").join(std::ffi::OsStr::from_bytes(name)), name)?;
    }
    story.git(&["add", "-A"])?;
    story.git(&["commit", "-q", "-m", "names"])?;
    story.git(&["remote", "add", "origin", &story.remote()])?;
    story.git(&["push", "-q", "origin", "HEAD:refs/heads/main"])?;
    story.sandbox.git(".", Some(&story.token), &["clone", "-q", &story.remote(), "back"])?;
    for name in names {
        ensure!(std::fs::read(story.sandbox.join("back").join(std::ffi::OsStr::from_bytes(name)))? == name);
    }
    Ok(())
}

#[test]
fn a_fork_shares_its_parents_objects_and_has_refs_of_its_own() -> Result<()> {
    let story = fresh("forked")?;
    history(&story, 25)?;
    story.git(&["push", "-q", "origin", "main"])?;
    let token = story.fork("agent-1")?;
    let fork = story.fork_remote("agent-1");
    story.sandbox.git(".", Some(&token), &["clone", "-q", &fork, "back"])?;
    story.sandbox.git("back", None, &["fsck", "--strict"])?;
    ensure!(story.sandbox.git("back", None, &["rev-parse", "HEAD"])? == story.git(&["rev-parse", "main"])?);
    story.sandbox.write("back/new.txt", "new\n")?;
    story.sandbox.git("back", None, &["add", "-A"])?;
    story.sandbox.git("back", None, &["commit", "-q", "-m", "work"])?;
    story.sandbox.git("back", Some(&token), &["push", "-q", "origin", "HEAD:refs/heads/work"])?;
    let parent = story.git(&["ls-remote", "origin"])?;
    ensure!(!parent.contains("refs/heads/work"), "a fork's branch shows in its parent");
    story.sandbox.git(".", Some(&token), &["clone", "-q", "-b", "work", &fork, "again"])?;
    story.sandbox.git("again", None, &["fsck", "--strict"])?;
    Ok(())
}

#[test]
fn real_histories_named_by_the_environment_clone_back_whole() -> Result<()> {
    let Some(repos) = std::env::var_os("YARD_REAL_REPOS") else { return Ok(()) };
    for (index, repo) in std::env::split_paths(&repos).enumerate() {
        let story = Story::empty(&format!("real-{index}"))?;
        let source = repo.to_string_lossy().into_owned();
        story.sandbox.git(".", None, &["clone", "-q", "--mirror", &source, "clone"])?;
        // A mirror may hold refs that no client may push (hidden ones, pull requests): branches and tags are compared.
        story.git(&[
            "push",
            "-q",
            &story.remote(),
            "refs/heads/*:refs/heads/*",
            "refs/tags/*:refs/tags/*",
        ])?;
        story.sandbox.git(".", Some(&story.token), &["clone", "-q", "--mirror", &story.remote(), "back"])?;
        story.sandbox.git("back", None, &["fsck"])?;
        for kind in ["refs/heads", "refs/tags"] {
            let list = ["for-each-ref", "--format=%(refname) %(objectname)", kind];
            ensure!(story.git(&list)? == story.sandbox.git("back", None, &list)?, "{source}: {kind} differ");
        }
    }
    Ok(())
}
