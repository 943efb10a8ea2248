use super::*;

fn path(text: &str) -> RepoPath {
    RepoPath::new(text).unwrap()
}

#[test]
fn added_lines_that_no_test_ran_are_named() {
    let report =
        b"TN:\nSF:/build/checkout/src/a.py\nFN:1,f\nDA:1,3\nDA:2,0\nDA:3,0\nDA:5,0,abc\nend_of_record\n\
                   SF:/build/checkout/src/a.py\nDA:3,1\nend_of_record\n";
    let coverage = Coverage::parse(report).unwrap();
    let (a, b) = (path("src/a.py"), path("src/b.py"));
    let found = lines_no_test_ran(&[(&a, b"", b"1\n2\n3\n4\n5\n"), (&b, b"", b"x\n")], &coverage);
    assert_eq!((found.run, found.not_run), (2, 2));
    assert_eq!(found.files, [FileNotRun { path: a.clone(), runs: vec![(2, 2), (5, 5)] }]);
    assert_eq!(
        found.sentence(),
        "no test ran 2 of the added lines: src/a.py:2, src/a.py:5; 1 changed file is not in the report"
    );
    // Lines that stood there before are nobody's.
    let found = lines_no_test_ran(&[(&a, b"1\n2\n3\n4\n5\n", b"1\n2\n3\n4\n5\n")], &coverage);
    assert_eq!(found.sentence(), "no added line is code that the report knows");
}

#[test]
fn a_report_that_is_none_or_too_large_is_refused() {
    let sentence = Coverage::parse(b"DA:1,1\n").unwrap_err();
    assert_eq!(sentence, "line 1 of the coverage report is no LCOV record in its place: \"DA:1,1\"");
    assert!(Coverage::parse(b"SF:a\nDA:x,y\n").is_err());
    assert!(Coverage::parse(&vec![b'x'; COVERAGE_BYTES_MAX + 1]).unwrap_err().contains("bytes"));
    // Overflowed and absurd counts of some tools are read as what they mean.
    let odd = Coverage::parse(b"SF:a\nDA:1,-3\nDA:2,1e30\n").unwrap();
    let found = lines_no_test_ran(&[(&path("a"), b"", b"x\ny\n")], &odd);
    assert_eq!((found.run, found.not_run), (1, 1));
}
