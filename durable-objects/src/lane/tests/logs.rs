//! What is kept of what runs print, and where.

use yard_wire::lane::{LOG_HEAD_BYTES, LOG_TAIL_BYTES, LogReply, Segment};

use super::*;
use crate::lane::log;

impl Yard {
    fn with_one_run() -> (Self, wire::Work) {
        let mut yard = Self::new(&[("a", "1\n")]);
        yard.submit("change-one", &[("b", Some("x\n"))]);
        yard.hint().unwrap();
        yard.drive().unwrap();
        let work = yard.lease().unwrap().unwrap();
        (yard, work)
    }

    fn say(&self, work: &wire::Work, by: &str, start: u64, text: &str) -> Result<Millis, Refusal> {
        let log = Some(segment(start, text));
        let token = Some(bearer(by));
        self.call(&wire::Renew { run: work.run.clone(), lease: work.lease, log, token })
    }

    fn log(&self, work: &wire::Work, from: u64) -> Option<LogReply> {
        self.call(&wire::Log { run: work.run.clone(), from }).unwrap()
    }

    fn text(&self, work: &wire::Work) -> String {
        let log = self.log(work, 0).unwrap();
        log.segments.into_iter().map(|segment| segment.text).collect()
    }

    fn in_bucket(&self, work: &wire::Work) -> Option<LogReply> {
        let key = format!("click/logs/{}.log", work.run);
        let bytes = block_on(self.world.borrow().blobs.get(&key)).unwrap()?;
        Some(serde_json::from_slice(&bytes).unwrap())
    }
}

#[test]
fn what_a_run_prints_is_read_while_it_runs_from_where_the_reader_is() {
    let (mut yard, work) = Yard::with_one_run();
    let waiting = yard.log(&work, 0).unwrap();
    assert_eq!((waiting.lease, waiting.segments.len(), waiting.ended), (work.lease, 0, false));
    yard.say(&work, "runner", 0, "one\n").unwrap();
    yard.say(&work, "runner", 4, "two\n").unwrap();
    yard.say(&work, "runner", 4, "two\n").unwrap();
    yard.say(&work, "runner", 6, "o\nthree\n").unwrap();
    assert_eq!(yard.text(&work), "one\ntwo\nthree\n", "a repeat is not doubled");
    assert_eq!(yard.log(&work, 9).unwrap().segments, [segment(9, "hree\n")]);
    assert!(yard.log(&work, 14).unwrap().segments.is_empty());
    yard.restart();
    yard.say(&work, "runner", 100, "far\n").unwrap();
    let log = yard.log(&work, 8).unwrap();
    assert_eq!(log.segments, [segment(8, "three\n"), segment(100, "far\n")], "a gap shows");
    assert!(!log.ended);
}

#[test]
fn a_short_log_of_a_green_run_stays_here_and_one_that_is_not_green_goes_to_the_bucket_once() {
    let (yard, work) = Yard::with_one_run();
    yard.say(&work, "runner", 0, "all ").unwrap();
    yard.report_log(&work, green(), vec![segment(4, "good\n")]).unwrap();
    assert!(yard.log(&work, 0).unwrap().ended);
    assert_eq!(yard.text(&work), "all good\n");
    assert_eq!(yard.in_bucket(&work), None);
    yard.report_log(&work, green(), vec![segment(9, "more\n")]).unwrap();
    assert_eq!(yard.text(&work), "all good\n", "a repeated report adds nothing to an ended log");

    let (yard, work) = Yard::with_one_run();
    yard.say(&work, "runner", 0, "not ").unwrap();
    yard.report_log(&work, red("t"), vec![segment(4, "good\n")]).unwrap();
    assert_eq!(yard.log(&work, 0), None, "the bucket has it");
    assert!(log::runs(&yard.sql).is_empty());
    let whole = yard.in_bucket(&work).unwrap();
    assert_eq!((whole.segments, whole.ended), (vec![segment(0, "not good\n")], true));

    let (yard, work) = Yard::with_one_run();
    yard.report_log(&work, green(), vec![segment(0, &"long\n".repeat(20_000))]).unwrap();
    assert_eq!(yard.log(&work, 0), None);
    assert_eq!(yard.in_bucket(&work).unwrap().segments.len(), 1);

    let (yard, work) = Yard::with_one_run();
    yard.report_log(&work, red("t"), vec![]).unwrap();
    assert_eq!(yard.in_bucket(&work), None, "nothing printed costs nothing");
}

