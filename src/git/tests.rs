use std::cell::{Cell, RefCell};
use std::rc::Rc;

use super::sink::Sink;
use super::*;
use crate::api::{Admitted, Ask, admit};
use yard_common::{Millis, RefName, RepoName};
use yard_git::pack::PackWriter;
use yard_git::pack::receive::{Limits, Progress, Resolver, Scanner};
use yard_git::{Kind, MemoryObjects, hash};
use yard_objects::native::{Fails, MemoryBlobs, MemoryIndex, NativeSql, Wired, block_on};
use yard_objects::{Blobs as _, Board, Object, Registry, Repository, repository};
use yard_transfer::pktline::{Decoder, FLUSH, Packet, write_data, write_line};

const SECRET: &str = "a secret";

pub(crate) struct Native {
    pub(crate) wired: Rc<Wired>,
    pub(crate) blobs: Rc<MemoryBlobs>,
    index: Rc<MemoryIndex>,
    drawn: Cell<u64>,
}

impl Native {
    /// An object for a repository or fork that is still to be made.
    pub(crate) fn add_object(&self, object: &str) {
        let (blobs, index, wired) = (Rc::clone(&self.blobs), Rc::clone(&self.index), Rc::clone(&self.wired));
        let host: Repository<Self> =
            Repository::new(NativeSql::new().unwrap(), blobs, index, wired, SECRET.into());
        self.wired.insert(object, Rc::new(host) as Rc<dyn Object>);
    }
}

impl repository::Platform for Native {
    type Sql = NativeSql;
    type Blobs = Rc<MemoryBlobs>;
    type Index = Rc<MemoryIndex>;
    type Calls = Rc<Wired>;
}

pub(crate) struct MemorySink(Rc<MemoryBlobs>, String, Vec<u8>);

impl Sink for MemorySink {
    async fn write(&mut self, chunk: &[u8]) -> Result<(), Refusal> {
        self.2.extend_from_slice(chunk);
        Ok(())
    }

    async fn finish(self) -> Result<u64, Refusal> {
        let length = self.2.len() as u64;
        self.0.put(&self.1, self.2).await?;
        Ok(length)
    }

    async fn abort(self) {}
}

impl Platform for Native {
    type Calls = Rc<Wired>;
    type Blobs = Rc<MemoryBlobs>;
    type Index = Rc<MemoryIndex>;
    type Sink = MemorySink;

    fn calls(&self) -> &Rc<Wired> {
        &self.wired
    }

    fn blobs(&self) -> &Rc<MemoryBlobs> {
        &self.blobs
    }

    fn index(&self) -> &Rc<MemoryIndex> {
        &self.index
    }

    fn sink(&self, key: &str) -> MemorySink {
        MemorySink(Rc::clone(&self.blobs), key.to_owned(), Vec::new())
    }

    fn random(&self) -> u64 {
        self.drawn.set(self.drawn.get() + 1);
        self.drawn.get()
    }
}

struct Bytes(std::vec::IntoIter<Vec<u8>>);

impl Body for Bytes {
    async fn next(&mut self) -> Result<Option<Vec<u8>>, Refusal> {
        Ok(self.0.next())
    }
}

fn bytes(all: &[u8]) -> Bytes {
    Bytes(all.chunks(1000).map(<[u8]>::to_vec).collect::<Vec<_>>().into_iter())
}

/// A platform with the repository `name`; each test has its own name, for caches are the isolate's.
pub(crate) fn event(name: &str) -> Event<Native> {
    let (wired, blobs) = (Rc::new(Wired::default()), Rc::new(MemoryBlobs::default()));
    let index = Rc::new(MemoryIndex::new().unwrap());
    let sql = || NativeSql::new().unwrap();
    wired.insert(&format!("board:{name}"), Rc::new(Board::new(sql())));
    wired.insert("registry", Rc::new(Registry::new(sql())));
    let platform = Native { wired, blobs, index, drawn: Cell::new(0) };
    platform.add_object(&format!("repo:{name}"));
    let create = yard_wire::repository::Create {
        repo: RepoName::new(name).unwrap(),
        fork: None,
        default_branch: RefName::new("refs/heads/main").unwrap(),
        refs: Vec::new(),
        key: None,
    };
    block_on(platform.wired.call(&format!("repo:{name}"), &create)).unwrap();
    Event {
        platform,
        secret: SECRET.into(),
        now: Millis(1_700_000_000_000),
        origin: "https://yard".into(),
        hints: RefCell::default(),
    }
}

