//! Asking again: a few times, each after a longer pause, and never without end.

use std::thread;
use std::time::Duration;

use crate::error::Result;

/// So often one thing is asked for in all.
pub(super) const TRIES: u32 = 4;
/// Before the second try; each further pause is four times as long.
const PAUSE: Duration = Duration::from_millis(50);

/// The pause after so many tries.
pub(super) fn pause_after(tries: u32) -> Duration {
    PAUSE * 4u32.pow(tries.clamp(1, TRIES) - 1)
}

/// Does it, and again while what is in its way may pass.
pub(super) fn persistently<T>(mut work: impl FnMut() -> Result<T>) -> Result<T> {
    for tries in 1..TRIES {
        match work() {
            Err(error) if error.is_passing() => thread::sleep(pause_after(tries)),
            done => return done,
        }
    }
    work()
}
