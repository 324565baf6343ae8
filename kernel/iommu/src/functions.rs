//! A function of a bus, and its domain.

use alloc::sync::Arc;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed, Ordering::SeqCst};

use hal::pci::PciAddress;
use mach::sync::Spin;
use vtd::{DomainId, Fault};

/// Who wants to know that something was refused to a function.
pub trait Refused: Send + Sync {
    /// It was. With the unit held: must not block, and must not ask for the IOMMU.
    fn refused(&self);
}

/// A function behind a unit.
pub struct Guarded {
    pub address: PciAddress,
    /// The unit's place in the machine.
    pub unit: usize,
    pub domain: DomainId,
    /// The firmware reserved memory for it, which stays mapped.
    pub has_reserved: bool,
    /// A program has it.
    is_lent: AtomicBool,
    /// Who hears of what is refused.
    listener: Spin<Option<Arc<dyn Refused>>>,
    /// A driver has it, so it reaches shared memory.
    is_driven: AtomicBool,
    /// Requests that were refused, as far as the unit recorded them.
    refused: AtomicU64,
    /// The page of the last one.
    last: AtomicU64,
}

impl Guarded {
    pub fn new(address: PciAddress, unit: usize, domain: DomainId, has_reserved: bool) -> Self {
        Self {
            address,
            unit,
            domain,
            has_reserved,
            is_lent: AtomicBool::new(false),
            listener: Spin::new(None),
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

    /// A program has it; false if one had it before.
    pub fn lend(&self) -> bool {
        !self.is_lent.swap(true, SeqCst)
    }

    /// No program has it any more.
    pub fn take_back(&self) {
        self.is_lent.store(false, SeqCst);
    }

    pub fn is_lent(&self) -> bool {
        self.is_lent.load(Relaxed)
    }

    pub fn tell(&self, listener: Option<Arc<dyn Refused>>) {
        // What was there is dropped without the lock.
        let before = core::mem::replace(&mut *self.listener.lock(), listener);
        drop(before);
    }

    pub fn note(&self, fault: &Fault) {
        self.last.store(fault.address, Relaxed);
        self.refused.fetch_add(1, Relaxed);
        if let Some(listener) = &*self.listener.lock() {
            listener.refused();
        }
    }

    /// How many requests were refused, and the page of the last.
    pub fn refused(&self) -> (u64, u64) {
        (self.refused.load(Relaxed), self.last.load(Relaxed))
    }
}
