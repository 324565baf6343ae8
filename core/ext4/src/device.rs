//! What the file system needs of a disk.
//!
//! The words are those of `core/block`: a write is [`Volatile`](Durability::Volatile) until a
//! flush that was asked for after its end, or [`Forced`](Durability::Forced) at once.

use checksum::Crc32c;

use crate::error::DeviceError;

/// Whether a write that has ended survives a loss of power.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Durability {
    /// Not before the next flush.
    Volatile,
    /// At once.
    Forced,
}

/// A disk. Offsets and lengths are bytes and multiples of 512.
pub trait Device: Send {
    /// Its size.
    fn bytes(&self) -> u64;

    /// Whether nothing on it can be changed.
    fn is_read_only(&self) -> bool;

    /// Fills `into` from `offset` on.
    fn read(&mut self, offset: u64, into: &mut [u8]) -> Result<(), DeviceError>;

    /// Stores `from` from `offset` on.
    fn write(
        &mut self,
        offset: u64,
        from: &[u8],
        durability: Durability,
    ) -> Result<(), DeviceError>;

    /// Stores `parts` one behind the other from `offset` on; each is a multiple of 512 long.
    fn write_parts(
        &mut self,
        offset: u64,
        parts: &[&[u8]],
        durability: Durability,
    ) -> Result<(), DeviceError> {
        self.write(offset, &parts.concat(), durability)
    }

    /// Makes all writes that have ended survive a loss of power.
    fn flush(&mut self) -> Result<(), DeviceError>;

    /// A sum of nothing, made by what this machine has for it.
    fn sums_begin(&self) -> Crc32c {
        Crc32c::new()
    }

    /// The content of these bytes is of no use any more.
    fn discard(&mut self, _offset: u64, _bytes: u64) {}
}
