//! Registers as a driver with several owners needs them.
//!
//! A memory-mapped window is enough for a device whose registers only remember. A model
//! of a device, or a device of another process, *acts* when a register is read or
//! written: clear on read, write one to clear. A driver that is generic over this trait
//! is the same code on both.

use crate::Mmio;

/// A bounded window of 32-bit registers. An offset outside is a bug in the driver and
/// may panic.
pub trait Registers: Sized {
    /// Bytes in the window.
    fn bytes(&self) -> usize;

    /// The part of `bytes` bytes at `offset`, if it lies inside.
    fn window(&self, offset: usize, bytes: usize) -> Option<Self>;

    /// Reads the register at `offset` bytes.
    fn read32(&self, offset: usize) -> u32;

    /// Writes the register at `offset` bytes.
    fn write32(&self, offset: usize, value: u32);
}

impl Registers for Mmio {
    #[inline]
    fn bytes(&self) -> usize {
        Mmio::bytes(self)
    }

    fn window(&self, offset: usize, bytes: usize) -> Option<Self> {
        Mmio::window(self, offset, bytes)
    }

    #[inline]
    fn read32(&self, offset: usize) -> u32 {
        Mmio::read32(self, offset)
    }

    #[inline]
    fn write32(&self, offset: usize, value: u32) {
        Mmio::write32(self, offset, value);
    }
}
