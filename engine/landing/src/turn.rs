//! Landing turns: a lane that was refused because main had moved lands next, in order of asking.
//!
//! A turn is a lease that covers one assembly and test. It ends at an answer or at its time; the
//! next lane in the queue has it from then on. All is computed from the stored queue and the time.

use yard_common::fact::Turns;
use yard_common::{LaneName, Millis};

use crate::mutant::{Mutant, off};

/// The turns at `now`: leases whose time is over are passed on.
#[must_use]
pub fn current(turns: &Turns, now: Millis) -> Turns {
    let mut turns = turns.clone();
    while !turns.queue.is_empty() && turns.until <= now {
        turns.queue.remove(0);
        // The next lane's lease starts where the last one ended, also where nobody looked then.
        turns.until = turns.until.plus(turns.span.max(1));
    }
    turns
}

/// The lane that holds the turn at `now`, and when its lease ends.
#[must_use]
pub fn holder(turns: &Turns, now: Millis) -> Option<(LaneName, Millis)> {
    let turns = current(turns, now);
    turns.queue.first().map(|lane| (lane.clone(), turns.until))
}

/// The turns after `lane` was refused because main had moved: it stands last in the queue.
#[must_use]
pub fn ask(turns: &Turns, lane: &LaneName, now: Millis, span: u64) -> Turns {
    let mut turns = current(turns, now);
    if turns.queue.first() == Some(lane) {
        turns = finish(&turns, lane, now);
    }
    if !turns.queue.contains(lane) {
        if off(Mutant::TurnOrder) && !turns.queue.is_empty() {
            turns.queue.insert(1, lane.clone());
        } else {
            turns.queue.push(lane.clone());
        }
    }
    turns.span = span;
    if turns.queue.len() == 1 {
        turns.until = now.plus(span);
    }
    turns
}

/// The turns after `lane` got an answer: its turn is over, and the next lane's begins.
#[must_use]
pub fn finish(turns: &Turns, lane: &LaneName, now: Millis) -> Turns {
    let mut turns = current(turns, now);
    if turns.queue.first() == Some(lane) {
        turns.until = now.plus(turns.span);
    }
    turns.queue.retain(|other| other != lane);
    turns
}
