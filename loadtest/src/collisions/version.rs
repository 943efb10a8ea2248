//! Versions that both sides bump.

use fastrand::Rng;

use super::{Case, Maker, Right, sides, word};

pub(super) const MAKERS: &[Maker] = &[bumps, beside_others, down, metadata, forms];

const FILES: [&str; 4] = ["VERSION", "package.json", "Cargo.toml", "src/about.py"];

fn print(path: &str, version: &str, other: &str) -> String {
    match path {
        "package.json" => format!(
            "{{\n  \"name\": \"x\",\n  \"version\": \"{version}\",\n  \"private\": true,\n  \"deps\": {{\n    \
             \"version\": \"0.0.1\"\n  }},\n  \"note\": \"{other}\"\n}}\n"
        ),
        "Cargo.toml" => {
            format!(
                "[package]\nname = \"x\"\nversion = \"{version}\"\nedition = \"2024\"\nnote = \"{other}\"\n"
            )
        }
        "src/about.py" => {
            format!("__title__ = 'x'\n__version__ = '{version}'\n__author__ = 'y'\nnote = '{other}'\n")
        }
        _ => format!("{version}\n"),
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Number(u32, u32, u32, Option<u32>);

impl Number {
    fn print(self) -> String {
        let Self(a, b, c, pre) = self;
        let pre = pre.map_or_else(String::new, |pre| format!("-rc.{pre}"));
        format!("{a}.{b}.{c}{pre}")
    }

    /// By semver: a candidate comes before its release.
    fn rank(self) -> (u32, u32, u32, u32) {
        (self.0, self.1, self.2, self.3.unwrap_or(u32::MAX))
    }

    fn bump(self, rng: &mut Rng) -> Self {
        let Self(a, b, c, _) = self;
        let pre = (rng.u8(..3) == 0).then(|| rng.u32(1..12));
        match rng.u8(..3) {
            0 => Self(a + 1, 0, 0, pre),
            1 => Self(a, b + rng.u32(1..12), 0, pre),
            _ => Self(a, b, c + rng.u32(1..12), pre),
        }
    }
}

fn number(rng: &mut Rng) -> Number {
    Number(rng.u32(1..5), rng.u32(..20), rng.u32(..20), None)
}

fn file(rng: &mut Rng) -> &'static str {
    rng.choice(FILES).unwrap_or("VERSION")
}

fn case(kind: &'static str, path: &'static str, three: [String; 3], right: Right) -> Case {
    let [base, ours, theirs] = three;
    Case { kind, rule: "version-number", path, base, ours, theirs, right }
}

fn bumps(rng: &mut Rng) -> Case {
    let (path, base) = (file(rng), number(rng));
    let (ours, theirs) = (base.bump(rng), base.bump(rng));
    let higher = if ours.rank() > theirs.rank() { ours } else { theirs };
    let three = [base, ours, theirs].map(|number| print(path, &number.print(), "z"));
    let right = Right::Bytes(vec![print(path, &higher.print(), "z")]);
    sides(rng, case("C1 both bump the version", path, three, right))
}

fn beside_others(rng: &mut Rng) -> Case {
    let path = *rng.choice(FILES.iter().skip(1)).unwrap_or(&"Cargo.toml");
    let base = number(rng);
    let (ours, theirs) = (base.bump(rng), base.bump(rng));
    let higher = if ours.rank() > theirs.rank() { ours } else { theirs };
    let new = word(rng, &mut 0);
    let three = [
        print(path, &base.print(), "z"),
        print(path, &ours.print(), "z"),
        print(path, &theirs.print(), &new),
    ];
    let right = Right::Bytes(vec![print(path, &higher.print(), &new)]);
    sides(rng, case("C1 both bump, one changes another line", path, three, right))
}

fn down(rng: &mut Rng) -> Case {
    let (path, Number(a, b, c, _)) = (file(rng), number(rng));
    let base = Number(a + 1, b, c, None);
    let (ours, theirs) = (base.bump(rng), Number(a, b + 1, c, None));
    let three = [base, ours, theirs].map(|number| print(path, &number.print(), "z"));
    sides(rng, case("C1 one bumps, one goes back", path, three, Right::Collision))
}

fn metadata(rng: &mut Rng) -> Case {
    let (path, base) = (file(rng), number(rng));
    let next = base.bump(rng).print();
    let (a, b) = (rng.u16(..1000), rng.u16(1000..2000));
    let three = [base.print(), format!("{next}+{a}"), format!("{next}+{b}")];
    let three = three.map(|version| print(path, &version, "z"));
    sides(rng, case("C1 bumps that differ in build metadata", path, three, Right::Collision))
}

fn forms(rng: &mut Rng) -> Case {
    let (path, base) = (file(rng), number(rng));
    let three = [base.print(), base.bump(rng).print(), format!("2026.{}", rng.u8(1..13))];
    let three = three.map(|version| print(path, &version, "z"));
    sides(rng, case("C1 versions of two forms", path, three, Right::Collision))
}
