//! PCI functions, found and reached through configuration mechanism #1.
//!
//! The two ports (PCI Local Bus 3.0, section 3.2.2.3.2) exist on every PC chipset, and the
//! first 256 bytes of configuration space hold all that our drivers read. Base
//! addresses are taken as the firmware left them; a function whose base address is
//! unset cannot be mapped.
//! Not here: what a function is for (drivers), the extended space.
//!
//! Invariant **Ports**: the address and data ports reach configuration space only, and
//! `CONFIG` is held across the two accesses of each transfer.

use alloc::vec::Vec;

use base::PhysAddr;
use hal::Mmio;
use hal::pci::{PciAddress, PciFunction};

use crate::sync::Spin;

const ADDRESS_PORT: u16 = 0xcf8;
const DATA_PORT: u16 = 0xcfc;
const ENABLE: u32 = 1 << 31;

/// Offsets in the header.
const VENDOR: u16 = 0x00;
const COMMAND: u16 = 0x04;
const HEADER_TYPE: u16 = 0x0c;
const BAR0: u16 = 0x10;
const BRIDGE_BUSES: u16 = 0x18;

const COMMAND_MEMORY: u32 = 1 << 1;
const MULTI_FUNCTION: u8 = 0x80;
const TYPE_BRIDGE: u8 = 1;
const BARS: u8 = 6;

static CONFIG: Spin<()> = Spin::new(());

/// A function of the machine's PCI buses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Function(PciAddress);

impl Function {
    /// Where it sits.
    pub fn address(&self) -> PciAddress {
        self.0
    }

    fn select(&self, offset: u16) -> u32 {
        let PciAddress {
            bus,
            device,
            function,
        } = self.0;
        let place = u32::from(bus) << 16 | u32::from(device) << 11 | u32::from(function) << 8;
        ENABLE | place | u32::from(offset & 0xfc)
    }

    fn header_type(&self) -> u8 {
        (self.config_read(HEADER_TYPE) >> 16) as u8
    }

    fn exists(&self) -> bool {
        self.config_read(VENDOR) as u16 != 0xffff
    }

    /// How many bytes base address `offset` decodes; writing ones shows the fixed bits.
    fn bar_bytes(&self, offset: u16) -> usize {
        let command = self.config_read(COMMAND) & 0xffff;
        self.config_write(COMMAND, command & !COMMAND_MEMORY);
        let kept = self.config_read(offset);
        self.config_write(offset, u32::MAX);
        let mask = self.config_read(offset) & !0xf;
        self.config_write(offset, kept);
        self.config_write(COMMAND, command);
        (!mask).wrapping_add(1) as usize
    }
}

impl PciFunction for Function {
    fn config_read(&self, offset: u16) -> u32 {
        let _held = CONFIG.lock();
        // SAFETY: **Ports**.
        unsafe {
            arch::instr::out32(ADDRESS_PORT, self.select(offset));
            arch::instr::in32(DATA_PORT)
        }
    }

    fn config_write(&self, offset: u16, value: u32) {
        let _held = CONFIG.lock();
        // SAFETY: **Ports**; a device reaches memory only by the addresses its driver
        // gives it.
        unsafe {
            arch::instr::out32(ADDRESS_PORT, self.select(offset));
            arch::instr::out32(DATA_PORT, value);
        }
    }

    fn bar(&self, index: u8) -> Option<Mmio> {
        if index >= BARS {
            return None;
        }
        let offset = BAR0 + u16::from(index) * 4;
        let low = self.config_read(offset);
        let is_io = low & 1 != 0;
        let is_64_bit = low >> 1 & 3 == 2;
        if is_io || (is_64_bit && index + 1 == BARS) {
            return None;
        }
        let high = if is_64_bit {
            self.config_read(offset + 4)
        } else {
            0
        };
        let at = PhysAddr(u64::from(high) << 32 | u64::from(low & !0xf));
        if at.0 == 0 {
            return None;
        }
        crate::mem::map_device(at, self.bar_bytes(offset))
    }
}

/// All functions of all buses that the firmware has numbered.
pub fn functions() -> Vec<Function> {
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
    let first = Function(PciAddress {
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
    for function in (0..count).map(|function| {
        Function(PciAddress {
            function,
            ..first.0
        })
    }) {
        if !function.exists() {
            continue;
        }
        if function.header_type() & !MULTI_FUNCTION == TYPE_BRIDGE {
            let behind = (function.config_read(BRIDGE_BUSES) >> 8) as u8;
            // A bus is listed once, so a bridge that points back ends the walk.
            if !buses.contains(&behind) {
                buses.push(behind);
            }
        }
        found.push(function);
    }
}
