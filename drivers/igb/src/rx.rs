//! Receiving: keeps one queue supplied with empty buffers.
//!
//! The card stores no frame of more than 1522 bytes (long packets are left disabled), so a
//! frame fills one buffer. A filled buffer is replaced by an empty one before its frame
//! goes up; when the pool has none the frame is dropped and its own buffer goes back, so
//! that the ring never runs dry. A queue whose ring is full drops its frames, counted by
//! the card, instead of holding up the other queues (7.1.3, "drop enable").

use alloc::boxed::Box;
use alloc::vec;

use hal::{DmaSource, Registers, RxNotes, Span};
use mbuf::{BLOCK_CAPACITY, Chain, Mbuf, Pool, RxFrame};

use crate::descriptor::{self, Received};
use crate::pair::Counters;
use crate::ring::{DROPPED, Ring, SLOTS, SPLIT};
use crate::{Error, registers};

/// The card is shown new buffers in batches of this many.
const SHOW_BATCH: u16 = 32;
/// An Ethernet header: no frame is shorter.
const FRAME_BYTES_MIN: usize = 14;
/// The longest frame that the card stores.
const FRAME_BYTES_MAX: usize = 1522;
const _: () = assert!(
    FRAME_BYTES_MAX <= BLOCK_CAPACITY,
    "the card thinks that a buffer holds 2048 bytes"
);
/// Advanced descriptors with one buffer, of two kilobytes; frames without one are dropped.
const SPLIT_ONE_BUFFER: u32 = 0b001 << 25 | 2 | 1 << 31;
/// Fetch descriptors in eights, write each back at once.
const THRESHOLDS: u32 = 8 | 8 << 8 | 1 << 16;
/// How far the card counts dropped frames.
const DROPPED_MASK: u32 = 0xfff;

pub(crate) struct Receiver<R: Registers> {
    ring: Ring<R>,
    /// The buffer of each slot that the card has.
    buffers: Box<[Option<Mbuf>]>,
    pool: &'static (dyn Pool + Sync),
    /// The slot that the card fills next, and the first without a buffer.
    next: u16,
    end: u16,
    /// Buffers added since the card was last shown some.
    unshown: u16,
    /// The rest of a frame that did not fit is still to come.
    in_long_frame: bool,
}

/// Why a frame goes no further.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Reason {
    Damaged,
    TooLong,
    BadLength,
    NoMemory,
}

impl<R: Registers> Receiver<R> {
    /// Queue `queue`, disabled.
    pub(crate) fn new(
        registers: &R,
        queue: u16,
        memory: &impl DmaSource,
        pool: &'static (dyn Pool + Sync),
    ) -> Result<Self, Error> {
        let ring = Ring::new(memory, registers, registers::rx_ring(queue))?;
        ring.registers().write32(SPLIT, SPLIT_ONE_BUFFER);
        Ok(Self {
            ring,
            buffers: vec![None; usize::from(SLOTS)].into_boxed_slice(),
            pool,
            next: 0,
            end: 0,
            unshown: 0,
            in_long_frame: false,
        })
    }

    /// Enables the queue, full of buffers.
    pub(crate) fn start(&mut self) -> Result<(), Error> {
        self.ring.enable(THRESHOLDS)?;
        match self.refill() {
            0 => Err(Error::NoBuffers),
            _ => Ok(()),
        }
    }

    /// Gives the card empty buffers while it takes them and there is memory. Returns how
    /// many it has.
    pub(crate) fn refill(&mut self) -> u16 {
        while self.with_card() < SLOTS - 1 {
            let Some(buffer) = self.pool.alloc() else {
                break;
            };
            self.post(buffer);
        }
        self.show();
        self.with_card()
    }

    #[inline]
    fn with_card(&self) -> u16 {
        self.end.wrapping_sub(self.next)
    }

    /// Hands over at most `budget` frames; returns how many came, dropped ones included.
    pub(crate) fn receive(
        &mut self,
        budget: usize,
        counters: &mut Counters,
        take: &mut dyn FnMut(RxFrame, RxNotes),
    ) -> usize {
        let mut count = 0;
        while count < budget && self.with_card() != 0 {
            let Some(received) = descriptor::received(self.ring.status(self.next)) else {
                break;
            };
            let notes = descriptor::notes(self.ring.facts(self.next), received.tag);
            match self.frame(received) {
                Ok(frame) => {
                    counters.rx_frames += 1;
                    counters.rx_bytes += frame.chain.len() as u64;
                    take(frame, notes);
                }
                Err(reason) => counters.count(reason),
            }
            count += 1;
        }
        if self.unshown >= SHOW_BATCH {
            self.show();
        }
        count
    }

    /// The frame in the next slot.
    #[inline]
    fn frame(&mut self, received: Received) -> Result<RxFrame, Reason> {
        let is_rest = core::mem::replace(&mut self.in_long_frame, !received.is_last);
        let mut filled = self.replace()?;
        if is_rest || !received.is_last {
            return Err(Reason::TooLong);
        }
        if received.is_bad {
            return Err(Reason::Damaged);
        }
        let len = usize::from(received.len);
        if !(FRAME_BYTES_MIN..=FRAME_BYTES_MAX).contains(&len) || filled.extend(len).is_none() {
            return Err(Reason::BadLength);
        }
        Ok(RxFrame {
            chain: Chain::from(filled),
            checksum: received.checksum,
            coalesced: None,
        })
    }

    /// Takes the filled buffer out of the next slot and posts an empty one. Without an
    /// empty one the filled one goes back and its bytes are lost.
    #[inline]
    fn replace(&mut self) -> Result<Mbuf, Reason> {
        let filled = self.buffers[usize::from(self.next % SLOTS)].take();
        self.next = self.next.wrapping_add(1);
        let filled = filled.ok_or(Reason::NoMemory)?;
        match self.pool.alloc() {
            Some(empty) => {
                self.post(empty);
                Ok(filled)
            }
            None => {
                self.post(filled);
                Err(Reason::NoMemory)
            }
        }
    }

    /// Puts an empty buffer into the first slot without one.
    #[inline]
    fn post(&mut self, buffer: Mbuf) {
        let room = Span::room_of(&buffer);
        self.ring.write(self.end, descriptor::receive(room));
        self.buffers[usize::from(self.end % SLOTS)] = Some(buffer);
        self.end = self.end.wrapping_add(1);
        self.unshown += 1;
    }

    fn show(&mut self) {
        self.unshown = 0;
        self.ring.give_up_to(self.end);
    }

    /// Whether a frame waits.
    pub(crate) fn has_frame(&self) -> bool {
        self.with_card() != 0 && descriptor::is_received(self.ring.status(self.next))
    }

    /// Frames that the card dropped for want of buffers since this was last asked.
    pub(crate) fn take_dropped(&self) -> u64 {
        u64::from(self.ring.registers().read32(DROPPED) & DROPPED_MASK)
    }
}

impl<R: Registers> Drop for Receiver<R> {
    /// A queue that does not stop may write on forever: what it knows is never freed.
    fn drop(&mut self) {
        if !self.ring.stop() {
            core::mem::forget(core::mem::take(&mut self.buffers));
        }
    }
}

impl Counters {
    #[cold]
    fn count(&mut self, reason: Reason) {
        let counter = match reason {
            Reason::Damaged => &mut self.rx_damaged,
            Reason::TooLong => &mut self.rx_too_long,
            Reason::BadLength => &mut self.rx_bad_length,
            Reason::NoMemory => &mut self.rx_no_memory,
        };
        *counter += 1;
    }
}
