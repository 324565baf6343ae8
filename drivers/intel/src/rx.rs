//! Receiving: keeps a ring supplied with empty buffers.
//!
//! These cards store no frame of more than 1522 bytes (long packets are left disabled), so a
//! frame fills one buffer. A frame that the card marks as damaged, that does not end in its
//! buffer, or whose length cannot be, is dropped and counted.

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;

use hal::{DmaError, PortCounters, Registers, Span};
use mbuf::{BLOCK_CAPACITY, Chain, Checksum, Mbuf, Pool, RxFrame};

use crate::ring::Ring;

/// The card knows of so many empty buffers, or is shown all there are: each time is a write to a register. A ring that has many
/// more is shown them the more rarely.
const KNOWN_MIN: u16 = 128;
/// An Ethernet header: no frame is shorter.
const FRAME_BYTES_MIN: usize = 14;
/// The longest frame that a card stores or sends uncut, tagged.
pub const FRAME_BYTES_MAX: usize = 1522;
const _: () = assert!(
    FRAME_BYTES_MAX <= BLOCK_CAPACITY,
    "the card thinks that a buffer holds 2048 bytes"
);

/// What a card wrote about a received frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Filled {
    /// Bytes in the buffer.
    pub len: u16,
    /// The frame ends here.
    pub is_last: bool,
    /// It was damaged on the wire.
    pub is_bad: bool,
    /// What the card thinks of its sum.
    pub checksum: Checksum,
    /// The second half of the VLAN tag that it took out.
    pub tag: Option<u16>,
}

/// What a card's receive descriptors say, once written back.
pub trait Format {
    /// What is known of a frame beside its bytes.
    type Notes;

    /// Reads the second word; `None` while the card has the buffer.
    fn filled(second: u64) -> Option<Filled>;

    /// Reads the rest; `first` reads the first word.
    fn notes(first: impl FnOnce() -> u64, second: u64) -> Self::Notes;
}

/// A ring of empty buffers.
pub struct RxRing<R> {
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

impl<R: Registers> RxRing<R> {
    /// A ring without buffers; `pool` supplies them.
    pub fn new(ring: Ring<R>, pool: &'static (dyn Pool + Sync)) -> Self {
        let buffers = vec![None; usize::from(ring.slots())].into_boxed_slice();
        Self {
            ring,
            buffers,
            pool,
            next: 0,
            end: 0,
            unshown: 0,
            in_long_frame: false,
        }
    }

    /// The ring itself, to enable and disable its queue.
    pub fn ring(&mut self) -> &mut Ring<R> {
        &mut self.ring
    }

    /// Gives the card empty buffers while it takes them and there is memory. Returns how
    /// many it has.
    pub fn refill(&mut self) -> u16 {
        while self.with_card() < self.ring.slots() - 1 {
            let Some(buffer) = self.pool.alloc() else {
                break;
            };
            self.post(buffer);
        }
        self.show_if_many();
        self.with_card()
    }

    #[inline]
    fn with_card(&self) -> u16 {
        self.end.wrapping_sub(self.next)
    }

    /// Hands over at most `budget` frames; returns how many came, dropped ones included.
    #[inline]
    pub fn receive<F: Format>(
        &mut self,
        budget: usize,
        counters: &mut PortCounters,
        mut take: impl FnMut(RxFrame, F::Notes),
    ) -> usize {
        let mut count = 0;
        while count < budget && self.with_card() != 0 {
            let second = self.ring.second(self.next);
            let Some(filled) = F::filled(second) else {
                break;
            };
            let notes = F::notes(|| self.ring.first(self.next), second);
            match self.frame(filled) {
                Ok(frame) => {
                    counters.rx_frames += 1;
                    counters.rx_bytes += frame.chain.len() as u64;
                    take(frame, notes);
                }
                Err(reason) => count_drop(counters, reason),
            }
            count += 1;
        }
        self.show_if_many();
        count
    }

    /// The frame in the next slot.
    #[inline]
    fn frame(&mut self, filled: Filled) -> Result<RxFrame, Reason> {
        // Remembered first: without memory this part is lost, but not that there are more.
        let is_rest = core::mem::replace(&mut self.in_long_frame, !filled.is_last);
        let mut buffer = self.replace()?;
        if is_rest || !filled.is_last {
            return Err(Reason::TooLong);
        }
        if filled.is_bad {
            return Err(Reason::Damaged);
        }
        let len = usize::from(filled.len);
        if !(FRAME_BYTES_MIN..=FRAME_BYTES_MAX).contains(&len) || buffer.extend(len).is_none() {
            return Err(Reason::BadLength);
        }
        Ok(RxFrame {
            chain: Chain::from(buffer),
            checksum: filled.checksum,
            coalesced: None,
            tag: filled.tag,
        })
    }

    /// Takes the filled buffer out of the next slot and posts an empty one. Without an
    /// empty one the filled one goes back and its bytes are lost.
    #[inline]
    fn replace(&mut self) -> Result<Mbuf, Reason> {
        let filled = self.slot(self.next).take();
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
        // The second word is where the card sets its mark, so it begins as zero.
        self.ring
            .write(self.end, [Span::room_of(&buffer).addr().0, 0]);
        *self.slot(self.end) = Some(buffer);
        self.end = self.end.wrapping_add(1);
        self.unshown += 1;
    }

    #[inline]
    fn slot(&mut self, slot: u16) -> &mut Option<Mbuf> {
        // tidy: masked, and there are so many.
        &mut self.buffers[self.ring.index(slot)]
    }

    /// Shows the card new buffers once what it knows of may soon be used up.
    #[inline]
    fn show_if_many(&mut self) {
        if self.with_card() - self.unshown < KNOWN_MIN {
            self.show();
        }
    }

    fn show(&mut self) {
        self.unshown = 0;
        self.ring.give_up_to(self.end);
    }

    /// Whether a frame waits.
    #[inline]
    pub fn has_frame<F: Format>(&self) -> bool {
        self.with_card() != 0 && F::filled(self.ring.second(self.next)).is_some()
    }

    /// The card was reset and has forgotten the ring: it is told again, and gets the buffers
    /// that it had. Frames that were not taken out are lost.
    pub fn restart<F: Format>(&mut self, counters: &mut PortCounters) -> Result<(), DmaError> {
        let waits = |slot: &u16| F::filled(self.ring.second(*slot)).is_some();
        let slots = (0..self.with_card()).map(|ahead| self.next.wrapping_add(ahead));
        counters.rx_reset += slots.take_while(waits).count() as u64;
        self.ring.tell()?;
        let had: Vec<Mbuf> = self.buffers.iter_mut().filter_map(Option::take).collect();
        (self.next, self.end, self.in_long_frame) = (0, 0, false);
        had.into_iter().for_each(|buffer| self.post(buffer));
        self.show();
        Ok(())
    }

    /// The card has stopped.
    pub fn retire(&mut self) {
        self.ring.retire();
    }

    /// The card may write on forever: what it knows is never freed.
    pub fn abandon(&mut self) {
        core::mem::forget(core::mem::take(&mut self.buffers));
    }
}

#[cold]
fn count_drop(counters: &mut PortCounters, reason: Reason) {
    let counter = match reason {
        Reason::Damaged => &mut counters.rx_damaged,
        Reason::TooLong => &mut counters.rx_too_long,
        Reason::BadLength => &mut counters.rx_bad_length,
        Reason::NoMemory => &mut counters.rx_no_memory,
    };
    *counter += 1;
}
