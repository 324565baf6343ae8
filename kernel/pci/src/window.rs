//! Which addresses a bus decodes, and what answers there already: base addresses, expansion
//! memory, bridges' windows, and what the firmware's map of memory claims.

use alloc::vec::Vec;
use core::ops::Range;

use hal::pci::{PciAddress, PciFunction};

use crate::Function;
use crate::function::{BARS, COMMAND, COMMAND_DECODES};

/// Of bus 0: above all RAM that lies below 4 GiB, and below interrupt controllers and timers.
/// Higher addresses no program could map.
const BUS_0: Range<u64> = 0x8000_0000..0xfec0_0000;

/// Of a bridge: two ranges of whole mebibytes.
const WINDOW: u16 = 0x20;
const WINDOW_PREFETCHABLE: u16 = 0x24;
const WINDOW_UNIT: u64 = 1 << 20;
const BRIDGE_BARS: usize = 2;
const ROM: u16 = 0x30;
const BRIDGE_ROM: u16 = 0x38;
const ROM_BASE: u32 = !0x7ff;

/// The addresses of the bus of `of`.
pub fn of_bus(functions: &[Function], of: PciAddress) -> Option<Range<u64>> {
    if of.bus == 0 {
        return Some(BUS_0);
    }
    let leads_there = |function: &&Function| {
        let behind = function.buses_behind();
        behind.is_some_and(|buses| *buses.start() == of.bus)
    };
    window(functions.iter().find(leads_there)?, WINDOW)
}

/// All that is taken there. Nobody drives a function yet.
pub fn taken(functions: &[Function], of: PciAddress) -> Vec<Range<u64>> {
    let mut taken: Vec<_> = mach::boot::info().claimed().collect();
    for function in functions {
        taken.extend(own(function));
        // What lies behind the bridge of a bus is that bus' own; other bridges pass it on.
        let leads_there = |buses: core::ops::RangeInclusive<u8>| *buses.start() == of.bus;
        if !function.buses_behind().is_some_and(leads_there) {
            let windows = [WINDOW, WINDOW_PREFETCHABLE];
            taken.extend(windows.iter().filter_map(|at| window(function, *at)));
        }
    }
    taken
}

/// Where a function itself answers. A virtual one's base addresses read as zero: they lie where its physical one was told.
fn own(function: &Function) -> Vec<Range<u64>> {
    let (bars, rom) = match function.buses_behind() {
        Some(_) => (BRIDGE_BARS, BRIDGE_ROM),
        None => (BARS, ROM),
    };
    let command = function.config_read(COMMAND) & 0xffff;
    function.config_write(COMMAND, command & !COMMAND_DECODES);
    let mut ranges = Vec::new();
    let mut index = 0;
    while index < bars {
        let (bar, words) = match function.physical() {
            Some(_) => (function.bars().get(index).copied().flatten(), 1),
            None => function.find_bar(index),
        };
        ranges.extend(bar.map(|bar| bar.start.0..bar.start.0.saturating_add(bar.bytes as u64)));
        index += words;
    }
    ranges.extend(expansion(function, rom));
    function.config_write(COMMAND, command);
    ranges
}

fn expansion(function: &Function, at: u16) -> Option<Range<u64>> {
    let kept = function.config_read(at);
    function.config_write(at, ROM_BASE);
    let bytes = (!(function.config_read(at) & ROM_BASE)).wrapping_add(1);
    function.config_write(at, kept);
    let start = u64::from(kept & ROM_BASE);
    (start != 0 && bytes != 0).then(|| start..start + u64::from(bytes))
}

/// A bridge's window; `None` if it is closed, or lies above 4 GiB, or if this is no bridge.
fn window(bridge: &Function, at: u16) -> Option<Range<u64>> {
    bridge.buses_behind()?;
    let word = bridge.config_read(at);
    let (base, limit) = (word & 0xfff0, word >> 16 & 0xfff0);
    let is_open = base <= limit && limit != 0;
    let in_bytes = |mebibytes: u32| u64::from(mebibytes) << 16;
    is_open.then(|| in_bytes(base)..in_bytes(limit) + WINDOW_UNIT)
}
