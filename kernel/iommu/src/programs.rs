//! Functions that programs drive: each is lent to one program at a time, which says what its
//! domain maps.
//!
//! A domain that is lent maps only what its program asked for. When the loan ends the domain is
//! emptied before the next program can have it; a unit that does not say that it forgot all keeps
//! the function lent for good, and what was mapped must be taken as reachable.

use alloc::sync::Arc;

use hal::pci::PciAddress;
use vtd::{Error, Pages};

use crate::MACHINE;
use crate::functions::{Guarded, Refused};
use crate::machine::Remapper;

/// Bytes that are taken away while the unit is held: others wait for it.
const TURN_BYTES: u64 = 32 << 20;

/// Why a function is not lent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LendError {
    /// No unit is before it, a driver has it, or the firmware reserved memory for it.
    Unfit,
    /// It is lent.
    Lent,
}

/// Why something was not mapped. Nothing of it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LentError {
    /// There is no memory for tables, or it cannot be mapped there.
    Refused,
    /// The unit does not answer: the device may still reach it.
    Stuck,
}

/// Whether the machine has a unit.
pub fn is_there() -> bool {
    MACHINE.get().is_some()
}

/// The number of a function among those behind units.
pub fn group_of(address: PciAddress) -> Option<usize> {
    let mut all = MACHINE.get()?.functions().iter();
    all.position(|known| known.address == address)
}

/// Whether a program could have a function.
pub fn can_lend(address: PciAddress) -> bool {
    let function = MACHINE.get().and_then(|machine| machine.find(address));
    function.is_some_and(is_fit)
}

fn is_fit(function: &Guarded) -> bool {
    !function.is_driven() && !function.has_reserved
}

/// Lends a function.
pub fn lend(address: PciAddress) -> Result<Lent, LendError> {
    let machine = MACHINE.get().ok_or(LendError::Unfit)?;
    let function = machine.find(address).ok_or(LendError::Unfit)?;
    let remapper = machine.unit(function.unit).ok_or(LendError::Unfit)?;
    if !is_fit(function) {
        return Err(LendError::Unfit);
    }
    match function.lend() {
        true => Ok(Lent(Some((function, remapper)))),
        false => Err(LendError::Lent),
    }
}

/// A function that is lent, until this is dropped: with its domain, unless it is unconfined.
pub struct Lent(Option<(&'static Guarded, &'static Remapper)>);

impl Lent {
    /// A function that no unit is before: it reaches everything.
    pub const UNCONFINED: Self = Self(None);

    /// Whether it reaches only what is mapped.
    pub fn is_confined(&self) -> bool {
        self.0.is_some()
    }

    /// The first address that its table cannot lead from.
    pub fn limit(&self) -> u64 {
        self.0.map_or(0, |(function, remapper)| {
            let limit = remapper.unit.lock().limit(function.domain);
            limit.unwrap_or(0)
        })
    }

    /// Lets the function reach pages. The unit is held meanwhile, so they should be few.
    pub fn map(&self, pages: Pages) -> Result<(), LentError> {
        let (function, remapper) = self.0.ok_or(LentError::Refused)?;
        let mapped = remapper.unit.lock().map(function.domain, pages);
        mapped.map_err(|error| match error {
            Error::InvalidationStuck { .. } => LentError::Stuck,
            _ => LentError::Refused,
        })
    }

    /// Takes away what is mapped in a range; false if the function may still reach it. May let
    /// others run.
    #[must_use = "what may still be reached must not become somebody else's"]
    pub fn unmap(&self, start: u64, bytes: u64) -> bool {
        let end = start + bytes;
        let mut at = start;
        let mut is_out = true;
        while at < end {
            let next = end.min((at / TURN_BYTES + 1) * TURN_BYTES);
            is_out &= self.clear_range(at, next - at);
            at = next;
            sched::resched_point();
        }
        is_out
    }

    fn clear_range(&self, start: u64, bytes: u64) -> bool {
        self.0.is_none_or(|(function, remapper)| {
            let mut unit = remapper.unit.lock();
            unit.clear(function.domain, start, bytes).is_ok()
        })
    }

    /// Takes away everything; false if the function may still reach some of it.
    #[must_use = "what may still be reached must not become somebody else's"]
    pub fn clear(&self) -> bool {
        match self.limit() {
            // No unit, or none that knows the domain.
            0 => self.0.is_none(),
            limit => self.clear_range(0, limit),
        }
    }

    /// Pages that tables take to map what is mapped.
    pub fn tables(&self) -> usize {
        self.0.map_or(0, |(function, remapper)| {
            let tables = remapper.unit.lock().tables(function.domain);
            tables.unwrap_or(0)
        })
    }

    /// Says who hears that something was refused; nobody with `None`.
    pub fn tell(&self, listener: Option<Arc<dyn Refused>>) {
        if let Some((function, _)) = self.0 {
            function.tell(listener);
        }
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        let Some((function, _)) = self.0 else {
            return;
        };
        self.tell(None);
        match self.clear() {
            true => function.take_back(),
            false => mach::klog!("iommu: {} stays lent for good", function.address),
        }
    }
}
