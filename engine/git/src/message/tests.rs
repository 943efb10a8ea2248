use super::*;
use crate::testing::{Folder, Random, git};

fn by_git(folder: &Folder, message: &str) -> Vec<(String, String)> {
    let out = git(&folder.0, &["interpret-trailers", "--parse", "--no-divider"], message.as_bytes());
    let text = String::from_utf8(out).unwrap();
    text.lines()
        .map(|line| {
            let (key, value) = line.split_once(':').unwrap();
            (key.to_owned(), value.trim().to_owned())
        })
        .collect()
}

fn by_us(message: &str) -> Vec<(String, String)> {
    trailers(message).into_iter().map(|trailer| (trailer.key, trailer.value)).collect()
}

#[test]
fn the_block_is_the_one_that_git_finds_in_500_odd_messages() {
    let folder = Folder::new();
    let pieces: [&str; 20] = [
        "title",
        "some text here",
        "",
        "",
        "  ",
        "Task: do it",
        "task:x",
        "Change-Id: I0123",
        "  folded on",
        "\tfolded with tab",
        "Signed-off-by: A <a@b>",
        "(cherry picked from commit 1)",
        "# comment",
        "Key with space: v",
        "http://example.org: x",
        ": no key",
        "Co-authored-by: Ü <ü@b>",
        "---",
        "Conflicts:",
        "-: dash",
    ];
    for seed in 1..=500u64 {
        let mut random = Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        let mut message = String::from("title\n");
        for _ in 0..random.below(12) {
            message.push_str(random.pick(&pieces));
            message.push('\n');
        }
        if random.below(5) == 0 {
            message.pop();
        }
        assert_eq!(by_us(&message), by_git(&folder, &message), "seed {seed}: {message:?}");
    }
}

fn sample() -> Intent {
    Intent {
        title: "parser: take tabs".into(),
        body: "Why it matters.\n\n    indented: code\n\nNote: not a trailer any more".into(),
        task: "Make tabs work".into(),
        plan: "1. read\n   - deeper\n\n.\n2. write".into(),
        review: "looks good: ship it".into(),
        tests: "tests/tabs.rs\ntests/more.rs".into(),
        agent: "agent-7".into(),
        model: "some-model 1".into(),
        notes: vec![],
        co_authors: vec!["B <b@x>".into(), "C <c@x>".into()],
    }
}

#[test]
fn an_intent_comes_back_from_its_message_and_git_sees_its_trailers() {
    let folder = Folder::new();
    let change = ChangeId::new("I0123456789").unwrap();
    let reverts = [ChangeId::new("Iaaaaaaaaaa").unwrap(), ChangeId::new("Ibbbbbbbbbb").unwrap()];
    let message = write(&sample(), Some(&change), &reverts);
    let back = read(&message);
    assert_eq!(back.intent, sample());
    assert_eq!(back.change_ids, ["I0123456789"]);
    assert_eq!(back.reverts, ["Iaaaaaaaaaa", "Ibbbbbbbbbb"]);
    let seen = by_git(&folder, &message);
    assert_eq!(seen, by_us(&message));
    // The body ends in a paragraph that is a block by itself: ours joins it.
    let keys: Vec<_> = seen.iter().map(|(key, _)| key.as_str()).collect();
    assert_eq!(
        keys,
        [
            "Note",
            "Task",
            "Plan",
            "Review",
            "Tests",
            "Agent",
            "Model",
            "Reverts",
            "Reverts",
            "Co-authored-by",
            "Co-authored-by",
            "Change-Id"
        ]
    );
}

