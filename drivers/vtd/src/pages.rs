//! What is mapped, and why it cannot be.

use hal::DmaError;

use crate::node::READ_WRITE;

/// Whole pages that a device sees at one address, and that lie at another.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Pages {
    /// The device's address of the first byte.
    pub device: u64,
    /// Its physical address.
    pub physical: u64,
    /// How many bytes.
    pub bytes: u64,
    /// What the device may do there.
    pub rights: Rights,
}

/// What a device may do with memory; the values are the bits of an entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u64)]
pub enum Rights {
    /// Read it.
    Read = 0b01,
    /// Write it.
    Write = 0b10,
    /// Both.
    ReadWrite = READ_WRITE,
}

impl Pages {
    /// Memory that the device sees where it lies, and may read and write.
    pub const fn identical(start: u64, bytes: u64) -> Self {
        Self {
            device: start,
            physical: start,
            bytes,
            rights: Rights::ReadWrite,
        }
    }

    pub(crate) fn skip(self, bytes: u64) -> Self {
        Self {
            device: self.device + bytes,
            physical: self.physical + bytes,
            bytes: self.bytes - bytes,
            rights: self.rights,
        }
    }
}

/// Why a table was not changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MapError {
    /// Not whole pages, none, or beyond what the table or its entries can name.
    Range,
    /// Something is mapped there.
    Occupied {
        /// The first such address.
        device: u64,
    },
    /// Nothing is mapped there.
    NotMapped {
        /// The first such address.
        device: u64,
    },
    /// A part of a large page, which is only taken away as a whole.
    PartOfLargePage,
    /// No memory for a table.
    Memory(DmaError),
}
