//! Receiving: keeps the card supplied with empty buffers.
//!
//! Frames of more than 1522 bytes are not stored by the card (long packets are left
//! disabled), so a frame fills one buffer. A filled buffer is replaced by an empty one
//! before its frame goes up; when the pool has none the frame is dropped and its own
//! buffer goes back, so that the ring never runs dry.
//!
//! What the card says is checked: a frame that it marks as damaged, one that does not end
//! in its buffer, or whose length cannot be, is dropped and counted.

use alloc::boxed::Box;
use alloc::vec;

use hal::{DmaSource, Mmio, Span};
use mbuf::{BLOCK_CAPACITY, Chain, Mbuf, Pool, RxFrame};

use crate::descriptor::{self, Received};
use crate::device::Counters;
use crate::ring::{Ring, SLOTS};
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

pub(crate) struct Receiver {
    ring: Ring,
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
enum Drop {
    Damaged,
    TooLong,
    BadLength,
    NoMemory,
}

impl Receiver {
    pub(crate) fn new(
        registers: &Mmio,
        memory: &impl DmaSource,
        pool: &'static (dyn Pool + Sync),
    ) -> Result<Self, Error> {
        Ok(Self {
            ring: Ring::new(memory, registers, registers::RX_RING)?,
            buffers: vec![None; usize::from(SLOTS)].into_boxed_slice(),
            pool,
            next: 0,
            end: 0,
            unshown: 0,
            in_long_frame: false,
        })
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
        take: &mut dyn FnMut(RxFrame),
    ) -> usize {
        let mut count = 0;
        while count < budget && self.with_card() != 0 {
            let word = self.ring.status(self.next);
            let Some(received) = descriptor::received(word) else {
                break;
            };
            match self.frame(received) {
                Ok(frame) => {
                    counters.rx_frames += 1;
                    counters.rx_bytes += frame.chain.len() as u64;
                    take(frame);
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
    fn frame(&mut self, received: Received) -> Result<RxFrame, Drop> {
        // Remembered first: without memory this part is lost, but not that there are more.
        let is_rest = core::mem::replace(&mut self.in_long_frame, !received.is_last);
        let mut filled = self.replace()?;
        if is_rest || !received.is_last {
            return Err(Drop::TooLong);
        }
        if received.is_bad {
            return Err(Drop::Damaged);
        }
        let len = usize::from(received.len);
        if !(FRAME_BYTES_MIN..=FRAME_BYTES_MAX).contains(&len) || filled.extend(len).is_none() {
            return Err(Drop::BadLength);
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
    fn replace(&mut self) -> Result<Mbuf, Drop> {
        let filled = self.buffers[usize::from(self.next % SLOTS)].take();
        self.next = self.next.wrapping_add(1);
        let filled = filled.ok_or(Drop::NoMemory)?;
        match self.pool.alloc() {
            Some(empty) => {
                self.post(empty);
                Ok(filled)
            }
            None => {
                self.post(filled);
                Err(Drop::NoMemory)
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
        self.with_card() != 0 && descriptor::received(self.ring.status(self.next)).is_some()
    }

    /// The card has been reset.
    pub(crate) fn retire(&mut self) {
        self.ring.retire();
    }

    /// The card may write on forever: what it knows is never freed.
    pub(crate) fn abandon(&mut self) {
        core::mem::forget(core::mem::take(&mut self.buffers));
    }
}

impl Counters {
    #[cold]
    fn count(&mut self, reason: Drop) {
        let counter = match reason {
            Drop::Damaged => &mut self.rx_damaged,
            Drop::TooLong => &mut self.rx_too_long,
            Drop::BadLength => &mut self.rx_bad_length,
            Drop::NoMemory => &mut self.rx_no_memory,
        };
        *counter += 1;
    }
}
