//! Pushes by real git.

use std::path::{Path, PathBuf};

use yard_transfer::receive::Place;

use crate::history::make;
use crate::server::Server;
use crate::shell::{Folder, attempt, git, git_fails};

fn served(name: &str) -> (Folder, PathBuf, Server) {
    let folder = Folder::new(name);
    git(&folder.0, &["init", "-q", "--bare", "target.git"]);
    let target = folder.join("target.git");
    let server = Server::start(&target);
    (folder, target, server)
}

fn work(folder: &Folder) -> PathBuf {
    git(&folder.0, &["init", "-q", "work"]);
    let work = folder.join("work");
    commit(&work, "a.txt", b"one\n");
    work
}

fn commit(dir: &Path, name: &str, bytes: &[u8]) {
    std::fs::write(dir.join(name), bytes).unwrap();
    git(dir, &["add", "-A"]);
    git(dir, &["commit", "-q", "-m", name]);
}

fn target_refs(dir: &Path) -> String {
    git(dir, &["for-each-ref", "--format=%(refname)"])
}

/// Bytes that do not compress, the same in every run.
fn noise(bytes: usize) -> Vec<u8> {
    let mut state = 88_172_645_463_325_252_u64;
    std::iter::repeat_with(|| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()
    })
    .flatten()
    .take(bytes)
    .collect()
}

#[test]
fn a_full_history_is_pushed_and_sound() {
    let (folder, target, server) = served("push-all");
    let source = make(&folder);
    git(&source, &["push", "-q", "--mirror", &server.url]);
    let all = |dir: &Path| git(dir, &["for-each-ref", "--format=%(refname) %(objectname)"]);
    assert_eq!(all(&target), all(&source));
    git(&target, &["fsck", "--strict", "--no-dangling"]);
}

#[test]
fn a_large_push_comes_in_chunks_after_a_probe() {
    let (folder, target, server) = served("push-large");
    let work = work(&folder);
    commit(&work, "noise", &noise(3_000_000));
    git(&work, &["push", "-q", &server.url, "main"]);
    assert_eq!(git(&target, &["rev-parse", "main"]), git(&work, &["rev-parse", "main"]));
    assert!(server.state().seen.probes == 1 && server.state().seen.chunked);
}

