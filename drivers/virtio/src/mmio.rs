//! Virtio over MMIO, version 2 (section 4.2.2): all registers in one window.

use hal::Mmio;
use virtq::Addresses;

use crate::{Doorbell, Error, Kind};

const MAGIC: usize = 0x000;
const VERSION: usize = 0x004;
const DEVICE_ID: usize = 0x008;
const DEVICE_FEATURES: usize = 0x010;
const DEVICE_FEATURES_SEL: usize = 0x014;
const DRIVER_FEATURES: usize = 0x020;
const DRIVER_FEATURES_SEL: usize = 0x024;
const QUEUE_SEL: usize = 0x030;
const QUEUE_NUM_MAX: usize = 0x034;
const QUEUE_NUM: usize = 0x038;
const QUEUE_READY: usize = 0x044;
const QUEUE_NOTIFY: usize = 0x050;
const INTERRUPT_STATUS: usize = 0x060;
const INTERRUPT_ACK: usize = 0x064;
const STATUS: usize = 0x070;
const QUEUE_DESC: usize = 0x080;
const QUEUE_DRIVER: usize = 0x090;
const QUEUE_DEVICE: usize = 0x0a0;
const CONFIG: usize = 0x100;

/// "virt", little endian.
const MAGIC_VALUE: u32 = 0x7472_6976;

/// The register window of one device.
#[derive(Debug)]
pub struct MmioTransport {
    registers: Mmio,
    config: Mmio,
}

/// The two registers that an interrupt handler needs.
#[derive(Debug)]
pub struct InterruptRegisters(Mmio);

/// In the status of interrupts (section 4.2.2).
const CONFIGURATION_CHANGED: u32 = 1 << 1;

impl InterruptRegisters {
    /// Acknowledges what is pending, so that the line falls; whether a change of the configuration was.
    pub fn acknowledge(&self) -> bool {
        let pending = self.0.read32(0);
        self.0.write32(INTERRUPT_ACK - INTERRUPT_STATUS, pending);
        pending & CONFIGURATION_CHANGED != 0
    }
}

impl MmioTransport {
    /// The device behind `registers`; an empty slot is [`Error::NotVirtio`].
    pub fn new(registers: Mmio) -> Result<Self, Error> {
        let space = registers
            .bytes()
            .checked_sub(CONFIG)
            .ok_or(Error::RegistersOutside)?;
        let is_virtio = registers.read32(MAGIC) == MAGIC_VALUE
            && registers.read32(VERSION) == 2
            && registers.read32(DEVICE_ID) != 0;
        if !is_virtio {
            return Err(Error::NotVirtio);
        }
        let config = registers
            .window(CONFIG, space)
            .ok_or(Error::RegistersOutside)?;
        Ok(Self { registers, config })
    }

    /// What the interrupt handler needs.
    pub fn interrupt_registers(&self) -> Option<InterruptRegisters> {
        self.registers
            .window(INTERRUPT_STATUS, 8)
            .map(InterruptRegisters)
    }

    pub(crate) fn kind(&self) -> Kind {
        Kind::from_number(self.registers.read32(DEVICE_ID))
    }

    pub(crate) fn config(&self) -> &Mmio {
        &self.config
    }

    pub(crate) fn status(&self) -> u8 {
        self.registers.read32(STATUS) as u8
    }

    pub(crate) fn set_status(&self, status: u8) {
        self.registers.write32(STATUS, status.into());
    }

    pub(crate) fn offered_features(&self) -> u64 {
        let half = |select: u32| {
            self.registers.write32(DEVICE_FEATURES_SEL, select);
            u64::from(self.registers.read32(DEVICE_FEATURES))
        };
        half(0) | half(1) << 32
    }

    pub(crate) fn accept_features(&self, features: u64) {
        for (select, half) in [(0, features as u32), (1, (features >> 32) as u32)] {
            self.registers.write32(DRIVER_FEATURES_SEL, select);
            self.registers.write32(DRIVER_FEATURES, half);
        }
    }

    pub(crate) fn queue_size_max(&self, index: u16) -> u16 {
        self.registers.write32(QUEUE_SEL, index.into());
        self.registers.read32(QUEUE_NUM_MAX) as u16
    }

    pub(crate) fn add_queue(
        &self,
        index: u16,
        size: u16,
        at: Addresses,
        _vector: u16,
    ) -> Result<Doorbell, Error> {
        self.registers.write32(QUEUE_SEL, index.into());
        self.registers.write32(QUEUE_NUM, size.into());
        self.write64(QUEUE_DESC, at.descriptors.0);
        self.write64(QUEUE_DRIVER, at.available.0);
        self.write64(QUEUE_DEVICE, at.used.0);
        self.registers.write32(QUEUE_READY, 1);
        let register = self
            .registers
            .window(QUEUE_NOTIFY, 4)
            .ok_or(Error::RegistersOutside)?;
        Ok(Doorbell {
            register,
            queue: index,
            wide: true,
        })
    }

    fn write64(&self, offset: usize, value: u64) {
        self.registers.write32(offset, value as u32);
        self.registers.write32(offset + 4, (value >> 32) as u32);
    }
}
