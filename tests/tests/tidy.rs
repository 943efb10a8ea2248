//! Style is a test: sizes, arrows between rooms, no clock in the engine, no forgotten crate.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use syn::spanned::Spanned as _;
use syn::visit::Visit;

/// Lines of a function, braces and signature included.
const FUNCTION_LINES_MAX: usize = 70;
/// Lines of a file, its test module left out.
const FILE_LINES_MAX: usize = 550;
/// Characters of a line.
const LINE_CHARS_MAX: usize = 120;

/// What each crate may name among ours: compile-time arrows never turn back, wings never go sideways.
const ARROWS: [(&str, &[&str]); 15] = [
    ("yard-common", &[]),
    ("yard-git", &["yard-common"]),
    ("yard-rules", &["yard-common"]),
    ("yard-transfer", &["yard-common", "yard-git"]),
    ("yard-merge", &["yard-common", "yard-git", "yard-rules"]),
    ("yard-landing", &["yard-common", "yard-git"]),
    ("yard-queue", &["yard-common", "yard-git", "yard-merge"]),
    ("yard-replay", &["yard-common"]),
    ("yard-wire", &["yard-common"]),
    ("yard-objects", &["yard-common", "yard-git", "yard-merge", "yard-landing", "yard-queue", "yard-wire"]),
    (
        "switchyard",
        &[
            "yard-common",
            "yard-git",
            "yard-transfer",
            "yard-merge",
            "yard-landing",
            "yard-queue",
            "yard-replay",
            "yard-wire",
            "yard-objects",
        ],
    ),
    ("yard-cli", &["yard-common", "yard-git", "yard-merge", "yard-rules", "yard-wire"]),
    ("yard-loadtest", &["yard-cli", "yard-common", "yard-git", "yard-merge", "yard-rules", "yard-wire"]),
    (
        "yard-tests",
        &[
            "yard-cli",
            "yard-common",
            "yard-git",
            "yard-merge",
            "yard-landing",
            "yard-queue",
            "yard-wire",
            "yard-loadtest",
        ],
    ),
    (
        "yard-simulation",
        &[
            "switchyard",
            "yard-cli",
            "yard-common",
            "yard-git",
            "yard-loadtest",
            "yard-objects",
            "yard-replay",
            "yard-wire",
        ],
    ),
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the tests lie in the checkout").to_owned()
}

/// All files that git tracks or would track, below the checkout.
fn files() -> Vec<PathBuf> {
    let out = std::process::Command::new("git")
        .current_dir(root())
        .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
        .output()
        .expect("git runs");
    out.stdout
        .split(|byte| *byte == 0)
        .filter(|name| !name.is_empty())
        .map(|name| PathBuf::from(String::from_utf8_lossy(name).into_owned()))
        .filter(|path| root().join(path).exists())
        .collect()
}

fn sources() -> Vec<(PathBuf, String)> {
    files()
        .into_iter()
        .filter(|path| path.extension().is_some_and(|end| end == "rs"))
        .map(|path| {
            let text = std::fs::read_to_string(root().join(&path)).expect("a source is text");
            (path, text)
        })
        .collect()
}

fn complain(faults: &[String]) {
    assert!(faults.is_empty(), "{} faults:\n{}", faults.len(), faults.join("\n"));
}

struct Functions<'a> {
    path: &'a Path,
    faults: Vec<String>,
}

impl Functions<'_> {
    fn check(&mut self, name: &syn::Ident, whole: proc_macro2::Span) {
        let lines = whole.end().line - whole.start().line + 1;
        if lines > FUNCTION_LINES_MAX {
            self.faults.push(format!(
                "{}:{}: fn {name} has {lines} lines",
                self.path.display(),
                whole.start().line
            ));
        }
    }
}

impl<'ast> Visit<'ast> for Functions<'_> {
    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        self.check(
            &item.sig.ident,
            item.sig.span().join(item.block.span()).unwrap_or_else(|| item.block.span()),
        );
        syn::visit::visit_item_fn(self, item);
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        self.check(
            &item.sig.ident,
            item.sig.span().join(item.block.span()).unwrap_or_else(|| item.block.span()),
        );
        syn::visit::visit_impl_item_fn(self, item);
    }
}