#[test]
fn a_thin_pack_is_taken_and_messages_are_shown() {
    let (folder, target, server) = served("push-thin");
    let work = work(&folder);
    let mut text: Vec<u8> = (0..5_000).flat_map(|line| format!("line {line}\n").into_bytes()).collect();
    commit(&work, "big.txt", &text);
    git(&work, &["push", "-q", &server.url, "main"]);
    text.extend_from_slice(b"one more\n");
    commit(&work, "big.txt", &text);
    let output = attempt(&work, &["push", &server.url, "main"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.contains("remote: thank you"), "{said}");
    git(&target, &["fsck", "--strict"]);
}

#[test]
fn a_ref_is_deleted_without_a_pack() {
    let (folder, target, server) = served("delete");
    let work = work(&folder);
    git(&work, &["push", "-q", &server.url, "main", "main:gone"]);
    git(&work, &["push", "-q", &server.url, ":gone"]);
    assert_eq!(target_refs(&target), "refs/heads/main");
    let said = git_fails(&work, &["push", &server.url, ":gone"]);
    assert!(said.contains("remote ref does not exist"), "{said}");
}

#[test]
fn one_refused_ref_spares_the_others_unless_the_push_is_atomic() {
    let (folder, target, server) = served("atomic");
    let work = work(&folder);
    let both = [server.url.as_str(), "main:refs/heads/good", "main:refs/changes/x/1"];
    let said = git_fails(&work, &[&["push", "--atomic"], &both[..]].concat());
    assert!(said.contains("atomic transaction failed") && said.contains("read-only"), "{said}");
    assert_eq!(target_refs(&target), "");
    let said = git_fails(&work, &[&["push"], &both[..]].concat());
    assert!(said.contains("[remote rejected]") && said.contains("read-only"), "{said}");
    assert_eq!(target_refs(&target), "refs/heads/good");
}

#[test]
fn a_branch_below_another_is_refused_and_both_are_named() {
    let (folder, target, server) = served("below");
    let work = work(&folder);
    git(&work, &["push", "-q", &server.url, "main:feat"]);
    let said = git_fails(&work, &["push", &server.url, "main:refs/heads/feat/x"]);
    assert!(said.contains("'refs/heads/feat' exists; cannot create 'refs/heads/feat/x'"), "{said}");
    assert_eq!(target_refs(&target), "refs/heads/feat");
}

#[test]
fn an_annotated_tag_cannot_become_a_branch() {
    let (folder, target, server) = served("tag-branch");
    let work = work(&folder);
    git(&work, &["tag", "-a", "-m", "x", "v1"]);
    let said = git_fails(&work, &["push", &server.url, "v1:refs/for/main"]);
    assert!(said.contains("a tag cannot be written to 'refs/for/main'"), "{said}");
    git(&work, &["push", "-q", &server.url, "v1"]);
    assert_eq!(target_refs(&target), "refs/tags/v1");
}

#[test]
fn a_submission_carries_its_options_and_stands_alone() {
    let (folder, target, server) = served("submit");
    let work = work(&folder);
    git(&work, &["push", "-q", "-o", "task=7", "-o", "new-change", &server.url, "HEAD:refs/for/main"]);
    assert_eq!(server.state().seen.options, ["task=7", "new-change"]);
    assert_eq!(target_refs(&target), "");
    let said = git_fails(&work, &["push", &server.url, "HEAD:refs/for/main", "HEAD:refs/heads/x"]);
    assert!(said.contains("one push submits one change"), "{said}");
}

#[test]
fn notes_of_the_server_are_written_in_forks_alone() {
    let (folder, target, server) = served("notes");
    let work = work(&folder);
    git(&work, &["notes", "--ref=intent", "add", "-m", "because"]);
    let said = git_fails(&work, &["push", &server.url, "refs/notes/intent"]);
    assert!(said.contains("push notes to your fork"), "{said}");
    server.state().place = Place::Fork;
    git(&work, &["push", "-q", &server.url, "refs/notes/intent", "main"]);
    assert_eq!(target_refs(&target), "refs/heads/main\nrefs/notes/intent");
}

#[test]
fn a_push_that_lost_a_race_is_told_to_fetch() {
    let (folder, _target, server) = served("race");
    let work = work(&folder);
    git(&work, &["push", "-q", &server.url, "main"]);
    let main = git(&work, &["rev-parse", "main"]);
    commit(&work, "b.txt", b"b");
    git(&work, &["push", "-q", &server.url, "main"]);
    let tree = git(&work, &["rev-parse", "main^{tree}"]);
    let other = git(&work, &["commit-tree", "-p", &main, "-m", "other", &tree]);
    let said = git_fails(&work, &["push", &server.url, &format!("{other}:refs/heads/main")]);
    assert!(said.contains("rejected"), "{said}");
    git(&work, &["push", "-q", "--force", &server.url, &format!("{other}:refs/heads/main")]);
}

#[test]
fn a_push_to_a_fork_leaves_out_what_its_parent_has() {
    let (folder, target, server) = served("fork");
    let work = work(&folder);
    commit(&work, "noise", &noise(200_000));
    git(&folder.0, &["clone", "-q", "--bare", work.to_str().unwrap(), "parent.git"]);
    let alternates = format!("{}\n", folder.join("parent.git/objects").display());
    std::fs::write(target.join("objects/info/alternates"), alternates).unwrap();
    server.state().store.reload();
    server.state().haves.push(git(&work, &["rev-parse", "main"]).parse().unwrap());
    commit(&work, "small", b"small\n");
    git(&work, &["push", "-q", &server.url, "main"]);
    assert!(server.state().seen.pushed < 1_000, "{} bytes came", server.state().seen.pushed);
    git(&target, &["fsck", "--strict"]);
}

#[test]
fn too_many_updates_are_refused_in_words() {
    let (folder, target, server) = served("many");
    let work = work(&folder);
    let id = git(&work, &["rev-parse", "main"]);
    let lines: String = (0..3_000).map(|at| format!("create refs/heads/{at:0>90} {id}\n")).collect();
    crate::shell::git_with(&work, &["update-ref", "--stdin"], lines.as_bytes()).unwrap();
    let said = git_fails(&work, &["push", "-q", "--all", &server.url]);
    assert!(said.contains("push fewer refs at once"), "{said}");
    assert_eq!(target_refs(&target), "");
}

#[test]
fn a_pack_that_lacks_an_object_moves_nothing() {
    let (folder, target, server) = served("lacking");
    let work = work(&folder);
    commit(&work, "b.txt", b"only here\n");
    let blob = git(&work, &["rev-parse", "main:b.txt"]);
    std::fs::remove_file(work.join(format!(".git/objects/{}/{}", &blob[..2], &blob[2..]))).unwrap();
    git(&work, &["config", "remote.r.url", &server.url]);
    git(&work, &["config", "remote.r.promisor", "true"]);
    git(&work, &["config", "extensions.partialClone", "r"]);
    let ids = git(&work, &["rev-list", "--objects", "--no-object-names", "--missing=allow-any", "main"]);
    let kept: String = ids.lines().filter(|id| *id != blob).map(|id| format!("{id}\n")).collect();
    let pack = crate::shell::git_with(&work, &["pack-objects", "--stdout", "-q"], kept.as_bytes()).unwrap();
    let tip = git(&work, &["rev-parse", "main"]);
    let mut body = Vec::new();
    let line = format!("{} {tip} refs/heads/main\0 report-status", "0".repeat(40));
    yard_transfer::pktline::write_data(&mut body, line.as_bytes());
    body.extend_from_slice(b"0000");
    body.extend_from_slice(&pack);
    let said = post(&server, &body);
    assert!(said.contains("missing necessary objects") && said.contains(&blob), "{said}");
    assert_eq!(target_refs(&target), "");
}

/// Posts a push by hand, for what git itself refuses to send.
fn post(server: &Server, body: &[u8]) -> String {
    use std::io::{Read, Write};
    let host = server.url.trim_start_matches("http://").split('/').next().unwrap();
    let mut stream = std::net::TcpStream::connect(host).unwrap();
    let head = format!("POST /r.git/git-receive-pack HTTP/1.1\r\nContent-Length: {}\r\n\r\n", body.len());
    stream.write_all(head.as_bytes()).unwrap();
    stream.write_all(body).unwrap();
    let mut said = Vec::new();
    stream.read_to_end(&mut said).unwrap();
    String::from_utf8_lossy(&said).into_owned()
}
