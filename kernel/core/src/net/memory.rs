//! Packet buffers: how many there are, and when there will be more.
//!
//! The pool starts small and grows by steps while memory lasts, up to a quarter of it;
//! it never shrinks. A pool at its limit makes the device drop frames and senders
//! wait, both of which TCP understands.

use core::sync::atomic::{AtomicUsize, Ordering};

use mbuf::{BLOCK_BYTES, FreeList, Mbuf, Pool};

/// Blocks at boot: the receive queue of a device and room to answer.
const BLOCKS_AT_BOOT: usize = 512;
/// Blocks added at once.
const STEP_BLOCKS: usize = 256;
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
    mach::mem::grow_packet_pool(&BLOCKS, STEP_BLOCKS);
    BLOCKS.alloc()
}

/// Where all packet buffers of the machine come from.
pub fn packet_pool() -> &'static (dyn Pool + Sync) {
    &GrowingPool
}

/// Packet buffers in use now.
pub fn packets_in_use() -> usize {
    BLOCKS.total() - BLOCKS.free()
}

/// Makes the first buffers; once at boot.
pub(super) fn init() {
    let bytes = (mach::mem::stats().total as usize) * base::PAGE_BYTES;
    LIMIT.store(bytes / MEMORY_SHARE / BLOCK_BYTES, Ordering::Relaxed);
    mach::mem::grow_packet_pool(&BLOCKS, BLOCKS_AT_BOOT);
}
