//! The two blocks that a log is found by. Numbers are little-endian.
//!
//! ```text
//!  0  "PLOG0001"          8  u64 id              16  u64 generation, odd in block 1
//! 24  u64 epoch          32  u32 bytes of a block 40  u64 blocks of the ring
//! 48  the head: u64 position, u64 sequence, u64 epoch
//! 72  the mark: the same                          96  u32 CRC-32C of 0..96
//! ```
//! All of it lies in one sector. The block of the higher generation counts; the other one is what is
//! overwritten next.

use alloc::vec;
use alloc::vec::Vec;

use checksum::crc32c;

use crate::bytes::{put, u32_at, u64_at};
use crate::planted::{Bug, planted};
use crate::shape::{Place, Shape};

const MAGIC: &[u8; 8] = b"PLOG0001";
const SUMMED_BYTES: usize = 96;
/// Numbers are below, those of entries too, so that what somebody made up can be counted on from.
pub(crate) const NUMBERS_END: u64 = 1 << 60;

/// Where a log begins, and up to where all was durable.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Anchor {
    pub id: u64,
    pub generation: u64,
    pub epoch: u64,
    pub head: Place,
    pub mark: Place,
}

impl Anchor {
    /// The block that it belongs into.
    pub fn block(&self) -> u64 {
        self.generation & 1
    }

    /// As a block.
    pub fn encode(&self, shape: Shape) -> Vec<u8> {
        let mut bytes = vec![0; shape.block_bytes() as usize];
        put(&mut bytes, 0, MAGIC);
        put(&mut bytes, 8, &self.id.to_le_bytes());
        put(&mut bytes, 16, &self.generation.to_le_bytes());
        put(&mut bytes, 24, &self.epoch.to_le_bytes());
        put(&mut bytes, 32, &shape.block_bytes().to_le_bytes());
        put(&mut bytes, 40, &shape.ring_blocks().to_le_bytes());
        put_place(&mut bytes, 48, self.head);
        put_place(&mut bytes, 72, self.mark);
        let sum = bytes.get(..SUMMED_BYTES).map_or(0, crc32c);
        put(&mut bytes, SUMMED_BYTES, &sum.to_le_bytes());
        bytes
    }

    /// What block `number` says, if it is an anchor that belongs there.
    pub fn decode(bytes: &[u8], number: u64, shape: Shape) -> Option<Self> {
        let sum = bytes.get(..SUMMED_BYTES).map(crc32c);
        let is_whole = sum == Some(u32_at(bytes, SUMMED_BYTES)) || planted(Bug::AnchorUnchecked);
        if bytes.get(..8) != Some(MAGIC) || !is_whole {
            return None;
        }
        let anchor = Self {
            id: u64_at(bytes, 8),
            generation: u64_at(bytes, 16),
            epoch: u64_at(bytes, 24),
            head: place_at(bytes, 48),
            mark: place_at(bytes, 72),
        };
        let is_shape =
            u32_at(bytes, 32) == shape.block_bytes() && u64_at(bytes, 40) == shape.ring_blocks();
        (is_shape && anchor.block() == number && anchor.is_sound(shape)).then_some(anchor)
    }

    fn is_sound(&self, shape: Shape) -> bool {
        let (head, mark) = (self.head, self.mark);
        let ordered = head.position <= mark.position
            && head.sequence <= mark.sequence
            && head.epoch <= mark.epoch
            && mark.epoch <= self.epoch;
        let numbers = [self.generation, self.epoch, mark.position, mark.sequence];
        ordered
            && numbers.iter().all(|number| *number < NUMBERS_END)
            && mark.position - head.position <= shape.ring_blocks()
    }
}

fn put_place(bytes: &mut [u8], at: usize, place: Place) {
    put(bytes, at, &place.position.to_le_bytes());
    put(bytes, at + 8, &place.sequence.to_le_bytes());
    put(bytes, at + 16, &place.epoch.to_le_bytes());
}

fn place_at(bytes: &[u8], at: usize) -> Place {
    Place {
        position: u64_at(bytes, at),
        sequence: u64_at(bytes, at + 8),
        epoch: u64_at(bytes, at + 16),
    }
}
