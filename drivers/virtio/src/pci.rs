//! Virtio over PCI (section 4.1): vendor capabilities say where the registers lie.

use hal::Mmio;
use hal::pci::{self, PciFunction};
use virtq::Addresses;

use crate::{Doorbell, Error, Kind};

/// PCI vendor of virtio devices.
const VENDOR: u16 = 0x1af4;
/// Modern devices have the identifiers from here on, by type.
const MODERN_BASE: u16 = 0x1040;
const MODERN_LAST: u16 = 0x107f;
/// Transitional devices, which have a modern face too, say their type in the subsystem.
const TRANSITIONAL_BASE: u16 = 0x1000;
const TRANSITIONAL_LAST: u16 = 0x103f;
const SUBSYSTEM: u16 = 0x2c;
/// The vendor-specific capability.
const CAPABILITY_VENDOR: u8 = 0x09;

/// `cfg_type` values.
const COMMON: u8 = 1;
const NOTIFY: u8 = 2;
const DEVICE: u8 = 4;

/// Offsets in the common configuration (section 4.1.4.3).
const DEVICE_FEATURE_SELECT: usize = 0x00;
const DEVICE_FEATURE: usize = 0x04;
const DRIVER_FEATURE_SELECT: usize = 0x08;
const DRIVER_FEATURE: usize = 0x0c;
const CONFIG_MSIX_VECTOR: usize = 0x10;
const STATUS: usize = 0x14;
const QUEUE_SELECT: usize = 0x16;
const QUEUE_SIZE: usize = 0x18;
const QUEUE_MSIX_VECTOR: usize = 0x1a;
const QUEUE_ENABLE: usize = 0x1c;
const QUEUE_NOTIFY_OFF: usize = 0x1e;
const QUEUE_DESC: usize = 0x20;
const QUEUE_DRIVER: usize = 0x28;
const QUEUE_DEVICE: usize = 0x30;
const COMMON_BYTES: usize = 0x38;

/// The registers of one device, found through its capabilities.
#[derive(Debug)]
pub struct PciTransport {
    kind: Kind,
    common: Mmio,
    notify: Mmio,
    notify_multiplier: usize,
    config: Mmio,
}

/// Where a capability says that a block of registers lies.
struct Block {
    bar: u8,
    offset: usize,
    bytes: usize,
    capability: u16,
}

impl PciTransport {
    /// The virtio device behind `function`, which is hereby enabled.
    pub fn new(function: &impl PciFunction) -> Result<Self, Error> {
        let kind = kind(function).ok_or(Error::NotVirtio)?;
        pci::enable(function);
        let common = window(function, COMMON)?;
        if common.bytes() < COMMON_BYTES {
            return Err(Error::RegistersOutside);
        }
        let notify_block = find(function, NOTIFY).ok_or(Error::RegistersOutside)?;
        let multiplier = function.config_read(notify_block.capability + 16);
        Ok(Self {
            kind,
            config: window(function, DEVICE).or_else(|_| empty(&common))?,
            common,
            notify: map(function, &notify_block)?,
            notify_multiplier: multiplier as usize,
        })
    }

    pub(crate) fn kind(&self) -> Kind {
        self.kind
    }

    pub(crate) fn config(&self) -> &Mmio {
        &self.config
    }

    pub(crate) fn status(&self) -> u8 {
        self.common.read8(STATUS)
    }

    pub(crate) fn set_status(&self, status: u8) {
        self.common.write8(STATUS, status);
    }

    pub(crate) fn offered_features(&self) -> u64 {
        let half = |select: u32| {
            self.common.write32(DEVICE_FEATURE_SELECT, select);
            u64::from(self.common.read32(DEVICE_FEATURE))
        };
        half(0) | half(1) << 32
    }

    pub(crate) fn accept_features(&self, features: u64) {
        for (select, half) in [(0, features as u32), (1, (features >> 32) as u32)] {
            self.common.write32(DRIVER_FEATURE_SELECT, select);
            self.common.write32(DRIVER_FEATURE, half);
        }
    }

    pub(crate) fn set_config_vector(&self, vector: u16) -> bool {
        self.common.write16(CONFIG_MSIX_VECTOR, vector);
        self.common.read16(CONFIG_MSIX_VECTOR) == vector
    }

    pub(crate) fn queue_size_max(&self, index: u16) -> u16 {
        self.common.write16(QUEUE_SELECT, index);
        self.common.read16(QUEUE_SIZE)
    }

    pub(crate) fn add_queue(
        &self,
        index: u16,
        size: u16,
        at: Addresses,
        vector: u16,
    ) -> Result<Doorbell, Error> {
        self.common.write16(QUEUE_SELECT, index);
        self.common.write16(QUEUE_SIZE, size);
        self.common.write16(QUEUE_MSIX_VECTOR, vector);
        if self.common.read16(QUEUE_MSIX_VECTOR) != vector {
            return Err(Error::VectorRefused(vector));
        }
        self.write64(QUEUE_DESC, at.descriptors.0);
        self.write64(QUEUE_DRIVER, at.available.0);
        self.write64(QUEUE_DEVICE, at.used.0);
        let offset = usize::from(self.common.read16(QUEUE_NOTIFY_OFF)) * self.notify_multiplier;
        let register = self
            .notify
            .window(offset, 2)
            .filter(|_| offset.is_multiple_of(2))
            .ok_or(Error::RegistersOutside)?;
        self.common.write16(QUEUE_ENABLE, 1);
        Ok(Doorbell {
            register,
            queue: index,
            wide: false,
        })
    }

    fn write64(&self, offset: usize, value: u64) {
        self.common.write32(offset, value as u32);
        self.common.write32(offset + 4, (value >> 32) as u32);
    }
}

fn kind(function: &impl PciFunction) -> Option<Kind> {
    let number = match pci::id(function) {
        (VENDOR, id @ MODERN_BASE..=MODERN_LAST) => u32::from(id - MODERN_BASE),
        (VENDOR, TRANSITIONAL_BASE..=TRANSITIONAL_LAST) => function.config_read(SUBSYSTEM) >> 16,
        _ => return None,
    };
    Some(Kind::from_number(number))
}

/// The configuration of a type of device that has none.
fn empty(registers: &Mmio) -> Result<Mmio, Error> {
    registers.window(0, 0).ok_or(Error::RegistersOutside)
}

/// The first block of type `wanted` (section 4.1.4).
fn find(function: &impl PciFunction, wanted: u8) -> Option<Block> {
    let is_wanted = |&(id, at): &(u8, u16)| {
        id == CAPABILITY_VENDOR && (function.config_read(at) >> 24) as u8 == wanted
    };
    let (_, capability) = pci::capabilities(function).find(is_wanted)?;
    Some(Block {
        bar: function.config_read(capability + 4) as u8,
        offset: function.config_read(capability + 8) as usize,
        bytes: function.config_read(capability + 12) as usize,
        capability,
    })
}

fn window(function: &impl PciFunction, wanted: u8) -> Result<Mmio, Error> {
    let block = find(function, wanted).ok_or(Error::RegistersOutside)?;
    map(function, &block)
}

fn map(function: &impl PciFunction, block: &Block) -> Result<Mmio, Error> {
    let bar = function.bar(block.bar).ok_or(Error::RegistersOutside)?;
    let is_aligned = block.offset.is_multiple_of(4);
    bar.window(block.offset, block.bytes)
        .filter(|_| is_aligned)
        .ok_or(Error::RegistersOutside)
}
