//! Seals: promises about a file in memory that cannot be taken back (memfd_create(2)).

use core::sync::atomic::{AtomicU32, Ordering};

use bitflags::bitflags;

use crate::error::{Error, Result};

bitflags! {
    /// What may no longer happen; the bits are Linux' `F_SEAL_*`.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub struct Seal: u32 {
        /// More seals.
        const SEAL = 1;
        /// A smaller size.
        const SHRINK = 2;
        /// A larger size.
        const GROW = 4;
        /// Writes and shared writable mappings.
        const WRITE = 8;
        /// Writes by new means; existing mappings go on.
        const FUTURE_WRITE = 16;
        /// A change of the execute bits.
        const EXEC = 32;
    }
}

/// The seals of a file; one that is not made by memfd_create takes none.
pub struct Seals(AtomicU32);

impl Default for Seals {
    fn default() -> Self {
        Self(AtomicU32::new(Seal::SEAL.bits()))
    }
}

impl Seals {
    /// The seals set so far.
    pub fn get(&self) -> Seal {
        Seal::from_bits_retain(self.0.load(Ordering::Acquire))
    }

    /// Lets a new file be sealed.
    pub fn allow(&self) {
        self.0.store(0, Ordering::Release);
    }

    /// Adds seals.
    pub fn add(&self, seals: Seal) -> Result<()> {
        if self.get().contains(Seal::SEAL) {
            return Err(Error::NotPermitted);
        }
        self.0.fetch_or(seals.bits(), Ordering::AcqRel);
        Ok(())
    }

    /// Refuses writes if they are sealed.
    pub fn check_write(&self) -> Result<()> {
        let sealed = self.get().intersects(Seal::WRITE | Seal::FUTURE_WRITE);
        if sealed {
            Err(Error::NotPermitted)
        } else {
            Ok(())
        }
    }

    /// Whether a write may have to be refused for its length.
    pub fn forbids_growth(&self) -> bool {
        self.get().contains(Seal::GROW)
    }

    /// Refuses a change of the size if it is sealed.
    pub fn check_size(&self, from: u64, to: u64) -> Result<()> {
        let seals = self.get();
        let shrinks = to < from && seals.contains(Seal::SHRINK);
        let grows = to > from && seals.contains(Seal::GROW);
        if shrinks || grows {
            Err(Error::NotPermitted)
        } else {
            Ok(())
        }
    }
}
