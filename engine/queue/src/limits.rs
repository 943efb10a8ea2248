//! The lane's bounds, each with its reason.

/// A lease that its runner has not shown a sign of life under yet, in milliseconds: three of the first
/// renewal's 2 s and two for the network. An answer that reached nobody costs this.
pub const FIRST_LEASE_MS: u64 = 8_000;
/// A lease after a renewal, in milliseconds: ten renewals of a runner that renews every 5 s, and ten
/// seconds for the network.
pub const LEASE_MS: u64 = 60_000;
/// A renewal that would lengthen a lease by less is not stored, in milliseconds.
pub const LEASE_STEP_MS: u64 = 15_000;
/// Leases of one run that may be lost before the run counts as without result.
pub const LOST_LEASES_MAX: u32 = 3;
/// Runs without a complete result on one tree before that is the verdict.
pub const INCOMPLETE_RUNS_MAX: usize = 3;
/// Red runs on one tree that prove it red.
pub const RED_RUNS: usize = 2;
/// Red runs on one tree that prove it red where only tests fail that are known as flaky, or never
/// the same ones.
pub const RED_RUNS_FLAKY: usize = 5;
/// How often landing may fail for a change before it is put into quarantine.
pub const FAILURES_MAX: u32 = 5;
/// How long a lane whose main is not green waits before it tries main again, in milliseconds.
pub const MAIN_RETRY_MS: u64 = 600_000;
/// How long a change that was replaced while it was aboard lets all others go first, in
/// milliseconds: the ones ahead of it do not start again because of it.
pub const CHURN_WAIT_MS: u64 = 600_000;
/// Trees known to be green that are remembered.
pub const GREEN_TREES_MAX: usize = 512;
/// Landed changes that are remembered in order, to name what came in since a base.
pub const LANDINGS_KEPT: usize = 1_000;
/// Ended runs that are shown.
pub const RUNS_KEPT: usize = 50;
/// Names of flaky tests that are remembered.
pub const FLAKY_TESTS_MAX: usize = 500;
/// Bytes of facts after which a train closes: a tenth below the limit of one fact, for what the
/// request has besides edits.
pub const TRAIN_FACT_BYTES_MAX: usize = yard_common::limits::FACT_BYTES_MAX / 10 * 9;
/// Before a landing call without answer is repeated, in milliseconds.
pub const CALL_RETRY_MS: u64 = 1_000;
/// Paths of one landed change that are remembered, to name rivals: 1,000 landings with 100 paths of
/// 50 bytes are 5 MB.
pub const TOUCHED_PATHS_MAX: usize = 100;
/// A message that nobody takes up is sent again after this, in milliseconds, doubled each time: a queue
/// that works takes a second, one that is behind must not be filled further.
pub const PICKUP_MS: u64 = 20_000;
/// How often that is doubled: to 20 s x 64.
pub const PICKUP_DOUBLINGS_MAX: u32 = 6;
/// The longest that one who took up a replay may say it needs, in milliseconds.
pub const REPLAY_MS: u64 = 600_000;
/// How often one replay is put into the queue: some 40 minutes of a queue that loses everything.
pub const REPLAY_ASKS_MAX: u32 = 7;
/// Changes that a model is shown as rivals, at most.
pub const RIVALS_MAX: usize = 10;
/// A change whose replay has collided again so often reserves its paths for the next one.
pub const RESERVE_AFTER: u32 = 2;
/// How long such a reservation lasts, in milliseconds: one answer of a model and one train.
pub const RESERVE_MS: u64 = 900_000;

const _: () = assert!(RED_RUNS <= RED_RUNS_FLAKY);
const _: () = assert!(FIRST_LEASE_MS + LEASE_STEP_MS < LEASE_MS, "the first renewal is always stored");
