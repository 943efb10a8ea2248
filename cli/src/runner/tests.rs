use super::*;

fn runner(work: &Path) -> Runner {
    Runner {
        client: Client::new("http://127.0.0.1:9", "sy1.e30.x"),
        repo: RepoName::new("r").unwrap(),
        lanes: vec![],
        id: RunnerId::new("r1").unwrap(),
        work: work.to_owned(),
        environment: environment(""),
        group: Arc::default(),
    }
}

fn work(command: &str, timeout_seconds: u32) -> Work {
    serde_json::from_value(serde_json::json!({
        "run": "run1", "lease": 1, "until": 0,
        "attempt": {"lane": "main", "train": 1, "attempt": 1},
        "reference": "refs/candidates/1/1", "commit": yard_common::ObjectId::EMPTY_TREE,
        "tree": yard_common::ObjectId::EMPTY_TREE, "suite": "s", "command": command,
        "config": null, "junit": "out.xml", "timeout_seconds": timeout_seconds
    }))
    .unwrap()
}

#[test]
fn a_command_gets_a_clean_environment_and_its_exit_status_counts() {
    let dir = tempfile::tempdir().unwrap();
    let runner = runner(dir.path());
    let log = dir.path().join("log");
    let lost = AtomicBool::new(false);
    let work = work("env; exit 3", 10);
    let (ended, _) = runner.run_command(&work, dir.path(), &log, &lost).unwrap();
    assert_eq!(ended, Some(false));
    let text = fs::read_to_string(&log).unwrap();
    let names: std::collections::BTreeSet<&str> =
        text.lines().filter_map(|line| line.split('=').next()).collect();
    for name in &names {
        assert!(
            ["PATH", "HOME", "TMPDIR", "LANG", "CI", "PWD", "OLDPWD", "_", "SHLVL"].contains(name),
            "{name}"
        );
    }
}

#[test]
fn a_command_over_its_time_is_ended_with_all_that_it_started() {
    let dir = tempfile::tempdir().unwrap();
    let runner = runner(dir.path());
    let lost = AtomicBool::new(false);
    let work = work("(sleep 60; echo late >late) & sleep 60", 1);
    let began = Instant::now();
    let (ended, why) = runner.run_command(&work, dir.path(), &dir.path().join("log"), &lost).unwrap();
    assert_eq!(ended, None);
    assert!(why.unwrap().contains("longer than 1 s"));
    assert!(began.elapsed() < Duration::from_secs(10));
    let left =
        Command::new("sh").args(["-c", "ps -eo args | grep -c '[s]leep 60; echo late'"]).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&left.stdout).trim(), "0");
}

#[test]
fn no_report_or_no_test_is_never_green() {
    let dir = tempfile::tempdir().unwrap();
    assert!(read_report(&dir.path().join("none.xml")).is_err());
    let none = judged(true, junit::Summary::default());
    assert!(!none.green && !none.proves_green());
    let skipped = judged(true, junit::Summary { skipped: 4, ..junit::Summary::default() });
    assert!(!skipped.proves_green());
}

const TOKEN: &str = "sy1.eyJpZCI6InIifQ.c2lnbmF0dXJl";

fn written(path: &Path, bytes: &[u8]) {
    use std::io::Write as _;
    fs::OpenOptions::new().append(true).open(path).unwrap().write_all(bytes).unwrap();
}

/// The log as the platform would have it, each segment sent once.
fn all(log: &mut LogFile, last: bool) -> Vec<Segment> {
    let mut segments = Vec::new();
    while let Some(segment) = log.next(last) {
        assert_eq!(log.next(last), Some(segment.clone()), "the same until it has arrived");
        log.taken();
        segments.push(segment);
    }
    segments
}

fn text(segments: &[Segment]) -> String {
    segments.iter().map(|segment| segment.text.as_str()).collect()
}

#[test]
fn the_runners_token_is_not_in_its_log_however_the_log_is_cut() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("log");
    let header = git::authorization(TOKEN);
    let printed = format!("a {TOKEN} b\n{header}\nsy1.eyJpZCI6 is no token\nend sy1.");
    for cut in 1..printed.len() {
        let mut log = LogFile::create(&path, TOKEN).unwrap();
        written(&path, &printed.as_bytes()[..cut]);
        let mut segments = all(&mut log, false);
        written(&path, &printed.as_bytes()[cut..]);
        segments.extend(all(&mut log, true));
        let clean = "a [token] b\nAuthorization: Basic [token]\nsy1.eyJpZCI6 is no token\nend sy1.";
        assert_eq!(text(&segments), clean, "cut at {cut}");
        assert!(segments.windows(2).all(|pair| pair[0].end() == pair[1].start));
        assert_eq!(log.without_secrets(&printed), clean);
    }
}

