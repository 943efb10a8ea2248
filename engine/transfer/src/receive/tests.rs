use yard_common::{ObjectId, RefName, Refusal};
use yard_git::Kind;

use super::*;
use crate::pktline::{FLUSH, write_data, write_line};
use crate::refs::{RefTip, RefView};

fn id(byte: u8) -> ObjectId {
    ObjectId([byte; 20])
}

fn body(commands: &[(u8, u8, &str)], capabilities: &str) -> Vec<u8> {
    let mut out = Vec::new();
    for (at, (old, new, name)) in commands.iter().enumerate() {
        let tail = if at == 0 { format!("\0{capabilities}") } else { String::new() };
        write_data(&mut out, format!("{} {} {name}{tail}", id(*old), id(*new)).as_bytes());
    }
    out.extend_from_slice(FLUSH);
    out
}

fn push_of(commands: &[(u8, u8, &str)]) -> Push {
    match Parser::default().push(&body(commands, " report-status")).unwrap() {
        Parsed::Ready { push, .. } => push,
        other => panic!("{other:?}"),
    }
}

fn refs(tips: &[(u8, &str)]) -> RefView {
    let tips = tips.iter().map(|(byte, name)| RefTip {
        name: RefName::new(*name).unwrap(),
        id: id(*byte),
        peeled: None,
    });
    RefView::new(tips.collect(), RefName::new("refs/heads/main").unwrap())
}

fn faults(commands: &[(u8, u8, &str)], tips: &[(u8, &str)], place: Place) -> Vec<Option<String>> {
    check(&push_of(commands), &refs(tips), place).into_iter().map(|status| status.fault).collect()
}

fn only_fault(commands: &[(u8, u8, &str)], tips: &[(u8, &str)]) -> String {
    faults(commands, tips, Place::Repository).remove(0).unwrap()
}

#[test]
fn the_push_and_the_start_of_its_pack_come_apart_however_the_body_is_cut() {
    let capabilities =
        " report-status-v2 side-band-64k push-options atomic quiet object-format=sha1 agent=git/2.47";
    let mut whole = body(&[(0, 1, "refs/heads/a"), (2, 0, "refs/heads/b")], capabilities);
    write_line(&mut whole, "topic=x");
    write_data(&mut whole, b"draft");
    whole.extend_from_slice(FLUSH);
    whole.extend_from_slice(b"PACK\0\0\0\x02rest");
    for size in [1, 7, 64, whole.len()] {
        let mut parser = Parser::default();
        let mut got = None;
        let mut pack_seen = Vec::new();
        for chunk in whole.chunks(size) {
            if got.is_some() {
                pack_seen.extend_from_slice(chunk);
                continue;
            }
            if let Parsed::Ready { push, pack } = parser.push(chunk).unwrap() {
                got = Some(push);
                pack_seen = pack;
            }
        }
        let push = got.unwrap();
        assert_eq!(pack_seen, b"PACK\0\0\0\x02rest");
        assert_eq!(push.options, ["topic=x", "draft"]);
        assert_eq!(push.commands.len(), 2);
        assert!(push.has_pack() && push.commands[1].is_delete());
        let wanted = &push.capabilities;
        assert!(wanted.report_status_v2 && wanted.atomic && wanted.quiet && !wanted.report_status);
        assert_eq!(wanted.framing, Framing::Large);
        assert_eq!(wanted.agent.as_deref(), Some("git/2.47"));
    }
}

#[test]
fn the_probe_and_an_empty_body_are_answered_as_such() {
    assert_eq!(Parser::default().push(b"0000").unwrap(), Parsed::Probe);
    let mut parser = Parser::default();
    assert_eq!(parser.push(b"00").unwrap(), Parsed::More);
    assert_eq!(parser.push(b"00").unwrap(), Parsed::Probe);
    assert_eq!(Parser::default().end().unwrap(), Parsed::Probe);
}

#[test]
fn a_push_that_only_deletes_has_no_pack() {
    let push = push_of(&[(1, 0, "refs/heads/a")]);
    assert!(!push.has_pack());
}

