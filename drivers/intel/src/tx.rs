//! Transmitting: buffers are kept until the card has read them.
//!
//! Nothing interrupts for sent frames: buffers are taken back when the ring is half full or
//! when frames are received. A report is a write of the card's to memory, and each frees all frames
//! before it, so the last frame of a batch asks for one, and of a long batch one in
//! [`UNREPORTED_MAX`] descriptors.

use alloc::boxed::Box;
use alloc::collections::VecDeque;

use hal::{DmaError, PortCounters, Registers};
use mbuf::Chain;

use crate::ring::{Ring, Words};

/// DD, in the second word of a descriptor that asked for a report.
const DONE: u64 = 1 << 32;
/// RS, in the second word: the card is to report that it has read the descriptor. It is the same bit from the
/// 82540 to the 82576.
const REPORT: u64 = 1 << 27;
/// So many descriptors wait for one report at most, but for those of one frame.
const UNREPORTED_MAX: u16 = 32;

/// A ring of frames to send.
pub struct TxRing<R> {
    ring: Ring<R>,
    /// What the card still reads, by the slot of the frame's last descriptor.
    frames: Box<[Option<Chain>]>,
    /// The slots that ask for a report, oldest first: each is the last one of its frame.
    reports: VecDeque<u16>,
    /// The first slot behind the last of these.
    unreported: u16,
    /// The oldest slot that the card may still read, and the first free one.
    oldest: u16,
    end: u16,
    in_flight: usize,
}

impl<R: Registers> TxRing<R> {
    /// An empty ring.
    pub fn new(ring: Ring<R>) -> Self {
        let slots = ring.slots();
        Self {
            ring,
            frames: (0..slots).map(|_| None).collect(),
            // As many as there can be.
            reports: VecDeque::with_capacity(usize::from(slots)),
            unreported: 0,
            oldest: 0,
            end: 0,
            in_flight: 0,
        }
    }

    /// The ring itself, to enable and disable its queue.
    pub fn ring(&mut self) -> &mut Ring<R> {
        &mut self.ring
    }

    #[inline]
    fn slot(&mut self, slot: u16) -> &mut Option<Chain> {
        // tidy: masked, and there are so many.
        &mut self.frames[self.ring.index(slot)]
    }

    fn free(&self) -> usize {
        usize::from(self.ring.slots() - 1 - self.end.wrapping_sub(self.oldest))
    }

    /// Whether there is room for so many descriptors. Takes buffers back once the ring is
    /// half full.
    #[inline]
    pub fn has_room(&mut self, descriptors: usize) -> bool {
        if self.free() < descriptors.max(usize::from(self.ring.slots() / 2)) {
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

    /// The last descriptor that was pushed ends this frame.
    #[inline]
    pub fn close(&mut self, frame: Chain) {
        *self.slot(self.end.wrapping_sub(1)) = Some(frame);
        self.in_flight += 1;
        if self.end.wrapping_sub(self.unreported) >= UNREPORTED_MAX {
            self.ask_for_report();
        }
    }

    /// The last descriptor, which the card has not got yet, asks for a report.
    #[inline]
    fn ask_for_report(&mut self) {
        let last = self.end.wrapping_sub(1);
        let words = [self.ring.first(last), self.ring.second(last) | REPORT];
        self.ring.write(last, words);
        self.reports.push_back(last);
        self.unreported = self.end;
    }

    /// Frees what the card has read, in order.
    pub fn reclaim(&mut self) {
        while let Some(report) = self.reports.front().copied() {
            if self.ring.second(report) & DONE == 0 {
                break;
            }
            self.reports.pop_front();
            self.free_through(report);
        }
    }

    fn free_through(&mut self, last: u16) {
        while self.oldest != last.wrapping_add(1) {
            let frame = self.slot(self.oldest).take();
            self.in_flight -= usize::from(frame.is_some());
            self.oldest = self.oldest.wrapping_add(1);
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
        if self.unreported != self.end {
            self.ask_for_report();
        }
        self.ring.give_up_to(self.end);
    }

    /// The card has stopped and forgotten the ring: it is told again of an empty one. What
    /// it had is not sent, and freed.
    pub fn restart(&mut self, counters: &mut PortCounters) -> Result<(), DmaError> {
        self.ring.tell()?;
        counters.tx_reset += self.in_flight as u64;
        self.frames.fill_with(|| None);
        self.reports.clear();
        (self.oldest, self.unreported, self.end) = (0, 0, 0);
        self.in_flight = 0;
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
