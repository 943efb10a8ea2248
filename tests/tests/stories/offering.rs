//! Offering: keys that answer, stacks by the API alone, advice in the caller's own terms.

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::{Value, json};
use yard_cli::Client;
use yard_cli::client::fresh_key;
use yard_common::ObjectId;
use yard_tests::Story;
use yard_wire::api::{SubmitReply, SubmitResult};
use yard_wire::lane::Stage;
use yard_wire::repository::Accepted;

fn post(story: &Story, token: &str, body: &Value, key: &str) -> Result<SubmitReply> {
    Ok(Client::new(&story.url, token).post_keyed(&format!("/api/repos/{}/changes", story.repo), body, key)?)
}

fn accepted(reply: SubmitReply) -> Result<Accepted> {
    match reply.results.into_iter().next().context("no answer")? {
        SubmitResult::Accepted(accepted) => Ok(accepted),
        SubmitResult::Refused(problem) => bail!("{}: {}", problem.title, problem.detail),
    }
}

fn refused(reply: SubmitReply) -> Result<String> {
    match reply.results.into_iter().next().context("no answer")? {
        SubmitResult::Accepted(accepted) => bail!("accepted: {accepted:?}"),
        SubmitResult::Refused(problem) => Ok(problem.detail),
    }
}

/// The id of a text as git names it.
fn blob(story: &Story, text: &str) -> Result<String> {
    story.sandbox.write("clone/.blob", text)?;
    let id = story.git(&["hash-object", ".blob"]);
    std::fs::remove_file(story.sandbox.join("clone/.blob"))?;
    id
}

fn edit(path: &str, base: Option<&str>, content: &str) -> Value {
    match base {
        Some(base) => json!({ "path": path, "base": base, "content": content }),
        None => json!({ "path": path, "content": content }),
    }
}

#[test]
fn a_repeated_request_gets_its_answer_although_main_has_moved() -> Result<()> {
    let story = Story::with_files("repeat", &[("a.txt", "a\n"), ("b.txt", "b\n")])?;
    let token = story.fork("ann")?;
    let (a, b) = (blob(&story, "a\n")?, blob(&story, "b\n")?);
    let change = |title: &str, edits: Value| json!({ "intent": { "title": title }, "edits": edits });
    let body = json!({ "changes": [change("one", json!([edit("a.txt", Some(&a), "A\n")])),
        change("two", json!([edit("b.txt", Some(&b), "B\n")]))] });
    let first = post(&story, &token, &body, "my-key")?;
    let settled = story.run_until_settled(2)?;
    ensure!(settled.iter().all(|change| change.stage == Stage::Landed), "{settled:?}");
    let again = post(&story, &token, &body, "my-key")?;
    ensure!(again == first, "{first:?} then {again:?}");
    // Nobody had asked for its head as an object, and it has landed: work on it is still taken.
    let head = accepted(first.clone())?.head.to_string();
    let mine = blob(&story, "A\n")?;
    let on_it = json!({ "changes": [{ "intent": { "title": "on it" }, "base": head,
        "edits": [edit("a.txt", Some(&mine), "AA\n")] }] });
    accepted(post(&story, &token, &on_it, &fresh_key())?)?;
    let other = json!({ "changes": [change("three", json!([edit("a.txt", Some(&a), "x\n")]))] });
    let said = refused(post(&story, &token, &other, "my-key")?)?;
    ensure!(said.contains("\"my-key\" came with another request"), "{said}");
    // Another fork's key of the same name is its own.
    let bob = story.fork("bob")?;
    accepted(post(
        &story,
        &bob,
        &json!({ "changes": [change("new", json!([edit("c.txt", None, "c\n")]))] }),
        "my-key",
    )?)?;
    Ok(())
}

#[test]
fn no_key_of_a_client_stands_in_the_way_of_a_release() -> Result<()> {
    let story = Story::with_files("release-key", &[("a.txt", "a\n")])?;
    let ann = Client::new(&story.url, &story.fork("ann")?);
    let claims = format!("/api/repos/{}/claims", story.repo);
    let claim = json!({ "paths": ["a.txt"], "ttl_seconds": 600 });
    let fence: Value = ann.post_keyed(&claims, &claim, "release-2")?;
    let bob = Client::new(&story.url, &story.fork("bob")?);
    let other: Value =
        bob.post_keyed(&claims, &json!({ "paths": ["b.txt"], "ttl_seconds": 600 }), "release-1/ann")?;
    for (client, claim) in [(&ann, &fence), (&bob, &other)] {
        let _: Value = client.delete(&format!("{claims}/{}", claim.get("fence").context("no fence")?))?;
    }
    ensure!(story.admin.status(&story.repo)?.view.claims.is_empty());
    Ok(())
}