#[test]
fn what_is_no_push_is_refused() {
    let mut cut = Parser::default();
    assert_eq!(cut.push(b"00a0abc").unwrap(), Parsed::More);
    assert!(cut.end().is_err());
    for bad in [&b"GET / HTTP/1.1"[..], b"0009hello", b"0001"] {
        assert!(matches!(Parser::default().push(bad), Err(Refusal::Invalid { .. })), "{bad:?}");
    }
    let mut certificate = Vec::new();
    write_data(&mut certificate, b"push-cert\0 report-status");
    let why = Parser::default().push(&certificate).unwrap_err().to_string();
    assert!(why.contains("--no-signed"), "{why}");
    let why = Parser::default().push(&body(&[(0, 1, "refs/heads/a")], "object-format=sha256")).unwrap_err();
    assert!(why.to_string().contains("sha256"));
}

#[test]
fn shallow_lines_are_kept_apart_from_commands() {
    let mut out = Vec::new();
    write_line(&mut out, &format!("shallow {}", id(7)));
    out.extend(body(&[(0, 1, "refs/heads/a")], "report-status"));
    let Parsed::Ready { push, .. } = Parser::default().push(&out).unwrap() else { panic!() };
    assert_eq!(push.shallow, [id(7)]);
    assert!(push.capabilities.report_status);
}

#[test]
fn an_endless_list_of_commands_is_cut_at_its_limit() {
    let many: Vec<String> = (0..3000).map(|n| format!("refs/heads/{n:0>60}")).collect();
    let commands: Vec<_> = many.iter().map(|name| (0, 1, name.as_str())).collect();
    let mut parser = Parser::default();
    let whole = body(&commands, "report-status");
    let refused = whole.chunks(8192).find_map(|chunk| parser.push(chunk).err());
    assert!(matches!(refused, Some(Refusal::TooLarge { limit: 262_144, .. })), "{refused:?}");
    let told = String::from_utf8(parser.refusal(&refused.unwrap())).unwrap();
    assert_eq!(told.get(4..31), Some("ERR the list of ref updates"));
}

#[test]
fn a_name_below_or_above_another_is_refused_and_both_are_named() {
    let why = only_fault(&[(0, 1, "refs/heads/feat/x")], &[(1, "refs/heads/feat")]);
    assert_eq!(why, "'refs/heads/feat' exists; cannot create 'refs/heads/feat/x'");
    let why = only_fault(&[(0, 1, "refs/heads/feat")], &[(1, "refs/heads/feat/x"), (1, "refs/heads/feat-1")]);
    assert_eq!(why, "'refs/heads/feat/x' exists; cannot create 'refs/heads/feat'");
    let both = faults(&[(0, 1, "refs/heads/a"), (0, 1, "refs/heads/a/b")], &[], Place::Repository);
    assert!(both.iter().all(Option::is_some), "{both:?}");
    let turned = [(1, 0, "refs/heads/feat"), (0, 1, "refs/heads/feat/x")];
    assert_eq!(faults(&turned, &[(1, "refs/heads/feat")], Place::Repository), [None, None]);
    let beside = [(0, 1, "refs/heads/feat"), (0, 1, "refs/heads/feat-1"), (0, 1, "refs/heads/feat.x/y")];
    assert_eq!(faults(&beside, &[], Place::Repository), [None, None, None]);
}

#[test]
fn a_submission_stands_alone_in_its_push() {
    let alone = [(0, 1, "refs/for/main")];
    assert_eq!(faults(&alone, &[], Place::Fork), [None]);
    let company = faults(&[(0, 1, "refs/for/main"), (0, 1, "refs/heads/a")], &[], Place::Fork);
    assert!(company.iter().flatten().all(|why| why.contains("alone")) && company.iter().all(Option::is_some));
    assert!(only_fault(&[(1, 0, "refs/for/main")], &[]).contains("withdraw"));
}

#[test]
fn refs_of_the_server_are_read_only_with_a_reason() {
    assert!(only_fault(&[(0, 1, "refs/notes/intent")], &[]).contains("your fork"));
    assert_eq!(faults(&[(0, 1, "refs/notes/intent")], &[], Place::Fork), [None]);
    for place in [Place::Fork, Place::Repository] {
        for name in ["refs/changes/I1/1", "refs/candidates/1/1"] {
            let why = faults(&[(0, 1, name)], &[], place).remove(0).unwrap();
            assert!(why.starts_with("read-only"), "{why}");
        }
    }
}

#[test]
fn names_that_are_none_or_come_twice_are_refused() {
    for name in ["HEAD", "main", "refs/heads/a..b", "refs/heads/.lock/x", "refs/heads/a b"] {
        assert!(only_fault(&[(0, 1, name)], &[]).starts_with("funny refname"), "{name}");
    }
    let twice = faults(&[(0, 1, "refs/heads/a"), (0, 2, "refs/heads/a")], &[], Place::Repository);
    assert!(twice.iter().flatten().all(|why| why.contains("multiple updates")) && twice[0].is_some());
}

