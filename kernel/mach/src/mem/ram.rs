//! The frames of this machine: zones behind a lock, small caches on each CPU.
//!
//! The machine has one node: the firmware's table of nodes (SRAT) is not read, and two
//! zones divide RAM at 4 GiB.

use core::ops::{Deref, DerefMut};
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use base::PAGE_BYTES;
use frames::{
    Backing, CacheStats, Extent, Frame, FrameNo, FrameTable, LocalFrames, Node, Reach, Request,
    Urgency, ZONES_MAX, ZoneStats, Zones,
};

use super::direct;
use crate::cpu::{self, MAX_CPUS};
use crate::sync::{Once, Spin, SpinGuard};

static TABLE: Once<FrameTable> = Once::new();
static ZONES: Spin<Zones> = Spin::new(Zones::new());
static CACHES: [LocalFrames; MAX_CPUS] = [const { LocalFrames::new() }; MAX_CPUS];

/// Frames handed to the allocator since the start.
static TOTAL: AtomicU64 = AtomicU64::new(0);
/// Free frames in the zones, as of the last time they were unlocked.
static FREE: AtomicU64 = AtomicU64::new(0);
/// Programs are refused frames: only the reserve is left.
static TIGHT: AtomicBool = AtomicBool::new(false);
/// Half of the reserve is gone, too: see [`is_short`].
static SHORT: AtomicBool = AtomicBool::new(false);

/// Frames that the idle loop zeroes before it looks for work again: a few microseconds.
const IDLE_SLICE: usize = 4;

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
    MemoryStats {
        total: TOTAL.load(Relaxed),
        free: FREE.load(Relaxed) + cache_stats().resting,
    }
}

/// What the caches of all CPUs together hold and did.
pub fn cache_stats() -> CacheStats {
    CACHES.iter().map(LocalFrames::stats).sum()
}

/// The zones that have RAM.
pub fn zones() -> impl Iterator<Item = ZoneStats> {
    let mut zones = [ZoneStats::default(); ZONES_MAX];
    let locked = ZONES.lock();
    zones
        .iter_mut()
        .zip(locked.stats())
        .for_each(|(slot, zone)| *slot = zone);
    drop(locked);
    zones.into_iter().filter(|zone| zone.managed > 0)
}

/// Whether the kernel's own memory runs out: programs should be refused what makes the
/// kernel keep more for them, since its small allocations can not fail.
#[inline(always)]
pub fn is_short() -> bool {
    SHORT.load(Relaxed)
}

/// What stands behind the caches.
struct Ram;

impl Backing for Ram {
    #[inline(always)]
    fn table(&self) -> &FrameTable {
        table()
    }

    fn zones(&self) -> impl DerefMut<Target = Zones> {
        Locked(ZONES.lock())
    }

    #[inline]
    fn zero(&self, frame: FrameNo) {
        // SAFETY: **Claim**: the frame is the caller's alone, **Direct** maps it.
        unsafe { direct::frame_pointer(frame).write_bytes(0, PAGE_BYTES) };
    }
}

/// The zones; says how much is left when they are unlocked.
struct Locked(SpinGuard<'static, Zones>);

impl Deref for Locked {
    type Target = Zones;

    fn deref(&self) -> &Zones {
        &self.0
    }
}

impl DerefMut for Locked {
    fn deref_mut(&mut self) -> &mut Zones {
        &mut self.0
    }
}

impl Drop for Locked {
    fn drop(&mut self) {
        let (free, reserve) = (self.0.free_frames(), self.0.reserve());
        FREE.store(free, Relaxed);
        TIGHT.store(free <= reserve, Relaxed);
        SHORT.store(free < reserve / 2, Relaxed);
    }
}

/// Says which frames there are; once, before anything else here. With `shuffle`, single
/// frames come in no order from now on, to find drivers that take them for contiguous.
pub(super) fn describe(table: FrameTable, shuffle: bool) {
    /// First frame behind 4 GiB, and behind all that the direct map can reach.
    const HIGH: FrameNo = 1 << 20;
    const END: FrameNo = 1 << 40;
    assert!(TABLE.set(table).is_ok(), "memory is described once");
    let mut zones = ZONES.lock();
    for span in [HIGH..END, 0..HIGH] {
        assert!(zones.add(Node(0), span).is_ok(), "two aligned zones");
    }
    drop(zones);
    for (cache, seed) in CACHES.iter().zip(1..).filter(|_| shuffle) {
        cache.shuffle(seed);
    }
}

/// The states of all frames.
#[inline(always)]
pub(super) fn table() -> &'static FrameTable {
    static NONE: FrameTable = FrameTable::new();
    TABLE.get().unwrap_or(&NONE)
}

/// Makes reserved frames allocatable.
pub(super) fn donate_frames(first: FrameNo, pages: u64) {
    let mut zones = Ram.zones();
    zones.donate(table(), first, pages);
    let total = zones.managed_frames();
    TOTAL.store(total, Relaxed);
    CACHES.iter().for_each(|cache| cache.fit(total));
}

/// This CPU's caches. By **Closed** nothing else runs on it meanwhile.
#[inline(always)]
fn mine() -> &'static LocalFrames {
    &CACHES[cpu::id().index() % MAX_CPUS]
}

/// One frame in use with one owner, any content.
#[inline]
pub(super) fn alloc_frame() -> Option<Frame> {
    mine().alloc(&Ram, Urgency::Critical)
}

/// As [`alloc_frame`], for memory that a program asked for: leaves the reserve alone.
#[inline]
pub(super) fn alloc_user_frame() -> Option<Frame> {
    mine().alloc(&Ram, Urgency::Ordinary)
}

/// As [`alloc_user_frame`], full of zeros.
#[inline]
pub(super) fn alloc_user_frame_zeroed() -> Option<Frame> {
    mine().alloc_zeroed(&Ram, Urgency::Ordinary)
}

/// Gives back a frame whose last owner is gone.
#[inline]
pub(super) fn free_frame(frame: Frame) {
    mine().free(&Ram, frame);
}

/// `pages` contiguous frames in `reach`, any content.
pub(super) fn alloc_extent(pages: u64, reach: Reach) -> Option<Extent> {
    let request = Request::new(pages, Urgency::Critical);
    mine().alloc_extent(&Ram, Request { reach, ..request })
}

/// `pages` contiguous frames, any content, for what a program caused: leaves the reserve
/// alone.
pub(super) fn alloc_user_extent(pages: u64) -> Option<Extent> {
    mine().alloc_extent(&Ram, Request::new(pages, Urgency::Ordinary))
}

/// Gives contiguous frames back. Not inlined: every drop of a box would have a copy.
#[inline(never)]
pub(super) fn free_extent(extent: Extent) {
    mine().free_extent(&Ram, extent);
}

/// What this CPU does for memory while it has nothing else to do: a bounded slice of it.
/// False if there is nothing; then the CPU may halt.
pub(crate) fn idle() -> bool {
    if TIGHT.load(Relaxed) && mine().stats().resting > 0 {
        mine().flush(&Ram);
    }
    let zeroed = (0..IDLE_SLICE).take_while(|_| mine().zero_one(&Ram));
    zeroed.count() > 0
}
