//! Mistakes by seed: of the places that collide, one gets a wrong answer, one an answer outside of the reviewed
//! paths, one an answer that comes late; all others get right ones.

use std::collections::BTreeMap;
use std::sync::Mutex;

use super::Act;
use super::task::Question;

/// A path that no task of the demo reviews.
pub const OUTSIDE: &str = ".switchyard.toml";

/// Which place gets what, in the order in which places are asked about first.
pub struct Seeded {
    places: Mutex<BTreeMap<Vec<String>, (usize, u32)>>,
    acts: Vec<Act>,
}

impl Seeded {
    /// Mistakes among the first `places` places; a late answer comes `late_ms` later than others.
    #[must_use]
    pub fn new(seed: u64, places: usize, late_ms: u64) -> Self {
        let mut acts = vec![Act::Right; places.max(3)];
        let mistakes = [Act::Wrong, Act::Outside(OUTSIDE.to_owned()), Act::Late(late_ms)];
        for (slot, mistake) in acts.iter_mut().zip(mistakes) {
            *slot = mistake;
        }
        fastrand::Rng::with_seed(seed).shuffle(&mut acts);
        Self { places: Mutex::default(), acts }
    }

    /// What is done with a question. The same place gets the same again, but a late answer is late once.
    #[must_use]
    pub fn choose(&self, question: &Question) -> Act {
        let Ok(mut places) = self.places.lock() else { return Act::Right };
        let next = places.len();
        let (place, times) = places.entry(question.paths()).or_insert((next, 0));
        *times += 1;
        match self.acts.get(*place) {
            None => Act::Right,
            Some(Act::Late(_)) if *times > 1 => Act::Right,
            Some(act) => act.clone(),
        }
    }
}
