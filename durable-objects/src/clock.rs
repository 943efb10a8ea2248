//! The clock, read once at the start of an event; the engine gets the time as an argument.

/// Now. On the platform time stands still during an event's synchronous work.
#[cfg(target_arch = "wasm32")]
#[must_use]
pub fn now() -> yard_common::Millis {
    yard_common::Millis(worker::Date::now().as_millis())
}
