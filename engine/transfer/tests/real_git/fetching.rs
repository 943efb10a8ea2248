//! Clones and fetches by real git.

use std::path::{Path, PathBuf};

use yard_transfer::advertise::Protocol;
use yard_transfer::upload::WantPolicy;

use crate::history::{grow, make, real};
use crate::server::Server;
use crate::shell::{Folder, attempt, git, git_fails};

fn refs(dir: &Path, pattern: &str) -> String {
    git(dir, &["for-each-ref", "--format=%(refname) %(objectname)", pattern])
}

fn sound(dir: &Path) {
    git(dir, &["fsck", "--strict", "--no-dangling"]);
}

fn served(name: &str) -> (Folder, PathBuf, Server) {
    let folder = Folder::new(name);
    let source = make(&folder);
    let server = Server::start(&source);
    (folder, source, server)
}

fn clone_all(name: &str, version: &str, protocol: Protocol, with_graph: bool) {
    let (folder, source, server) = served(name);
    server.state().store.with_graph = with_graph;
    let config = format!("protocol.version={version}");
    git(&folder.0, &["-c", &config, "clone", "-q", "--mirror", &server.url, "copy.git"]);
    let copy = folder.join("copy.git");
    assert_eq!(refs(&copy, "refs/"), refs(&source, "refs/"));
    sound(&copy);
    let state = server.state();
    assert_eq!(state.seen.protocols.iter().copied().collect::<Vec<_>>(), [protocol]);
    assert!(state.seen.gzip, "60 tags make a body that git compresses");
    let all = git(&source, &["rev-list", "--objects", "--all"]).lines().count();
    assert_eq!(state.seen.packed, [all], "exactly what is reachable is sent");
}

#[test]
fn a_clone_by_v2_has_all_refs_and_objects() {
    clone_all("clone-v2", "2", Protocol::V2, true);
}

#[test]
fn a_clone_by_v1_has_all_refs_and_objects() {
    clone_all("clone-v1", "1", Protocol::V1, true);
}

#[test]
fn a_clone_by_v0_has_all_refs_and_objects() {
    clone_all("clone-v0", "0", Protocol::V0, true);
}

#[test]
fn a_clone_without_a_table_of_commits_has_all_refs_and_objects() {
    clone_all("clone-cold", "2", Protocol::V2, false);
}

#[test]
fn an_empty_repository_is_cloned_with_its_unborn_head() {
    let folder = Folder::new("empty");
    git(&folder.0, &["init", "-q", "--bare", "-b", "trunk", "source.git"]);
    let server = Server::start(&folder.join("source.git"));
    git(&folder.0, &["clone", "-q", &server.url, "copy"]);
    assert_eq!(git(&folder.join("copy"), &["symbolic-ref", "HEAD"]), "refs/heads/trunk");
    git(&folder.0, &["-c", "protocol.version=0", "clone", "-q", &server.url, "copy0"]);
    assert_eq!(git(&folder.join("copy0"), &["for-each-ref"]), "");
}

fn fetches_only_what_is_new(version: &str) {
    let (folder, source, server) = served("incremental");
    let config = format!("protocol.version={version}");
    git(&folder.0, &["-c", &config, "clone", "-q", &server.url, "copy"]);
    let copy = folder.join("copy");
    grow(&source, "one");
    let tip = grow(&source, "two");
    server.state().store.reload();
    server.state().seen.packed.clear();
    server.state().store.needs.clear();
    git(&copy, &["-c", &config, "fetch", "-q"]);
    assert_eq!(git(&copy, &["rev-parse", "origin/main"]), tip);
    sound(&copy);
    let state = server.state();
    assert_eq!(state.seen.packed, [2 * 5], "two commits, each with three trees and a blob");
    assert!(state.store.needs.len() <= 4, "a fetch asks few times: {:?}", state.store.needs);
    drop(state);
    git(&copy, &["commit", "-q", "--allow-empty", "-m", "mine"]);
    grow(&source, "three");
    server.state().store.reload();
    server.state().seen.packed.clear();
    git(&copy, &["-c", &config, "fetch", "-q"]);
    assert_eq!(server.state().seen.packed, [5], "own commits that the server does not know do no harm");
}