#[test]
fn an_update_from_elsewhere_than_where_the_ref_is_says_where_it_is() {
    let tips = [(3, "refs/heads/a")];
    assert!(only_fault(&[(0, 1, "refs/heads/a")], &tips).contains("already exists"));
    assert!(only_fault(&[(2, 1, "refs/heads/a")], &tips).contains(&id(3).to_string()));
    assert!(only_fault(&[(2, 1, "refs/heads/b")], &tips).contains("deleted meanwhile"));
    assert!(only_fault(&[(2, 0, "refs/heads/b")], &tips).contains("no such ref"));
    assert_eq!(faults(&[(3, 1, "refs/heads/a")], &tips, Place::Repository), [None]);
}

#[test]
fn the_branch_that_head_names_is_not_deleted() {
    let tips = [(3, "refs/heads/main"), (3, "refs/heads/other")];
    assert!(only_fault(&[(3, 0, "refs/heads/main")], &tips).contains("HEAD"));
    assert_eq!(faults(&[(3, 0, "refs/heads/other")], &tips, Place::Repository), [None]);
}

#[test]
fn branches_take_commits_only() {
    assert!(kind_fault("refs/heads/a", Kind::Tag).unwrap().contains("^{commit}"));
    assert!(kind_fault("refs/heads/a", Kind::Tree).is_some());
    assert!(kind_fault("refs/for/main", Kind::Blob).is_some());
    assert_eq!(kind_fault("refs/heads/a", Kind::Commit), None);
    assert_eq!(kind_fault("refs/tags/a", Kind::Tag), None);
    assert_eq!(kind_fault("refs/tags/a", Kind::Blob), None);
}

#[test]
fn one_fault_fails_an_atomic_push_and_only_its_own_ref_otherwise() {
    let statuses = || vec![RefStatus::ok("refs/heads/a"), RefStatus::refused("refs/heads/b", "no")];
    let mut split = statuses();
    assert!(make_atomic(false, &mut split));
    assert_eq!(split, statuses());
    let mut atomic = statuses();
    assert!(!make_atomic(true, &mut atomic));
    assert_eq!(atomic[0].fault.as_deref(), Some("atomic transaction failed"));
    assert_eq!(atomic[1].fault.as_deref(), Some("no"));
    let mut fine = vec![RefStatus::ok("refs/heads/a")];
    assert!(make_atomic(true, &mut fine));
    assert_eq!(fine[0].fault, None);
}

#[test]
fn the_report_fits_what_the_client_can_take() {
    let mut moved = RefStatus::ok("refs/for/main");
    moved.options = vec![StatusOption::RefName("refs/changes/I1/1".into()), StatusOption::NewId(id(1))];
    let report = Report {
        unpack_fault: None,
        statuses: vec![moved, RefStatus::refused("refs/heads/b", "a\nb")],
        messages: vec!["change I1".into()],
    };
    let plain = Capabilities { report_status: true, framing: Framing::Bare, ..Capabilities::default() };
    assert_eq!(
        String::from_utf8(report.body(&plain)).unwrap(),
        "000eunpack ok\n0015ok refs/for/main\n0019ng refs/heads/b a; b\n0000"
    );
    let full = Capabilities { report_status_v2: true, framing: Framing::Large, ..Capabilities::default() };
    let text = String::from_utf8(report.body(&full)).unwrap();
    assert!(text.starts_with("000f\u{2}change I1\n"), "{text}");
    assert!(text.contains("option refname refs/changes/I1/1\n") && text.ends_with("00000000"));
    let mute = Capabilities { framing: Framing::Bare, ..Capabilities::default() };
    assert!(report.body(&mute).is_empty());
}

#[test]
fn a_pack_that_is_not_taken_fails_every_ref() {
    let report = Report::unpack_failed(&push_of(&[(0, 1, "refs/heads/a")]), "the pack is cut: push again");
    let plain = Capabilities { report_status: true, framing: Framing::Bare, ..Capabilities::default() };
    let text = String::from_utf8(report.body(&plain)).unwrap();
    assert!(text.contains("unpack the pack is cut: push again\n"));
    assert!(text.contains("ng refs/heads/a unpacker error\n"));
}
