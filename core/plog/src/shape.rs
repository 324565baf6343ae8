//! How an area is divided, and every bound that follows.

use crate::entry::HEADER_BYTES;

/// Blocks at the beginning of the area, one for each anchor.
pub(crate) const ANCHORS: u64 = 2;
/// A smaller ring is of no use.
const RING_BLOCKS_MIN: u64 = 8;
/// Bytes that may be under way.
const WINDOW_BYTES_MAX: u64 = 4 << 20;
/// Blocks between two marks: 32 MiB of blocks of 4096 bytes.
const MARK_BLOCKS_MAX: u64 = 8192;

/// The number of an entry: the first is 0, and none is ever used again for something durable.
pub type Sequence = u64;

/// Between two entries.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Place {
    /// Blocks of entries before it, since the log was made.
    pub(crate) position: u64,
    /// Entries before it.
    pub(crate) sequence: Sequence,
    /// The entry behind it is of this epoch or a later one.
    pub(crate) epoch: u64,
}

impl Place {
    pub(crate) const START: Self = Self {
        position: 0,
        sequence: 0,
        epoch: 0,
    };

    /// Entries before it, since the log was made: the number of the entry behind it.
    pub fn sequence(self) -> Sequence {
        self.sequence
    }

    /// Blocks of entries before it.
    pub fn position(self) -> u64 {
        self.position
    }
}

/// An area's division.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Shape {
    block_bytes: u32,
    ring_blocks: u64,
}

impl Shape {
    /// Of an area with so many blocks, unless it is too small or its blocks have no size that we know.
    pub fn new(block_bytes: u32, blocks: u64) -> Option<Self> {
        let is_known = (512..=4096).contains(&block_bytes) && block_bytes.is_power_of_two();
        let ring_blocks = blocks.checked_sub(ANCHORS)?;
        let fits = is_known && (RING_BLOCKS_MIN..1 << 48).contains(&ring_blocks);
        fits.then_some(Self {
            block_bytes,
            ring_blocks,
        })
    }

    /// Bytes of a block.
    pub fn block_bytes(self) -> u32 {
        self.block_bytes
    }

    /// Blocks for entries.
    pub fn ring_blocks(self) -> u64 {
        self.ring_blocks
    }

    /// Blocks that are not durable, at most; and so those of the longest entry.
    pub fn window_blocks(self) -> u64 {
        (self.ring_blocks / 4).clamp(1, WINDOW_BYTES_MAX / u64::from(self.block_bytes))
    }

    /// Bytes of the longest entry, without its header.
    pub fn entry_bytes_max(self) -> usize {
        self.window_blocks() as usize * self.block_bytes as usize - HEADER_BYTES
    }

    /// The mark follows when it is so far behind.
    pub(crate) fn mark_blocks(self) -> u64 {
        (self.ring_blocks / 8).clamp(1, MARK_BLOCKS_MAX)
    }

    /// Blocks that recovery reads for entries, at most; it looks at as many as two windows behind the end.
    pub fn scan_blocks_max(self) -> u64 {
        2 * self.mark_blocks() + 2 * self.window_blocks()
    }

    /// Blocks of an entry with so many bytes, header not counted.
    pub(crate) fn blocks_of(self, bytes: usize) -> u64 {
        let all = (bytes as u64).saturating_add(HEADER_BYTES as u64);
        all.div_ceil(self.block_bytes.into())
    }

    /// The block of the area at a position, and how many follow before the ring begins again.
    pub(crate) fn block_at(self, position: u64) -> (u64, u64) {
        let at = position % self.ring_blocks;
        (ANCHORS + at, self.ring_blocks - at)
    }
}