#[test]
fn a_fetch_by_v2_gets_only_what_is_new() {
    fetches_only_what_is_new("2");
}

#[test]
fn a_fetch_by_v0_gets_only_what_is_new() {
    fetches_only_what_is_new("0");
}

#[test]
fn a_fetch_of_new_tags_gets_them_with_their_commits() {
    let (folder, source, server) = served("tags");
    git(&folder.0, &["clone", "-q", "--single-branch", "--no-tags", &server.url, "copy"]);
    let copy = folder.join("copy");
    assert_eq!(refs(&copy, "refs/tags/"), "");
    grow(&source, "one");
    git(&source, &["-c", "user.name=a", "-c", "user.email=a@b", "tag", "-a", "-m", "x", "new", "main"]);
    server.state().store.reload();
    git(&copy, &["config", "--unset", "remote.origin.tagOpt"]);
    git(&copy, &["fetch", "-q"]);
    assert!(refs(&copy, "refs/tags/new").contains("refs/tags/new"));
    git(&copy, &["fetch", "-q", "--tags"]);
    assert_eq!(refs(&copy, "refs/tags/"), refs(&source, "refs/tags/"));
    sound(&copy);
}

/// What a clone has: commits, boundary, refs.
///
/// git lists a root commit that lies exactly at the depth as cut; this crate does not.
fn state_of(dir: &Path, root: &str) -> (String, String, String) {
    let boundary = std::fs::read_to_string(dir.join(".git/shallow")).unwrap_or_default();
    let boundary = boundary.replace(&format!("{root}\n"), "");
    let remote =
        git(dir, &["for-each-ref", "--format=%(refname) %(objectname)", "refs/remotes", "refs/tags"]);
    (git(dir, &["rev-list", "--all"]), boundary, remote)
}

/// The same commands against this crate and against git itself leave the same clones.
#[test]
fn a_new_tag_comes_with_its_commit_and_not_in_a_second_fetch() {
    let (folder, source, server) = served("follow");
    git(&folder.0, &["clone", "-q", &server.url, "copy"]);
    grow(&source, "one");
    grow(&source, "two");
    git(&source, &["-c", "user.name=a", "-c", "user.email=a@b", "tag", "-a", "-m", "x", "new", "main~1"]);
    server.state().store.reload();
    server.state().seen.packed.clear();
    git(&folder.join("copy"), &["fetch", "-q"]);
    assert!(refs(&folder.join("copy"), "refs/tags/new").contains("refs/tags/new"));
    assert_eq!(server.state().seen.packed, [2 * 5 + 1]);
}

fn shallow_story(version: &str) {
    let (folder, source, server) = served("shallow");
    let config = format!("protocol.version={version}");
    let urls = [("ours", server.url.clone()), ("theirs", format!("file://{}", source.display()))];
    let root = git(&source, &["rev-list", "--max-parents=0", "main"]);
    let both = |args: &[&str]| {
        let states = urls.each_ref().map(|(name, _)| {
            let copy = folder.join(name);
            git(&copy, &[&["-c", &config], args].concat());
            sound(&copy);
            state_of(&copy, &root)
        });
        assert_eq!(states[0], states[1], "{args:?} v{version}");
    };
    for depth in ["3", "1"] {
        for (name, url) in &urls {
            let _ = std::fs::remove_dir_all(folder.join(name));
            git(
                &folder.0,
                &["-c", &config, "clone", "-q", "--no-single-branch", "--depth", depth, url, name],
            );
        }
        both(&["status"]);
    }
    both(&["fetch", "-q", "--depth", "4"]);
    both(&["fetch", "-q", "--deepen", "2"]);
    grow(&source, "later");
    server.state().store.reload();
    server.state().seen.packed.clear();
    both(&["fetch", "-q"]);
    assert_eq!(server.state().seen.packed, [5], "a fetch into a shallow clone gets only what is new");
    grow(&source, "latest");
    server.state().store.reload();
    both(&["fetch", "-q", "--depth", "2"]);
    both(&["fetch", "-q", "--unshallow"]);
    assert!(!folder.join("ours/.git/shallow").exists());
    assert_eq!(git(&folder.join("ours"), &["rev-list", "origin/main"]), git(&source, &["rev-list", "main"]));
}

