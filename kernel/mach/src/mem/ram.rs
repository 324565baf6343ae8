//! The frames of this machine: zones by node and by the line at 4 GiB, each behind a lock,
//! and small caches on each CPU.

use core::ops::{Deref, DerefMut};
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed};

use base::{CpuId, PAGE_BYTES, PAGE_SHIFT, PhysAddr};
use frames::{
    Backing, CacheStats, Extent, Frame, FrameNo, FrameTable, LocalFrames, Node, Reach, Request,
    Urgency, ZONES_MAX, Zone, ZoneLock, ZoneStats, Zones,
};

use super::{direct, fallible};
use crate::cpu::{self, Own, own};
use crate::sync::{Lazy, Once, Spin, SpinGuard};

/// The machine's memory, of which there is one.
static TABLE: Once<FrameTable> = Once::new();
/// Its parts, one or more for each node.
static ZONES: Lazy<Zones<Lock>> = Lazy::new(|| Zones::new(crate::numa::layout()));
/// Each CPU's free frames.
static CACHES: Own<LocalFrames> = own!(LocalFrames, LocalFrames::new());

/// Frames handed to the allocator since the start. Of the machine's memory.
static TOTAL: AtomicU64 = AtomicU64::new(0);
/// Frames of the reserve in all zones. Of the machine's memory.
static RESERVE: AtomicU64 = AtomicU64::new(0);
/// Programs are refused frames: only the reserve is left. Of the machine's memory.
static TIGHT: AtomicBool = AtomicBool::new(false);
/// Single frames come in no order. Of the machine's memory, for tests.
static SHUFFLES: AtomicBool = AtomicBool::new(false);
/// Half of the reserve is gone, too: see [`is_short`]. Of the machine's memory.
static SHORT: AtomicU32 = AtomicU32::new(0);

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
        total: total_frames(),
        free: ZONES.free_frames() + cache_stats().resting,
    }
}

/// Frames that the allocator manages.
#[inline]
pub fn total_frames() -> u64 {
    TOTAL.load(Relaxed)
}

/// What the caches of all CPUs together hold and did.
pub fn cache_stats() -> CacheStats {
    CACHES.iter().map(LocalFrames::stats).sum()
}

/// What rests in the caches of a node's CPUs, and what they did.
pub fn cache_stats_of(node: Node) -> CacheStats {
    let own = CACHES.iter().filter(|cache| cache.node() == node);
    own.map(LocalFrames::stats).sum()
}

/// The zones that have RAM.
pub fn zone_stats() -> impl Iterator<Item = ZoneStats> {
    let mut stats = [ZoneStats::default(); ZONES_MAX];
    let zones = ZONES.stats();
    stats
        .iter_mut()
        .zip(zones)
        .for_each(|(slot, zone)| *slot = zone);
    stats.into_iter().filter(|zone| zone.managed > 0)
}

/// The node whose RAM holds this address.
pub fn node_of(at: PhysAddr) -> Node {
    ZONES.layout().node_of(at.0 >> PAGE_SHIFT)
}

/// Whether the kernel's own memory runs out: programs should be refused what makes the
/// kernel keep more for them, since its small allocations can not fail.
#[inline(always)]
pub fn is_short() -> bool {
    shortage() != 0
}

/// The same as bits, none of them set while there is enough: for who asks by one branch for other
/// things too.
#[inline(always)]
pub fn shortage() -> u32 {
    SHORT.load(Relaxed)
}

/// Whether programs are refused memory: only the kernel's reserve is left.
#[inline(always)]
pub fn is_tight() -> bool {
    TIGHT.load(Relaxed)
}

/// What stands behind the caches.
struct Ram;

impl Backing for Ram {
    type Lock = Lock;

    #[inline(always)]
    fn table(&self) -> &FrameTable {
        table()
    }

    #[inline]
    fn zones(&self) -> &Zones<Lock> {
        &ZONES
    }

    #[inline]
    fn zero(&self, frame: FrameNo) {
        // SAFETY: **Claim**: the frame is the caller's alone, **Direct** maps it.
        unsafe { direct::frame_pointer(frame).write_bytes(0, PAGE_BYTES) };
    }
}