#[test]
fn only_the_leaseholder_writes_and_a_new_lease_begins_the_log_anew() {
    let (mut yard, work) = Yard::with_one_run();
    yard.say(&work, "runner", 0, "first").unwrap();
    let other = yard.say(&work, "another", 5, "forged");
    assert!(matches!(other, Err(Refusal::Forbidden { .. })), "{other:?}");
    yard.now = yard.now.plus(60_001);
    yard.drive().unwrap();
    let again = yard.lease().unwrap().unwrap();
    assert!(again.run == work.run && again.lease > work.lease);
    let late = yard.say(&work, "runner", 5, "late");
    assert!(matches!(late, Err(Refusal::Stale { .. })), "{late:?}");
    let late = yard.report_log(&work, red("t"), vec![segment(5, "late")]);
    assert!(matches!(late, Err(Refusal::Stale { .. })), "{late:?}");
    assert_eq!(yard.text(&work), "first", "what the lost runner said stays until the next one speaks");
    yard.say(&again, "runner", 0, "anew").unwrap();
    let log = yard.log(&again, 0).unwrap();
    assert_eq!((log.lease, log.segments), (again.lease, vec![segment(0, "anew")]));
}

#[test]
fn a_long_log_keeps_its_head_and_its_tail() {
    let (yard, work) = Yard::with_one_run();
    let piece = "0123456789abcde\n".repeat(1024);
    let pieces = 4 * 1024 * 1024 / piece.len() as u64;
    for n in 0..pieces {
        yard.say(&work, "runner", n * piece.len() as u64, &piece).unwrap();
    }
    let segments = yard.log(&work, 0).unwrap().segments;
    let sum = |segments: &[Segment]| segments.iter().map(|part| part.text.len() as u64).sum::<u64>();
    let kept = sum(&segments);
    assert!(kept <= LOG_HEAD_BYTES + LOG_TAIL_BYTES + 32 * 1024, "{kept}");
    assert!(kept >= LOG_HEAD_BYTES + LOG_TAIL_BYTES - 32 * 1024, "{kept}");
    let gaps = segments.windows(2).filter(|pair| pair[0].end() != pair[1].start).count();
    assert_eq!(gaps, 1);
    assert_eq!((segments[0].start, segments.last().unwrap().end()), (0, pieces * piece.len() as u64));
    let large = yard.say(&work, "runner", 1 << 30, &"x".repeat(wire::SEGMENT_BYTES_MAX + 1));
    assert!(matches!(large, Err(Refusal::TooLarge { .. })));
    let odd = yard.say(&work, "runner", u64::MAX, "x");
    assert!(matches!(odd, Err(Refusal::Invalid { .. })));
}

#[test]
fn the_bucket_may_fail_and_the_log_is_not_lost() {
    for how in [Fails::Before, Fails::After] {
        let (mut yard, work) = Yard::with_one_run();
        yard.say(&work, "runner", 0, "evidence").unwrap();
        yard.world.borrow().blobs.faults.fail_next(how);
        yard.report_log(&work, red("t"), vec![]).unwrap();
        assert_eq!(yard.text(&work), "evidence", "it is read from here meanwhile");
        yard.now = yard.now.plus(20_000);
        yard.drive().unwrap();
        assert_eq!(yard.in_bucket(&work).unwrap().segments, [segment(0, "evidence")]);
        assert!(log::runs(&yard.sql).is_empty());
    }
}

#[test]
fn old_green_logs_make_room_for_new_ones() {
    let mut yard = Yard::new(&[("a", "1\n")]);
    for n in 0..6 {
        yard.submit(&format!("change-{n}"), &[(&format!("f{n}"), Some("x\n"))]);
        yard.hint().unwrap();
        yard.drive().unwrap();
        let work = yard.lease().unwrap().unwrap();
        yard.report(&work, green()).unwrap();
        yard.drive().unwrap();
        yard.fetch();
    }
    assert_eq!(log::runs(&yard.sql).len(), 3);
}
