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

#[test]
fn hostile_submodules_never_come_in() -> Result<()> {
    let story = Story::with_files("submodules", &[("a.txt", "a\n")])?;
    let base = story.git(&["rev-parse", "main"])?;
    let token = story.fork("ann")?;
    let evil = "[submodule \"x\"]\n\tpath = x\n\turl = --upload-pack=evil\n";
    let commit = story.commit(&base, &[("deep/.gitmodules", Some(evil))], "evil")?;
    let (ok, said) = story.offer("ann", &token, &commit, &[])?;
    ensure!(!ok && said.contains("deep/.gitmodules in commit") && said.contains("line 3"), "{said}");
    let body = serde_json::json!({ "fork": "ann", "changes": [{ "base": base, "intent": { "title": "t" },
        "edits": [{ "path": ".gitmodules", "content": evil }] }] });
    let client = Client::new(&story.url, &token);
    let answer: serde_json::Value = client.post(&format!("/api/repos/{}/changes", story.repo), &body)?;
    let said = answer["results"][0]["refused"]["detail"].as_str().unwrap_or_default().to_owned();
    ensure!(said.contains(".gitmodules, line 3") && said.contains("gitmodulesUrl"), "{answer}");
    let mine = "[submodule \"x\"]\n\tpath = x\n\turl = ../x.git\n";
    let commit = story.commit(&base, &[(".gitmodules", Some(mine))], "honest")?;
    let (ok, said) = story.offer("ann", &token, &commit, &[])?;
    ensure!(ok, "{said}");
    Ok(())
}

/// What curl, which sends its body in one go, is answered.
fn curl(story: &Story, path: &str, token: &str, file: &std::path::Path) -> Result<String> {
    let out = std::process::Command::new("curl")
        .args(["-sS", "-i", "-X", "POST", "-H", "Expect:", "-H", "Idempotency-Key: k", "-H"])
        .arg(format!("Authorization: Bearer {token}"))
        .arg("--data-binary")
        .arg(format!("@{}", file.display()))
        .arg(format!("{}{path}", story.url))
        .output()?;
    ensure!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    Ok(String::from_utf8_lossy(&out.stdout).into_owned())
}

#[test]
fn a_body_over_the_limit_is_answered_and_not_cut_off() -> Result<()> {
    let story = Story::with_files("large-bodies", &[("a.txt", "a\n")])?;
    story.sandbox.write("clone/large.bin", &"x".repeat(30_000_000))?;
    let file = story.sandbox.join("clone/large.bin");
    let admin = story.token_for(None, &[Scope::Admin])?;
    let said = curl(&story, &format!("/api/repos/{}/changes", story.repo), &admin, &file)?;
    ensure!(said.starts_with("HTTP/1.1 413") && said.contains("at most 4194304"), "{said}");
    let said = curl(&story, &format!("/api/repos/{}/changes", story.repo), "nobody", &file)?;
    ensure!(said.starts_with("HTTP/1.1 401"), "{said}");
    // 5,000 refs in one push are more than one list of updates takes; git shows why.
    let base = story.git(&["rev-parse", "main"])?;
    let many: Vec<String> = (0..5_000).map(|n| format!("{base}:refs/heads/many/{n:05}")).collect();
    let mut push = vec!["push", "origin"];
    push.extend(many.iter().map(String::as_str));
    let (ok, said) = story.git_says(&push)?;
    ensure!(!ok && said.contains("push fewer refs at once"), "{said}");
    Ok(())
}
