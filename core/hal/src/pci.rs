//! PCI functions: configuration space, capabilities, base addresses, MSI-X.
//!
//! Source: PCI Local Bus Specification 3.0, chapter 6; offsets are its. Whoever owns
//! the bus implements three methods; capabilities and MSI-X are walked here, once,
//! with bounds on everything that a device could get wrong.

use core::fmt;

use crate::Mmio;

/// Where a function sits on its bus.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct PciAddress {
    /// Bus number.
    pub bus: u8,
    /// Device on the bus, below 32.
    pub device: u8,
    /// Function of the device, below 8.
    pub function: u8,
}

impl PciAddress {
    /// The number by which the function's requests name it: five bits for the device, three for
    /// the function.
    pub const fn requester_id(self) -> u16 {
        let (bus, device) = (self.bus as u16, self.device as u16 & 31);
        bus << 8 | device << 3 | self.function as u16 & 7
    }

    /// The function with this number.
    pub const fn of_requester(id: u16) -> Self {
        Self {
            bus: (id >> 8) as u8,
            device: (id >> 3) as u8 & 31,
            function: id as u8 & 7,
        }
    }
}

impl fmt::Display for PciAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            bus,
            device,
            function,
        } = self;
        write!(f, "{bus:02x}:{device:02x}.{function}")
    }
}

/// One PCI function, owned by its driver.
pub trait PciFunction {
    /// Reads the register at `offset` (a multiple of four) of the configuration space. What is
    /// from 0x100 on may be out of reach, and reads as ones.
    fn config_read(&self, offset: u16) -> u32;
    /// Writes the register at `offset` (a multiple of four).
    fn config_write(&self, offset: u16, value: u32);
    /// The registers behind base address `index` (below 6); `None` if it is not a
    /// memory range or could not be mapped.
    fn bar(&self, index: u8) -> Option<Mmio>;
}

/// What a function writes, and where to, to raise an interrupt.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MsiMessage {
    /// The bus address of the write.
    pub address: u64,
    /// The word that is written.
    pub data: u32,
}

const COMMAND: u16 = 0x04;
const COMMAND_MEMORY: u32 = 1 << 1;
const COMMAND_BUS_MASTER: u32 = 1 << 2;
const COMMAND_INTX_OFF: u32 = 1 << 10;
const STATUS_HAS_CAPABILITIES: u32 = 1 << (16 + 4);
const CAPABILITIES: u16 = 0x34;
const INTERRUPT: u16 = 0x3c;
const LINE_NONE: u8 = 0xff;
const CAPABILITY_MSIX: u8 = 0x11;
/// 192 bytes behind the header hold at most this many capabilities; a longer list loops.
const CAPABILITIES_MAX: usize = 48;

/// Vendor and device identification.
pub fn id(function: &impl PciFunction) -> (u16, u16) {
    let word = function.config_read(0);
    (word as u16, (word >> 16) as u16)
}

/// Lets the function answer at its base addresses and reach memory by itself; its
/// shared interrupt line is switched off.
pub fn enable(function: &impl PciFunction) {
    let command = function.config_read(COMMAND) & 0xffff;
    let wanted = COMMAND_MEMORY | COMMAND_BUS_MASTER | COMMAND_INTX_OFF;
    function.config_write(COMMAND, command | wanted);
}

/// Lets the function use its interrupt line, which others may share.
pub fn allow_line(function: &impl PciFunction) {
    let command = function.config_read(COMMAND) & 0xffff;
    function.config_write(COMMAND, command & !COMMAND_INTX_OFF);
}

/// The number of the function's interrupt line, as the firmware has wired it; `None` if
/// it has none.
pub fn interrupt_line(function: &impl PciFunction) -> Option<u8> {
    let word = function.config_read(INTERRUPT);
    let (line, pin) = (word as u8, (word >> 8) as u8);
    (pin != 0 && line != LINE_NONE).then_some(line)
}

/// The function's capabilities as (identifier, offset), in its order.
pub fn capabilities(function: &impl PciFunction) -> impl Iterator<Item = (u8, u16)> {
    let listed = function.config_read(COMMAND) & STATUS_HAS_CAPABILITIES != 0;
    let mut next = if listed {
        function.config_read(CAPABILITIES) as u8
    } else {
        0
    };
    core::iter::from_fn(move || {
        let offset = u16::from(next & !3);
        if offset < 0x40 {
            return None;
        }
        let word = function.config_read(offset);
        next = (word >> 8) as u8;
        Some((word as u8, offset))
    })
    .take(CAPABILITIES_MAX)
}

/// A function's MSI-X table, enabled, with all entries masked.
pub struct Msix {
    table: Mmio,
    entries: u16,
}

/// Why a function cannot use MSI-X.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MsixError {
    /// It has no such capability.
    Absent,
    /// Its table does not lie inside of a mapped base address.
    TableOutside,
    /// The entry does not exist.
    NoEntry(u16),
}

const MSIX_ENABLE: u32 = 1 << 31;
const MSIX_ENTRY_BYTES: usize = 16;
const MSIX_ENTRY_MASKED: u32 = 1;

impl Msix {
    /// Enables MSI-X on `function`, every entry masked.
    pub fn new(function: &impl PciFunction) -> Result<Self, MsixError> {
        let (_, offset) = capabilities(function)
            .find(|&(id, _)| id == CAPABILITY_MSIX)
            .ok_or(MsixError::Absent)?;
        let control = function.config_read(offset);
        let place = function.config_read(offset + 4);
        let entries = ((control >> 16) & 0x7ff) as u16 + 1;
        let table = function
            .bar((place & 7) as u8)
            .and_then(|bar| {
                bar.window(
                    (place & !7) as usize,
                    usize::from(entries) * MSIX_ENTRY_BYTES,
                )
            })
            .ok_or(MsixError::TableOutside)?;
        for entry in 0..usize::from(entries) {
            table.write32(entry * MSIX_ENTRY_BYTES + 12, MSIX_ENTRY_MASKED);
        }
        function.config_write(offset, control | MSIX_ENABLE);
        Ok(Self { table, entries })
    }

    /// How many entries there are.
    pub fn entries(&self) -> u16 {
        self.entries
    }

    /// Makes `entry` send `message` and unmasks it.
    pub fn route(&self, entry: u16, message: MsiMessage) -> Result<(), MsixError> {
        if entry >= self.entries {
            return Err(MsixError::NoEntry(entry));
        }
        let at = usize::from(entry) * MSIX_ENTRY_BYTES;
        self.table.write32(at + 12, MSIX_ENTRY_MASKED);
        self.table.write32(at, message.address as u32);
        self.table.write32(at + 4, (message.address >> 32) as u32);
        self.table.write32(at + 8, message.data);
        self.table.write32(at + 12, 0);
        Ok(())
    }

    /// Has `entry` send nothing.
    pub fn mask(&self, entry: u16) {
        if entry < self.entries {
            let at = usize::from(entry) * MSIX_ENTRY_BYTES;
            self.table.write32(at + 12, MSIX_ENTRY_MASKED);
        }
    }

    /// Switches MSI-X off.
    pub fn disable(self, function: &impl PciFunction) {
        let capability = capabilities(function).find(|&(id, _)| id == CAPABILITY_MSIX);
        if let Some((_, offset)) = capability {
            let control = function.config_read(offset);
            function.config_write(offset, control & !MSIX_ENABLE);
        }
    }
}