#[test]
fn shallow_clones_deepen_grow_and_become_whole_by_v2() {
    shallow_story("2");
}

#[test]
fn shallow_clones_deepen_grow_and_become_whole_by_v0() {
    shallow_story("0");
}

#[test]
fn a_full_clone_can_be_made_shallow_by_a_fetch() {
    let (folder, source, server) = served("truncate");
    git(&folder.0, &["clone", "-q", &server.url, "copy"]);
    let copy = folder.join("copy");
    grow(&source, "one");
    server.state().store.reload();
    git(&copy, &["fetch", "-q", "--depth", "1"]);
    assert_eq!(git(&copy, &["rev-list", "--count", "origin/main"]), "1");
    sound(&copy);
}

#[test]
fn history_is_cut_by_time_and_by_ref_as_git_cuts_it() {
    let (folder, source, server) = served("since");
    let from_file = format!("file://{}", source.display());
    for cut in ["--shallow-since=2020-09-14T00:00:00Z", "--shallow-exclude=v50"] {
        for version in ["0", "2"] {
            let config = format!("protocol.version={version}");
            let ours = folder.join(&format!("ours{version}{}", &cut[10..15]));
            let theirs = folder.join(&format!("theirs{version}{}", &cut[10..15]));
            let to = |dir: &'_ PathBuf| dir.to_str().unwrap().to_owned();
            git(&folder.0, &["-c", &config, "clone", "-q", cut, &server.url, &to(&ours)]);
            git(&folder.0, &["-c", &config, "clone", "-q", cut, &from_file, &to(&theirs)]);
            let list = |dir: &Path| git(dir, &["rev-list", "--all"]);
            assert_eq!(list(&ours), list(&theirs), "{cut} v{version}");
            assert_eq!(
                std::fs::read(ours.join(".git/shallow")).unwrap(),
                std::fs::read(theirs.join(".git/shallow")).unwrap()
            );
            sound(&ours);
        }
    }
    let late = git_fails(&folder.0, &["clone", "-q", "--shallow-since=2030-01-01", &server.url, "none"]);
    assert!(late.contains("no commits selected"), "{late}");
}

#[test]
fn one_commit_is_fetched_by_its_id() {
    let (folder, source, server) = served("by-id");
    git(&folder.0, &["init", "-q", "copy"]);
    let copy = folder.join("copy");
    let id = git(&source, &["rev-parse", "main~5"]);
    for (version, policy) in
        [("2", WantPolicy::Existing), ("2", WantPolicy::Reachable), ("0", WantPolicy::Reachable)]
    {
        server.state().policy = policy;
        let config = format!("protocol.version={version}");
        git(&copy, &["-c", &config, "fetch", "-q", "--depth", "1", &server.url, &id]);
        assert_eq!(git(&copy, &["rev-parse", "FETCH_HEAD"]), id);
        assert_eq!(git(&copy, &["rev-list", "--count", "FETCH_HEAD"]), "1");
        std::fs::remove_file(copy.join(".git/shallow")).unwrap();
        std::fs::remove_dir_all(copy.join(".git/objects")).unwrap();
        std::fs::create_dir_all(copy.join(".git/objects")).unwrap();
    }
}

#[test]
fn what_is_not_there_or_not_reachable_is_refused_clearly() {
    let (folder, source, server) = served("refused");
    git(&folder.0, &["init", "-q", "copy"]);
    let copy = folder.join("copy");
    let nowhere = "12".repeat(20);
    let said = git_fails(&copy, &["fetch", "-q", &server.url, &nowhere]);
    assert!(said.contains("not our ref"), "{said}");
    let tree = git(&source, &["rev-parse", "main^{tree}"]);
    let orphan = git(&source, &["commit-tree", "-m", "x", &tree]);
    server.state().store.reload();
    server.state().policy = WantPolicy::Reachable;
    let said = git_fails(&copy, &["fetch", "-q", &server.url, &orphan]);
    assert!(said.contains("not our ref"), "{said}");
    server.state().policy = WantPolicy::Existing;
    git(&copy, &["fetch", "-q", &server.url, &orphan]);
}

