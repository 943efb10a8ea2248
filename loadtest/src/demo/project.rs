//! The project that the agents of the demo work on: a small library with a real suite.
//!
//! `features.txt` is the shared index: every feature adds its line, and the suite fails when the
//! index and the folder disagree, so an index that lost a line cannot land unseen. The changelog is shared in
//! the same way; the [`PLACES`] are where agents collide.

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

# And an entry to the changelog, which goes under the newest unreleased heading.
[[rules]]
paths = "CHANGELOG.md"
rule = "changelog"
"#;

const CHANGELOG: &str =
    "# Changelog\n\n## Unreleased\n\n- The harbour opens.\n\n## 0.1.0\n\n- The first stone.\n";

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
import { greet } from "../src/greeting.js";

test("a title starts with a capital", () => {
  assert.equal(title("harbour"), "Harbour");
});

test("there is a greeting", () => {
  assert.equal(greet("harbour"), "Welcome to the harbour");
});
"#;

/// A file in which agents add at one and the same place, so that two of them collide.
#[derive(Debug, PartialEq, Eq)]
pub struct Place {
    /// Its path.
    pub path: &'static str,
    /// What an agent is asked to add.
    pub what: &'static str,
    before: &'static str,
    line: &'static str,
    after: &'static str,
    test: &'static str,
}

/// `{w}` stands for the agent's word, `{n}` for its number.
pub const PLACES: [Place; 5] = [
    Place {
        path: "src/menu.js",
        what: "dish",
        before: "export const MENU = [\n  \"soup\",\n",
        line: "  \"{w}\",\n",
        after: "];\n",
        test: "assert.ok(file.MENU.includes(\"{w}\"))",
    },
    Place {
        path: "src/tides.js",
        what: "tide",
        before: "export const TIDES = new Map([\n  [\"harbour\", 7],\n",
        line: "  [\"{w}\", {n}],\n",
        after: "]);\n",
        test: "assert.equal(file.TIDES.get(\"{w}\"), {n})",
    },
    Place {
        path: "src/lights.js",
        what: "light",
        before: "export const LIGHTS = {\n  harbour: { colour: \"green\", seconds: 7 },\n",
        line: "  {w}: { colour: \"red\", seconds: {n} },\n",
        after: "};\n",
        test: "assert.equal(file.LIGHTS.{w}.seconds, {n})",
    },
    Place {
        path: "src/greeting.js",
        what: "greeting",
        before: "export function greet(who) {\n  switch (who) {\n    case \"harbour\":\n      return \"Welcome to the \
                 harbour\";\n",
        line: "    case \"{w}\":\n      return \"{w} greets you\";\n",
        after: "    default:\n      return \"Hello\";\n  }\n}\n",
        test: "assert.equal(file.greet(\"{w}\"), \"{w} greets you\")",
    },
    Place {
        path: "src/routes.js",
        what: "route",
        before: "export function route(to) {\n  if (to === \"harbour\") return \"/\";\n",
        line: "  if (to === \"{w}\") return \"/{w}/{n}\";\n",
        after: "  return \"/lost\";\n}\n",
        test: "assert.equal(file.route(\"{w}\"), \"/{w}/{n}\")",
    },
];

impl Place {
    fn filled(text: &str, word: &str, number: u64) -> String {
        text.replace("{w}", word).replace("{n}", &number.to_string())
    }

    /// The lines that an agent adds.
    #[must_use]
    pub fn lines(&self, word: &str, number: u64) -> String {
        Self::filled(self.line, word, number)
    }

    /// The file with an agent's lines at the end of what stands there.
    #[must_use]
    pub fn with(&self, text: &str, word: &str, number: u64) -> String {
        let at = text.rfind(self.after).unwrap_or(text.len());
        let (head, tail) = text.split_at(at);
        format!("{head}{}{tail}", self.lines(word, number))
    }

    /// The agent's test: its path and its text.
    #[must_use]
    pub fn test(&self, word: &str, number: u64) -> (String, String) {
        let check = Self::filled(self.test, word, number);
        let (path, what) = (self.path, self.what);
        let text = format!(
            "import {{ test }} from \"node:test\";\nimport assert from \"node:assert/strict\";\nimport * as file \
             from \"../{path}\";\n\ntest(\"the {what} {word} is there\", () => {{\n  {check};\n}});\n"
        );
        (format!("test/{what}-{word}.test.js"), text)
    }
}

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
        ("CHANGELOG.md".to_owned(), CHANGELOG.to_owned()),
        ("test/index.test.js".to_owned(), INDEX_TEST.to_owned()),
        ("test/text.test.js".to_owned(), CORE_TEST.to_owned()),
    ];
    files.extend(
        PLACES.iter().map(|place| (place.path.to_owned(), format!("{}{}", place.before, place.after))),
    );
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

/// The entry of a feature in the changelog.
#[must_use]
pub fn entry(name: &str) -> String {
    format!("- The feature {name}.")
}

/// The changelog with the entry of a feature, last under the first heading.
#[must_use]
pub fn changelog_with(text: &str, name: &str) -> String {
    let (open, released) = text.split_once("\n\n## 0.1.0").unwrap_or((text, ""));
    format!("{open}\n{}\n\n## 0.1.0{released}", entry(name))
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
