//! Virtual functions of a PCI Express function, and the space behind offset 0x100 in which
//! their capability stands.
//!
//! Source: PCI Express Base Specification 5.0, 7.6.3 (extended capabilities) and chapter 9
//! (single root I/O virtualisation). A physical function has `total` virtual ones, none of
//! which exists until it is told how many to make. They have no vendor, no device and no base
//! addresses of their own to be read: all of that stands in the capability of the physical one.
//! What the capability says is bounded here; where base addresses may lie says whoever
//! owns the bus.
//!
//! Not here: migration, function dependencies, the hierarchy of alternative routing-IDs.

use crate::pci::{PciAddress, PciFunction};

const EXTENDED: u16 = 0x100;
/// 3840 bytes hold at most this many capabilities of eight; a longer list loops.
const EXTENDED_MAX: usize = 480;
const CAPABILITY_SRIOV: u16 = 0x10;

/// Offsets in the capability.
const CONTROL: u16 = 0x08;
const TOTAL: u16 = 0x0c;
const COUNT: u16 = 0x10;
const ROUTING: u16 = 0x14;
const DEVICE: u16 = 0x18;
const PAGE_SIZES: u16 = 0x1c;
const PAGE_SIZE: u16 = 0x20;
const BARS: u16 = 0x24;
const BYTES: u16 = 0x40;

const CONTROL_ENABLE: u32 = 1 << 0;
const CONTROL_MEMORY: u32 = 1 << 3;
/// Pages of 4 KiB; each virtual function's registers begin on one.
const PAGES_SMALL: u32 = 1 << 0;
const PAGE_BYTES: u64 = 4096;

/// Base addresses of a function.
pub const BARS_MAX: u8 = 6;
const BAR_IO: u32 = 1 << 0;
const BAR_PREFETCHABLE: u32 = 1 << 3;

/// The function's extended capabilities as (identifier, offset), in its order.
pub fn extended_capabilities(function: &impl PciFunction) -> impl Iterator<Item = (u16, u16)> {
    let mut next = EXTENDED;
    core::iter::from_fn(move || {
        let offset = next & !3;
        if offset < EXTENDED {
            return None;
        }
        let header = function.config_read(offset);
        next = (header >> 20) as u16;
        let exists = header != 0 && header != u32::MAX;
        exists.then_some((header as u16, offset))
    })
    .take(EXTENDED_MAX)
}

/// Why there are no virtual functions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SriovError {
    /// They exist already.
    Running,
    /// The function has fewer: so many.
    Fewer(u16),
    /// It cannot keep them in pages of 4 KiB.
    PageSize,
    /// One would be on another bus, or two in one place.
    Routing,
}

/// A base address of virtual functions, by which number 0 answers; the others follow it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct VirtualBar {
    /// Which of the six.
    pub index: u8,
    /// Bytes of each function: a power of two, whole pages.
    pub bytes: u64,
    /// It may lie above 4 GiB, and takes the next index too.
    pub is_64_bit: bool,
    /// Reading has no side effects.
    pub is_prefetchable: bool,
}

/// The capability of a physical function that sits at an address.
pub struct Sriov<'a, F> {
    function: &'a F,
    address: PciAddress,
    at: u16,
}

impl<'a, F: PciFunction> Sriov<'a, F> {
    /// The capability, if `function`, which sits at `address`, has it.
    pub fn find(function: &'a F, address: PciAddress) -> Option<Self> {
        let mut listed = extended_capabilities(function);
        let (_, at) = listed.find(|&(id, _)| id == CAPABILITY_SRIOV)?;
        (at <= 4096 - BYTES).then_some(Self {
            function,
            address,
            at,
        })
    }

    fn read(&self, offset: u16) -> u32 {
        self.function.config_read(self.at + offset)
    }

    fn write(&self, offset: u16, value: u32) {
        self.function.config_write(self.at + offset, value);
    }