pub(crate) fn ask(path: &str) -> Ask {
    let claims = yard_wire::token::Claims {
        id: yard_common::TokenId::new("t").unwrap(),
        repo: None,
        fork: None,
        scopes: vec![Scope::Admin],
        expires: Millis(u64::MAX >> 12),
    };
    let token = yard_wire::token::issue(SECRET.as_bytes(), &claims);
    let mut ask = Ask { verb: "POST".into(), path: path.into(), ..Ask::default() };
    ask.headers.insert("authorization".into(), format!("Bearer {token}"));
    ask.headers.insert("git-protocol".into(), "version=2".into());
    ask
}

pub(crate) fn push(event: &Event<Native>, name: &str, reference: &str, tip: ObjectId, pack: &[u8]) -> String {
    let ask = ask(&format!("/{name}.git/git-receive-pack"));
    let Admitted::Call(call) = admit(&event.secret, event.now, &ask) else { panic!("not admitted") };
    let mut body = Vec::new();
    write_data(&mut body, format!("{} {tip} {reference}\0report-status", ObjectId::ZERO).as_bytes());
    body.extend_from_slice(FLUSH);
    body.extend_from_slice(pack);
    String::from_utf8_lossy(&block_on(receive(event, &call, bytes(&body))).body).into_owned()
}

/// Fetches `want` and gives the ids in the pack that came, deltas resolved.
fn fetch(event: &Event<Native>, name: &str, want: ObjectId, have: Option<ObjectId>) -> Vec<ObjectId> {
    let ask = ask(&format!("/{name}.git/git-upload-pack"));
    let Admitted::Call(call) = admit(&event.secret, event.now, &ask) else { panic!("not admitted") };
    let mut body = Vec::new();
    write_line(&mut body, "command=fetch");
    body.extend_from_slice(b"0001");
    write_line(&mut body, "ofs-delta");
    write_line(&mut body, &format!("want {want}"));
    have.iter().for_each(|id| write_line(&mut body, &format!("have {id}")));
    write_line(&mut body, "done");
    body.extend_from_slice(FLUSH);
    let Ok(Upload::Stream(mut emitter)) = block_on(upload(event, &call, bytes(&body))) else {
        panic!("no pack came")
    };
    let mut decoder = Decoder::default();
    while let Some(piece) = block_on(emitter.next()) {
        decoder.push(&piece);
    }
    let mut scanner = Scanner::new(Limits::default());
    let mut pack = Vec::new();
    while let Some(packet) = decoder.next_packet().unwrap() {
        if let Packet::Data([1, data @ ..]) = packet {
            scanner.feed(data).unwrap();
            pack.extend_from_slice(data);
        }
    }
    let mut resolver = Resolver::new(scanner.finish().unwrap()).unwrap();
    match resolver.step(&pack, &MemoryObjects::default()).unwrap() {
        Progress::Done(received) => received.objects.iter().map(|object| object.id).collect(),
        Progress::Need { .. } => panic!("the pack is not whole"),
    }
}

/// One commit with one file: its id, its tree, its blob.
pub(crate) fn commit(writer: &mut PackWriter, parent: Option<ObjectId>, text: &str) -> [ObjectId; 3] {
    let blob = hash(Kind::Blob, text.as_bytes());
    writer.add(blob, Kind::Blob, text.as_bytes());
    let mut tree = Vec::new();
    yard_git::tree::push_entry(&mut tree, b"100644", b"f", &blob);
    let tree_id = hash(Kind::Tree, &tree);
    writer.add(tree_id, Kind::Tree, &tree);
    let parent = parent.map_or_else(String::new, |id| format!("parent {id}\n"));
    let who = "A <a@x> 1700000000 +0000";
    let data = format!("tree {tree_id}\n{parent}author {who}\ncommitter {who}\n\n{text}\n");
    let id = hash(Kind::Commit, data.as_bytes());
    writer.add(id, Kind::Commit, data.as_bytes());
    [id, tree_id, blob]
}

fn sorted(ids: impl IntoIterator<Item = ObjectId>) -> Vec<ObjectId> {
    let mut ids: Vec<_> = ids.into_iter().collect();
    ids.sort_unstable();
    ids
}