#[test]
fn random_intents_survive_their_message() {
    let folder = Folder::new();
    let words = [
        "a",
        "fix: it",
        "# not a comment",
        ".",
        "..",
        "",
        "  indented",
        "x: y",
        "ü",
        "Task: no",
        "---",
        "(cherry picked from commit 1)",
    ];
    for seed in 1..=200u64 {
        let mut random = Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        let text = |random: &mut Random| {
            let lines: Vec<_> = (0..random.below(5)).map(|_| random.pick(&words)).collect();
            lines.join("\n").trim().to_owned()
        };
        let intent = Intent {
            title: "title".into(),
            task: text(&mut random),
            plan: text(&mut random),
            review: text(&mut random),
            tests: text(&mut random),
            agent: "agent".into(),
            ..Intent::default()
        };
        let message = write(&intent, None, &[]);
        assert_eq!(read(&message).intent, intent, "seed {seed}: {message:?}");
        assert_eq!(by_us(&message), by_git(&folder, &message), "seed {seed}: {message:?}");
    }
}

#[test]
fn random_bodies_are_stable_after_one_reading() {
    let pieces = [
        "text",
        "",
        "Signed-off-by: A <a@b>",
        "Fixes: 12",
        "# x",
        "  folded",
        "Task: t",
        "http://x",
        "Conflicts:",
        "\tq",
    ];
    for seed in 1..=500u64 {
        let mut random = Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        let lines: Vec<_> = (0..random.below(9)).map(|_| random.pick(&pieces)).collect();
        let first = read(&format!("title\n\n{}\n", lines.join("\n")));
        let second = read(&write(&first.intent, None, &[]));
        assert_eq!(second.intent, first.intent, "seed {seed}: {lines:?}");
    }
}

#[test]
fn keys_are_found_in_any_case_and_foreign_trailers_stay_in_the_body() {
    let message = "t\n\nbody\n\nSigned-off-by: A <a@b>\nCHANGE-ID: Ix1234567\n\
                   reverts: Ia1234567, Ib1234567\nagent: x\n  y\n";
    let read = read(message);
    assert_eq!(read.change_ids, ["Ix1234567"]);
    assert_eq!(read.reverts, ["Ia1234567", "Ib1234567"]);
    assert_eq!(read.intent.agent, "x y");
    assert_eq!(read.intent.body, "body\n\nSigned-off-by: A <a@b>");
    let again = write(&read.intent, None, &[]);
    assert!(again.contains("\n\nSigned-off-by: A <a@b>\nAgent: x y\n"), "{again}");
}

#[test]
fn messages_of_real_histories_have_the_trailers_that_git_shows_and_commits_are_written_as_read() {
    for repository in crate::testing::real_repositories() {
        let format = "--format=%H%n%(trailers:only,unfold)%x00";
        let log = git(&repository, &["log", "--all", "--max-count=2000", format], b"");
        let log = String::from_utf8_lossy(&log).into_owned();
        let (mut ids, mut shown) = (String::new(), Vec::new());
        for record in log.split('\0').map(str::trim_start).filter(|record| !record.is_empty()) {
            let (id, trailers) = record.split_once('\n').unwrap();
            ids.push_str(&format!("{id}\n"));
            shown.push(trailers.trim_end().to_owned());
        }
        let batch = git(&repository, &["cat-file", "--batch=%(objectsize)"], ids.as_bytes());
        let (mut rest, mut odd) = (batch.as_slice(), 0);
        for (id, shown) in ids.lines().zip(&shown) {
            let end = rest.iter().position(|byte| *byte == b'\n').unwrap();
            let size: usize = std::str::from_utf8(&rest[..end]).unwrap().parse().unwrap();
            let data = &rest[end + 1..end + 1 + size];
            rest = &rest[end + 2 + size..];
            let commit = crate::Commit::parse(data).unwrap();
            odd += usize::from(commit.encode() != data);
            let ours: Vec<_> =
                by_us(&commit.message_text()).iter().map(|(k, v)| format!("{k}: {v}")).collect();
            assert_eq!(ours.join("\n").trim_end(), shown, "{id} of {}", repository.display());
        }
        assert!(odd * 100 <= shown.len(), "{odd} of {} commits are written differently", shown.len());
    }
}
