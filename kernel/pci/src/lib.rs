//! The functions of the PCI buses: who is there, where it answers, who drives it.
//!
//! Functions are found once, at boot ([`init`]), and reached through configuration mechanism #1
//! (`mach::pci_ports`), whose 256 bytes hold nearly all that drivers read; what lies behind them
//! is read in memory where ACPI's MCFG says so. Base addresses are taken as the firmware left
//! them; a function whose base address is unset cannot be mapped. Virtual functions are made
//! then or never, so that who is on the buses does not change any more.
//! Not here: what a function is for (drivers), what its capabilities say (`core/hal`).
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod extended;
mod function;
mod virtual_functions;
mod window;

use alloc::vec::Vec;

use base::PhysAddr;
use hal::pci::PciAddress;
use mach::sync::Once;

pub use function::{BARS, Function};

const MULTI_FUNCTION: u8 = 0x80;

/// A range of memory at which a function answers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bar {
    /// Where it begins.
    pub start: PhysAddr,
    /// Bytes: a power of two.
    pub bytes: usize,
    /// Reading has no side effects, so writes may be combined.
    pub is_prefetchable: bool,
}

impl Bar {
    /// Whether `bytes` bytes at `start` all lie inside.
    pub fn holds(&self, start: PhysAddr, bytes: u64) -> bool {
        let end = start.checked_add(bytes);
        let own_end = self.start + self.bytes as u64;
        start >= self.start && end.is_some_and(|end| end <= own_end)
    }
}

/// The machine's, looked for once.
static FUNCTIONS: Once<Vec<Function>> = Once::new();

/// Looks for all functions, and makes as many virtual ones of each as `virtual_functions` says.
/// Before anybody drives one, or counts them.
pub fn init(virtual_functions: impl Fn(&Function) -> u16) {
    FUNCTIONS.call_once(|| {
        let mut found = scan();
        found.iter_mut().for_each(Function::extend);
        virtual_functions::make(&mut found, virtual_functions);
        found
    });
}

/// All functions of all buses that the firmware has numbered, and virtual ones.
pub fn functions() -> &'static [Function] {
    FUNCTIONS.get().map_or(&[], Vec::as_slice)
}

/// How many virtual functions a function has.
pub fn virtual_functions_of(function: &Function) -> u16 {
    let parent = Some(function.address());
    let own = functions().iter().filter(|one| one.physical() == parent);
    own.count() as u16
}

/// The function whose base addresses hold all of `bytes` bytes at `start`.
pub fn owner_of(start: PhysAddr, bytes: u64) -> Option<&'static Function> {
    functions().iter().find(|function| {
        let mut bars = function.bars().iter().flatten();
        bars.any(|bar| bar.holds(start, bytes))
    })
}

fn scan() -> Vec<Function> {
    let mut found = Vec::new();
    let mut buses = alloc::vec![0u8];
    let mut next = 0;
    while let Some(&bus) = buses.get(next) {
        next += 1;
        for device in 0..32 {
            scan_device(bus, device, &mut found, &mut buses);
        }
    }
    found
}

fn scan_device(bus: u8, device: u8, found: &mut Vec<Function>, buses: &mut Vec<u8>) {
    let first = Function::at(PciAddress {
        bus,
        device,
        function: 0,
    });
    if !first.exists() {
        return;
    }
    let count = if first.header_type() & MULTI_FUNCTION != 0 {
        8
    } else {
        1
    };
    for number in 0..count {
        let mut function = Function::at(PciAddress {
            function: number,
            ..first.address()
        });
        if !function.exists() {
            continue;
        }
        if let Some(behind) = function.buses_behind() {
            // A bus is listed once, so a bridge that points back ends the walk.
            if !buses.contains(behind.start()) {
                buses.push(*behind.start());
            }
        }
        function.find_bars();
        found.push(function);
    }
}