#[test]
fn what_was_pushed_is_fetched_at_once_whole_and_as_a_difference() {
    let event = event("whole");
    let mut writer = PackWriter::in_memory();
    let one = commit(&mut writer, None, "one");
    let answer = push(&event, "whole", "refs/heads/main", one[0], &writer.finish().unwrap().rest);
    assert!(answer.contains("unpack ok") && answer.contains("ok refs/heads/main"), "{answer}");
    assert_eq!(fetch(&event, "whole", one[0], None), sorted(one));
    let mut writer = PackWriter::in_memory();
    let two = commit(&mut writer, Some(one[0]), "two");
    push(&event, "whole", "refs/heads/next", two[0], &writer.finish().unwrap().rest);
    assert_eq!(fetch(&event, "whole", two[0], None), sorted(one.into_iter().chain(two)));
    assert_eq!(fetch(&event, "whole", two[0], Some(one[0])), sorted(two));
    assert!(!event.hints.borrow().is_empty(), "a push to the repository wakes its lane");
}

#[test]
fn a_push_that_is_cut_or_not_connected_changes_nothing_and_leaves_nothing() {
    let event = event("nothing");
    let mut writer = PackWriter::in_memory();
    let one = commit(&mut writer, None, "one");
    let pack = writer.finish().unwrap().rest;
    let cut = push(&event, "nothing", "refs/heads/main", one[0], &pack[..pack.len() - 25]);
    assert!(cut.contains("unpack the pack is cut"), "{cut}");
    let mut writer = PackWriter::in_memory();
    let orphan = commit(&mut writer, Some(ObjectId([9; 20])), "two");
    let answer = push(&event, "nothing", "refs/heads/main", orphan[0], &writer.finish().unwrap().rest);
    assert!(answer.contains("missing necessary objects"), "{answer}");
    assert_eq!(event.platform.blobs.keys(), Vec::<String>::new());
}

#[test]
fn a_push_that_meets_a_lost_call_is_told_and_succeeds_when_repeated() {
    let event = event("lost");
    let mut writer = PackWriter::in_memory();
    let one = commit(&mut writer, None, "one");
    let pack = writer.finish().unwrap().rest;
    event.platform.wired.faults.fail_next(Fails::After);
    let lost = push(&event, "lost", "refs/heads/main", one[0], &pack);
    // The first call that is lost is the reading of refs: the client is told and pushes again.
    assert!(lost.contains("unpack the platform failed"), "{lost}");
    let again = push(&event, "lost", "refs/heads/main", one[0], &pack);
    assert!(again.contains("ok refs/heads/main"), "{again}");
    assert_eq!(fetch(&event, "lost", one[0], None), sorted(one));
}

#[test]
fn a_revoked_token_reads_nothing_and_pushes_nothing() {
    let event = event("revoked");
    let revoke = yard_wire::repository::Revoke { token: yard_common::TokenId::new("t").unwrap() };
    let status = || {
        let mut ask = ask("/api/repos/revoked/changes");
        ask.verb = "GET".into();
        let Admitted::Call(call) = admit(&event.secret, event.now, &ask) else { panic!("not admitted") };
        block_on(crate::api::answer(&event, &call)).status
    };
    assert_eq!(status(), 200);
    block_on(event.platform.wired.call("repo:revoked", &revoke)).unwrap();
    assert_eq!(status(), 401);
    let mut writer = PackWriter::in_memory();
    let one = commit(&mut writer, None, "one");
    let answer = push(&event, "revoked", "refs/heads/main", one[0], &writer.finish().unwrap().rest);
    assert!(answer.contains("revoked"), "{answer}");
    assert_eq!(event.platform.blobs.keys(), Vec::<String>::new());
}

