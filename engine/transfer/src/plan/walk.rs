//! The commits that are wanted and not known: two colours painted down from the tips, newest first.
//!
//! As git's `limit_list`: the walk ends a little after only known commits older than every wanted one are
//! left, so a clock that went back can make it send more than needed, never less.

use std::collections::{BTreeSet, BinaryHeap};

use yard_common::{ObjectId, Refusal};

use super::history::History;
use super::ids::{IdMap, IdSet};
use super::{Step, World};

const WANTED: u8 = 1;
const KNOWN: u8 = 2;
/// The same two colours once they have been handed on to the parents.
const HANDED_ON: u8 = 2;

/// Known commits looked at beyond the end, should a clock have gone back; never asked for.
const SLOP: u32 = 64;

/// The walk.
#[derive(Debug)]
pub(super) struct Walk {
    colours: IdMap<u8>,
    tips_known: Vec<ObjectId>,
    pending: Vec<ObjectId>,
    queue: BinaryHeap<(u64, ObjectId)>,
    any_known: bool,
    open_wanted: usize,
    oldest_wanted: u64,
    slop: u32,
    order: Vec<(u64, ObjectId)>,
}

impl Walk {
    pub(super) fn new(wants: impl Iterator<Item = ObjectId>, haves: impl Iterator<Item = ObjectId>) -> Self {
        let mut walk = Self {
            colours: IdMap::default(),
            tips_known: haves.collect(),
            pending: Vec::new(),
            queue: BinaryHeap::new(),
            any_known: false,
            open_wanted: 0,
            oldest_wanted: u64::MAX,
            slop: SLOP,
            order: Vec::new(),
        };
        walk.any_known = !walk.tips_known.is_empty();
        wants.for_each(|id| walk.paint(id, WANTED));
        walk.tips_known.clone().into_iter().for_each(|id| walk.paint(id, KNOWN));
        walk
    }

    fn paint(&mut self, id: ObjectId, colour: u8) {
        let entry = self.colours.entry(id).or_default();
        let before = *entry & 3;
        let after = before | colour;
        if after == before {
            return;
        }
        let handed_on = *entry >> HANDED_ON;
        *entry |= colour;
        if after == WANTED {
            self.open_wanted += 1;
        } else if before == WANTED && handed_on == 0 {
            self.open_wanted -= 1;
        }
        self.pending.push(id);
    }

    pub(super) fn step(
        &mut self,
        history: &mut History,
        grafts: &IdSet,
        world: &World<'_>,
    ) -> Result<Step<()>, Refusal> {
        loop {
            let missing = history.load_all(world, self.pending.iter())?;
            self.pending.retain(|id| match history.get(id) {
                Some(links) => {
                    self.queue.push((links.committed_at, *id));
                    false
                }
                None => true,
            });
            // Without known commits the order does not matter: go on, and ask for the whole frontier.
            if !missing.is_empty() && (self.any_known || self.queue.is_empty()) {
                let over = self.slop < SLOP;
                return Ok(if over { Step::Done(()) } else { Step::Need(missing) });
            }
            if self.queue.is_empty() {
                return Ok(Step::Done(()));
            }
            while let Some((time, id)) = self.queue.pop() {
                if self.is_over(time) {
                    return Ok(Step::Done(()));
                }
                self.hand_on(history, grafts, time, id);
                if self.any_known {
                    break;
                }
            }
        }
    }

    /// Is nothing left to find, when the newest commit left was made at this time?
    fn is_over(&mut self, time: u64) -> bool {
        if self.open_wanted > 0 || time >= self.oldest_wanted {
            self.slop = SLOP;
            return false;
        }
        self.slop -= 1;
        self.slop == 0 || self.oldest_wanted == u64::MAX
    }

    fn hand_on(&mut self, history: &History, grafts: &IdSet, time: u64, id: ObjectId) {
        let Some(entry) = self.colours.get_mut(&id) else { return };
        let colours = *entry & 3;
        if *entry >> HANDED_ON == colours {
            return;
        }
        let first_time = *entry >> HANDED_ON == 0;
        *entry = colours | (colours << HANDED_ON);
        if colours == WANTED {
            self.open_wanted -= 1;
            self.oldest_wanted = self.oldest_wanted.min(time);
            if first_time {
                self.order.push((time, id));
            }
        }
        if grafts.contains(&id) {
            return;
        }
        if let Some(links) = history.get(&id) {
            links.parents.iter().for_each(|parent| self.paint(*parent, colours));
        }
    }

    fn is_known(&self, id: &ObjectId) -> bool {
        self.colours.get(id).is_some_and(|colours| colours & KNOWN != 0)
    }

    /// The commits to send, newest first, children before parents.
    pub(super) fn wanted(&self) -> Vec<ObjectId> {
        let mut wanted: Vec<_> = self.order.iter().filter(|(_, id)| !self.is_known(id)).collect();
        wanted.sort_by_key(|(time, _)| std::cmp::Reverse(*time));
        wanted.into_iter().map(|(_, id)| *id).collect()
    }

    /// Known commits whose trees are likely to be near the wanted ones: parents first, then known tips.
    pub(super) fn edges(&self, history: &History) -> Vec<ObjectId> {
        let mut seen = BTreeSet::new();
        let parents = self
            .wanted()
            .into_iter()
            .filter_map(|id| history.get(&id))
            .flat_map(|links| links.parents.iter());
        let tips = self.tips_known.iter();
        parents.chain(tips).filter(|id| self.is_known(id) && seen.insert(**id)).copied().collect()
    }
}
