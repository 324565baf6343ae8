//! The machine's units, the functions behind them, and the memory that is for all.

use alloc::vec::Vec;
use core::ops::Range;
use core::sync::atomic::AtomicBool;

use acpi::RequesterId;
use base::PhysAddr;
use hal::pci::PciAddress;
use mach::klog;
use mach::mem::{DmaMapper, DmaMemory, NotMapped};
use mach::sync::Spin;
use vtd::{Error, MapError, Pages, Unit};

use crate::faults::{self, Refusals};
use crate::functions::Guarded;
use crate::interrupts;

/// A unit of which all tables lie in memory that nobody translates for.
pub type VtdUnit = Unit<DmaMemory>;

/// A unit that works.
pub struct Remapper {
    /// Where its registers lie, which is its name.
    pub registers: u64,
    pub unit: Spin<VtdUnit>,
    /// Functions raise only interrupts that are theirs.
    pub remaps_interrupts: AtomicBool,
    /// What is known of the requests that it refused.
    pub refusals: Refusals,
}

impl Remapper {
    pub fn new(place: usize, registers: u64, unit: VtdUnit) -> Self {
        Self {
            registers,
            unit: Spin::new(unit),
            remaps_interrupts: AtomicBool::new(false),
            refusals: Refusals::new(place),
        }
    }
}

/// All of it.
pub struct Machine {
    /// By their places in the firmware's table.
    units: Vec<Option<Remapper>>,
    functions: Vec<Guarded>,
    /// The unit behind which the interrupt controller is, and its number there.
    pub(crate) pins: Option<(usize, RequesterId)>,
    /// Physical addresses that all driven functions reach, disjoint. Held while that changes,
    /// so that a function which gets a driver meanwhile misses nothing.
    shared: Spin<Vec<Range<u64>>>,
}

impl Machine {
    pub fn new(
        units: Vec<Option<Remapper>>,
        functions: Vec<Guarded>,
        pins: Option<(usize, RequesterId)>,
    ) -> Self {
        Self {
            units,
            functions,
            pins,
            shared: Spin::new(Vec::new()),
        }
    }

    /// From here on functions reach only what their domains map.
    pub fn start(&'static self) {
        for remapper in self.units.iter().flatten() {
            if let Err(error) = remapper.unit.lock().translate() {
                klog!(
                    "iommu: the unit at {:#x} does not translate: {error:?}",
                    remapper.registers
                );
            }
        }
        faults::start(self);
        interrupts::start(self);
    }

    /// The unit at this place of the firmware's table.
    pub fn unit(&self, place: usize) -> Option<&Remapper> {
        self.units.get(place)?.as_ref()
    }

    /// Those that work, with their places.
    pub fn units(&self) -> impl Iterator<Item = (usize, &Remapper)> {
        let places = self.units.iter().enumerate();
        places.filter_map(|(place, unit)| Some((place, unit.as_ref()?)))
    }

    pub fn functions(&self) -> &[Guarded] {
        &self.functions
    }

    /// The function of this name, unless no unit is before it.
    pub fn find(&self, address: PciAddress) -> Option<&Guarded> {
        self.functions.iter().find(|known| known.address == address)
    }

    /// A function gets a driver: it reaches all that is shared.
    pub fn drive(&self, address: PciAddress) {
        let Some(function) = self.find(address) else {
            return;
        };
        let shared = self.shared.lock();
        if !function.drive() {
            return;
        }
        for memory in shared.iter() {
            if let Err(error) = self.add(function, memory.start, memory.end - memory.start) {
                klog!("iommu: {address} misses packet buffers: {error:?}");
            }
        }
    }

    fn add(&self, function: &Guarded, start: u64, bytes: u64) -> Result<(), Error> {
        let remapper = self.unit(function.unit).ok_or(Error::NoDomain)?;
        let pages = Pages::identical(start, bytes);
        remapper.unit.lock().map(function.domain, pages)
    }

    fn remove(&self, function: &Guarded, start: u64, bytes: u64) -> Result<(), Error> {
        let remapper = self.unit(function.unit).ok_or(Error::NoDomain)?;
        remapper.unit.lock().unmap(function.domain, start, bytes)
    }

    fn driven(&self) -> impl Iterator<Item = &Guarded> {
        self.functions
            .iter()
            .filter(|function| function.is_driven())
    }

    /// If that fails, some may reach it already.
    fn share(&self, start: u64, bytes: u64) -> Result<(), NotMapped> {
        let mut shared = self.shared.lock();
        shared.try_reserve(1).map_err(|_| NotMapped::Refused)?;
        shared.push(start..start + bytes);
        let mut driven = self.driven();
        match driven.all(|function| self.add(function, start, bytes).is_ok()) {
            true => Ok(()),
            false => Err(NotMapped::Reachable),
        }
    }

    /// Whether nobody reaches it any more. Memory that was shared piece by piece may be taken back
    /// as a whole.
    fn unshare(&self, start: u64, bytes: u64) -> bool {
        let mut shared = self.shared.lock();
        let is_out = |memory: &Range<u64>| memory.end <= start || memory.start >= start + bytes;
        shared.retain(is_out);
        let reaching = self.driven().filter(|function| {
            let removed = self.remove(function, start, bytes);
            !is_unreachable(&removed)
        });
        reaching.count() == 0
    }
}

/// Whether the unit has forgotten the memory, or never knew it.
fn is_unreachable(removed: &Result<(), Error>) -> bool {
    matches!(
        removed,
        Ok(()) | Err(Error::Map(MapError::NotMapped { .. }))
    )
}

impl DmaMapper for Machine {
    fn map(&self, memory: DmaMemory, start: PhysAddr, bytes: usize) -> Result<(), NotMapped> {
        let function = match memory {
            DmaMemory::Untranslated => None,
            DmaMemory::Shared => return self.share(start.0, bytes as u64),
            DmaMemory::Of(address) => self.find(address),
        };
        let mapped = function.map_or(Ok(()), |function| self.add(function, start.0, bytes as u64));
        mapped.map_err(|error| match error {
            Error::InvalidationStuck { .. } => NotMapped::Reachable,
            _ => NotMapped::Refused,
        })
    }

    fn unmap(&self, memory: DmaMemory, start: PhysAddr, bytes: usize) -> bool {
        match memory {
            DmaMemory::Untranslated => true,
            DmaMemory::Shared => self.unshare(start.0, bytes as u64),
            DmaMemory::Of(address) => self.find(address).is_none_or(|function| {
                is_unreachable(&self.remove(function, start.0, bytes as u64))
            }),
        }
    }
}
