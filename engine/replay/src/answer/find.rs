//! All SEARCH texts of a file at once: Aho and Corasick, "Efficient string matching" (1975), over lines.

use std::collections::{BTreeMap, VecDeque};

/// What keeps a search from standing in the file exactly once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Miss {
    /// It is nowhere.
    Never,
    /// It is there more than once.
    Many,
}

/// One state: the search that ends here, where to go on after a mismatch, the next end on that way.
#[derive(Clone, Default)]
struct State {
    depth: usize,
    ends: Option<usize>,
    fail: usize,
    next_end: Option<usize>,
}

#[derive(Default)]
struct Machine {
    states: Vec<State>,
    edges: BTreeMap<(usize, usize), usize>,
}

/// The line at which each search begins, from 0; or the first one (by its place in the list) that has none or
/// several, as far as was read. Searches are distinct and not empty.
///
/// The reading stops at the first second match, so there are at most as many matches as searches.
pub fn once(file: &[&str], searches: &[&[&str]]) -> Result<Vec<usize>, (usize, Miss)> {
    let mut numbers: BTreeMap<&str, usize> = BTreeMap::new();
    for line in searches.iter().flat_map(|search| search.iter()) {
        let next = numbers.len();
        numbers.entry(line).or_insert(next);
    }
    let machine = Machine::of(searches, &numbers);
    let mut found: Vec<Option<usize>> = vec![None; searches.len()];
    let mut state = 0;
    for (at, line) in file.iter().enumerate() {
        state = match numbers.get(line) {
            Some(number) => machine.step(state, *number),
            None => 0,
        };
        let mut end = machine.first_end(state);
        while let Some(here) = end {
            let Some(State { depth, ends: Some(search), next_end, .. }) = machine.states.get(here) else {
                break;
            };
            match found.get_mut(*search) {
                Some(place @ None) => *place = Some((at + 1).saturating_sub(*depth)),
                _ => return Err((*search, Miss::Many)),
            }
            end = *next_end;
        }
    }
    found.into_iter().enumerate().map(|(search, at)| at.ok_or((search, Miss::Never))).collect()
}

impl Machine {
    fn of(searches: &[&[&str]], numbers: &BTreeMap<&str, usize>) -> Self {
        let mut machine = Self { states: vec![State::default()], ..Self::default() };
        for (index, search) in searches.iter().enumerate() {
            let mut at = 0;
            for (depth, line) in search.iter().enumerate() {
                let number = numbers.get(line).copied().unwrap_or_default();
                let next = machine.states.len();
                at = *machine.edges.entry((at, number)).or_insert(next);
                if at == next {
                    machine.states.push(State { depth: depth + 1, ..State::default() });
                }
            }
            if let Some(state) = machine.states.get_mut(at) {
                state.ends = Some(index);
            }
        }
        machine.link();
        machine
    }

    /// Fills the ways after a mismatch, breadth first.
    fn link(&mut self) {
        let mut todo = VecDeque::from([0]);
        while let Some(at) = todo.pop_front() {
            let below: Vec<_> = self
                .edges
                .range((at, 0)..=(at, usize::MAX))
                .map(|((_, number), to)| (*number, *to))
                .collect();
            let up = self.states.get(at).map_or(0, |state| state.fail);
            for (number, to) in below {
                let fail = if at == 0 { 0 } else { self.step(up, number) };
                let next_end = self.first_end(fail);
                if let Some(state) = self.states.get_mut(to) {
                    state.fail = fail;
                    state.next_end = next_end;
                }
                todo.push_back(to);
            }
        }
    }

    fn first_end(&self, at: usize) -> Option<usize> {
        let state = self.states.get(at)?;
        if state.ends.is_some() { Some(at) } else { state.next_end }
    }

    fn step(&self, mut at: usize, number: usize) -> usize {
        loop {
            if let Some(to) = self.edges.get(&(at, number)) {
                return *to;
            }
            if at == 0 {
                return 0;
            }
            at = self.states.get(at).map_or(0, |state| state.fail);
        }
    }
}