/// A zone's lock; says whether memory is short when it is unlocked.
struct Lock(Spin<Zone>);

impl ZoneLock for Lock {
    const UNLOCKED: Self = Self(Spin::new(Zone::EMPTY));

    #[inline]
    fn lock(&self) -> impl DerefMut<Target = Zone> {
        Locked(self.0.lock())
    }
}

struct Locked<'a>(SpinGuard<'a, Zone>);

impl Deref for Locked<'_> {
    type Target = Zone;

    fn deref(&self) -> &Zone {
        &self.0
    }
}

impl DerefMut for Locked<'_> {
    fn deref_mut(&mut self) -> &mut Zone {
        &mut self.0
    }
}

impl Drop for Locked<'_> {
    /// Two CPUs that unlock two zones at the same moment may both miss what the other took.
    /// The next one that unlocks puts it right; the words are advice, the zones decide.
    fn drop(&mut self) {
        let (free, reserve) = (ZONES.free_frames(), RESERVE.load(Relaxed));
        TIGHT.store(free <= reserve, Relaxed);
        SHORT.store(u32::from(free < reserve / 2), Relaxed);
    }
}

/// Says which frames there are; once, before anything else here. With `shuffle`, single
/// frames come in no order from now on, to find drivers that take them for contiguous.
pub(super) fn describe(table: FrameTable, shuffle: bool) {
    assert!(TABLE.set(table).is_ok(), "memory is described once");
    SHUFFLES.store(shuffle, Relaxed);
    shuffle_if_asked();
}

fn shuffle_if_asked() {
    if SHUFFLES.load(Relaxed) {
        mine().shuffle(u64::from(cpu::id().0) + 1);
    }
}

/// Before `cpu` is started.
pub(super) fn add_cpu(cpu: CpuId) {
    CACHES.prepare(cpu);
}

/// Says which node the CPU that runs this belongs to. What it took before is given back: it
/// may be another's.
pub(crate) fn settle(node: Node) {
    mine().flush(&Ram);
    mine().settle(node, &ZONES);
    mine().fit(total_frames());
    shuffle_if_asked();
}

/// The states of all frames.
#[inline(always)]
pub(super) fn table() -> &'static FrameTable {
    /// A constant: what there is before the memory is known.
    static NONE: FrameTable = FrameTable::new();
    TABLE.get().unwrap_or(&NONE)
}

/// Makes reserved frames allocatable.
pub(super) fn donate_frames(first: FrameNo, pages: u64) {
    ZONES.donate(table(), first, pages);
    let total = ZONES.managed_frames();
    TOTAL.store(total, Relaxed);
    RESERVE.store(ZONES.reserve(), Relaxed);
    CACHES.iter().for_each(|cache| cache.fit(total));
}

/// This CPU's caches. By **Closed** nothing else runs on it meanwhile.
#[inline(always)]
fn mine() -> &'static LocalFrames {
    CACHES.get()
}

/// One frame in use with one owner, any content.
#[inline]
pub(super) fn alloc_frame() -> Option<Frame> {
    mine().alloc(&Ram, Urgency::Critical)
}

/// Frames for the heap, which says how urgent they are; the number of the first.
pub(super) fn alloc_for_heap(pages: u64, urgency: Urgency) -> Option<FrameNo> {
    match pages {
        1 => Some(mine().alloc(&Ram, urgency)?.into_number()),
        _ => {
            let extent = mine().alloc_extent(&Ram, Request::new(pages, urgency))?;
            Some(extent.into_parts().0)
        }
    }
}

/// As [`alloc_frame`], for memory that a program asked for: leaves the reserve alone.
#[inline]
pub(super) fn alloc_user_frame() -> Option<Frame> {
    if !fallible::is_admitted() {
        return None;
    }
    mine().alloc(&Ram, Urgency::Ordinary)
}

/// As [`alloc_user_frame`], full of zeros.
#[inline]
pub(super) fn alloc_user_frame_zeroed() -> Option<Frame> {
    if !fallible::is_admitted() {
        return None;
    }
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
    if !fallible::is_admitted() {
        return None;
    }
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
