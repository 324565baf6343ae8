//! MSI: one message, which stands in configuration space (PCI Local Bus 3.0, section 6.8.1).
//!
//! Of functions that can send several only the first is used: the others would need numbers
//! that follow it.

use crate::pci::{MsiMessage, PciFunction, capabilities};

const CAPABILITY_MSI: u8 = 0x05;
/// In the first register.
const ENABLE: u32 = 1 << 16;
/// How many messages are allowed, as a power of two.
const ALLOWED: u32 = 7 << 20;
const IS_64_BIT: u32 = 1 << 23;
const HAS_MASKS: u32 = 1 << 24;

/// Where a function's message stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Msi {
    offset: u16,
    is_64_bit: bool,
    has_masks: bool,
}

impl Msi {
    /// `None` if the function has none.
    pub fn of(function: &impl PciFunction) -> Option<Self> {
        let (_, offset) = capabilities(function).find(|&(id, _)| id == CAPABILITY_MSI)?;
        let control = function.config_read(offset);
        Some(Self {
            offset,
            is_64_bit: control & IS_64_BIT != 0,
            has_masks: control & HAS_MASKS != 0,
        })
    }

    /// The registers of address and data: the first, and the end.
    pub fn registers(&self) -> (u16, u16) {
        (self.offset + 4, self.data() + 4)
    }

    fn data(&self) -> u16 {
        self.offset + if self.is_64_bit { 12 } else { 8 }
    }

    /// Has the function send `message`.
    pub fn route(&self, function: &impl PciFunction, message: MsiMessage) {
        self.disable(function);
        function.config_write(self.offset + 4, message.address as u32);
        if self.is_64_bit {
            function.config_write(self.offset + 8, (message.address >> 32) as u32);
        }
        function.config_write(self.data(), message.data);
        if self.has_masks {
            function.config_write(self.data() + 4, 0);
        }
        let control = function.config_read(self.offset);
        function.config_write(self.offset, control & !ALLOWED | ENABLE);
    }

    /// Has the function send none.
    pub fn disable(&self, function: &impl PciFunction) {
        let control = function.config_read(self.offset);
        function.config_write(self.offset, control & !ENABLE);
    }
}
