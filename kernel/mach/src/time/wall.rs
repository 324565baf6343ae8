//! What the clock on the wall shows: an offset to the monotonic clock.

use core::sync::atomic::{AtomicU64, Ordering};

use base::{Duration, Instant};

static OFFSET: AtomicU64 = AtomicU64::new(0);

/// Time since 1970 at the moment the machine started.
pub fn wall_clock_offset() -> Duration {
    Duration::from_nanos(OFFSET.load(Ordering::Relaxed))
}

/// Sets the wall clock: it is `since_1970` now.
pub fn set_wall_clock(since_1970: Duration) {
    let now = super::now().since(Instant::START);
    let offset = (since_1970 - now).as_nanos();
    OFFSET.store(offset, Ordering::Relaxed);
    crate::vdso::publish();
}