#[test]
fn functions_and_files_stay_small() {
    let mut faults = Vec::new();
    for (path, text) in sources() {
        let file = syn::parse_file(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let mut functions = Functions { path: &path, faults: Vec::new() };
        functions.visit_file(&file);
        faults.extend(functions.faults);
        let own = text.find("#[cfg(test)]\nmod tests {").map_or(text.as_str(), |at| &text[..at]);
        let is_test = path.components().any(|part| part.as_os_str() == "tests") || path.ends_with("tests.rs");
        let lines = own.lines().count();
        if lines > FILE_LINES_MAX && !is_test {
            faults.push(format!("{}: {lines} lines", path.display()));
        }
        for (number, line) in text.lines().enumerate() {
            if line.chars().count() > LINE_CHARS_MAX {
                faults.push(format!(
                    "{}:{}: a line of {} characters",
                    path.display(),
                    number + 1,
                    line.chars().count()
                ));
            }
        }
    }
    complain(&faults);
}

fn manifests() -> BTreeMap<String, toml::Table> {
    files()
        .into_iter()
        .filter(|path| path.file_name().is_some_and(|name| name == "Cargo.toml"))
        .filter_map(|path| {
            let text = std::fs::read_to_string(root().join(&path)).expect("a manifest is text");
            let table: toml::Table =
                text.parse().unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            let name = table.get("package")?.get("name")?.as_str()?.to_owned();
            Some((name, table))
        })
        .collect()
}

#[test]
fn arrows_between_rooms_go_one_way() {
    let arrows: BTreeMap<&str, BTreeSet<&str>> =
        ARROWS.iter().map(|(from, to)| (*from, to.iter().copied().collect())).collect();
    let manifests = manifests();
    let ours: BTreeSet<&str> = manifests.keys().map(String::as_str).collect();
    let mut faults = Vec::new();
    for name in arrows.keys() {
        if !ours.contains(name) {
            faults.push(format!("{name} is in the list of arrows, but there is no such crate"));
        }
    }
    for (name, manifest) in &manifests {
        let Some(allowed) = arrows.get(name.as_str()) else {
            let named = manifest.get("dependencies").and_then(|list| list.as_table());
            if named.is_some_and(|list| list.keys().any(|dep| ours.contains(dep.as_str()))) {
                faults.push(format!("{name} names our crates, but is not in the list of arrows"));
            }
            continue;
        };
        for dependency in manifest
            .get("dependencies")
            .and_then(|list| list.as_table())
            .into_iter()
            .flat_map(|list| list.keys())
        {
            if ours.contains(dependency.as_str()) && !allowed.contains(dependency.as_str()) {
                faults.push(format!("{name} -> {dependency} is no arrow of the map"));
            }
        }
    }
    complain(&faults);
}

#[test]
fn the_engine_knows_no_clock_no_chance_no_thread_and_no_file() {
    const BANNED: [&str; 8] = [
        "std::time",
        "SystemTime",
        "Instant::now",
        "std::thread",
        "std::fs",
        "std::net",
        "std::env",
        "rand::",
    ];
    let mut faults = Vec::new();
    for (path, text) in sources() {
        let pure = path.starts_with("engine") || path.starts_with("wire");
        let test = path.components().any(|part| {
            matches!(
                part.as_os_str().to_str(),
                Some("tests" | "benches" | "examples" | "tests.rs" | "testing.rs")
            )
        });
        if !pure || test {
            continue;
        }
        let own = text.find("#[cfg(test)]\nmod tests").map_or(text.as_str(), |at| &text[..at]);
        for (number, line) in own.lines().enumerate() {
            let code = line.split("//").next().unwrap_or_default();
            for banned in BANNED {
                if code.contains(banned) {
                    faults.push(format!("{}:{}: {banned}", path.display(), number + 1));
                }
            }
        }
    }
    complain(&faults);
}

#[test]
fn the_repository_speaks_of_the_product_alone() {
    // Spelled in halves, so that this file does not name what it forbids.
    let banned = [["/wo", "rk/"].concat(), ["registry.npm", "js.org"].concat(), ["crates", ".io/"].concat()];
    let mut faults = Vec::new();
    for path in files() {
        let Ok(text) = std::fs::read_to_string(root().join(&path)) else { continue };
        for word in &banned {
            // Cargo.lock names the registry of every crate; cargo itself writes it so.
            if text.contains(word.as_str())
                && path != Path::new("Cargo.lock")
                && !path.ends_with("Cargo.lock")
            {
                faults.push(format!("{}: {word}", path.display()));
            }
        }
    }
    complain(&faults);
}

#[test]
fn every_crate_takes_the_lints_that_forbid_panics() {
    let mut faults = Vec::new();
    for (name, manifest) in manifests() {
        let lints = manifest.get("lints");
        let workspace =
            lints.and_then(|lints| lints.get("workspace")).and_then(toml::Value::as_bool) == Some(true);
        let own = lints.and_then(|lints| lints.get("clippy")).is_some();
        // A test may panic.
        let tests = ["yard-tests", "yard-simulation"].contains(&name.as_str());
        if !workspace && !own && ARROWS.iter().any(|(room, _)| *room == name) && !tests {
            faults.push(format!("{name} has no lints"));
        }
    }
    complain(&faults);
}
