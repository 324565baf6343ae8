//! A ring's memory, and the registers that tell the card of it.

use core::sync::atomic::{Ordering, fence};

use hal::caching::WriteBack;
use hal::owner::Shared;
use hal::{DmaBuf, DmaError, DmaRequest, DmaSource, HasDeviceAddr, Registers};

/// A descriptor: sixteen bytes, as two little-endian words of 64 bits.
pub type Words = [u64; 2];

/// Bytes of a descriptor.
const DESCRIPTOR_BYTES: usize = 16;
/// Descriptors of a ring that has as many as most: a multiple of 8, as all these cards want it.
pub const SLOTS: u16 = 256;

/// Cards want a multiple of so many.
const SLOTS_MIN: u16 = 8;

/// Offsets from the ring's first register; the same from the 82540 to the 82576 and on.
const BASE_LOW: usize = 0x00;
const BASE_HIGH: usize = 0x04;
const LENGTH: usize = 0x08;
const HEAD: usize = 0x10;
const TAIL: usize = 0x18;

/// A ring of descriptors.
pub struct Ring<R> {
    memory: DmaBuf<WriteBack, Shared>,
    registers: R,
    /// How many there are, a power of two, less one.
    mask: u16,
    /// What the card was last told.
    tail: u16,
}

impl<R: Registers> Ring<R> {
    /// An empty ring, of which the card does not know yet; `registers` are the ring's.
    ///
    /// Errors: no memory; `slots` is no power of two, or less than 8.
    pub fn new(memory: &impl DmaSource, registers: R, slots: u16) -> Result<Self, DmaError> {
        if slots < SLOTS_MIN {
            return Err(DmaError::Empty);
        }
        let bytes = usize::from(slots) * DESCRIPTOR_BYTES;
        let memory = memory.dma_alloc(&DmaRequest::new(bytes, bytes))?;
        Ok(Self {
            memory: memory.share(),
            registers,
            mask: slots - 1,
            tail: 0,
        })
    }

    /// How many descriptors it has.
    #[inline]
    pub fn slots(&self) -> u16 {
        self.mask + 1
    }

    /// Which of them a count of descriptors is.
    #[inline]
    pub(crate) fn index(&self, slot: u16) -> usize {
        usize::from(slot & self.mask)
    }

    #[inline]
    fn place(&self, slot: u16) -> usize {
        self.index(slot) * DESCRIPTOR_BYTES
    }

    /// Tells a card that uses no ring here, or no longer does, of this one: it is empty.
    pub fn tell(&mut self) -> Result<(), DmaError> {
        let bytes = usize::from(self.slots()) * DESCRIPTOR_BYTES;
        let whole = self.memory.dev_addr(0, bytes);
        let whole = whole.ok_or(DmaError::TooLarge { bytes })?;
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
        let at = self.place(slot);
        self.memory.write_u64(at, words[0]);
        self.memory.write_u64(at + 8, words[1]);
    }

    /// The second word, read before anything that it announces.
    #[inline]
    pub fn second(&self, slot: u16) -> u64 {
        self.memory.acquire_u64(self.place(slot) + 8)
    }

    /// The first word, once the second one says that the card wrote both.
    #[inline]
    pub fn first(&self, slot: u16) -> u64 {
        self.memory.read_u64(self.place(slot))
    }

    /// Gives the card all descriptors up to, not including, `slot`.
    #[inline]
    pub fn give_up_to(&mut self, slot: u16) {
        let tail = slot & self.mask;
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
