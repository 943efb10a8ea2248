//! Signatures of runs: mac = HMAC-SHA256(key = the whole token's text, the run's signed text).

use hmac::{Hmac, Mac as _};
use sha2::Sha256;
use yard_common::id::{hex, unhex};
use yard_common::landing::SignedRun;

/// Says whether a run was signed by a runner of this platform.
///
/// The host rebuilds the token from the public part that the run names and from the platform's
/// secret, looks whether it may report runs here and is not revoked, and asks [`is_signed`].
pub trait Verifier {
    /// Is the run's mac the one of a valid runner token?
    fn run_is_signed(&self, run: &SignedRun) -> bool;
}

fn keyed(token: &str, run: &SignedRun) -> Option<Hmac<Sha256>> {
    let mut mac = Hmac::<Sha256>::new_from_slice(token.as_bytes()).ok()?;
    mac.update(run.signed_text().as_bytes());
    Some(mac)
}

/// The mac of a run under a token, 64 hex digits; the run's own `mac` field does not count.
#[must_use]
pub fn sign(token: &str, run: &SignedRun) -> String {
    keyed(token, run).map(|mac| hex(&mac.finalize().into_bytes())).unwrap_or_default()
}

/// Is the run's mac the one that this token makes? Compared in constant time.
#[must_use]
pub fn is_signed(token: &str, run: &SignedRun) -> bool {
    match (keyed(token, run), unhex(&run.mac)) {
        (Some(mac), Some(given)) => mac.verify_slice(&given).is_ok(),
        _ => false,
    }
}
