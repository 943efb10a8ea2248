//! Bad input: a clear error that says what to do, and nothing changes.

use anyhow::{Result, ensure};
use yard_cli::Client;
use yard_common::{ForkName, RepoName};
use yard_tests::{Story, platform};
use yard_wire::token::Scope;

fn status_of(result: Result<impl std::fmt::Debug, yard_cli::ClientError>) -> (u16, String) {
    match result {
        Ok(value) => (200, format!("{value:?}")),
        Err(error) => match error.problem() {
            Some(problem) => (problem.status, problem.detail.clone()),
            None => (0, error.to_string()),
        },
    }
}

#[test]
fn wrong_expired_and_missing_tokens_are_told_apart() -> Result<()> {
    let story = Story::with_files("tokens", &[("a.txt", "a\n")])?;
    let bad = Client::new(&story.url, "sy1.e30.AAAA");
    let (status, said) = status_of(bad.status(&story.repo));
    ensure!(status == 401 && said.contains("admin"), "{status} {said}");
    let (status, said) = status_of(Client::new(&story.url, "nonsense").status(&story.repo));
    ensure!(status == 401, "{status} {said}");
    let reader = story.token_for(None, &[Scope::Read])?;
    let fork = yard_wire::api::NewFork { name: ForkName::new("x")? };
    let (status, said) = status_of(Client::new(&story.url, &reader).new_fork(&story.repo, &fork));
    ensure!(status == 403, "{status} {said}");
    let out = story.sandbox.try_git(".", Some("nonsense"), &["ls-remote", &story.remote()])?;
    ensure!(!out.status.success());
    Ok(())
}

#[test]
fn unknown_repositories_and_changes_are_not_found() -> Result<()> {
    let admin = platform().admin()?;
    let (status, said) = status_of(admin.status(&RepoName::new("no-such-repo")?));
    ensure!(status == 404 && said.contains("no-such-repo"), "{status} {said}");
    let story = Story::with_files("known", &[("a.txt", "a\n")])?;
    let (status, _) =
        status_of(story.admin.change(&story.repo, &yard_common::ChangeId::new("Inosuchchange")?));
    ensure!(status == 404);
    Ok(())
}

#[test]
fn a_change_without_edits_or_base_is_refused_and_says_what_to_do() -> Result<()> {
    let story = Story::with_files("no-edits", &[("a.txt", "a\n")])?;
    let base = story.git(&["rev-parse", "main"])?;
    let token = story.fork("ann")?;
    let empty = story.commit(&base, &[], "nothing")?;
    let (ok, said) = story.offer("ann", &token, &empty, &[])?;
    ensure!(!ok && said.contains("changes nothing"), "{said}");
    story.git(&["checkout", "-q", "--orphan", "alone"])?;
    story.git(&["commit", "-q", "-m", "no parent"])?;
    let (ok, said) = story.offer("ann", &token, "HEAD", &[])?;
    ensure!(!ok && said.contains("rebase"), "{said}");
    Ok(())
}

#[test]
fn hostile_paths_never_come_in_by_git_or_api() -> Result<()> {
    let story = Story::with_files("paths", &[("a.txt", "a\n")])?;
    let base = story.git(&["rev-parse", "main"])?;
    let token = story.fork("ann")?;
    let client = Client::new(&story.url, &token);
    for path in ["../a", "/a", "a/.git/config", ".GIT/x", "a\u{0}b", "a//b", ""] {
        let body = serde_json::json!({ "fork": "ann", "changes": [{ "base": base, "intent": { "title": "t" },
            "edits": [{ "path": path, "content": "x" }] }] });
        let answer: Result<serde_json::Value, _> =
            client.post(&format!("/api/repos/{}/changes", story.repo), &body);
        let (status, said) = status_of(answer);
        ensure!(status == 400, "{path:?}: {status} {said}");
    }
    let blob = story.git(&["rev-parse", "main:a.txt"])?;
    let line = format!("100644 blob {blob}\t.git\n");
    let mut child = story
        .sandbox
        .command("clone", None)
        .args(["mktree"])
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()?;
    use std::io::Write as _;
    if let Some(mut stdin) = child.stdin.take() {
        stdin.write_all(line.as_bytes())?;
    }
    let tree = String::from_utf8_lossy(&child.wait_with_output()?.stdout).trim().to_owned();
    let commit = story.git(&["commit-tree", &tree, "-p", &base, "-m", "hostile"])?;
    let before = story.git(&["ls-remote", "origin"])?;
    let (ok, said) = story.git_says(&["push", "origin", &format!("{commit}:refs/heads/hostile")])?;
    ensure!(!ok && said.contains(".git"), "{said}");
    ensure!(story.git(&["ls-remote", "origin"])? == before);
    Ok(())
}
