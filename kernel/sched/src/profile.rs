//! Telling the profiler where threads wait, and who wakes them (`mach::profile`).
//!
//! The host leaves this module's frames out of the stacks that it shows.

use dispatch::State;

use crate::{Entity, current};

/// Parks by `park`, and records how long and where.
#[cold]
pub(crate) fn record_park(park: impl FnOnce() -> bool) -> bool {
    let start = mach::time::now();
    let woken = park();
    let waited = mach::time::now().since(start);
    if current().id() != 0 {
        mach::profile::record_wait(waited.as_nanos());
    }
    woken
}

/// Records who wakes `thread`, if it waits.
#[cold]
pub(crate) fn record_wake(thread: &Entity) {
    if matches!(thread.state(), State::Parking | State::Parked) {
        mach::profile::record_wake(thread.id());
    }
}
