//! Seals: promises about a file in memory that cannot be taken back (memfd_create(2)).

use core::sync::atomic::{AtomicU32, Ordering};

use bitflags::bitflags;
use sync::{Error, Mutex, MutexGuard, Result};

bitflags! {
    /// What may no longer happen; the bits are Linux's `F_SEAL_*`.
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
///
/// Who maps a file shared holds them while it does ([`Seals::lock`]), so that no program can
/// store to a file by a mapping that was under way while writes were sealed.
pub struct Seals {
    set: AtomicU32,
    held: Mutex<()>,
}

impl Default for Seals {
    fn default() -> Self {
        Self {
            set: AtomicU32::new(Seal::SEAL.bits()),
            held: Mutex::new(()),
        }
    }
}

/// While it lives no seal is set.
pub struct HeldSeals<'a> {
    seals: &'a Seals,
    _held: MutexGuard<'a, ()>,
}

impl HeldSeals<'_> {
    /// Whether no new mapping may store to the file.
    pub fn forbid_stores(&self) -> bool {
        self.seals.check_write().is_err()
    }
}

impl Seals {
    /// The seals set so far.
    pub fn get(&self) -> Seal {
        Seal::from_bits_retain(self.set.load(Ordering::Acquire))
    }

    /// Holds them as they are. Blocks.
    pub fn lock(&self) -> HeldSeals<'_> {
        HeldSeals {
            seals: self,
            _held: self.held.lock(),
        }
    }

    /// Lets a new file be sealed.
    pub fn allow(&self) {
        self.set.store(0, Ordering::Release);
    }

    /// Adds seals. `may_store` says whether a shared mapping exists that may be stored to.
    ///
    /// Errors: `NotPermitted` once seals are sealed, `Busy` for a seal on writes while
    /// there is such a mapping.
    pub fn add(&self, seals: Seal, may_store: impl FnOnce() -> bool) -> Result<()> {
        let _held = self.held.lock();
        if self.get().contains(Seal::SEAL) {
            return Err(Error::NotPermitted);
        }
        let is_new = seals.contains(Seal::WRITE) && !self.get().contains(Seal::WRITE);
        if is_new && may_store() {
            return Err(Error::Busy);
        }
        self.set.fetch_or(seals.bits(), Ordering::AcqRel);
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
