//! What `umastat` reads, from outside, while the program runs or from its core file.
//!
//! The exported symbol `umem_statistics` describes where the magazines of each thread lie and
//! what each depot has, and where the list of the caches starts that the program made. A reader sees numbers that change meanwhile, so sums may be off by
//! what happened during the look; nothing in the program waits for it.
//!
//! The layout is read by `user/umastat`: a change of it changes [`VERSION`].

use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed, Ordering::Release};

use slab::{DepotStats, Geometry};

use crate::sizes::{PLACES, SizeClass};

/// Says that the table is one, and which.
const VERSION: u64 = 0x756d_656d_0000_0002;
/// Threads that are listed; more run as well.
const THREADS: usize = 512;

/// Bytes of a cache's name, as in libumem.
const NAME: usize = 32;

/// One cache.
#[repr(C)]
pub struct Row {
    /// Bytes of the longest request that it serves.
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

/// One cache that the program made. It is part of a list whose members stay.
#[repr(C)]
pub struct Made {
    next: AtomicUsize,
    /// 1 while the cache exists.
    is_there: AtomicU64,
    /// The name, eight bytes in each word.
    name: [AtomicU64; NAME / 8],
    row: Row,
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
    /// The first member of the list.
    made: AtomicUsize,
    rows: [Row; PLACES + 1],
    listed: [Thread; THREADS],
}

/// The table.
#[unsafe(no_mangle)]
pub static umem_statistics: Statistics = Statistics {
    version: VERSION,
    classes: PLACES as u64,
    threads: THREADS as u64,
    cap: AtomicU64::new(0),
    mapped: AtomicU64::new(0),
    used: AtomicU64::new(0),
    made: AtomicUsize::new(0),
    rows: [const { Row::new() }; PLACES + 1],
    listed: [const {
        Thread {
            number: AtomicU64::new(0),
            magazines: AtomicUsize::new(0),
        }
    }; THREADS],
};

impl Row {
    const fn new() -> Self {
        Self {
            object_bytes: AtomicU64::new(0),
            slab_bytes: AtomicU64::new(0),
            slabs: AtomicU64::new(0),
            total: AtomicU64::new(0),
            free: AtomicU64::new(0),
            taken: AtomicU64::new(0),
            failed: AtomicU64::new(0),
        }
    }

    fn note(&self, object_bytes: usize, stats: DepotStats, geometry: &Geometry) {
        let total = stats.slabs * geometry.objects();
        self.object_bytes.store(object_bytes as u64, Relaxed);
        self.slab_bytes.store(geometry.slab_bytes() as u64, Relaxed);
        self.slabs.store(stats.slabs as u64, Relaxed);
        self.total.store(total as u64, Relaxed);
        self.free.store(stats.free as u64, Relaxed);
        self.taken.store(stats.taken, Relaxed);
        self.failed.store(stats.failed, Relaxed);
    }
}

impl Made {
    /// A member of no list, for a cache that does not exist yet.
    pub const fn new() -> Self {
        Self {
            next: AtomicUsize::new(0),
            is_there: AtomicU64::new(0),
            name: [const { AtomicU64::new(0) }; NAME / 8],
            row: Row::new(),
        }
    }

    /// Makes it the first of the list. The lock of the caches is held.
    pub fn list(&'static self) {
        let first = umem_statistics.made.load(Relaxed);
        self.next.store(first, Relaxed);
        let own = core::ptr::from_ref(self).addr();
        umem_statistics.made.store(own, Release);
    }

    /// Notes that its cache exists, under a name that is cut off at 31 bytes.
    pub fn begin(&self, name: &[u8]) {
        let mut bytes = [0; NAME];
        let length = name.len().min(NAME - 1);
        bytes[..length].copy_from_slice(&name[..length]);
        for (word, bytes) in self.name.iter().zip(bytes.as_chunks().0) {
            word.store(u64::from_le_bytes(*bytes), Relaxed);
        }
        self.is_there.store(1, Relaxed);
    }

    /// Notes that its cache is gone.
    pub fn end(&self) {
        self.is_there.store(0, Relaxed);
    }

    /// Notes what its cache has. The lock of the cache is held.
    pub fn note(&self, object_bytes: usize, stats: DepotStats, geometry: &Geometry) {
        self.row.note(object_bytes, stats, geometry);
    }
}

/// Notes what a depot has. Its lock is held.
pub fn note_depot(class: SizeClass, stats: DepotStats, geometry: &Geometry) {
    umem_statistics.rows[class.index()].note(class.limit(), stats, geometry);
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
