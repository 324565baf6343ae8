//! What opening and reading need of an area. Appending needs nothing of it: that is by commands.

use block::Failure;

/// Blocks that are the log's alone, from 0 on.
pub trait Area {
    /// Bytes of a block: a power of two from 512 to 4096.
    fn block_bytes(&self) -> u32;

    /// Blocks in all.
    fn blocks(&self) -> u64;

    /// Fills `into`, whole blocks, from block `first` on.
    fn read(&mut self, first: u64, into: &mut [u8]) -> Result<(), Failure>;

    /// Stores `from`, whole blocks, from block `first` on. A loss of power may undo it until a flush.
    fn write(&mut self, first: u64, from: &[u8]) -> Result<(), Failure>;

    /// Brings all writes that have ended to the medium.
    fn flush(&mut self) -> Result<(), Failure>;
}