#[test]
fn an_api_change_on_an_open_api_change_has_that_built_and_waits_for_it() {
    let event = event("stacked");
    let mut writer = PackWriter::in_memory();
    let one = commit(&mut writer, None, "one");
    push(&event, "stacked", "refs/heads/main", one[0], &writer.finish().unwrap().rest);
    let offer = |key: &str, changes: &serde_json::Value| {
        let mut ask = ask("/api/repos/stacked/changes");
        ask.headers.insert("idempotency-key".into(), key.into());
        ask.body = serde_json::json!({ "changes": changes }).to_string().into_bytes();
        let Admitted::Call(call) = admit(&event.secret, event.now, &ask) else { panic!("not admitted") };
        let answer = block_on(crate::api::answer(&event, &call));
        serde_json::from_slice::<serde_json::Value>(&answer.body).unwrap()["results"].clone()
    };
    let change = |base: &str, path: &str| {
        serde_json::json!({
            "base": base, "edits": [{ "path": path, "content": "x" }], "intent": { "title": "t" }
        })
    };
    let main = one[0].to_string();
    let parent = offer("k1", &serde_json::json!([change(&main, "a")]));
    let head = parent[0]["accepted"]["head"].as_str().unwrap();
    let built = || event.platform.blobs.keys().iter().filter(|key| key.contains("/heads-")).count();
    assert_eq!(built(), 0, "a submission writes nothing to the bucket");
    let both = offer("k2", &serde_json::json!([change(head, "b"), change(&main, "c")]));
    assert_eq!(
        both[0]["accepted"]["waits_for"],
        serde_json::json!([parent[0]["accepted"]["change"]]),
        "{both}"
    );
    assert!(both[1]["accepted"]["head"].is_string(), "{both}");
    assert_eq!(built(), 1);
    // The upper heads are built for whoever fetches one.
    let top: yard_common::ObjectId = both[0]["accepted"]["head"].as_str().unwrap().parse().unwrap();
    let fetched = fetch(&event, "stacked", top, None);
    assert!(fetched.contains(&top) && fetched.contains(&head.parse().unwrap()), "{fetched:?}");
    assert_eq!(built(), 2);
    // A repeat is answered although it was prepared on another state.
    assert_eq!(offer("k2", &serde_json::json!([change(head, "b"), change(&main, "c")])), both);
    let other = offer("k2", &serde_json::json!([change(&main, "d")]));
    assert!(other[0]["refused"]["detail"].as_str().unwrap().contains("\"k2\""), "{other}");
}