#[test]
fn a_stack_is_offered_by_the_api_alone_and_git_fetches_its_heads() -> Result<()> {
    let story = Story::with_files("api-stack", &[("a.txt", "a\n"), ("dir/b.txt", "b\n")])?;
    let base = story.git(&["rev-parse", "main"])?;
    let token = story.fork("ann")?;
    let (a, mine) = (blob(&story, "a\n")?, blob(&story, "A\n")?);
    let below = json!({ "changes": [{ "intent": { "title": "below" },
        "edits": [edit("a.txt", Some(&a), "A\n"), edit("dir/new.txt", None, "new\n")] }] });
    let below = accepted(post(&story, &token, &below, &fresh_key())?)?;
    let on = |head: ObjectId, base: &str, to: &str, title: &str| {
        json!({ "changes": [{ "intent": { "title": title }, "base": head.to_string(), "new_change": true,
            "edits": [edit("a.txt", Some(base), to)] }] })
    };
    let above = accepted(post(&story, &token, &on(below.head, &mine, "AA\n", "above"), &fresh_key())?)?;
    ensure!(above.waits_for == [below.change.clone()], "{above:?}");
    let third = blob(&story, "AA\n")?;
    let top = accepted(post(&story, &token, &on(above.head, &third, "AAA\n", "top"), &fresh_key())?)?;
    ensure!(top.waits_for == [above.change.clone()], "{top:?}");
    // The heads are objects for whoever asks, from the parent and from a fork.
    let listed = story.git(&["ls-remote", "origin", "refs/changes/*"])?;
    for offered in [&below, &above, &top] {
        let name = format!("refs/changes/{}/{}", offered.change, offered.version);
        ensure!(listed.contains(&format!("{}\t{name}", offered.head)), "{listed}");
    }
    let name = format!("refs/changes/{}/1", top.change);
    story.git(&["fetch", "-q", "origin", &format!("{name}:{name}")])?;
    ensure!(story.git(&["rev-parse", &name])? == top.head.to_string());
    ensure!(story.git(&["show", &format!("{name}:a.txt")])? == "AAA");
    ensure!(story.git(&["show", &format!("{name}:dir/new.txt")])? == "new");
    ensure!(story.git(&["rev-list", "--count", &format!("{base}..{name}")])? == "3");
    story.git(&["fsck", "--strict"])?;
    // Git goes on where the API was.
    let commit = story.commit(&name, &[("dir/b.txt", Some("B\n"))], "by git on top")?;
    let (ok, said) = story.offer("ann", &token, &commit, &["new-change"])?;
    ensure!(ok && said.contains(&format!("waits for change {}", top.change)), "{said}");
    let settled = story.run_until_settled(4)?;
    ensure!(settled.iter().all(|change| change.stage == Stage::Landed), "{settled:?}");
    ensure!(story.landed_after(&base)?.len() == 4);
    ensure!(story.on_main("a.txt")? == "AAA" && story.on_main("dir/b.txt")? == "B");
    // What has landed is still a base: the daily flow of an agent.
    let last = blob(&story, "AAA\n")?;
    let after = accepted(post(&story, &token, &on(top.head, &last, "end\n", "after"), &fresh_key())?)?;
    ensure!(after.waits_for.is_empty(), "{after:?}");
    story.run_until_settled(5)?;
    story.landed_after(&base)?;
    ensure!(story.on_main("a.txt")? == "end");
    let mirror =
        story.sandbox.git(".", Some(&story.token), &["clone", "-q", "--mirror", &story.remote(), "mirror"]);
    mirror?;
    story.sandbox.git("mirror", None, &["fsck", "--strict"])?;
    Ok(())
}

#[test]
fn advice_is_given_in_the_terms_of_who_asks() -> Result<()> {
    let story = Story::with_files("advice", &[("a.txt", "a\n")])?;
    let base = story.git(&["rev-parse", "main"])?;
    let token = story.fork("ann")?;
    let a = blob(&story, "a\n")?;
    let body = |to: &str| {
        let edits = json!([edit("a.txt", Some(&a), to)]);
        json!({ "changes": [{ "intent": { "title": to.trim() }, "edits": edits }] })
    };
    let first = accepted(post(&story, &token, &body("1\n"), &fresh_key())?)?;
    let said = refused(post(&story, &token, &body("2\n"), &fresh_key())?)?;
    ensure!(said.contains("\"new_change\": true") && !said.contains("git "), "{said}");
    let commit = story.commit(&base, &[("a.txt", Some("3\n"))], "by git")?;
    let (ok, said) = story.offer("ann", &token, &commit, &[])?;
    ensure!(!ok && said.contains("git commit --amend") && said.contains(first.change.as_str()), "{said}");
    // Several commits with ids of their own, as Gerrit's hook writes them, are one change here: it says so.
    let other = story.fork("bob")?;
    let one = story.commit(&base, &[("b.txt", Some("1\n"))], "one\n\nChange-Id: Ione12345")?;
    let two = story.commit(&one, &[("c.txt", Some("1\n"))], "two\n\nChange-Id: Itwo12345")?;
    let (ok, said) = story.offer("bob", &other, &two, &[])?;
    ensure!(ok && said.contains("Warning: one push is one change"), "{said}");
    ensure!(said.contains("Ione12345"), "{said}");
    let row = story.admin.change(&story.repo, &yard_common::ChangeId::new("Itwo12345")?)?.row;
    ensure!(row.warnings.iter().any(|warning| warning.contains("Ione12345")), "{:?}", row.warnings);
    Ok(())
}

#[test]
fn an_empty_repository_says_that_main_is_pushed_first() -> Result<()> {
    let story = Story::empty("nothing-yet")?;
    story.sandbox.write("clone/a.txt", "a\n")?;
    story.git(&["init", "-q"])?;
    story.git(&["add", "-A"])?;
    story.git(&["commit", "-q", "-m", "start"])?;
    let token = story.fork("ann")?;
    let (ok, said) = story.offer("ann", &token, "HEAD", &[])?;
    ensure!(!ok && said.contains("the repository is empty") && !said.contains("rebase"), "{said}");
    let body =
        json!({ "changes": [{ "intent": { "title": "first" }, "edits": [edit("a.txt", None, "a\n")] }] });
    let said = refused(post(&story, &token, &body, &fresh_key())?)?;
    ensure!(said.contains("the repository is empty"), "{said}");
    story.git(&["push", "-q", &story.remote(), "HEAD:refs/heads/main"])?;
    Ok(())
}