    /// How many virtual functions there can be.
    pub fn total(&self) -> u16 {
        (self.read(TOTAL) >> 16) as u16
    }

    /// The device identification of each; the vendor is the physical function's.
    pub fn device(&self) -> u16 {
        (self.read(DEVICE) >> 16) as u16
    }

    /// Says how many there are to be, and in which pages. Where they sit and answer may depend
    /// on both.
    pub fn prepare(&self, count: u16) -> Result<(), SriovError> {
        if self.read(CONTROL) & CONTROL_ENABLE != 0 {
            return Err(SriovError::Running);
        }
        let total = self.total();
        if count > total {
            return Err(SriovError::Fewer(total));
        }
        if self.read(PAGE_SIZES) & PAGES_SMALL == 0 {
            return Err(SriovError::PageSize);
        }
        self.write(PAGE_SIZE, PAGES_SMALL);
        self.write(COUNT, count.into());
        match (0..count).all(|number| self.address_of(number).is_some()) {
            true => Ok(()),
            false => Err(SriovError::Routing),
        }
    }

    /// Where virtual function `number` sits: on the physical one's bus, each in a place of
    /// its own.
    pub fn address_of(&self, number: u16) -> Option<PciAddress> {
        let routing = self.read(ROUTING);
        let (first, stride) = (routing as u16, (routing >> 16) as u16);
        if first == 0 || (number != 0 && stride == 0) {
            return None;
        }
        let behind = first.checked_add(number.checked_mul(stride)?)?;
        let id = self.address.requester_id().checked_add(behind)?;
        let address = PciAddress::of_requester(id);
        (address.bus == self.address.bus).then_some(address)
    }

    /// The base addresses that are ranges of memory; what is no whole page is none.
    pub fn bars(&self) -> impl Iterator<Item = VirtualBar> {
        let mut next = 0;
        core::iter::from_fn(move || {
            while next < BARS_MAX {
                let index = next;
                let low = self.read(BARS + u16::from(index) * 4);
                let is_64_bit = low & BAR_IO == 0 && low >> 1 & 3 == 2;
                next += if is_64_bit { 2 } else { 1 };
                let bar = self.bar(index, low, is_64_bit);
                if bar.is_some() {
                    return bar;
                }
            }
            None
        })
    }

    /// Writing ones shows which bits are fixed.
    fn bar(&self, index: u8, low: u32, is_64_bit: bool) -> Option<VirtualBar> {
        let is_cut = is_64_bit && index + 1 == BARS_MAX;
        if low & BAR_IO != 0 || is_cut {
            return None;
        }
        let place = BARS + u16::from(index) * 4;
        self.write(place, u32::MAX);
        let mask = self.read(place) & !0xf;
        self.write(place, low);
        let bytes = u64::from((!mask).wrapping_add(1));
        let can_be = bytes.is_power_of_two() && bytes >= PAGE_BYTES;
        can_be.then_some(VirtualBar {
            index,
            bytes,
            is_64_bit,
            is_prefetchable: low & BAR_PREFETCHABLE != 0,
        })
    }

    /// Lets number 0 answer at `start`, and the others behind it.
    pub fn place(&self, bar: &VirtualBar, start: u64) {
        let place = BARS + u16::from(bar.index) * 4;
        self.write(place, start as u32);
        if bar.is_64_bit {
            self.write(place + 4, (start >> 32) as u32);
        }
    }

    /// Makes the functions that were prepared. They answer after a tenth of a second at the
    /// latest (9.3.3.3.1).
    pub fn enable(&self) {
        let control = self.read(CONTROL) & 0xffff;
        self.write(CONTROL, control | CONTROL_ENABLE | CONTROL_MEMORY);
    }

    /// Takes them away again.
    pub fn disable(&self) {
        let control = self.read(CONTROL) & 0xffff;
        self.write(CONTROL, control & !(CONTROL_ENABLE | CONTROL_MEMORY));
    }
}

#[cfg(test)]
#[path = "sriov_tests.rs"]
mod tests;
