use super::*;

fn run(command: &str, failed: Vec<String>) -> SignedRun {
    serde_json::from_value(serde_json::json!({
        "run": "r1", "lease": 1, "tree": ObjectId::ZERO, "suite": "s", "command": command, "config": null,
        "token": "sy1.e30.", "mac": "",
        "result": { "complete": true, "green": false, "ran": 1, "failed": failed, "skipped": 0 }
    }))
    .unwrap()
}

/// What was signed, read back out of the text.
fn read(text: &str) -> (String, Vec<String>) {
    let line = |line: &str| {
        let (mut out, mut chars) = (String::new(), line.chars());
        while let Some(c) = chars.next() {
            out.push(match c {
                '\\' if chars.next() == Some('n') => '\n',
                c => c,
            });
        }
        out
    };
    let lines: Vec<String> = text.strip_suffix('\n').unwrap().split('\n').map(line).collect();
    let count: usize = lines[8].parse().unwrap();
    assert_eq!(lines.len(), 9 + count + 1);
    (lines[5].clone(), lines[9..9 + count].to_vec())
}

#[test]
fn no_two_runs_are_signed_with_the_same_text() {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut below = |n: u64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state % n
    };
    for _ in 0..20_000 {
        let mut text = || -> String {
            (0..below(5)).map(|_| *b"a\\\nnt\t0".get(below(7) as usize).unwrap() as char).collect()
        };
        let (command, one, two) = (text(), text(), text());
        let failed: Vec<String> = [one, two].into_iter().take(below(3) as usize).collect();
        assert_eq!(read(&run(&command, failed.clone()).signed_text()), (command, failed));
    }
}

#[test]
fn what_the_first_form_mixed_up_is_told_apart() {
    let text = |command: &str, failed: &[&str]| {
        run(command, failed.iter().map(|name| (*name).to_owned()).collect()).signed_text()
    };
    assert_ne!(text("a\nb", &[]), text("a\\nb", &[]));
    assert_ne!(text("c", &["a\tb"]), text("c", &["a", "b"]));
    assert_ne!(text("c", &[""]), text("c", &[]));
}
