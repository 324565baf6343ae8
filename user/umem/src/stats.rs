//! What `umastat` reads, from outside, while the program runs or from its core file.
//!
//! The exported symbol `umem_statistics` describes where the magazines of each thread lie and
//! what each depot has. A reader sees numbers that change meanwhile, so sums may be off by
//! what happened during the look; nothing in the program waits for it.
//!
//! The layout is read by `user/umastat`: a change of it changes [`VERSION`].

use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

use slab::{CLASSES, DepotStats};

/// Says that the table is one, and which.
const VERSION: u64 = 0x756d_656d_0000_0001;
/// Threads that are listed; more run as well.
const THREADS: usize = 512;

/// One cache.
#[repr(C)]
struct Row {
    object_bytes: AtomicU64,
    slab_bytes: AtomicU64,
    slabs: AtomicU64,
    /// Objects in all slabs.
    total: AtomicU64,
    /// Objects that no thread has.
    free: AtomicU64,
    taken: AtomicU64,
    failed: AtomicU64,
}

/// One thread: its number, and where its magazines are (32 bytes each: top, floor).
#[repr(C)]
struct Thread {
    number: AtomicU64,
    magazines: AtomicUsize,
}

/// The whole table.
#[repr(C)]
pub struct Statistics {
    version: u64,
    classes: u64,
    threads: u64,
    /// Bytes that each thread may keep.
    cap: AtomicU64,
    /// Bytes of segments, and of spans in use in them.
    mapped: AtomicU64,
    used: AtomicU64,
    rows: [Row; CLASSES + 1],
    listed: [Thread; THREADS],
}

/// The table.
#[unsafe(no_mangle)]
pub static umem_statistics: Statistics = Statistics {
    version: VERSION,
    classes: CLASSES as u64,
    threads: THREADS as u64,
    cap: AtomicU64::new(0),
    mapped: AtomicU64::new(0),
    used: AtomicU64::new(0),
    rows: [const {
        Row {
            object_bytes: AtomicU64::new(0),
            slab_bytes: AtomicU64::new(0),
            slabs: AtomicU64::new(0),
            total: AtomicU64::new(0),
            free: AtomicU64::new(0),
            taken: AtomicU64::new(0),
            failed: AtomicU64::new(0),
        }
    }; CLASSES + 1],
    listed: [const {
        Thread {
            number: AtomicU64::new(0),
            magazines: AtomicUsize::new(0),
        }
    }; THREADS],
};

/// Notes what a depot has. Its lock is held.
pub fn note_depot(class: usize, stats: DepotStats, geometry: &slab::Geometry) {
    let row = &umem_statistics.rows[class];
    row.object_bytes
        .store(geometry.object_bytes() as u64, Relaxed);
    row.slab_bytes.store(geometry.slab_bytes() as u64, Relaxed);
    row.slabs.store(stats.slabs as u64, Relaxed);
    row.total
        .store((stats.slabs * geometry.objects()) as u64, Relaxed);
    row.free.store(stats.free as u64, Relaxed);
    row.taken.store(stats.taken, Relaxed);
    row.failed.store(stats.failed, Relaxed);
}

/// Notes what the spans hold. Their lock is held.
pub fn note_spans(mapped: usize, used: usize) {
    umem_statistics.mapped.store(mapped as u64, Relaxed);
    umem_statistics.used.store(used as u64, Relaxed);
}

/// Lists a thread that starts to keep objects in the magazines at `address`.
pub fn add_thread(address: usize, cap: usize) {
    umem_statistics.cap.store(cap as u64, Relaxed);
    // SAFETY: asks for the thread's number.
    let number = unsafe { libc::gettid() } as u64;
    for place in &umem_statistics.listed {
        let is_ours = place
            .magazines
            .compare_exchange(0, address, Relaxed, Relaxed);
        if is_ours.is_ok() {
            place.number.store(number, Relaxed);
            return;
        }
    }
}

/// Takes a thread from the list.
pub fn remove_thread(address: usize) {
    let mut listed = umem_statistics.listed.iter();
    if let Some(place) = listed.find(|place| place.magazines.load(Relaxed) == address) {
        place.magazines.store(0, Relaxed);
    }
}