#[test]
fn a_clone_without_blobs_fetches_them_at_checkout() {
    let (folder, source, server) = served("partial");
    git(&folder.0, &["clone", "-q", "--no-checkout", "--filter=blob:none", &server.url, "copy"]);
    let copy = folder.join("copy");
    let present =
        git(&copy, &["cat-file", "--batch-all-objects", "--batch-check=%(objecttype)", "--unordered"]);
    assert!(present.contains("tree") && !present.contains("blob"));
    git(&copy, &["checkout", "-q", "main"]);
    assert_eq!(
        git(&copy, &["ls-files", "-s"]),
        git(&source, &["ls-tree", "-r", "--format=%(objectmode) %(objectname) 0%x09%(path)", "main"])
    );
    assert_eq!(git(&copy, &["status", "--porcelain"]), "");
    grow(&source, "later");
    server.state().store.reload();
    git(&copy, &["pull", "-q"]);
    sound(&copy);
}

#[test]
fn a_clone_without_trees_fetches_them_at_checkout() {
    let (folder, _source, server) = served("treeless");
    for filter in ["tree:0", "tree:2", "blob:limit=8", "combine:blob:none+tree:1"] {
        let name = filter.replace([':', '=', '+'], "-");
        let option = format!("--filter={filter}");
        git(&folder.0, &["clone", "-q", &option, &server.url, &name]);
        let copy = folder.join(&name);
        assert_eq!(git(&copy, &["status", "--porcelain"]), "");
        sound(&copy);
    }
    let said = git_fails(&folder.0, &["clone", "-q", "--filter=sparse:oid=main", &server.url, "sparse"]);
    assert!(said.contains("not supported"), "{said}");
}

#[test]
fn hidden_refs_are_fetched_by_name_and_listed_to_nobody_else() {
    let (folder, source, server) = served("hidden");
    let id = git(&source, &["rev-parse", "main~1"]);
    git(&source, &["update-ref", "refs/candidates/7/1", &id]);
    assert!(!git(&folder.0, &["ls-remote", &server.url]).contains("candidates"));
    git(&folder.0, &["init", "-q", "copy"]);
    git(&folder.join("copy"), &["fetch", "-q", &server.url, "refs/candidates/7/1"]);
    assert_eq!(git(&folder.join("copy"), &["rev-parse", "FETCH_HEAD"]), id);
}

#[test]
fn progress_reaches_the_person_at_the_client() {
    let (folder, _source, server) = served("progress");
    let output = attempt(&folder.0, &["clone", "--progress", &server.url, "copy"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.contains("remote: Sending "), "{said}");
}

#[test]
fn real_histories_clone_back_whole() {
    for source in real() {
        let folder = Folder::new("real");
        let whole = attempt(&source, &["fsck", "--connectivity-only"]).status.success();
        if !whole {
            eprintln!("{}: lacks objects itself, only its branches and tags are cloned", source.display());
        }
        let server = Server::start(&source);
        server.state().packs_by_git = true;
        let begin = std::time::Instant::now();
        let args: &[&str] = if whole { &["--mirror"] } else { &["--bare"] };
        let to = [server.url.as_str(), "copy.git"];
        git(&folder.0, &[&["clone", "-q"], args, &to].concat());
        let (copy, took) = (folder.join("copy.git"), begin.elapsed());
        for kind in ["refs/heads/", "refs/tags/"] {
            assert_eq!(refs(&copy, kind), refs(&source, kind));
        }
        sound(&copy);
        let needs = std::mem::take(&mut server.state().store.needs);
        let ids: usize = needs.iter().sum();
        eprintln!("{}: cloned in {took:?}, {} asks of {ids} ids", source.display(), needs.len());
        server.state().store.with_graph = false;
        git(&folder.0, &["clone", "-q", "--depth", "3", &server.url, "shallow"]);
        git(&folder.join("shallow"), &["fetch", "-q", "--unshallow"]);
        sound(&folder.join("shallow"));
    }
}
