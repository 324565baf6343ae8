//! A ring of descriptors, and the registers of its queue.
//!
//! The card owns the descriptors from its head up to, not including, the tail. Equal
//! means that it owns none, so one descriptor always stays free.
//!
//! A queue is told of its ring while it is disabled, then enabled; it takes a new tail only
//! when it says that it is enabled (4.5). It may still write until it says that
//! it is disabled again.

use hal::caching::WriteBack;
use hal::owner::Shared;
use hal::{DmaBuf, DmaError, DmaRequest, DmaSource, HasDeviceAddr, Registers};

use core::sync::atomic::{Ordering, fence};

use crate::Error;
use crate::descriptor::{self, Words};

/// Descriptors of a ring: a multiple of 8.
pub(crate) const SLOTS: u16 = 256;
const _: () = assert!(SLOTS.is_power_of_two(), "the index is masked");
const BYTES: usize = SLOTS as usize * descriptor::BYTES;
/// Reads of a register until a queue is given up; each takes a microsecond on the bus.
const READS_MAX: u32 = 10_000;

/// Offsets from the queue's first register.
const BASE_LOW: usize = 0x00;
const BASE_HIGH: usize = 0x04;
const LENGTH: usize = 0x08;
pub(crate) const SPLIT: usize = 0x0c;
const HEAD: usize = 0x10;
const TAIL: usize = 0x18;
const CONTROL: usize = 0x28;
pub(crate) const DROPPED: usize = 0x30;
const REGISTERS_BYTES: usize = 0x40;
const CONTROL_ENABLE: u32 = 1 << 25;

pub(crate) struct Ring<R> {
    memory: DmaBuf<WriteBack, Shared>,
    registers: R,
    /// What the card was last told.
    tail: u16,
}

impl<R: Registers> Ring<R> {
    /// An empty ring for the queue whose registers begin at `offset`; disabled.
    pub(crate) fn new(
        memory: &impl DmaSource,
        registers: &R,
        offset: usize,
    ) -> Result<Self, Error> {
        let registers = registers
            .window(offset, REGISTERS_BYTES)
            .ok_or(Error::RegistersOutside)?;
        let memory = memory
            .dma_alloc(&DmaRequest::new(BYTES, BYTES))
            .map(DmaBuf::share)
            .map_err(Error::Memory)?;
        let ring = Self {
            memory,
            registers,
            tail: 0,
        };
        ring.tell()?;
        Ok(ring)
    }

    /// A card fresh from its reset has its first queues enabled, with no ring.
    fn tell(&self) -> Result<(), Error> {
        if !self.disable() {
            return Err(Error::QueueStuck);
        }
        let error = Error::Memory(DmaError::TooLarge { bytes: BYTES });
        let whole = self.memory.dev_addr(0, BYTES).ok_or(error)?;
        let registers = &self.registers;
        registers.write32(BASE_LOW, whole.addr().0 as u32);
        registers.write32(BASE_HIGH, (whole.addr().0 >> 32) as u32);
        registers.write32(LENGTH, whole.len());
        registers.write32(HEAD, 0);
        registers.write32(TAIL, 0);
        Ok(())
    }

    /// A register of the queue.
    pub(crate) fn registers(&self) -> &R {
        &self.registers
    }

    /// Enables the queue with these thresholds.
    pub(crate) fn enable(&mut self, thresholds: u32) -> Result<(), Error> {
        self.registers.write32(CONTROL, thresholds | CONTROL_ENABLE);
        match self.becomes(CONTROL_ENABLE) {
            true => Ok(()),
            false => Err(Error::QueueStuck),
        }
    }

    /// Stops the queue for good: true if it says that it has. The ring's memory is then
    /// freed with it, and leaked otherwise.
    pub(crate) fn stop(&mut self) -> bool {
        let has_stopped = self.disable();
        if has_stopped {
            self.memory.retire();
        }
        has_stopped
    }

    fn disable(&self) -> bool {
        let control = self.registers.read32(CONTROL);
        self.registers.write32(CONTROL, control & !CONTROL_ENABLE);
        self.becomes(0)
    }

    fn becomes(&self, enabled: u32) -> bool {
        let is_so = || self.registers.read32(CONTROL) & CONTROL_ENABLE == enabled;
        (0..READS_MAX).any(|_| is_so())
    }

    /// Waits a while for the card to take all descriptors.
    pub(crate) fn drain(&self) {
        let is_empty = || self.registers.read32(HEAD) == u32::from(self.tail);
        let _ = (0..READS_MAX).any(|_| is_empty());
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

    /// The first word, once the second one says that the card wrote both.
    #[inline]
    pub(crate) fn facts(&self, slot: u16) -> u64 {
        self.memory.read_u64(place(slot))
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
}

#[inline]
fn place(slot: u16) -> usize {
    usize::from(slot % SLOTS) * descriptor::BYTES
}
