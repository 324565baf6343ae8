//! When memory that lies idle returns to the system.
//!
//! There is no thread for it: slow paths look at the clock, and one of them does the work
//! when an interval is over. Objects that no thread fetched from a depot for an interval
//! return to their slabs, and units that were free for an interval lose their frames.

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::{depots, settings, spans, sys};

static NEXT_MS: AtomicU64 = AtomicU64::new(0);

/// Does the work if an interval is over. The caller holds no lock.
pub fn tick() {
    let (now, next) = (sys::milliseconds(), NEXT_MS.load(Relaxed));
    if now < next {
        return;
    }
    let is_ours = NEXT_MS.compare_exchange(
        next,
        now.saturating_add(settings::reap_ms()),
        Relaxed,
        Relaxed,
    );
    if is_ours.is_ok() && next != 0 {
        depots::reap();
        spans::lock().discard(false);
    }
}

/// Returns everything that is free. The caller holds no lock.
pub fn purge() {
    depots::purge();
    spans::lock().discard(true);
}
