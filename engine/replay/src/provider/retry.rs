//! When a failed call is made again.

use super::{ProviderFault, Retry};

/// Calls of one question within one delivery of its message.
pub const CALLS_MAX: u32 = 3;
/// The longest pause within a delivery, in milliseconds: others of its batch are waiting for it.
const WITHIN_MS_MAX: u64 = 5_000;
/// The first pause within a delivery, in milliseconds; each further one is four times as long.
const WITHIN_MS: u64 = 500;
/// The shortest pause between deliveries, in milliseconds.
const BETWEEN_MS: u64 = 10_000;
/// How old a message gets, in milliseconds: the lane waits ten minutes for an answer. Deliveries at 0, 10, 30, 90
/// and 270 s are four retries of the five that wrangler.toml allows.
pub const AGE_MS_MAX: u64 = 480_000;

/// What to do after a failed call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// Call again after so many milliseconds.
    Within(u64),
    /// Have the message delivered again after so many seconds.
    Later(u32),
    /// It has failed.
    Stop,
}

/// What to do after `calls` (1 or more) failed calls, for a message that was sent `age` milliseconds ago (its
/// consumer is told no number of attempts). `salt` spreads those that failed together: up to a quarter more.
#[must_use]
pub fn next(fault: &ProviderFault, calls: u32, age: u64, salt: u64) -> Next {
    let Retry::After(asked) = fault.retry else { return Next::Stop };
    let spread = |pause: u64| pause + pause * (salt % 256) / 1024;
    let pause = WITHIN_MS.saturating_mul(4u64.saturating_pow(calls.saturating_sub(1)));
    let pause = spread(pause.min(WITHIN_MS_MAX)).max(asked);
    if calls < CALLS_MAX && pause <= WITHIN_MS_MAX {
        return Next::Within(pause);
    }
    let pause = spread(age.saturating_mul(2).clamp(BETWEEN_MS, AGE_MS_MAX)).max(asked);
    if age.saturating_add(pause) > AGE_MS_MAX {
        return Next::Stop;
    }
    Next::Later(u32::try_from(pause.div_ceil(1000)).unwrap_or(u32::MAX))
}
