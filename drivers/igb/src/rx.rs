//! Receiving: one queue's ring.
//!
//! A queue whose ring is full drops its frames, counted by the card, instead of holding up
//! the other queues (7.1.3, "drop enable").

use hal::{DmaSource, Registers};
use intel::RxRing;
use mbuf::Pool;

use crate::Error;
use crate::pair::Place;
use crate::queue::{self, DROPPED, SPLIT};

/// Advanced descriptors with one buffer, of two kilobytes; frames without one are dropped.
const SPLIT_ONE_BUFFER: u32 = 0b001 << 25 | 2 | 1 << 31;
/// Fetch descriptors in eights, write each back at once.
const THRESHOLDS: u32 = 8 | 8 << 8 | 1 << 16;
/// How far the card counts dropped frames.
const DROPPED_MASK: u32 = 0xfff;

pub(crate) struct Receiver<R: Registers> {
    pub(crate) ring: RxRing<R>,
}

impl<R: Registers> Receiver<R> {
    /// The queue whose registers begin there, disabled.
    pub(crate) fn new(
        registers: &R,
        place: &Place,
        memory: &impl DmaSource,
        pool: &'static (dyn Pool + Sync),
    ) -> Result<Self, Error> {
        let ring = queue::new(memory, registers, place.rx_ring, place.rx_slots)?;
        ring.registers().write32(SPLIT, SPLIT_ONE_BUFFER);
        Ok(Self {
            ring: RxRing::new(ring, pool),
        })
    }

    /// Enables the queue, full of buffers.
    pub(crate) fn start(&mut self) -> Result<(), Error> {
        queue::enable(self.ring.ring().registers(), THRESHOLDS)?;
        match self.ring.refill() {
            0 => Err(Error::NoBuffers),
            _ => Ok(()),
        }
    }

    /// Frames that the card dropped for want of buffers since this was last asked.
    pub(crate) fn take_dropped(&mut self) -> u64 {
        u64::from(self.ring.ring().registers().read32(DROPPED) & DROPPED_MASK)
    }
}

impl<R: Registers> Drop for Receiver<R> {
    /// A queue that does not stop may write on forever: what it knows is never freed.
    fn drop(&mut self) {
        match queue::disable(self.ring.ring().registers()) {
            true => self.ring.retire(),
            false => self.ring.abandon(),
        }
    }
}