#[test]
fn a_character_is_not_cut_in_two_and_what_is_none_is_shown_as_such() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("log");
    let printed = "größer 🚂 你好".as_bytes();
    for cut in 0..printed.len() {
        let mut log = LogFile::create(&path, TOKEN).unwrap();
        written(&path, &printed[..cut]);
        let mut segments = all(&mut log, false);
        written(&path, &printed[cut..]);
        written(&path, b"\xff\xe2\x82");
        segments.extend(all(&mut log, true));
        assert_eq!(text(&segments), "größer 🚂 你好\u{fffd}\u{fffd}", "cut at {cut}");
    }
}

#[test]
fn of_a_log_that_grows_too_fast_head_and_tail_are_sent() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("log");
    let mut log = LogFile::create(&path, TOKEN).unwrap();
    let lines: String = (0..400_000).map(|n| format!("line {n}\n")).collect();
    written(&path, lines.as_bytes());
    log.say("that was much");
    let segments = all(&mut log, true);
    let sent = text(&segments);
    assert!(sent.starts_with("line 0\nline 1\n") && sent.ends_with("[yard runner: that was much]\n"));
    assert!(sent.len() > 1000 * 1024 && sent.len() <= 1024 * 1024 + 128 * 1024, "{}", sent.len());
    let gaps: Vec<u64> =
        segments.windows(2).map(|pair| pair[1].start - pair[0].end()).filter(|gap| *gap > 0).collect();
    assert_eq!(gaps.len(), 1);
    assert_eq!(gaps[0] + sent.len() as u64, fs::metadata(&path).unwrap().len());
    assert!(segments.iter().all(|segment| segment.text.len() <= yard_wire::lane::SEGMENT_BYTES_MAX));
    assert!(!log.has_more());
}

#[test]
fn nothing_of_a_token_that_begins_in_what_is_left_out_is_sent() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("log");
    let tail = usize::try_from(yard_wire::lane::LOG_TAIL_BYTES).unwrap();
    for inside in [1, TOKEN.len() / 2, TOKEN.len() - 1] {
        let mut log = LogFile::create(&path, TOKEN).unwrap();
        written(&path, &vec![b'.'; 2 * 1024 * 1024]);
        written(&path, TOKEN.as_bytes());
        written(&path, &vec![b'.'; tail - inside]);
        let sent = text(&all(&mut log, true));
        assert!(sent.bytes().all(|byte| byte == b'.'), "{inside} bytes of the token lie in the tail");
    }
}

#[test]
fn a_report_that_is_no_plain_file_is_refused_and_never_waited_for() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    rustix::fs::mknodat(
        rustix::fs::CWD,
        at("pipe.xml"),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR,
        0,
    )
    .unwrap();
    std::os::unix::fs::symlink("/dev/zero", at("zero.xml")).unwrap();
    for name in ["pipe.xml", "zero.xml"] {
        assert!(read_report(&at(name)).unwrap_err().contains("no plain file"), "{name}");
        let folder = at(&format!("in-{name}"));
        fs::create_dir(&folder).unwrap();
        fs::rename(at(name), folder.join(name)).unwrap();
        assert!(read_report(&folder).unwrap_err().contains("no plain file"), "{name} in a folder");
    }
    fs::write(at("large.xml"), "<a/>".repeat(100)).unwrap();
    assert!(read_file(&at("large.xml"), 399).unwrap_err().contains("more than"));
    assert_eq!(read_file(&at("large.xml"), 400).unwrap().len(), 400);
}

#[test]
fn a_report_is_looked_for_and_removed_inside_of_the_checkout_alone() {
    let dir = tempfile::tempdir().unwrap();
    let checkout = dir.path().join("checkout");
    fs::create_dir_all(checkout.join("own/deep")).unwrap();
    fs::create_dir(dir.path().join("elsewhere")).unwrap();
    std::os::unix::fs::symlink("../elsewhere", checkout.join("out")).unwrap();
    std::os::unix::fs::symlink("own", checkout.join("link")).unwrap();
    assert!(inside(&checkout, "out/report.xml").unwrap_err().contains("leads out"));
    assert!(inside(&checkout, "../elsewhere/report.xml").is_err());
    assert!(inside(&checkout, "link/deep/report.xml").unwrap().ends_with("own/deep/report.xml"));
    assert!(inside(&checkout, "not-there/report.xml").is_err());
}

#[test]
fn a_fetch_of_the_candidate_that_hangs_ends_the_run_without_a_result() {
    let dir = tempfile::tempdir().unwrap();
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", silent.local_addr().unwrap());
    let runner = Runner { client: Client::new(&url, "sy1.e30.x"), ..runner(dir.path()) };
    let began = Instant::now();
    let failed = runner.checkout(&work("true", 10)).unwrap_err().to_string();
    assert!(failed.contains("git fetch failed"), "{failed}");
    assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
}
