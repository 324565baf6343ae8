//! How the machine's memory is used, for a host that asks: as in `/proc/meminfo`, but without what the host has back.

use base::PAGE_BYTES;
use hal::MemoryUse;

/// A look at it.
pub fn look() -> MemoryUse {
    let bytes = |frames: u64| frames * PAGE_BYTES as u64;
    let memory = mach::mem::stats();
    let files = kernel_pagecache::counts();
    let clean = files.pages.saturating_sub(files.dirty);
    let held = mm::balloon::counts().held;
    let faults = mach::cpu::all().iter().map(sched::faults_of);
    let [minor, major] = faults.fold([0; 2], |sums, [minor, major]| {
        [sums[0] + minor, sums[1] + major]
    });
    MemoryUse {
        total_bytes: bytes(memory.total.saturating_sub(held)),
        free_bytes: bytes(memory.free),
        available_bytes: bytes(memory.free + clean) + mach::mem::resting_bytes(),
        cache_bytes: bytes(mm::page_count() + files.pages),
        major_faults: major,
        minor_faults: minor,
    }
}
