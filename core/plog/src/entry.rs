//! The header in front of an entry, 64 bytes. Numbers are little-endian.
//!
//! ```text
//!  0  "PLE1"             4  u8 tag, then zeroes     8  u64 id of the log
//! 16  u64 position      24  u64 sequence           32  u64 epoch
//! 40  u64 durable: when this was appended, all entries before that one were
//! 48  u32 bytes         52  u32 CRC-32C of them    60  u32 CRC-32C of 0..60
//! ```

use checksum::{Crc32c, crc32c};

use crate::anchor::NUMBERS_END;
use crate::bytes::{put, u32_at, u64_at};
use crate::planted::{Bug, planted};
use crate::shape::{Place, Sequence, Shape};

/// Bytes in front of each entry, for which a buffer has room.
pub const HEADER_BYTES: usize = 64;
const MAGIC: &[u8; 4] = b"PLE1";
const SUMMED_BYTES: usize = 60;

/// What is in front of an entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Header {
    pub id: u64,
    pub position: u64,
    pub sequence: Sequence,
    pub epoch: u64,
    pub durable: Sequence,
    /// What the layer above takes the entry for.
    pub tag: u8,
    /// Bytes behind the header.
    pub bytes: u32,
    pub payload_sum: u32,
}

/// The sum of an entry's bytes.
pub(crate) fn sum_of(parts: &[&[u8]]) -> u32 {
    let sum = parts.iter().fold(Crc32c::new(), |sum, part| sum.with(part));
    sum.sum()
}

impl Header {
    /// As bytes.
    pub fn encode(&self, to: &mut [u8; HEADER_BYTES]) {
        to.fill(0);
        put(to, 0, MAGIC);
        put(to, 4, &[self.tag]);
        put(to, 8, &self.id.to_le_bytes());
        put(to, 16, &self.position.to_le_bytes());
        put(to, 24, &self.sequence.to_le_bytes());
        put(to, 32, &self.epoch.to_le_bytes());
        put(to, 40, &self.durable.to_le_bytes());
        put(to, 48, &self.bytes.to_le_bytes());
        put(to, 52, &self.payload_sum.to_le_bytes());
        let sum = to.get(..SUMMED_BYTES).map_or(0, crc32c);
        put(to, SUMMED_BYTES, &sum.to_le_bytes());
    }

    /// What a block begins with, if that is a header of this log.
    pub fn decode(block: &[u8], id: u64) -> Option<Self> {
        let summed = block.get(..SUMMED_BYTES)?;
        let is_whole = crc32c(summed) == u32_at(block, SUMMED_BYTES);
        if block.get(..4) != Some(MAGIC) || !(is_whole || planted(Bug::HeaderUnchecked)) {
            return None;
        }
        let header = Self {
            id: u64_at(block, 8),
            position: u64_at(block, 16),
            sequence: u64_at(block, 24),
            epoch: u64_at(block, 32),
            durable: u64_at(block, 40),
            tag: block.get(4).copied()?,
            bytes: u32_at(block, 48),
            payload_sum: u32_at(block, 52),
        };
        (header.id == id || planted(Bug::IdUnbound)).then_some(header)
    }

    /// Whether it is that of the entry behind `place`.
    pub fn is_at(&self, place: Place, shape: Shape) -> bool {
        let is_place = self.position == place.position && self.sequence == place.sequence;
        (is_place || planted(Bug::PositionUnbound))
            && (self.epoch >= place.epoch || planted(Bug::EpochUnbound))
            && self.epoch < NUMBERS_END
            && self.bytes as usize <= shape.entry_bytes_max()
    }

    /// Whether these are the entry's bytes.
    pub fn is_of(&self, bytes: &[u8]) -> bool {
        self.payload_sum == crc32c(bytes) || planted(Bug::ChecksumUnchecked)
    }

    /// The place behind the entry, which is one of those behind `place`.
    pub fn end(&self, place: Place, shape: Shape) -> Place {
        Place {
            position: place.position + shape.blocks_of(self.bytes as usize),
            sequence: place.sequence + 1,
            epoch: self.epoch,
        }
    }
}
