//! A ring of descriptors, and the registers that tell the card of it.
//!
//! The card owns the descriptors from its head up to, not including, the tail. Equal
//! means that it owns none, so one descriptor always stays free.

use core::sync::atomic::{Ordering, fence};

use hal::caching::WriteBack;
use hal::owner::Shared;
use hal::{DmaBuf, DmaError, DmaRequest, DmaSource, HasDeviceAddr, Mmio};

use crate::descriptor::{self, Words};

/// Descriptors of a ring: a multiple of 8 (section 2.6).
pub(crate) const SLOTS: u16 = 256;
const _: () = assert!(SLOTS.is_power_of_two(), "the index is masked");
const BYTES: usize = SLOTS as usize * descriptor::BYTES;

/// Offsets from the ring's first register (13.4.25 and following).
const BASE_LOW: usize = 0x00;
const BASE_HIGH: usize = 0x04;
const LENGTH: usize = 0x08;
const HEAD: usize = 0x10;
const TAIL: usize = 0x18;
const REGISTERS_BYTES: usize = 0x20;

pub(crate) struct Ring {
    memory: DmaBuf<WriteBack, Shared>,
    registers: Mmio,
    /// What the card was last told.
    tail: u16,
}

impl Ring {
    /// An empty ring, of which the card is told at `offset`.
    pub(crate) fn new(
        memory: &impl DmaSource,
        registers: &Mmio,
        offset: usize,
    ) -> Result<Self, crate::Error> {
        let registers = registers
            .window(offset, REGISTERS_BYTES)
            .ok_or(crate::Error::RegistersOutside)?;
        let memory = memory
            .dma_alloc(&DmaRequest::new(BYTES, BYTES))
            .map(DmaBuf::share)
            .map_err(crate::Error::Memory)?;
        let whole = memory
            .dev_addr(0, BYTES)
            .ok_or(crate::Error::Memory(DmaError::TooLarge { bytes: BYTES }))?;
        registers.write32(BASE_LOW, whole.addr().0 as u32);
        registers.write32(BASE_HIGH, (whole.addr().0 >> 32) as u32);
        registers.write32(LENGTH, whole.len());
        registers.write32(HEAD, 0);
        registers.write32(TAIL, 0);
        Ok(Self {
            memory,
            registers,
            tail: 0,
        })
    }

    #[inline]
    pub(crate) fn write(&self, slot: u16, words: Words) {
        let at = place(slot);
        self.memory.write_u64(at, words[0]);
        self.memory.write_u64(at + 8, words[1]);
    }

    /// The second word, read before anything that it announces.
    #[inline]
    pub(crate) fn status(&self, slot: u16) -> u64 {
        self.memory.acquire_u64(place(slot) + 8)
    }

    /// Gives the card all descriptors up to, not including, `slot`.
    #[inline]
    pub(crate) fn give_up_to(&mut self, slot: u16) {
        let tail = slot % SLOTS;
        if tail != self.tail {
            fence(Ordering::Release);
            self.registers.write32(TAIL, u32::from(tail));
            self.tail = tail;
        }
    }

    /// The card has been reset.
    pub(crate) fn retire(&mut self) {
        self.memory.retire();
    }
}

#[inline]
fn place(slot: u16) -> usize {
    usize::from(slot % SLOTS) * descriptor::BYTES
}
