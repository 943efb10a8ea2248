//! When an object's alarm is set: the rules of the classes in `worker`, and of whoever plays the platform.
//!
//! The platform holds one alarm an object; setting it again moves it. What an instance remembers of it (`armed`)
//! is lost with the instance, and an alarm may be lost: one that is long overdue is set again.

use yard_common::Millis;

/// A lane's alarm is set to this before it works, in milliseconds from now.
pub const LANE_REARM_MS: u64 = 30_000;
/// A repository's, likewise; also when its tables fail.
pub const REPOSITORY_REARM_MS: u64 = 5_000;
/// When a lane whose tables fail is woken again, in milliseconds.
pub const LANE_AGAIN_MS: u64 = 1_000;
/// An alarm that is overdue by this, in milliseconds, is set again.
const LOST_MS: u64 = 5_000;
/// An alarm later than this, in milliseconds from now, does not keep an earlier one from being set.
const SOON_MS: u64 = 60_000;

/// Should a lane's alarm be set to `due`, where one is remembered?
#[must_use]
pub fn lane(armed: Option<Millis>, due: Millis, now: Millis) -> bool {
    armed.is_none_or(|armed| armed > due || now.since(armed) >= LOST_MS)
}

/// Is a repository's remembered alarm enough, so that nothing need be looked at?
#[must_use]
pub fn repository_rests(armed: Option<Millis>, now: Millis) -> bool {
    armed.is_some_and(|armed| now.since(armed) < LOST_MS)
}

/// Should a repository's alarm be set to `due`, where the platform holds `soon`?
#[must_use]
pub fn repository(soon: Option<Millis>, due: Millis, now: Millis) -> bool {
    soon.is_none_or(|soon| soon > due || now.since(soon) > LOST_MS)
}

/// What is remembered of a repository's alarm in so many milliseconds.
#[must_use]
pub fn remembered(now: Millis, due_ms: u64) -> Option<Millis> {
    (due_ms < SOON_MS).then(|| now.plus(due_ms))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_earlier_alarm_stands_a_later_one_is_moved_and_a_lost_one_is_set_again() {
        let (due, now) = (Millis(20_000), Millis(10_000));
        for (armed, set) in [(None, true), (Some(15_000), false), (Some(20_000), false), (Some(20_001), true)]
        {
            assert_eq!(lane(armed.map(Millis), due, now), set, "{armed:?}");
            assert_eq!(repository(armed.map(Millis), due, now), set, "{armed:?}");
        }
        let lost = Some(Millis(4_000));
        assert!(lane(lost, due, now) && repository(lost, due, now) && !repository_rests(lost, now));
        assert!(repository_rests(Some(Millis(5_001)), now) && !repository_rests(None, now));
        assert_eq!(remembered(now, 59_999), Some(Millis(69_999)));
        assert_eq!(remembered(now, 60_000), None);
    }
}
