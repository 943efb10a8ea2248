//! Who does what: decided by the seed alone.

use crate::agent::{Task, Via};
use crate::project::{PLACES, WORDS};

/// One agent's part.
#[derive(Debug, Clone)]
pub struct Part {
    /// The fork's name.
    pub fork: String,
    /// What it does.
    pub task: Task,
    /// How it offers it.
    pub via: Via,
    /// What its work is named after.
    pub word: &'static str,
    /// A number of its own.
    pub number: u64,
    /// Which of [`PLACES`] it adds to, for [`Task::Place`].
    pub place: usize,
    /// When it starts, in milliseconds after the first.
    pub after_ms: u64,
}

/// The fewest agents: two for each place, one that breaks a test.
pub const AGENTS_MIN: usize = 2 * PLACES.len() + 1;

/// The parts of `agents` agents (at least [`AGENTS_MIN`]): two add at each place, one breaks a test, the
/// others add a feature each; every other one by git.
#[must_use]
pub fn parts(agents: usize, seed: u64) -> Vec<Part> {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut words = WORDS;
    random.shuffle(&mut words);
    let places = (0..PLACES.len()).flat_map(|place| [(Task::Place, place); 2]);
    let mut tasks: Vec<(Task, usize)> = places.chain([(Task::Break, 0)]).collect();
    tasks.resize(agents.max(AGENTS_MIN), (Task::Feature, 0));
    random.shuffle(&mut tasks);
    let flip = usize::from(random.bool());
    tasks
        .into_iter()
        .zip(words.iter().cycle())
        .enumerate()
        .map(|(index, ((task, place), word))| Part {
            fork: format!("agent-{:02}", index + 1),
            task,
            via: if (index + flip) % 2 == 0 { Via::Git } else { Via::Api },
            word,
            place,
            number: index as u64 + 2 + 100 * (seed % 1000),
            after_ms: random.u64(0..1500),
        })
        .collect()
}
