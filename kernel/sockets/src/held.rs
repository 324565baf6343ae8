//! How many sockets programs hold, for /proc/net/sockstat.

use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// A figure of the machine, whatever the family.
static HELD: AtomicUsize = AtomicUsize::new(0);

/// Counts one socket for as long as it lives; a member of each kind of socket.
pub struct Held(());

impl Held {
    /// One more.
    pub fn one() -> Self {
        HELD.fetch_add(1, Relaxed);
        Self(())
    }

    /// How many there are.
    pub fn count() -> usize {
        HELD.load(Relaxed)
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        HELD.fetch_sub(1, Relaxed);
    }
}
