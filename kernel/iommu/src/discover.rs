//! From the firmware's table to units that are open and functions that have domains.

use alloc::vec::Vec;
use core::ops::RangeInclusive;

use acpi::{Dmar, RequesterId};
use base::PhysAddr;
use hal::pci::PciAddress;
use mach::klog;
use mach::mem::{DmaMemory, map_device};
use pci::functions;
use vtd::{Error, Pages, REGISTERS_BYTES_MAX, Unit};

use crate::functions::Guarded;
use crate::machine::{Machine, Remapper};

/// Configuration mechanism #1 reaches this segment only.
const SEGMENT: u16 = 0;

/// The units of the table that work, with a domain for each function; `None` if there is none.
pub fn machine(dmar: Dmar<'static>) -> Option<Machine> {
    // A unit keeps its place in the table, whether it works or not.
    let units = dmar.units().enumerate();
    let mut units: Vec<_> = units
        .map(|(place, unit)| open(place, unit.registers))
        .collect();
    let mut guarded = Vec::new();
    for function in functions() {
        let address = function.address();
        let place = dmar.unit_of(SEGMENT, requester(address), &buses_behind);
        let unit = place.and_then(|place| units.get_mut(place)?.as_mut().map(|unit| (place, unit)));
        match unit.map(|(place, unit)| guard(address, place, unit, &dmar)) {
            None => klog!("iommu: none is before {address}"),
            Some(Err(error)) => klog!("iommu: {address} reaches nothing: {error:?}"),
            Some(Ok(function)) => guarded.push(function),
        }
    }
    let works = units.iter().any(Option::is_some);
    works.then(|| Machine::new(units, guarded, dmar.io_apic(&buses_behind)))
}

/// The unit whose registers are there, unless it cannot be used.
fn open(place: usize, at: u64) -> Option<Remapper> {
    let registers = map_device(PhysAddr(at), REGISTERS_BYTES_MAX);
    let unit = registers
        .ok_or(Error::NotVtd)
        .and_then(|registers| Unit::open(registers, DmaMemory::Untranslated));
    match unit {
        Ok(unit) => Some(Remapper::new(place, at, unit)),
        Err(error) => {
            klog!("iommu: the unit at {at:#x} is not used: {error:?}");
            None
        }
    }
}

/// Gives a function a domain, with what the firmware reserved for it.
fn guard(
    address: PciAddress,
    place: usize,
    remapper: &mut Remapper,
    dmar: &Dmar<'_>,
) -> Result<Guarded, Error> {
    let unit = remapper.unit.get_mut();
    let domain = unit.new_domain()?;
    let mut has_reserved = false;
    for memory in dmar.reserved() {
        let is_its =
            memory.segment == SEGMENT && memory.scopes.hold(requester(address), &buses_behind);
        if is_its {
            has_reserved = true;
            let bytes = memory.end - memory.start;
            unit.map(domain, Pages::identical(memory.start, bytes))?;
        }
    }
    unit.attach(address, domain)?;
    Ok(Guarded::new(address, place, domain, has_reserved))
}

fn requester(address: PciAddress) -> RequesterId {
    RequesterId(address.requester_id())
}

/// The buses behind the bridge of that name.
fn buses_behind(bridge: RequesterId) -> Option<RangeInclusive<u8>> {
    let mut all = functions().iter();
    let function = all.find(|function| requester(function.address()) == bridge)?;
    function.buses_behind()
}
