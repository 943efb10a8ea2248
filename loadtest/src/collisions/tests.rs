use super::*;
use yard_common::RepoPath;
use yard_merge::text::Guarded;
use yard_rules::Rule;

#[test]
fn a_seed_gives_its_cases_and_no_other_does() {
    assert_eq!(generate(7, 300), generate(7, 300));
    assert_ne!(generate(7, 300), generate(8, 300));
}

#[test]
fn both_kinds_of_answers_occur_and_the_judge_tells_them_apart() {
    let cases = generate(1, 500);
    let answers = cases.iter().filter(|case| case.has_answer()).count();
    assert!(answers > 200 && answers < 400, "{answers} of {}", cases.len());
    for case in cases {
        let right = match &case.right {
            Right::Bytes(all) => Some(all[0].as_bytes()),
            Right::Collision => None,
        };
        assert_eq!(case.judge(right), Verdict::Right);
        assert_eq!(case.judge(Some(b"no")), Verdict::Wrong);
        assert_eq!(case.judge(None) == Verdict::Left, case.has_answer());
    }
}

#[test]
fn no_rule_is_wrong_and_applying_a_change_again_changes_nothing() {
    let (mut covered, mut right, mut refused) = (0, 0, 0);
    for case in generate(3, 3_000) {
        let Some(rule) = Rule::from_name(case.rule) else { continue };
        let path = RepoPath::new(case.path).unwrap();
        let apply = |ours: &[u8]| {
            rule.apply(Some(case.base.as_bytes()), Some(ours), Some(case.theirs.as_bytes()), &path, &Guarded)
        };
        let answer = apply(case.ours.as_bytes());
        let verdict = case.judge(answer.as_deref().ok());
        assert!(
            verdict != Verdict::Wrong,
            "{}\n--- base\n{}--- ours\n{}--- theirs\n{}--- answer {}\n--- {:?}",
            case.kind,
            case.base,
            case.ours,
            case.theirs,
            answer
                .as_deref()
                .map_or_else(|why| why.clone(), |bytes| String::from_utf8_lossy(bytes).into_owned()),
            case.right
        );
        if let Ok(bytes) = &answer {
            // An entry that took a removed one's place reads as a rewording of it, which is refused.
            let again = apply(bytes);
            assert!(again.as_ref().is_ok_and(|same| same == bytes) || again.is_err(), "{}", case.kind);
            refused += usize::from(again.is_err());
        }
        covered += usize::from(case.has_answer());
        right += usize::from(case.has_answer() && verdict == Verdict::Right);
    }
    assert!(refused * 20 < right, "{refused} of {right} are refused when they are applied again");
    assert!(right * 10 >= covered * 9, "{right} of {covered}");
}
