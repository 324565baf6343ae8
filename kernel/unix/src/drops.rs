//! Why messages did not arrive where they were sent.

use mach::sync::{Lazy, Spin};

probes::counters! {
    /// Why a message is in no inbox.
    pub enum DropReason => Drops {
        /// The receiver's filter did not want it.
        Filtered = "unix_filtered",
    }
}

/// Of all Unix sockets, which belong to no network stack.
static DROPS: Lazy<Spin<Drops>> = Lazy::new(|| Spin::new(Drops::default()));

pub(super) fn count(reason: DropReason) {
    DROPS.lock().count(reason);
}

/// What was dropped so far, of all sockets.
pub fn drops() -> Drops {
    DROPS.lock().clone()
}
