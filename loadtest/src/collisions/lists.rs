//! Lists of lines: additions only (`union-exact`), and sorted sets (`sorted-lines`).

use std::collections::BTreeSet;

use fastrand::Rng;

use super::{Case, Maker, Right, sides, word};

pub(super) const MAKERS: &[Maker] =
    &[additions, same_place, same_line, other_places, rewritten, deleted, blocks, sorted, unsorted];

fn words(rng: &mut Rng, number: &mut u32, count: usize) -> Vec<String> {
    (0..count).map(|_| word(rng, number)).collect()
}

fn text(lines: &[String]) -> String {
    lines.iter().map(|line| format!("{line}\n")).collect()
}

fn list(kind: &'static str, three: [&[String]; 3], right: Right) -> Case {
    let [base, ours, theirs] = three.map(text);
    Case { kind, rule: "union-exact", path: "CODEOWNERS", base, ours, theirs, right }
}

/// The base with the lines of each gap in front of its lines.
fn with(base: &[String], gaps: &[Vec<String>]) -> Vec<String> {
    let none = Vec::new();
    let mut out = Vec::new();
    for at in 0..=base.len() {
        out.extend(gaps.get(at).unwrap_or(&none).iter().cloned());
        out.extend(base.get(at).cloned());
    }
    out
}

fn gaps(rng: &mut Rng, number: &mut u32, len: usize) -> Vec<Vec<String>> {
    (0..=len).map(|_| if rng.u8(..3) == 0 { words(rng, number, 2) } else { Vec::new() }).collect()
}

fn additions(rng: &mut Rng) -> Case {
    let number = &mut 0;
    let count = rng.usize(2..12);
    let base = words(rng, number, count);
    let (our, their) = (gaps(rng, number, base.len()), gaps(rng, number, base.len()));
    let both = |a: &[Vec<String>], b: &[Vec<String>]| -> Vec<Vec<String>> {
        a.iter().zip(b).map(|(a, b)| [a.clone(), b.clone()].concat()).collect()
    };
    let right = [both(&our, &their), both(&their, &our)].map(|gaps| text(&with(&base, &gaps)));
    let (ours, theirs) = (with(&base, &our), with(&base, &their));
    sides(rng, list("C5 both add lines", [&base, &ours, &theirs], Right::Bytes(right.to_vec())))
}

fn same_place(rng: &mut Rng) -> Case {
    let number = &mut 0;
    let base = words(rng, number, 4);
    let (a, b) = (words(rng, number, 2), words(rng, number, 3));
    let put = |lines: &[String]| [base.as_slice(), lines].concat();
    let right = [put(&[a.clone(), b.clone()].concat()), put(&[b.clone(), a.clone()].concat())];
    let right = Right::Bytes(right.map(|lines| text(&lines)).to_vec());
    sides(rng, list("C5 both add at the end", [&base, &put(&a), &put(&b)], right))
}

fn same_line(rng: &mut Rng) -> Case {
    let number = &mut 0;
    let base = words(rng, number, 4);
    let same = words(rng, number, 1);
    let (a, b) = (words(rng, number, 1), words(rng, number, 1));
    let put = |parts: &[&[String]]| [base.as_slice(), parts.concat().as_slice()].concat();
    let (ours, theirs) = (put(&[&a, &same]), put(&[&same, &b]));
    let right = Right::Bytes(vec![text(&put(&[&a, &same, &b]))]);
    sides(rng, list("C5 both add one line among others", [&base, &ours, &theirs], right))
}

fn other_places(rng: &mut Rng) -> Case {
    let number = &mut 0;
    let base = words(rng, number, 5);
    let same = word(rng, number);
    let (mut ours, mut theirs) = (base.clone(), base.clone());
    ours.insert(rng.usize(..2), same.clone());
    theirs.insert(rng.usize(3..5), same);
    sides(rng, list("C5 both add one line at different places", [&base, &ours, &theirs], Right::Collision))
}

fn rewritten(rng: &mut Rng) -> Case {
    let number = &mut 0;
    let base = words(rng, number, 5);
    let at = rng.usize(..5);
    let mut one = || {
        let mut side = base.clone();
        side.splice(at..=at, [word(rng, number)]);
        side
    };
    let (ours, theirs) = (one(), one());
    sides(rng, list("C1 both rewrite one line", [&base, &ours, &theirs], Right::Collision))
}

fn deleted(rng: &mut Rng) -> Case {
    let number = &mut 0;
    let base = words(rng, number, 5);
    let at = rng.usize(..5);
    let (mut ours, mut theirs) = (base.clone(), base.clone());
    ours.remove(at);
    theirs.insert(at + 1, word(rng, number));
    sides(rng, list("C3 one deletes a line, one adds after it", [&base, &ours, &theirs], Right::Collision))
}

fn blocks(rng: &mut Rng) -> Case {
    let number = &mut 0;
    let base = words(rng, number, 3);
    let mut one = || {
        let name = word(rng, number);
        [base.clone(), vec![format!("{name} {{"), format!("  {}", word(rng, number)), "}".to_owned()]]
            .concat()
    };
    let (ours, theirs) = (one(), one());
    let glued = |first: &[String], second: &[String]| [first, second.get(3..).unwrap_or_default()].concat();
    let right = [text(&glued(&ours, &theirs)), text(&glued(&theirs, &ours))];
    sides(rng, list("C5 both add a block", [&base, &ours, &theirs], Right::Bytes(right.to_vec())))
}

fn sorted(rng: &mut Rng) -> Case {
    let number = &mut 0;
    let all: BTreeSet<String> = words(rng, number, 20).into_iter().collect();
    let base: BTreeSet<String> = all.iter().filter(|_| rng.bool()).cloned().collect();
    let side = |rng: &mut Rng| -> BTreeSet<String> {
        all.iter().filter(|line| base.contains(*line) != (rng.u8(..4) == 0)).cloned().collect()
    };
    let (ours, theirs) = (side(rng), side(rng));
    let kept = |line: &&String| match base.contains(*line) {
        true => ours.contains(*line) && theirs.contains(*line),
        false => ours.contains(*line) || theirs.contains(*line),
    };
    let right: Vec<String> = all.iter().filter(kept).cloned().collect();
    let print = |set: &BTreeSet<String>| text(&set.iter().cloned().collect::<Vec<_>>());
    let case = Case {
        kind: "C3 C5 a sorted set",
        rule: "sorted-lines",
        path: "INDEX",
        base: print(&base),
        ours: print(&ours),
        theirs: print(&theirs),
        right: Right::Bytes(vec![text(&right)]),
    };
    if rng.bool() { Case { ours: case.theirs, theirs: case.ours, ..case } } else { case }
}

fn unsorted(rng: &mut Rng) -> Case {
    let number = &mut 0;
    let mut base = words(rng, number, 5);
    base.sort_unstable();
    let (mut ours, mut theirs) = (base.clone(), base.clone());
    ours.insert(0, format!("z{}", word(rng, number)));
    theirs.push(format!("zz{}", word(rng, number)));
    let case = list("C1 a set that one side no longer sorts", [&base, &ours, &theirs], Right::Collision);
    Case { rule: "sorted-lines", path: "INDEX", ..case }
}
