//! A function: its configuration space, its base addresses, and who drives it.

use core::ops::RangeInclusive;
use core::sync::atomic::{AtomicBool, Ordering};

use base::PhysAddr;
use hal::Mmio;
use hal::pci::{PciAddress, PciFunction, capabilities};
use mach::pci_ports;

use crate::extended::{self, EXTENDED_BYTES};
use crate::{Bar, MULTI_FUNCTION};

/// Offsets in the header.
const VENDOR: u16 = 0x00;
pub(crate) const COMMAND: u16 = 0x04;
const CLASS: u16 = 0x08;
const HEADER_TYPE: u16 = 0x0c;
const BAR0: u16 = 0x10;
/// Of a bridge: the numbers of buses.
const BRIDGE_BUSES: u16 = 0x18;

pub(crate) const COMMAND_MEMORY: u32 = 1 << 1;
pub(crate) const COMMAND_DECODES: u32 = 1 << 0 | COMMAND_MEMORY;
const TYPE_ENDPOINT: u8 = 0;
const TYPE_BRIDGE: u8 = 1;
/// Base addresses of an endpoint.
pub const BARS: usize = 6;
const BAR_IO: u32 = 1 << 0;
const BAR_PREFETCHABLE: u32 = 1 << 3;
const CAPABILITY_EXPRESS: u8 = 0x10;

/// A function of the machine's PCI buses.
#[derive(Debug)]
pub struct Function {
    address: PciAddress,
    bars: [Option<Bar>; BARS],
    /// The configuration space, from offset 0 on, of one that has more than the ports reach.
    extended: Option<Mmio>,
    parent: Option<Parent>,
    is_driven: AtomicBool,
}

/// What a virtual function has of its physical one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Parent {
    pub address: PciAddress,
    /// Vendor and device, which a virtual function does not say itself.
    pub id: u32,
}

impl Function {
    /// The function at `address`, whether it exists or not; its base addresses are read
    /// by [`find_bars`](Self::find_bars).
    pub(crate) fn at(address: PciAddress) -> Self {
        Self {
            address,
            bars: [None; BARS],
            extended: None,
            parent: None,
            is_driven: AtomicBool::new(false),
        }
    }

    /// A virtual function.
    pub(crate) fn of_parent(
        address: PciAddress,
        parent: Parent,
        bars: [Option<Bar>; BARS],
    ) -> Self {
        Self {
            bars,
            parent: Some(parent),
            ..Self::at(address)
        }
    }

    /// The physical function whose virtual one this is.
    pub fn physical(&self) -> Option<PciAddress> {
        self.parent.map(|parent| parent.address)
    }

    /// Maps the configuration space behind what the ports reach.
    pub(crate) fn extend(&mut self) {
        let is_express = capabilities(self).any(|(id, _)| id == CAPABILITY_EXPRESS);
        self.extended = is_express.then(|| extended::map(self.address)).flatten();
    }

    /// Where it sits.
    pub fn address(&self) -> PciAddress {
        self.address
    }

    /// Class, subclass and programming interface, the class in the highest byte of three.
    pub fn class(&self) -> u32 {
        self.config_read(CLASS) >> 8
    }

    /// The buses that lie behind it, the next one first; `None` if it is no bridge.
    pub fn buses_behind(&self) -> Option<RangeInclusive<u8>> {
        if self.header_type() & !MULTI_FUNCTION != TYPE_BRIDGE {
            return None;
        }
        let [_, secondary, subordinate, _] = self.config_read(BRIDGE_BUSES).to_le_bytes();
        Some(secondary..=subordinate)
    }

    /// Its ranges of memory.
    pub fn bars(&self) -> &[Option<Bar>; BARS] {
        &self.bars
    }

    /// From now on a driver of the kernel has it, and no program may map it.
    pub fn claim(&self) {
        self.is_driven.store(true, Ordering::Release);
    }

    /// Whether a driver of the kernel has it.
    pub fn is_driven(&self) -> bool {
        self.is_driven.load(Ordering::Acquire)
    }

    pub(crate) fn header_type(&self) -> u8 {
        (self.config_read(HEADER_TYPE) >> 16) as u8
    }

    pub(crate) fn exists(&self) -> bool {
        self.config_read(VENDOR) as u16 != 0xffff
    }

    /// Reads the base addresses. The function answers at none of them meanwhile, so this
    /// is done before anybody drives it.
    pub(crate) fn find_bars(&mut self) {
        if self.header_type() & !MULTI_FUNCTION != TYPE_ENDPOINT {
            return;
        }
        let command = self.config_read(COMMAND) & 0xffff;
        self.config_write(COMMAND, command & !COMMAND_DECODES);
        let mut index = 0;
        while index < BARS {
            let (bar, words) = self.find_bar(index);
            if let Some(place) = self.bars.get_mut(index) {
                *place = bar;
            }
            index += words;
        }
        self.config_write(COMMAND, command);
    }

    /// Base address `index` if it is a range of memory, and how many words it takes.
    pub(crate) fn find_bar(&self, index: usize) -> (Option<Bar>, usize) {
        let offset = BAR0 + index as u16 * 4;
        let low = self.config_read(offset);
        let is_64_bit = low & BAR_IO == 0 && low >> 1 & 3 == 2;
        if low & BAR_IO != 0 || (is_64_bit && index + 1 == BARS) {
            return (None, 1);
        }
        let (high, words) = if is_64_bit {
            (self.config_read(offset + 4), 2)
        } else {
            (0, 1)
        };
        let start = PhysAddr(u64::from(high) << 32 | u64::from(low & !0xf));
        let bytes = self.bar_bytes(offset);
        let is_set = start.0 != 0 && bytes != 0;
        let bar = is_set.then_some(Bar {
            start,
            bytes,
            is_prefetchable: low & BAR_PREFETCHABLE != 0,
        });
        (bar, words)
    }

    /// How many bytes base address `offset` decodes; writing ones shows the fixed bits.
    fn bar_bytes(&self, offset: u16) -> usize {
        let kept = self.config_read(offset);
        self.config_write(offset, u32::MAX);
        let mask = self.config_read(offset) & !0xf;
        self.config_write(offset, kept);
        (!mask).wrapping_add(1) as usize
    }
}

impl PciFunction for Function {
    fn config_read(&self, offset: u16) -> u32 {
        match (u8::try_from(offset), &self.extended, self.parent) {
            (Ok(0), _, Some(parent)) => parent.id,
            (Ok(offset), _, _) => pci_ports::read(self.address, offset),
            (Err(_), Some(space), _) if offset < EXTENDED_BYTES => space.read32(offset.into()),
            _ => u32::MAX,
        }
    }

    fn config_write(&self, offset: u16, value: u32) {
        match (u8::try_from(offset), &self.extended) {
            (Ok(offset), _) => pci_ports::write(self.address, offset, value),
            (Err(_), Some(space)) if offset < EXTENDED_BYTES => {
                space.write32(offset.into(), value);
            }
            _ => (),
        }
    }

    fn bar(&self, index: u8) -> Option<Mmio> {
        let bar = (*self.bars.get(usize::from(index))?)?;
        mach::mem::map_device(bar.start, bar.bytes)
    }
}
