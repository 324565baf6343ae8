//! Virtual functions: made at boot, before anybody asks who is on the buses, and functions like
//! any other from then on.
//!
//! Firmware leaves their base addresses unset. All those of a physical function lie in a row,
//! so a place is looked for where the whole row fits: in the window of the bus, below 4 GiB,
//! touching nothing that is known.

use alloc::vec::Vec;

use base::{Duration, PhysAddr};
use hal::bus_space::highest_free;
use hal::pci::{PciAddress, PciFunction};
use hal::sriov::{Sriov, SriovError, VirtualBar};
use mach::klog;

use crate::function::{BARS, COMMAND, COMMAND_MEMORY, Parent};
use crate::{Bar, Function, window};

/// Functions of this class and subclass and behind answer with ones while they are not there.
const CLASS: u16 = 0x08;
/// So long a function may take to come.
const PATIENCE: Duration = Duration::from_millis(100);

/// Why a function has no virtual ones.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Error {
    /// It has no such capability, or its extended configuration space is out of reach.
    Absent,
    /// What the capability says.
    Sriov(SriovError),
    /// Another function sits where one would.
    Taken(PciAddress),
    /// The bus has no free addresses.
    NoSpace,
    /// One does not answer.
    Silent(PciAddress),
}

/// Makes the virtual functions that `wanted` says each function is to have.
pub fn make(functions: &mut Vec<Function>, wanted: impl Fn(&Function) -> u16) {
    for place in 0..functions.len() {
        let Some(function) = functions.get(place) else {
            return;
        };
        let count = wanted(function);
        if count == 0 {
            continue;
        }
        match make_of(functions, function, count) {
            Ok(made) => functions.extend(made),
            Err(error) => klog!("pci: {} stays alone: {error:?}", function.address()),
        }
    }
}

fn make_of(all: &[Function], parent: &Function, count: u16) -> Result<Vec<Function>, Error> {
    let sriov = Sriov::find(parent, parent.address()).ok_or(Error::Absent)?;
    sriov.prepare(count).map_err(Error::Sriov)?;
    let addresses: Vec<_> = (0..count).filter_map(|n| sriov.address_of(n)).collect();
    let sits_there = |address: &&PciAddress| all.iter().any(|known| known.address() == **address);
    if let Some(address) = addresses.iter().find(sits_there) {
        return Err(Error::Taken(*address));
    }
    let rows = place_rows(all, parent, &sriov, count)?;
    sriov.enable();
    let identity = Parent {
        address: parent.address(),
        id: parent.config_read(0) & 0xffff | u32::from(sriov.device()) << 16,
    };
    let made = addresses.iter().zip(0u64..);
    let made = made.map(|(address, number)| {
        let bars = bars_of(&rows, number);
        let function = Function::of_parent(*address, identity, bars);
        answers(&function)
            .then_some(function)
            .ok_or(Error::Silent(*address))
    });
    let made: Result<Vec<_>, _> = made.collect();
    if made.is_err() {
        sriov.disable();
    }
    made
}

/// A base address of number 0, and how it is laid out.
type Row = (VirtualBar, u64);

/// Gives all base addresses their places.
fn place_rows(
    all: &[Function],
    parent: &Function,
    sriov: &Sriov<'_, Function>,
    count: u16,
) -> Result<Vec<Row>, Error> {
    let within = window::of_bus(all, parent.address()).ok_or(Error::NoSpace)?;
    let mut taken = window::taken(all, parent.address());
    let mut rows = Vec::new();
    for bar in sriov.bars() {
        let bytes = bar.bytes.checked_mul(count.into());
        let bytes = bytes.and_then(u64::checked_next_power_of_two);
        let bytes = bytes.ok_or(Error::NoSpace)?;
        let start = highest_free(bytes, within.clone(), &taken).ok_or(Error::NoSpace)?;
        sriov.place(&bar, start);
        taken.push(start..start + bytes);
        rows.push((bar, start));
    }
    Ok(rows)
}

fn bars_of(rows: &[Row], number: u64) -> [Option<Bar>; BARS] {
    let mut bars = [None; BARS];
    for (bar, start) in rows {
        if let Some(place) = bars.get_mut(usize::from(bar.index)) {
            *place = Some(Bar {
                start: PhysAddr(start + number * bar.bytes),
                bytes: bar.bytes as usize,
                is_prefetchable: bar.is_prefetchable,
            });
        }
    }
    bars
}

/// Waits until the function answers. Its physical one says whether it answers at its base
/// addresses, and a bit of its own is fixed at zero (9.3.4.1.3); QEMU's heeds that bit, too.
fn answers(function: &Function) -> bool {
    let deadline = mach::time::now() + PATIENCE;
    loop {
        if function.config_read(CLASS) != u32::MAX {
            function.config_write(COMMAND, COMMAND_MEMORY);
            return true;
        }
        if mach::time::now() > deadline {
            return false;
        }
        core::hint::spin_loop();
    }
}
