use yard_common::{ObjectId, RefName, Refusal};

use super::*;
use crate::advertise::Protocol;
use crate::pktline::write_data;
use crate::plan::{Filter, NoGraph};
use crate::refs::RefTip;

fn id(byte: u8) -> ObjectId {
    ObjectId([byte; 20])
}

/// A body of these lines; `-` is the delimiter, `.` the flush.
fn body(lines: &[&str]) -> Vec<u8> {
    let mut out = Vec::new();
    for line in lines {
        match *line {
            "-" => out.extend_from_slice(DELIM),
            "." => out.extend_from_slice(FLUSH),
            line => write_line(&mut out, line),
        }
    }
    out
}

fn fetch(protocol: Protocol, lines: &[&str]) -> FetchRequest {
    match parse(protocol, &body(lines)).unwrap() {
        Command::Fetch(request) => *request,
        other => panic!("{other:?}"),
    }
}

fn refused(protocol: Protocol, lines: &[&str]) -> String {
    match parse(protocol, &body(lines)).unwrap_err() {
        Refusal::Invalid { why } => why,
        other => panic!("{other:?}"),
    }
}

fn refs() -> RefView {
    let tip = |name: &str, byte: u8, peeled: Option<u8>| RefTip {
        name: RefName::new(name).unwrap(),
        id: id(byte),
        peeled: peeled.map(id),
    };
    let tips = vec![
        tip("refs/heads/main", 1, None),
        tip("refs/heads/topic", 2, None),
        tip("refs/tags/v1", 3, Some(1)),
        tip("refs/candidates/7/1", 9, None),
    ];
    RefView::new(tips, RefName::new("refs/heads/main").unwrap())
}

