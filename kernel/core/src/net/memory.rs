//! Packet buffers: how many there are, and when there will be more.
//!
//! The pool starts small and grows by steps while memory lasts, up to a quarter of it;
//! it never shrinks. A pool at its limit makes the device drop frames and senders
//! wait, both of which TCP understands.
//!
//! Buffers are slices of contiguous areas of 64 KiB; a machine whose memory is in
//! pieces makes do with smaller areas. What a device is told of a buffer is the area's
//! address plus an offset, which is right because an area is a [`DmaBuf`]
//! (`docs/dma.md` tells what happens where it is not).

use core::sync::atomic::{AtomicUsize, Ordering};

use base::PAGE_BYTES;
use hal::{DmaBuf, DmaRequest, DmaSource};
use mach::mem::DmaMemory;
use mbuf::{BLOCK_BYTES, FreeList, Mbuf, Pool};

/// Blocks at boot: the receive queue of a device and room to answer.
const BLOCKS_AT_BOOT: usize = 512;
/// Blocks added at once.
const STEP_BLOCKS: usize = 256;
/// Contiguous bytes that are cut into blocks, where memory has them.
pub const AREA_BYTES: usize = 64 << 10;
/// The pool takes at most this share of memory.
const MEMORY_SHARE: usize = 4;

static BLOCKS: FreeList = FreeList::new();
static LIMIT: AtomicUsize = AtomicUsize::new(0);

struct GrowingPool;

impl Pool for GrowingPool {
    #[inline]
    fn alloc(&self) -> Option<Mbuf> {
        BLOCKS.alloc().or_else(grow)
    }
}

#[cold]
fn grow() -> Option<Mbuf> {
    if BLOCKS.total() >= LIMIT.load(Ordering::Relaxed) {
        return None;
    }
    add_blocks(STEP_BLOCKS);
    BLOCKS.alloc()
}

/// Adds about `count` blocks, fewer when memory is short.
fn add_blocks(count: usize) {
    let enough = BLOCKS.total() + count;
    let mut area_bytes = AREA_BYTES;
    while BLOCKS.total() < enough && area_bytes >= PAGE_BYTES {
        let request = DmaRequest::new(area_bytes, PAGE_BYTES);
        match DmaMemory.dma_alloc(&request) {
            Ok(area) => _ = DmaBuf::into_packets(area, &BLOCKS),
            Err(_) => area_bytes /= 2,
        }
    }
}

/// Where all packet buffers of the machine come from.
pub fn packet_pool() -> &'static (dyn Pool + Sync) {
    &GrowingPool
}

/// Packet buffers in use now.
pub fn packets_in_use() -> usize {
    BLOCKS.total() - BLOCKS.free()
}

/// Bytes that packet buffers may take.
pub(super) fn bytes_max() -> usize {
    LIMIT.load(Ordering::Relaxed) * BLOCK_BYTES
}

/// Makes the first buffers; once at boot.
pub(super) fn init() {
    let bytes = (mach::mem::stats().total as usize) * base::PAGE_BYTES;
    LIMIT.store(bytes / MEMORY_SHARE / BLOCK_BYTES, Ordering::Relaxed);
    add_blocks(BLOCKS_AT_BOOT);
}
