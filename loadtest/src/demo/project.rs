//! The project that the agents of the demo work on: a small library with a real suite.
//!
//! `features.txt` is the shared index: every feature adds its line, and the suite fails when the
//! index and the folder disagree, so an index that lost a line cannot land unseen.

use anyhow::Result;
use yard_loadtest::Sandbox;

/// Words that features are named after; the seed picks.
pub const WORDS: [&str; 32] = [
    "amber", "birch", "cedar", "delta", "ember", "fjord", "grove", "haven", "inlet", "jetty", "knoll",
    "larch", "maple", "north", "ocean", "prairie", "quartz", "river", "stone", "tundra", "umber", "valley",
    "willow", "xenon", "yarrow", "zephyr", "basalt", "canyon", "dune", "estuary", "forest", "glacier",
];

const CONFIG: &str = r#"# How changes to this repository are tested and merged.
[lane]
train_max = 8

[checks]
command = "node --test --test-reporter=junit --test-reporter-destination=report.xml"
junit = "report.xml"
timeout_seconds = 60

# Every feature adds its line to the index: a set of lines, so it never collides.
[[rules]]
paths = "features.txt"
rule = "sorted-lines"
"#;

const INDEX_TEST: &str = r#"import { test } from "node:test";
import assert from "node:assert/strict";
import { readFileSync, readdirSync } from "node:fs";

test("the index names every feature, once", () => {
  const named = readFileSync("features.txt", "utf8").split("\n").filter(Boolean);
  const there = readdirSync("src/features").map((file) => file.replace(/\.js$/, "")).sort();
  assert.deepEqual(named, there);
});
"#;

const CORE: &str = r#"/** The text with its first letter in upper case. */
export function title(text) {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
"#;

const CORE_TEST: &str = r#"import { test } from "node:test";
import assert from "node:assert/strict";
import { title } from "../src/text.js";
import { GREETING } from "../src/greeting.js";

test("a title starts with a capital", () => {
  assert.equal(title("harbour"), "Harbour");
});

test("there is a greeting", () => {
  assert.match(GREETING, /^[A-Z]/);
});
"#;

/// The files of the project at its start.
#[must_use]
pub fn files() -> Vec<(String, String)> {
    let mut files = vec![
        (".switchyard.toml".to_owned(), CONFIG.to_owned()),
        (".gitignore".to_owned(), "report.xml\n".to_owned()),
        (
            "package.json".to_owned(),
            "{ \"name\": \"harbour\", \"private\": true, \"type\": \"module\" }\n".to_owned(),
        ),
        ("features.txt".to_owned(), "harbour\n".to_owned()),
        ("src/text.js".to_owned(), CORE.to_owned()),
        ("src/greeting.js".to_owned(), "export const GREETING = \"Hello\";\n".to_owned()),
        ("test/index.test.js".to_owned(), INDEX_TEST.to_owned()),
        ("test/text.test.js".to_owned(), CORE_TEST.to_owned()),
    ];
    files.extend(feature("harbour", 7));
    files
}

/// A feature: its module and its test.
#[must_use]
pub fn feature(name: &str, number: u64) -> Vec<(String, String)> {
    vec![
        (
            format!("src/features/{name}.js"),
            format!(
                "import {{ title }} from \"../text.js\";\n\nexport function {name}(count) {{\n  return \
                 `${{title(\"{name}\")}} ${{count * {number}}}`;\n}}\n"
            ),
        ),
        (
            format!("test/{name}.test.js"),
            format!(
                "import {{ test }} from \"node:test\";\nimport assert from \"node:assert/strict\";\nimport {{ {name} \
                 }} from \"../src/features/{name}.js\";\n\ntest(\"{name} counts\", () => {{\n  \
                 assert.equal({name}(2), \"{}{} {}\");\n}});\n",
                name.chars().next().map(|c| c.to_ascii_uppercase()).unwrap_or_default(),
                name.get(1..).unwrap_or_default(),
                2 * number
            ),
        ),
    ]
}

/// The index with a line more, sorted by bytes.
#[must_use]
pub fn index_with(index: &str, name: &str) -> String {
    let mut lines: Vec<&str> = index.lines().chain([name]).collect();
    lines.sort_unstable();
    lines.dedup();
    lines.join("\n") + "\n"
}

/// Makes the project's first commit in the sandbox's folder `project`.
///
/// # Errors
/// When git fails.
pub fn commit(sandbox: &Sandbox) -> Result<String> {
    for (path, content) in files() {
        sandbox.write(&format!("project/{path}"), &content)?;
    }
    sandbox.git("project", None, &["init", "-q"])?;
    sandbox.git("project", None, &["add", "-A"])?;
    sandbox.git("project", None, &["commit", "-q", "-m", "Harbour: a small library"])?;
    sandbox.git("project", None, &["rev-parse", "HEAD"])
}
