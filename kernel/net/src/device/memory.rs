//! Packet buffers: how many there are, and when there will be more.
//!
//! The pool starts small and grows by steps while memory lasts, up to a quarter of it;
//! it never shrinks. A pool at its limit makes senders wait and received bytes go unkept, both
//! of which TCP understands.
//!
//! A part of the pool is a reserve for what passes through: the device's queues are filled from
//! it, and answers are made in it, whatever programs and peers hold (`mbuf::FreeList`). The
//! pool grows before the reserve is touched, so that it lies ready when programs have all
//! other memory; growing leaves the kernel's own reserve alone. What connections and datagram
//! sockets hold is bounded besides, to leave room for each other (`inet`'s `MemoryLimits`).
//!
//! Buffers are slices of contiguous areas of 64 KiB; a machine whose memory is in
//! pieces makes do with smaller areas. What a device is told of a buffer is the area's
//! address plus an offset, which is right because an area is a [`DmaBuf`]
//! (`docs/dma.md` tells what happens where it is not).

use core::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use base::PAGE_BYTES;
use hal::{DmaBuf, DmaRequest, DmaSource};
use inet::{MemoryLimits, MemoryTotals};
use mach::mem::{DmaMemory, PACKETS as BLOCKS};
use mbuf::{BLOCK_BYTES, MAGAZINE_BLOCKS, Mbuf, Pool};

/// Blocks at boot: the receive queue of a device and room to answer.
const BLOCKS_AT_BOOT: usize = 512;
/// Blocks added at once.
const STEP_BLOCKS: usize = 256;
/// Contiguous bytes that are cut into blocks, where memory has them.
pub const AREA_BYTES: usize = 64 << 10;
/// The pool takes at most this share of memory.
const MEMORY_SHARE: usize = 4;
/// This share of the pool is the reserve, within bounds: a batch of frames, their answers, and
/// what waits in the device to be sent.
const RESERVE_SHARE: usize = 32;
const RESERVE_MIN: usize = 128;
const RESERVE_MAX: usize = 256;
/// After memory was too short for a step, so many requests pass before it is tried again.
const REQUESTS_BETWEEN_TRIES: u32 = 256;

/// Of the packet pool, which is the machine's: buffers pass from stack to stack.
static LIMIT: AtomicUsize = AtomicUsize::new(0);
/// Requests that still pass before the next try to grow. They are the pool's.
static PAUSE: AtomicU32 = AtomicU32::new(0);
/// What the machine's stacks hold together.
pub(crate) static HELD: MemoryTotals = MemoryTotals::new();

struct GrowingPool;

impl Pool for GrowingPool {
    #[inline]
    fn alloc(&self) -> Option<Mbuf> {
        if BLOCKS.is_scarce() {
            grow();
        }
        BLOCKS.alloc()
    }
}

/// A buffer for what a program sends; `None` while only the reserve is left.
#[inline]
pub(crate) fn alloc_to_queue() -> Option<Mbuf> {
    match is_scarce() {
        true => None,
        false => BLOCKS.alloc(),
    }
}

/// Whether only the reserve is left, of packet buffers or of the kernel's own memory, and
/// there are no more to be had.
#[inline]
pub(crate) fn is_scarce() -> bool {
    mach::mem::is_short() || BLOCKS.is_scarce() && !grow()
}

/// Adds blocks if there may be more and memory has them; whether there are enough now.
#[cold]
fn grow() -> bool {
    if BLOCKS.total() >= LIMIT.load(Ordering::Relaxed) {
        return false;
    }
    let pause = PAUSE.load(Ordering::Relaxed);
    if pause != 0 {
        PAUSE.store(pause - 1, Ordering::Relaxed);
        return false;
    }
    add_blocks(STEP_BLOCKS);
    let is_enough = !BLOCKS.is_scarce();
    if !is_enough {
        PAUSE.store(REQUESTS_BETWEEN_TRIES, Ordering::Relaxed);
    }
    is_enough
}

/// Adds about `count` blocks, fewer when memory is short.
fn add_blocks(count: usize) {
    let enough = BLOCKS.total() + count;
    let mut area_bytes = AREA_BYTES;
    while BLOCKS.total() < enough && area_bytes >= PAGE_BYTES && !mach::mem::is_tight() {
        let request = DmaRequest::new(area_bytes, PAGE_BYTES);
        match DmaMemory::Shared.dma_alloc(&request) {
            Ok(area) => _ = DmaBuf::into_packets(area, &BLOCKS),
            Err(_) => area_bytes /= 2,
        }
    }
}

/// Where all packet buffers of the machine come from.
pub fn packet_pool() -> &'static (dyn Pool + Sync) {
    &GrowingPool
}

/// Packet buffers, in blocks of [`BLOCK_BYTES`].
#[derive(Clone, Copy, Debug)]
pub struct PacketBuffers {
    /// As many as there may be.
    pub limit: usize,
    /// As many as there are.
    pub total: usize,
    /// Of these, those that wait to be used.
    pub free: usize,
    /// Those that are only for what passes through.
    pub reserve: usize,
}

/// What there is now.
pub fn packet_buffers() -> PacketBuffers {
    PacketBuffers {
        limit: LIMIT.load(Ordering::Relaxed),
        total: BLOCKS.total(),
        free: BLOCKS.free(),
        reserve: BLOCKS.reserve(),
    }
}

/// Bytes that packet buffers may take.
pub(crate) fn bytes_max() -> usize {
    LIMIT.load(Ordering::Relaxed) * BLOCK_BYTES
}

/// What connections may hold of them, and what datagram sockets: together less than all.
pub(crate) fn limits() -> [MemoryLimits; 2] {
    let eighth = bytes_max() / 8;
    [eighth * 5, eighth * 2].map(MemoryLimits::below)
}

/// Makes the first buffers; once at boot.
pub(crate) fn init() {
    let bytes = (mach::mem::total_frames() as usize) * base::PAGE_BYTES;
    let limit = bytes / MEMORY_SHARE / BLOCK_BYTES;
    LIMIT.store(limit, Ordering::Relaxed);
    // What lies in a CPU's magazine is of no use to the others.
    let in_magazines = (mach::cpu::count() * MAGAZINE_BLOCKS).min(limit / RESERVE_SHARE);
    let reserve = (limit / RESERVE_SHARE).clamp(RESERVE_MIN, RESERVE_MAX) + in_magazines;
    add_blocks(BLOCKS_AT_BOOT + reserve);
    BLOCKS.set_reserve(reserve);
}