#[test]
fn a_number_beyond_the_tables_is_no_fault_of_the_platform() {
    let event = event("numbers");
    let mut ask = ask("/api/repos/numbers/claims/18446744073709551615");
    ask.verb = "DELETE".into();
    let Admitted::Call(call) = admit(&event.secret, event.now, &ask) else { panic!("not admitted") };
    assert_eq!(block_on(crate::api::answer(&event, &call)).status, 400);
    for (path, body) in [
        ("claims", r#"{"paths":["a"],"ttl_seconds":18446744073709551615}"#),
        ("lanes/main/renew", r#"{"run":"r","lease":18446744073709551615}"#),
        ("lanes/main/lease", r#"{"wait_ms":9223372036854775807}"#),
        ("tokens", r#"{"scopes":["read"],"fork":null,"ttl_seconds":9007199254740992}"#),
    ] {
        let mut ask = self::ask(&format!("/api/repos/numbers/{path}"));
        ask.headers.insert("idempotency-key".into(), "k".into());
        ask.body = body.into();
        let Admitted::Call(call) = admit(&event.secret, event.now, &ask) else { panic!("not admitted") };
        let answer = block_on(crate::api::answer(&event, &call));
        assert_eq!(answer.status, 400, "{path}: {}", String::from_utf8_lossy(&answer.body));
    }
    for query in ["changes?before", "landings?after", "events?after"] {
        let (path, name) = query.split_once('?').unwrap();
        let mut ask = self::ask(&format!("/api/repos/numbers/{path}"));
        ask.verb = "GET".into();
        ask.query.push((name.into(), u64::MAX.to_string()));
        let Admitted::Call(call) = admit(&event.secret, event.now, &ask) else { panic!("not admitted") };
        assert_eq!(block_on(crate::api::answer(&event, &call)).status, 200, "{query}");
    }
}

/// A commit of a tree with these entries.
fn commit_of(writer: &mut PackWriter, parent: ObjectId, entries: &[(&[u8], &[u8], ObjectId)]) -> ObjectId {
    let mut tree = Vec::new();
    entries.iter().for_each(|(digits, name, id)| yard_git::tree::push_entry(&mut tree, digits, name, id));
    let tree_id = hash(Kind::Tree, &tree);
    writer.add(tree_id, Kind::Tree, &tree);
    let who = "A <a@x> 1700000000 +0000";
    let data = format!("tree {tree_id}\nparent {parent}\nauthor {who}\ncommitter {who}\n\nm\n");
    let id = hash(Kind::Commit, data.as_bytes());
    writer.add(id, Kind::Commit, data.as_bytes());
    id
}

const EVIL: &str = "[submodule \"x\"]\n\tpath = x\n\turl = --upload-pack=evil\n";

#[test]
fn a_hostile_gitmodules_is_refused_whether_it_comes_with_the_push_or_came_before_as_another_file() {
    let event = event("modules");
    let mut writer = PackWriter::in_memory();
    // The blob comes as the file `f`: nothing is wrong with it there.
    let [main, _, evil] = commit(&mut writer, None, EVIL);
    let answer = push(&event, "modules", "refs/heads/main", main, &writer.finish().unwrap().rest);
    assert!(answer.contains("ok refs/heads/main"), "{answer}");
    let stored = event.platform.blobs.keys();
    for name in [&b".gitmodules"[..], b"GITMOD~1"] {
        let mut writer = PackWriter::in_memory();
        let tip = commit_of(&mut writer, main, &[(b"100644", name, evil)]);
        let answer = push(&event, "modules", "refs/heads/x", tip, &writer.finish().unwrap().rest);
        let place =
            format!("{} in commit {tip}, line 3: \"--upload-pack=evil\"", String::from_utf8_lossy(name));
        assert!(answer.contains("unpack ") && answer.contains(&place), "{answer}");
        assert!(answer.contains("gitmodulesUrl") && answer.contains("ng refs/heads/x"), "{answer}");
    }
    // With the push, below a directory.
    let mut writer = PackWriter::in_memory();
    let long = vec![b'*'; 2048];
    let blob = hash(Kind::Blob, &long);
    writer.add(blob, Kind::Blob, &long);
    let mut tree = Vec::new();
    yard_git::tree::push_entry(&mut tree, b"100644", b".gitattributes", &blob);
    let tree_id = hash(Kind::Tree, &tree);
    writer.add(tree_id, Kind::Tree, &tree);
    let tip = commit_of(&mut writer, main, &[(b"40000", b"deep", tree_id)]);
    let answer = push(&event, "modules", "refs/heads/x", tip, &writer.finish().unwrap().rest);
    assert!(answer.contains(&format!("deep/.gitattributes in commit {tip}, line 1")), "{answer}");
    assert_eq!(event.platform.blobs.keys(), stored, "what is refused does not stay");
}

#[test]
fn what_a_push_names_outside_of_itself_must_be_of_that_kind() {
    let event = event("kinds");
    let mut writer = PackWriter::in_memory();
    let [main, tree, blob] = commit(&mut writer, None, "one");
    push(&event, "kinds", "refs/heads/main", main, &writer.finish().unwrap().rest);
    let wrong: [(&[u8], ObjectId, &str); 4] = [
        (b"40000", blob, "named as a tree and is a blob"),
        (b"100644", tree, "named as a blob and is a tree"),
        (b"100644", main, "named as a blob and is a commit"),
        (b"40000", main, "named as a tree and is a commit"),
    ];
    for (digits, id, wants) in wrong {
        let mut writer = PackWriter::in_memory();
        let tip = commit_of(&mut writer, main, &[(digits, b"g", id)]);
        let answer = push(&event, "kinds", "refs/heads/x", tip, &writer.finish().unwrap().rest);
        assert!(answer.contains(wants) && answer.contains("ng refs/heads/x"), "{answer}");
    }
    let commit = |tree: ObjectId, parent: ObjectId| {
        let who = "A <a@x> 1700000000 +0000";
        let text = format!("tree {tree}\nparent {parent}\nauthor {who}\ncommitter {who}\n\nm\n");
        (Kind::Commit, text.into_bytes())
    };
    let tag = |id: ObjectId, kind: &str| {
        let text = format!("object {id}\ntype {kind}\ntag v\ntagger A <a@x> 1700000000 +0000\n\nm\n");
        (Kind::Tag, text.into_bytes())
    };
    for ((kind, data), reference, fits) in [
        (commit(main, main), "refs/heads/x", false),
        (commit(blob, main), "refs/heads/x", false),
        (commit(tree, tree), "refs/heads/x", false),
        (tag(main, "tree"), "refs/tags/v", false),
        (tag(tree, "commit"), "refs/tags/v", false),
        (tag(blob, "tag"), "refs/tags/v", false),
        (commit(tree, main), "refs/heads/y", true),
        (tag(blob, "blob"), "refs/tags/w", true),
    ] {
        let (mut writer, tip) = (PackWriter::in_memory(), hash(kind, &data));
        writer.add(tip, kind, &data);
        let answer = push(&event, "kinds", reference, tip, &writer.finish().unwrap().rest);
        assert_eq!(answer.contains(&format!("ok {reference}")), fits, "{answer}");
        assert_eq!(answer.contains("is named as a"), !fits, "{answer}");
    }
    // An old blob under another name, in a new directory, beside what stands: by header and by tree.
    let mut writer = PackWriter::in_memory();
    let tip = commit_of(&mut writer, main, &[(b"40000", b"d", tree), (b"100755", b"f", blob)]);
    let answer = push(&event, "kinds", "refs/heads/z", tip, &writer.finish().unwrap().rest);
    assert!(answer.contains("ok refs/heads/z"), "{answer}");
}
