//! What the catalogue needs of a disk.

use crate::extent::{Blocks, Extent};

/// The disk could not do what it was asked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DiskError;

/// A disk or a namespace, in blocks of its own size.
pub trait Disk {
    /// Bytes of a block: a power of two from 512 to 4096.
    fn block_bytes(&self) -> u32;

    /// Blocks in all.
    fn blocks(&self) -> Blocks;

    /// Fills `into`, whole blocks, from block `first` on.
    fn read(&mut self, first: u64, into: &mut [u8]) -> Result<(), DiskError>;

    /// Stores `from`, whole blocks, from block `first` on. A loss of power may undo it until a flush.
    fn write(&mut self, first: u64, from: &[u8]) -> Result<(), DiskError>;

    /// Makes these blocks read as zeroes; a loss of power may undo it until a flush.
    fn zero(&mut self, blocks: Extent) -> Result<(), DiskError>;

    /// Brings all writes that have ended to the medium.
    fn flush(&mut self) -> Result<(), DiskError>;
}
