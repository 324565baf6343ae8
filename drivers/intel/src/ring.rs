//! A ring's memory, and the registers that tell the card of it.

use core::sync::atomic::{Ordering, fence};

use hal::caching::WriteBack;
use hal::owner::Shared;
use hal::{DmaBuf, DmaError, DmaRequest, DmaSource, HasDeviceAddr, Registers};

/// A descriptor: sixteen bytes, as two little-endian words of 64 bits.
pub type Words = [u64; 2];

/// Bytes of a descriptor.
const DESCRIPTOR_BYTES: usize = 16;
/// Descriptors of a ring: a multiple of 8, as all these cards want it.
pub const SLOTS: u16 = 256;
const _: () = assert!(SLOTS.is_power_of_two(), "the index is masked");
const BYTES: usize = SLOTS as usize * DESCRIPTOR_BYTES;

/// Offsets from the ring's first register; the same from the 82540 to the 82576 and on.
const BASE_LOW: usize = 0x00;
const BASE_HIGH: usize = 0x04;
const LENGTH: usize = 0x08;
const HEAD: usize = 0x10;
const TAIL: usize = 0x18;

/// A ring of [`SLOTS`] descriptors.
pub struct Ring<R> {
    memory: DmaBuf<WriteBack, Shared>,
    registers: R,
    /// What the card was last told.
    tail: u16,
}

impl<R: Registers> Ring<R> {
    /// An empty ring, of which the card does not know yet; `registers` are the ring's.
    pub fn new(memory: &impl DmaSource, registers: R) -> Result<Self, DmaError> {
        let memory = memory.dma_alloc(&DmaRequest::new(BYTES, BYTES))?;
        Ok(Self {
            memory: memory.share(),
            registers,
            tail: 0,
        })
    }

    /// Tells a card that uses no ring here, or no longer does, of this one: it is empty.
    pub fn tell(&mut self) -> Result<(), DmaError> {
        let whole = self.memory.dev_addr(0, BYTES);
        let whole = whole.ok_or(DmaError::TooLarge { bytes: BYTES })?;
        let registers = &self.registers;
        registers.write32(BASE_LOW, whole.addr().0 as u32);
        registers.write32(BASE_HIGH, (whole.addr().0 >> 32) as u32);
        registers.write32(LENGTH, whole.len());
        registers.write32(HEAD, 0);
        registers.write32(TAIL, 0);
        self.tail = 0;
        Ok(())
    }

    /// The registers of the ring's queue.
    pub fn registers(&self) -> &R {
        &self.registers
    }

    /// Writes a descriptor that is the driver's.
    #[inline]
    pub fn write(&self, slot: u16, words: Words) {
        let at = place(slot);
        self.memory.write_u64(at, words[0]);
        self.memory.write_u64(at + 8, words[1]);
    }

    /// The second word, read before anything that it announces.
    #[inline]
    pub fn second(&self, slot: u16) -> u64 {
        self.memory.acquire_u64(place(slot) + 8)
    }

    /// The first word, once the second one says that the card wrote both.
    #[inline]
    pub fn first(&self, slot: u16) -> u64 {
        self.memory.read_u64(place(slot))
    }

    /// Gives the card all descriptors up to, not including, `slot`.
    #[inline]
    pub fn give_up_to(&mut self, slot: u16) {
        let tail = slot % SLOTS;
        if tail != self.tail {
            fence(Ordering::Release);
            self.registers.write32(TAIL, u32::from(tail));
            self.tail = tail;
        }
    }

    /// Whether the card has taken all descriptors that it was given.
    pub fn is_drained(&self) -> bool {
        self.registers.read32(HEAD) == u32::from(self.tail)
    }

    /// The card has stopped: the memory is freed with the ring, and is leaked otherwise.
    pub fn retire(&mut self) {
        self.memory.retire();
    }
}

#[inline]
fn place(slot: u16) -> usize {
    usize::from(slot % SLOTS) * DESCRIPTOR_BYTES
}
