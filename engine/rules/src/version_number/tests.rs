use proptest::prelude::*;

use crate::Rule;

fn apply(file: &str, base: &str, ours: &str, theirs: &str) -> Result<String, String> {
    crate::tests::apply(Rule::VersionNumber, file, [base, ours, theirs])
}

fn version(base: &str, ours: &str, theirs: &str) -> Result<String, String> {
    let merged = apply("VERSION", &format!("{base}\n"), &format!("{ours}\n"), &format!("{theirs}\n"));
    merged.map(|text| text.trim_end().to_owned())
}

#[test]
fn the_higher_of_two_bumps_wins_by_semver() {
    assert_eq!(version("1.2.3", "1.2.4", "1.3.0").unwrap(), "1.3.0");
    assert_eq!(version("1.2.3", "1.10.0", "1.9.0").unwrap(), "1.10.0");
    assert_eq!(version("1.2.3", "2.0.0-rc.1", "2.0.0").unwrap(), "2.0.0");
    assert_eq!(version("1.2.3", "2.0.0-rc.2", "2.0.0-rc.10").unwrap(), "2.0.0-rc.10");
    assert_eq!(version("v1.2.3", "v1.2.4", "v1.2.5").unwrap(), "v1.2.5");
}

#[test]
fn no_semver_a_step_down_and_build_metadata_collide() {
    assert!(version("1.2.3", "1.2.4+a", "1.2.4+b").unwrap_err().contains("build metadata"));
    assert!(version("1.2.3", "1.2.2", "1.2.4").unwrap_err().contains("not above"));
    assert!(version("1.2.3", "1.2.3+x", "1.2.4").unwrap_err().contains("not above"));
    assert!(version("1.2", "1.3", "1.4").unwrap_err().contains("no semver"));
    assert!(version("1.2.3", "v1.2.4", "1.2.5").unwrap_err().contains("beside the number"));
}

#[test]
fn a_manifest_has_its_own_version_among_those_of_others() {
    let npm = |version: &str| {
        format!(
            "{{\n  \"name\": \"a\",\n  \"version\": \"{version}\",\n  \"x\": {{\n    \"version\": \"0.1.0\"\n  }}\n}}\n"
        )
    };
    assert_eq!(apply("a/package.json", &npm("1.0.0"), &npm("1.0.1"), &npm("1.1.0")).unwrap(), npm("1.1.0"));
    let cargo = |version: &str| {
        format!("[package]\nname = \"a\"\nversion = \"{version}\"\n\n[dependencies.b]\nversion = \"3.0.0\"\n")
    };
    assert_eq!(
        apply("Cargo.toml", &cargo("1.0.0"), &cargo("1.1.0"), &cargo("1.0.1")).unwrap(),
        cargo("1.1.0")
    );
    let python = |version: &str| format!("import x\n__version__ = '{version}'  # by hand\n");
    assert_eq!(apply("a.py", &python("1.0.0"), &python("1.0.1"), &python("1.1.0")).unwrap(), python("1.1.0"));
}

#[test]
fn no_or_two_version_lines_are_refused_with_their_places() {
    let two = "version = \"1.0.0\"\nversion = \"2.0.0\"\n";
    let why = apply("x.py", two, &format!("{two}a\n"), &format!("b\n{two}")).unwrap_err();
    assert!(why.contains("the change's base") && why.contains("lines 1, 2"), "{why}");
    assert!(apply("x.py", "a\n", "b\n", "c\n").unwrap_err().contains("none"));
}

#[test]
fn the_rest_is_merged_as_lines_or_collides() {
    let file = |version: &str, rest: &str| format!("[package]\nversion = \"{version}\"\n{rest}\n");
    let merged = apply("Cargo.toml", &file("1.0.0", "a"), &file("1.1.0", "b"), &file("1.2.0", "a")).unwrap();
    assert_eq!(merged, file("1.2.0", "b"));
    let why = apply("Cargo.toml", &file("1.0.0", "a"), &file("1.1.0", "b"), &file("1.2.0", "c")).unwrap_err();
    assert!(why.contains("besides the version"), "{why}");
    assert!(apply("Cargo.toml", &file("1.0.0", "a"), &file("1.1.0", "b"), &file("1.0.0", "c")).is_err());
    let comment = file("1.2.0", "a").replace("\"1.2.0\"", "\"1.2.0\" # next");
    assert!(apply("Cargo.toml", &file("1.0.0", "a"), &file("1.1.0", "a"), &comment).is_err());
}

proptest! {
    /// The order of two bumps does not matter, and the higher one of the two stands.
    #[test]
    fn bumps_come_in_any_order(a in 0_u32..30, b in 0_u32..30, c in 0_u32..30, d in 0_u32..30) {
        let (ours, theirs) = (format!("1.{}.{b}", a + 1), format!("1.{}.{d}", c + 1));
        let higher = if (a, b) > (c, d) { &ours } else { &theirs };
        prop_assert_eq!(&version("1.0.0", &ours, &theirs).unwrap(), higher);
        prop_assert_eq!(&version("1.0.0", &theirs, &ours).unwrap(), higher);
        prop_assert_eq!(&version("1.0.0", higher, &theirs).unwrap(), higher);
    }
}
