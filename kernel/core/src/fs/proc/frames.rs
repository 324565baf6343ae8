//! What the frame allocator says of itself: `/proc/buddyinfo` and its lines in
//! `/proc/vmstat`.

use alloc::string::String;
use core::fmt::{Result, Write};

/// Free blocks of each order, by zone, as Linux prints them. What rests in the caches of
/// CPUs is in no block.
pub(super) fn buddyinfo(text: &mut String) -> Result {
    for zone in mach::mem::zone_stats() {
        let name = if zone.is_low { "DMA32" } else { "Normal" };
        write!(text, "Node {}, zone {name:>8} ", zone.node.0)?;
        for blocks in zone.blocks {
            write!(text, "{blocks:>6} ")?;
        }
        text.push('\n');
    }
    Ok(())
}

/// Lines of `/proc/vmstat`: what is free, and what the caches of all CPUs did.
pub(super) fn counters(text: &mut String) -> Result {
    let caches = mach::mem::cache_stats();
    for (name, count) in [
        ("nr_free_pages", mach::mem::stats().free),
        ("frames_resting", caches.resting),
        ("frames_requests", caches.requests),
        (
            "frames_cache_hits",
            caches.requests.saturating_sub(caches.misses),
        ),
        ("frames_refills", caches.misses),
        ("frames_returns", caches.returns),
        ("frames_zeroed_idle", caches.zeroed_idle),
        ("frames_zeroed_now", caches.zeroed_now),
        ("frames_found_zero", caches.found_zero),
    ] {
        writeln!(text, "{name} {count}")?;
    }
    Ok(())
}
