//! A function of a bus, and its domain.

use core::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use hal::pci::PciAddress;
use vtd::{DomainId, Fault};

/// A function behind a unit.
pub struct Guarded {
    pub address: PciAddress,
    /// The unit's place in the machine.
    pub unit: usize,
    pub domain: DomainId,
    /// A driver has it, so it reaches shared memory.
    is_driven: AtomicBool,
    /// Requests that were refused, as far as the unit recorded them.
    refused: AtomicU64,
    /// The page of the last one.
    last: AtomicU64,
}

impl Guarded {
    pub fn new(address: PciAddress, unit: usize, domain: DomainId) -> Self {
        Self {
            address,
            unit,
            domain,
            is_driven: AtomicBool::new(false),
            refused: AtomicU64::new(0),
            last: AtomicU64::new(0),
        }
    }

    pub fn is_driven(&self) -> bool {
        self.is_driven.load(Relaxed)
    }

    /// A driver has it; false if one had it before.
    pub fn drive(&self) -> bool {
        !self.is_driven.swap(true, Relaxed)
    }

    pub fn note(&self, fault: &Fault) {
        self.last.store(fault.address, Relaxed);
        self.refused.fetch_add(1, Relaxed);
    }

    /// How many requests were refused, and the page of the last.
    pub fn refused(&self) -> (u64, u64) {
        (self.refused.load(Relaxed), self.last.load(Relaxed))
    }
}
