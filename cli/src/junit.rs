//! JUnit XML as pytest, `node --test`, cargo nextest and most others write it.
//!
//! Only `testcase` elements are counted: totals in `testsuite` attributes differ between tools. A
//! case with a `failure` or `error` child failed, one with `skipped` was skipped, any other ran
//! and passed. A retried case that passed at last (`flakyFailure`, `rerunFailure` of Maven and
//! nextest) passed.

use quick_xml::Reader;
use quick_xml::events::{BytesStart, Event};

/// Names of failed tests kept in one result.
const FAILED_MAX: usize = 200;

/// What a report says.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Summary {
    /// Tests that ran (passed or failed).
    pub ran: u32,
    /// Failed tests, `class::name`, sorted, at most 200.
    pub failed: Vec<String>,
    /// Skipped tests.
    pub skipped: u32,
}

impl Summary {
    /// Adds another report.
    pub fn add(&mut self, other: Self) {
        self.ran = self.ran.saturating_add(other.ran);
        self.skipped = self.skipped.saturating_add(other.skipped);
        self.failed.extend(other.failed);
        self.failed.sort();
        self.failed.dedup();
        self.failed.truncate(FAILED_MAX);
    }
}

#[derive(Default)]
struct Case {
    name: String,
    failed: bool,
    skipped: bool,
}

/// Reads one report.
///
/// # Errors
/// When the text is not well-formed XML or holds no `testsuite`, with the place.
pub fn parse(text: &str) -> Result<Summary, String> {
    let mut reader = Reader::from_str(text);
    let mut summary = Summary::default();
    let mut case: Option<Case> = None;
    let mut suites = 0u32;
    let mut open = 0i64;
    loop {
        let event = reader
            .read_event()
            .map_err(|error| format!("the report breaks off at byte {}: {error}", reader.error_position()))?;
        match event {
            Event::Start(element) => {
                open += 1;
                start(&element, &mut suites, &mut case, &mut summary, false);
            }
            Event::Empty(element) => start(&element, &mut suites, &mut case, &mut summary, true),
            Event::End(element) => {
                open -= 1;
                if element.local_name().as_ref() == "testcase" {
                    finish(case.take(), &mut summary);
                }
            }
            Event::Eof => break,
            _ => {}
        }
    }
    if open != 0 {
        return Err("the report breaks off: an element is not closed".into());
    }
    if suites == 0 {
        return Err("this is no JUnit report: it has no testsuite".into());
    }
    summary.failed.sort();
    summary.failed.dedup();
    summary.failed.truncate(FAILED_MAX);
    Ok(summary)
}

fn start(
    element: &BytesStart<'_>,
    suites: &mut u32,
    case: &mut Option<Case>,
    summary: &mut Summary,
    empty: bool,
) {
    match element.local_name().as_ref() {
        "testsuite" | "testsuites" => *suites += 1,
        "testcase" => {
            let new = Case { name: name_of(element), ..Case::default() };
            if empty { finish(Some(new), summary) } else { *case = Some(new) }
        }
        "failure" | "error" => {
            if let Some(case) = case {
                case.failed = true;
            }
        }
        "skipped" => {
            if let Some(case) = case {
                case.skipped = true;
            }
        }
        _ => {}
    }
}

fn name_of(element: &BytesStart<'_>) -> String {
    let attribute = |name: &str| {
        element
            .try_get_attribute(name)
            .ok()
            .flatten()
            .map(|found| {
                let raw = found.value.clone().into_owned();
                quick_xml::escape::unescape(&raw).map_or_else(|_| raw.clone(), std::borrow::Cow::into_owned)
            })
            .unwrap_or_default()
    };
    let (class, name) = (attribute("classname"), attribute("name"));
    let text = if class.is_empty() || class == "test" { name } else { format!("{class}::{name}") };
    text.replace(['\n', '\t'], " ").chars().take(200).collect()
}

fn finish(case: Option<Case>, summary: &mut Summary) {
    let Some(case) = case else { return };
    if case.failed {
        summary.ran = summary.ran.saturating_add(1);
        summary.failed.push(case.name);
    } else if case.skipped {
        summary.skipped = summary.skipped.saturating_add(1);
    } else {
        summary.ran = summary.ran.saturating_add(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pytest_node_and_nextest_reports_are_counted_alike() {
        let pytest = r#"<?xml version="1.0"?><testsuites><testsuite name="pytest" errors="0" tests="3">
            <testcase classname="tests.test_a" name="test_ok" time="0.1"/>
            <testcase classname="tests.test_a" name="test_no"><failure message="x">boom</failure></testcase>
            <testcase classname="tests.test_a" name="test_skip"><skipped/></testcase></testsuite></testsuites>"#;
        let summary = parse(pytest).unwrap();
        assert_eq!((summary.ran, summary.skipped), (2, 1));
        assert_eq!(summary.failed, ["tests.test_a::test_no"]);

        let node = r#"<?xml version="1.0" encoding="utf-8"?><testsuites>
            <testcase name="adds" time="0.001" classname="test"/><testsuite name="group" tests="1">
            <testcase name="inner &lt;1&gt;" classname="test"><failure type="testCodeFailure" message="m"/></testcase>
            </testsuite></testsuites>"#;
        let summary = parse(node).unwrap();
        assert_eq!((summary.ran, summary.failed.as_slice()), (2, ["inner <1>".to_owned()].as_slice()));

        let nextest = r#"<testsuites name="nextest-run"><testsuite name="crate"><testcase name="m::t"
            classname="crate"><flakyFailure type="test failure"/></testcase></testsuite></testsuites>"#;
        let summary = parse(nextest).unwrap();
        assert_eq!((summary.ran, summary.failed.len()), (1, 0));
    }

    #[test]
    fn a_cut_or_foreign_report_is_no_result() {
        assert!(parse("<testsuites><testsuite><testcase name='a'>").is_err());
        assert!(parse("<html></html>").is_err());
        assert!(parse("").is_err());
    }

    #[test]
    fn no_test_run_is_zero_not_green() {
        let summary = parse("<testsuites></testsuites>").unwrap();
        assert_eq!(summary, Summary::default());
    }
}
