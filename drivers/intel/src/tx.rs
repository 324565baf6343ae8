//! Transmitting: buffers are kept until the card has read them.
//!
//! Nothing interrupts for sent frames: buffers are taken back when the ring is half full or
//! when frames are received.

use alloc::boxed::Box;

use hal::{DmaError, PortCounters, Registers};
use mbuf::Chain;

use crate::ring::{Ring, SLOTS, Words};

/// DD, in the second word of a descriptor that asked for a report.
const DONE: u64 = 1 << 32;

/// A ring of frames to send.
pub struct TxRing<R> {
    ring: Ring<R>,
    /// What the card still reads, by the slot of the frame's last descriptor.
    frames: Box<[Option<Chain>]>,
    /// The oldest slot that the card may still read, and the first free one.
    oldest: u16,
    end: u16,
    in_flight: usize,
}

impl<R: Registers> TxRing<R> {
    /// An empty ring.
    pub fn new(ring: Ring<R>) -> Self {
        Self {
            ring,
            frames: (0..SLOTS).map(|_| None).collect(),
            oldest: 0,
            end: 0,
            in_flight: 0,
        }
    }

    /// The ring itself, to enable and disable its queue.
    pub fn ring(&mut self) -> &mut Ring<R> {
        &mut self.ring
    }

    fn free(&self) -> usize {
        usize::from(SLOTS - 1 - self.end.wrapping_sub(self.oldest))
    }

    /// Whether there is room for so many descriptors. Takes buffers back once the ring is
    /// half full.
    #[inline]
    pub fn has_room(&mut self, descriptors: usize) -> bool {
        if self.free() < descriptors.max(usize::from(SLOTS / 2)) {
            self.reclaim();
        }
        self.free() >= descriptors
    }

    /// Adds a descriptor, for which there is room.
    #[inline]
    pub fn push(&mut self, words: Words) {
        self.ring.write(self.end, words);
        self.end = self.end.wrapping_add(1);
    }

    /// The last descriptor that was pushed ends this frame and asks for a report.
    #[inline]
    pub fn close(&mut self, frame: Chain) {
        *slot(&mut self.frames, self.end.wrapping_sub(1)) = Some(frame);
        self.in_flight += 1;
    }

    /// Frees what the card has read, in order.
    pub fn reclaim(&mut self) {
        let mut at = self.oldest;
        while at != self.end {
            let frame = slot(&mut self.frames, at);
            at = at.wrapping_add(1);
            if frame.is_none() {
                continue;
            }
            if self.ring.second(at.wrapping_sub(1)) & DONE == 0 {
                break;
            }
            *frame = None;
            self.in_flight -= 1;
            self.oldest = at;
        }
    }

    /// Frames that the card has not read yet.
    pub fn unsent(&mut self) -> usize {
        self.reclaim();
        self.in_flight
    }

    /// Gives the card everything that was queued.
    #[inline]
    pub fn kick(&mut self) {
        self.ring.give_up_to(self.end);
    }

    /// The card has stopped and forgotten the ring: it is told again of an empty one. What
    /// it had is not sent, and freed.
    pub fn restart(&mut self, counters: &mut PortCounters) -> Result<(), DmaError> {
        self.ring.tell()?;
        counters.tx_reset += self.in_flight as u64;
        self.frames.fill_with(|| None);
        (self.oldest, self.end, self.in_flight) = (0, 0, 0);
        Ok(())
    }

    /// The card has stopped.
    pub fn retire(&mut self) {
        self.ring.retire();
    }

    /// The card may read on forever: what it knows is never freed.
    pub fn abandon(&mut self) {
        core::mem::forget(core::mem::take(&mut self.frames));
    }
}

#[inline]
fn slot(frames: &mut [Option<Chain>], slot: u16) -> &mut Option<Chain> {
    // tidy: masked, and there are so many.
    &mut frames[usize::from(slot % SLOTS)]
}
