//! The two words that describe a frame.
//!
//! ```text
//! in use, or inside of a free block   owners: 1 · count (63 bits)         link: its owner's note
//! first frame of a free block         owners: 0 · previous block · order  link: next block · order
//! ```

use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};

use crate::FrameNo;

const USED: u64 = 1 << 63;
const ORDER_BITS: u32 = 8;
/// "No frame": larger than any physical frame number (2^52 bytes / 4 KiB = 2^40).
const NIL: u64 = 1 << 48;

/// State of one frame; see the crate's theory.
#[derive(Debug)]
pub struct FrameInfo {
    owners: AtomicU64,
    link: AtomicU64,
}

/// Place of a free block on its list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FreeBlock {
    pub order: u8,
    pub prev: Option<FrameNo>,
    pub next: Option<FrameNo>,
}

fn pack(frame: Option<FrameNo>, order: u8) -> u64 {
    frame.unwrap_or(NIL) << ORDER_BITS | u64::from(order)
}

fn unpack(word: u64) -> Option<FrameNo> {
    let frame = word >> ORDER_BITS;
    (frame != NIL).then_some(frame)
}

impl FrameInfo {
    /// A frame that belongs to nobody who will ever release it: where RAM starts out.
    pub const fn reserved() -> Self {
        Self {
            owners: AtomicU64::new(USED | 1),
            link: AtomicU64::new(0),
        }
    }

    pub(crate) fn is_used(&self) -> bool {
        self.owners.load(Relaxed) & USED != 0
    }

    /// Owners of a used frame; the value for a free frame is meaningless.
    #[inline]
    pub(crate) fn owners(&self) -> u64 {
        self.owners.load(Acquire) & !USED
    }

    /// Counts one owner more; returns how many there were.
    #[inline]
    pub(crate) fn add_owner(&self) -> u64 {
        self.owners.fetch_add(1, Relaxed) & !USED
    }

    /// Counts one owner less; returns how many there were.
    #[inline]
    pub(crate) fn drop_owner(&self) -> u64 {
        self.owners.fetch_sub(1, AcqRel) & !USED
    }

    #[inline]
    pub(crate) fn set_used(&self) {
        self.owners.store(USED | 1, Relaxed);
    }

    /// Whether a free block of exactly this order starts here.
    #[inline]
    pub(crate) fn heads(&self, order: u8) -> bool {
        self.owners.load(Relaxed) & (USED | 0xFF) == u64::from(order)
    }

    #[inline]
    pub(crate) fn free_block(&self) -> Option<FreeBlock> {
        let (owners, link) = (self.owners.load(Relaxed), self.link.load(Relaxed));
        (owners & USED == 0).then(|| FreeBlock {
            order: link as u8,
            prev: unpack(owners),
            next: unpack(link),
        })
    }

    #[inline]
    pub(crate) fn set_free(&self, block: FreeBlock) {
        self.link.store(pack(block.next, block.order), Relaxed);
        self.owners.store(pack(block.prev, block.order), Relaxed);
    }

    #[inline]
    pub(crate) fn set_prev(&self, order: u8, prev: Option<FrameNo>) {
        self.owners.store(pack(prev, order), Relaxed);
    }

    #[inline]
    pub(crate) fn set_next(&self, order: u8, next: Option<FrameNo>) {
        self.link.store(pack(next, order), Relaxed);
    }

    #[inline]
    pub(crate) fn note(&self) -> u64 {
        self.link.load(Relaxed)
    }

    #[inline]
    pub(crate) fn set_note(&self, note: u64) {
        self.link.store(note, Relaxed);
    }

    /// Pretends that there are so many owners.
    #[cfg(test)]
    pub(crate) fn set_owners(&self, owners: u64) {
        self.owners.store(USED | owners, Relaxed);
    }
}
