//! The frames of this machine: one buddy behind a lock, a small cache on each CPU.

use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed};

use frames::{Buddy, CACHE_BATCH, Extent, FrameCache, FrameNo, FrameTable};

use super::own::{Own, own};
use crate::cpu::{self, MAX_CPUS};
use crate::sync::{Once, Spin};

static TABLE: Once<FrameTable> = Once::new();
static BUDDY: Spin<Buddy> = Spin::new(Buddy::new());
static CACHES: Own<FrameCache> = own!(FrameCache::new());
/// Frames that rest in each CPU's cache, for [`stats`].
static RESTING: [AtomicU32; MAX_CPUS] = [const { AtomicU32::new(0) }; MAX_CPUS];
/// Frames handed to the allocator since the start.
static TOTAL: AtomicU64 = AtomicU64::new(0);
/// Frames that programs can not take: the kernel's own small allocations come from
/// them when memory is short, so that it can report and kill instead of failing.
static RESERVE: AtomicU64 = AtomicU64::new(0);

/// Half of the reserve is gone, too: see [`is_short`].
static SHORT: AtomicBool = AtomicBool::new(false);

/// One frame in this many is reserved for the kernel.
const RESERVE_SHARE: u64 = 64;

/// What memory there is, in frames of 4 KiB.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryStats {
    /// Frames that the allocator manages.
    pub total: u64,
    /// Frames that are free.
    pub free: u64,
}

/// Frames in all and free ones, exact while other CPUs rest.
pub fn stats() -> MemoryStats {
    let resting: u64 = RESTING
        .iter()
        .map(|count| u64::from(count.load(Relaxed)))
        .sum();
    let free = BUDDY.lock().free_frames() + resting;
    MemoryStats {
        total: TOTAL.load(Relaxed),
        free,
    }
}

/// Whether the kernel's own memory runs out: programs should be refused what makes the
/// kernel keep more for them, since its small allocations can not fail.
#[inline(always)]
pub fn is_short() -> bool {
    SHORT.load(Relaxed)
}

/// Compares what is free with the reserve after a batch of frames has moved.
fn note_shortage(buddy: &Buddy) {
    SHORT.store(buddy.free_frames() < RESERVE.load(Relaxed) / 2, Relaxed);
}

/// Says which frames there are; once, before anything else here.
pub(super) fn describe(table: FrameTable) {
    assert!(TABLE.set(table).is_ok(), "memory is described once");
}

/// The states of all frames.
#[inline(always)]
pub(super) fn table() -> &'static FrameTable {
    static NONE: FrameTable = FrameTable::new();
    TABLE.get().unwrap_or(&NONE)
}

/// Makes reserved frames allocatable.
pub(super) fn donate_frames(first: FrameNo, pages: u64) {
    let taken = BUDDY.lock().donate(table(), first, pages);
    let total = TOTAL.fetch_add(taken, Relaxed) + taken;
    RESERVE.store(total / RESERVE_SHARE, Relaxed);
}

fn note_resting(cache: &FrameCache) {
    if let Some(count) = RESTING.get(cpu::id().index()) {
        count.store(cache.len() as u32, Relaxed);
    }
}

/// One frame in use with one owner, any content.
#[inline]
pub(super) fn alloc_frame() -> Option<FrameNo> {
    alloc_above(0)
}

/// As [`alloc_frame`], for memory that a program asked for: leaves the reserve alone.
#[inline]
pub(super) fn alloc_user_frame() -> Option<FrameNo> {
    alloc_above(RESERVE.load(Relaxed))
}

#[inline]
fn alloc_above(reserve: u64) -> Option<FrameNo> {
    CACHES.with(|cache| {
        if cache.is_empty() {
            refill(cache, reserve);
        }
        let frame = cache.pop();
        note_resting(cache);
        frame
    })
}

#[cold]
#[inline(never)]
fn refill(cache: &mut FrameCache, reserve: u64) {
    let mut buddy = BUDDY.lock();
    for _ in 0..CACHE_BATCH {
        if buddy.free_frames() <= reserve {
            break;
        }
        let Some(frame) = buddy.alloc_one(table()) else {
            break;
        };
        if let Err(frame) = cache.push(frame) {
            buddy.free_one(table(), frame);
        }
    }
    note_shortage(&buddy);
}

/// Gives back a frame whose last owner is gone.
#[inline]
pub(super) fn free_frame(frame: FrameNo) {
    CACHES.with(|cache| {
        if let Err(frame) = cache.push(frame) {
            drain(cache, frame);
        }
        note_resting(cache);
    });
}

#[cold]
#[inline(never)]
fn drain(cache: &mut FrameCache, frame: FrameNo) {
    let mut buddy = BUDDY.lock();
    buddy.free_one(table(), frame);
    for _ in 0..CACHE_BATCH {
        let Some(frame) = cache.pop() else { break };
        buddy.free_one(table(), frame);
    }
    note_shortage(&buddy);
}

/// `pages` contiguous frames, any content.
pub(super) fn alloc_extent(pages: u64) -> Option<Extent> {
    let mut buddy = BUDDY.lock();
    let extent = buddy.alloc(table(), pages);
    note_shortage(&buddy);
    extent
}

/// As [`alloc_extent`], for what a program caused: leaves the reserve alone.
pub(super) fn alloc_user_extent(pages: u64) -> Option<Extent> {
    let mut buddy = BUDDY.lock();
    let spare = buddy.free_frames().checked_sub(RESERVE.load(Relaxed))?;
    (spare >= pages)
        .then(|| buddy.alloc(table(), pages))
        .flatten()
}

/// Gives contiguous frames back.
pub(super) fn free_extent(extent: Extent) {
    let mut buddy = BUDDY.lock();
    buddy.free(table(), extent);
    note_shortage(&buddy);
}