fn listed(lines: &[&str], refs: &RefView) -> String {
    let all = [&["command=ls-refs", "agent=x", "object-format=sha1", "-"], lines, &["."]].concat();
    match parse(Protocol::V2, &body(&all)).unwrap() {
        Command::LsRefs(list) => String::from_utf8(list.answer(refs)).unwrap(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn refs_are_listed_as_asked() {
    let one = "01".repeat(20);
    let all = listed(&["peel", "symrefs"], &refs());
    assert!(all.contains(&format!("{one} HEAD symref-target:refs/heads/main\n")));
    assert!(all.contains(&format!(" refs/tags/v1 peeled:{one}\n")));
    assert!(!all.contains("candidates") && all.ends_with("0000"));
    let heads = listed(&["ref-prefix refs/heads/t"], &refs());
    assert!(heads.contains("refs/heads/topic") && !heads.contains("main") && !heads.contains("HEAD"));
    let candidate = listed(&["ref-prefix refs/candidates/7/1"], &refs());
    assert!(candidate.contains("refs/candidates/7/1"));
    assert!(!listed(&["ref-prefix refs/"], &refs()).contains("candidates"));
}

#[test]
fn an_unborn_head_is_told_to_who_asks() {
    let empty = RefView::new(Vec::new(), RefName::new("refs/heads/trunk").unwrap());
    assert!(listed(&["symrefs", "unborn"], &empty).contains("unborn HEAD symref-target:refs/heads/trunk\n"));
    assert_eq!(listed(&["symrefs"], &empty), "0000");
}

#[test]
fn a_v2_fetch_is_read_whole() {
    let (want, have) = (format!("want {}", id(1)), format!("have {}", id(2)));
    let shallow = format!("shallow {}", id(3));
    let lines = [
        "command=fetch",
        "agent=git/2",
        "object-format=sha1",
        "server-option=x",
        "-",
        "thin-pack",
        "no-progress",
        "include-tag",
        "ofs-delta",
        "wait-for-done",
        &shallow,
        "deepen 3",
        "deepen-relative",
        "filter blob:limit=2k",
        &want,
        &want,
        &have,
        "done",
        ".",
    ];
    let request = fetch(Protocol::V2, &lines);
    assert_eq!((request.wants, request.haves, request.shallow), (vec![id(1)], vec![id(2)], vec![id(3)]));
    assert_eq!(request.deepening, Deepening { depth: Some(3), relative: true, ..Deepening::default() });
    assert_eq!(request.filter, Filter { blob_limit: Some(2_048), tree_depth: None });
    assert_eq!((request.end, request.acks, request.framing), (RoundEnd::Done, Acks::V2, Framing::Large));
    assert!(request.thin_pack && request.no_progress && request.include_tag && request.ofs_delta);
}

#[test]
fn a_v0_fetch_is_read_whole() {
    let want = format!(
        "want {} multi_ack_detailed no-done side-band side-band-64k thin-pack ofs-delta agent=x",
        id(1)
    );
    let have = format!("have {}", id(2));
    let request = fetch(Protocol::V0, &[&want, "deepen-since 99", "deepen-not v1", ".", &have, ".", "done"]);
    assert_eq!(
        (request.acks, request.framing, request.end),
        (Acks::Detailed, Framing::Large, RoundEnd::Haves)
    );
    assert_eq!(request.deepening.since, Some(99));
    assert_eq!(request.deepening.not, ["v1"]);
    assert!(request.no_done && request.thin_pack && request.haves == [id(2)]);
    let plain = format!("want {}", id(1));
    let request = fetch(Protocol::V1, &[&plain, ".", "done"]);
    assert_eq!((request.acks, request.framing, request.end), (Acks::Single, Framing::Bare, RoundEnd::Done));
    assert_eq!(fetch(Protocol::V0, &[&plain, "."]).end, RoundEnd::Wants);
}

#[test]
fn what_is_not_served_is_refused_with_its_name() {
    let want = format!("want {}", id(1));
    assert!(refused(Protocol::V2, &["command=object-info", "."]).contains("object-info"));
    assert!(refused(Protocol::V2, &["command=fetch", "object-format=sha256", "."]).contains("sha256"));
    assert!(
        refused(Protocol::V2, &["command=fetch", "-", &want, "sideband-all", "."]).contains("sideband-all")
    );
    assert!(
        refused(Protocol::V2, &["command=fetch", "-", &want, "filter sparse:oid=x", "."]).contains("sparse")
    );
    assert!(refused(Protocol::V2, &["command=fetch", "-", &want, "deepen 0", "."]).contains("deepen"));
    assert!(
        refused(Protocol::V2, &["command=fetch", "-", &want, "deepen 1", "deepen-since 2", "."])
            .contains("together")
    );
    assert!(refused(Protocol::V2, &["command=fetch", "-", "done", "."]).contains("want"));
    assert!(refused(Protocol::V2, &["command=fetch", "-", "want 123", "."]).contains("object id"));
    assert!(refused(Protocol::V2, &["command=fetch", "-", &want]).contains("cut off"));
    assert!(refused(Protocol::V0, &[&want, ".", "hello"]).contains("neither have nor done"));
    let large = vec![b'0'; REQUEST_BYTES_MAX + 1];
    assert!(matches!(parse(Protocol::V2, &large), Err(Refusal::TooLarge { .. })));
}

#[test]
fn an_empty_request_asks_for_nothing() {
    for protocol in [Protocol::V0, Protocol::V2] {
        assert_eq!(parse(protocol, b"").unwrap(), Command::Empty);
        assert_eq!(parse(protocol, b"0000").unwrap(), Command::Empty);
    }
}

#[test]
fn filters_are_read_and_combined() {
    let filter = |blob_limit, tree_depth| Filter { blob_limit, tree_depth };
    assert_eq!(parse_filter("blob:none").unwrap(), filter(Some(0), None));
    assert_eq!(parse_filter("blob:limit=3M").unwrap(), filter(Some(3 << 20), None));
    assert_eq!(parse_filter("tree:2").unwrap(), filter(None, Some(2)));
    assert_eq!(parse_filter("combine:blob:none+tree:1").unwrap(), filter(Some(0), Some(1)));
    assert_eq!(parse_filter("combine:blob%3Alimit%3D1k+blob:limit=5").unwrap(), filter(Some(5), None));
    for bad in
        ["", "blob:limit=", "blob:limit=9x", "tree:x", "object:type=tag", "combine:tree:0+sparse:oid=x"]
    {
        assert!(parse_filter(bad).is_err(), "{bad}");
    }
}

/// The answer of one round when `known` exists and needs no object to be looked into.
fn round(
    acks: Acks,
    end: RoundEnd,
    haves: &[u8],
    known: &[u8],
    ready: bool,
    no_done: bool,
) -> (String, bool) {
    let request = FetchRequest {
        haves: haves.iter().map(|byte| id(*byte)).collect(),
        acks,
        end,
        no_done,
        ..FetchRequest::default()
    };
    let common: Vec<ObjectId> = known.iter().map(|byte| id(*byte)).collect();
    let mut out = Vec::new();
    let pack = match acks {
        Acks::V2 => acknowledge::v2(&mut out, &request, &common, ready),
        _ => acknowledge::v0(&mut out, &request, &common, ready),
    };
    let mut text = String::from_utf8(out).unwrap();
    for byte in 0..10 {
        text = text.replace(&id(byte).to_string(), &byte.to_string());
    }
    (text.lines().map(|line| line.get(4..).unwrap_or(line)).collect::<Vec<_>>().join("|"), pack)
}

#[test]
fn v0_acknowledges_as_git_does() {
    use RoundEnd::{Done, Haves, Wants};
    let is = |text: &str, pack| (text.to_owned(), pack);
    assert_eq!(round(Acks::Detailed, Haves, &[1, 2], &[1], false, true), is("ACK 1 common|NAK", false));
    assert_eq!(
        round(Acks::Detailed, Haves, &[1], &[1], true, false),
        is("ACK 1 common|ACK 1 ready|NAK", false)
    );
    assert_eq!(
        round(Acks::Detailed, Haves, &[1], &[1], true, true),
        is("ACK 1 common|ACK 1 ready|NAK|ACK 1", true)
    );
    assert_eq!(round(Acks::Detailed, Done, &[1], &[1], false, true), is("ACK 1 common|ACK 1", true));
    assert_eq!(
        round(Acks::Multi, Haves, &[1, 2], &[1, 2], false, false),
        is("ACK 1 continue|ACK 2 continue|NAK", false)
    );
    assert_eq!(round(Acks::Single, Haves, &[1, 2], &[1, 2], false, false), is("ACK 1", false));
    assert_eq!(round(Acks::Single, Haves, &[1], &[], false, false), is("NAK", false));
    assert_eq!(round(Acks::Single, Done, &[], &[], false, false), is("NAK", true));
    assert_eq!(round(Acks::Single, Done, &[1], &[1], false, false), is("ACK 1", true));
    assert_eq!(round(Acks::Detailed, Wants, &[], &[], false, true), is("", false));
}

#[test]
fn v2_acknowledges_as_git_does() {
    use RoundEnd::{Done, Haves};
    let is = |text: &str, pack| (text.to_owned(), pack);
    assert_eq!(round(Acks::V2, Haves, &[], &[], false, false), is("", true));
    assert_eq!(round(Acks::V2, Done, &[1], &[1], false, false), is("", true));
    assert_eq!(round(Acks::V2, Haves, &[1], &[], false, false), is("acknowledgments|NAK|", false));
    assert_eq!(round(Acks::V2, Haves, &[1], &[1], false, false), is("acknowledgments|ACK 1|", false));
    assert_eq!(round(Acks::V2, Haves, &[1], &[1], true, false), is("acknowledgments|ACK 1|ready|", true));
}

#[test]
fn a_want_that_is_not_here_or_a_cut_at_no_ref_is_refused() {
    let request = FetchRequest { wants: vec![id(8)], ..FetchRequest::default() };
    let why = Upload::new(request, &refs(), WantPolicy::Existing, &|_| false).unwrap_err().to_string();
    assert!(why.contains(&id(8).to_string()), "{why}");
    let deepening = Deepening { not: vec!["nowhere".to_owned()], ..Deepening::default() };
    let request = FetchRequest { wants: vec![id(1)], deepening, ..FetchRequest::default() };
    let why = Upload::new(request, &refs(), WantPolicy::Existing, &|_| true).unwrap_err().to_string();
    assert!(why.contains("nowhere"), "{why}");
}

#[test]
fn the_first_step_asks_for_wants_and_common_commits_together() {
    let request = FetchRequest {
        wants: vec![id(1), id(2)],
        haves: vec![id(3), id(4)],
        acks: Acks::V2,
        end: RoundEnd::Haves,
        ..FetchRequest::default()
    };
    let exists = |id: &ObjectId| *id != ObjectId([4; 20]);
    let mut upload = Upload::new(request, &refs(), WantPolicy::Existing, &exists).unwrap();
    let hand = yard_git::MemoryObjects::default();
    let step = upload.step(&World { objects: &hand, exists: &exists, graph: &NoGraph }).unwrap();
    assert_eq!(step, UploadStep::Need(vec![id(1), id(2), id(3)]));
}

#[test]
fn binary_noise_is_no_request() {
    let mut noise = Vec::new();
    write_data(&mut noise, b"want \xff\xfe");
    assert!(parse(Protocol::V0, &noise).is_err());
    assert!(parse(Protocol::V2, &noise).is_err());
}
