//! Transmitting: descriptors for the parts of a frame, buffers kept until the card has
//! read them.
//!
//! The card fills in checksums where the last *context* descriptor said. Frames of a
//! kind have theirs in the same place, so a context is written only when that changes.

use alloc::boxed::Box;

use hal::{DmaSource, Mmio, Span};
use mbuf::{BLOCK_CAPACITY, Chain, ChecksumOffload, Pool, TxFrame};

use crate::descriptor::{self, Words};
use crate::device::Counters;
use crate::ring::{Ring, SLOTS};
use crate::{Error, registers};

/// Parts of a frame at most: each takes a descriptor, so one of more than the ring has could
/// never go out. It is copied into few.
const PARTS_MAX: usize = 16;
/// The longest frame of a card without segmentation, tagged.
const FRAME_BYTES_MAX: usize = 1522;
const _: () = assert!(FRAME_BYTES_MAX <= BLOCK_CAPACITY, "one buffer holds it");

pub(crate) struct Transmitter {
    ring: Ring,
    /// What the card still reads, by the slot of the frame's last descriptor.
    frames: Box<[Option<Chain>]>,
    pool: &'static (dyn Pool + Sync),
    /// The oldest slot that the card may still read, and the first free one.
    oldest: u16,
    end: u16,
    in_flight: usize,
    /// Where the card fills in checksums.
    context: Option<ChecksumOffload>,
}

impl Transmitter {
    pub(crate) fn new(
        registers: &Mmio,
        memory: &impl DmaSource,
        pool: &'static (dyn Pool + Sync),
    ) -> Result<Self, Error> {
        Ok(Self {
            ring: Ring::new(memory, registers, registers::TX_RING)?,
            frames: (0..SLOTS).map(|_| None).collect(),
            pool,
            oldest: 0,
            end: 0,
            in_flight: 0,
            context: None,
        })
    }

    fn free(&self) -> usize {
        usize::from(SLOTS - 1 - self.end.wrapping_sub(self.oldest))
    }

    /// Queues a frame; gives it back if there is no room.
    pub(crate) fn transmit(
        &mut self,
        mut frame: TxFrame,
        counters: &mut Counters,
    ) -> Result<(), TxFrame> {
        let needed = frame.chain.parts().min(PARTS_MAX) + 1;
        if self.free() < needed.max(usize::from(SLOTS / 2)) {
            self.reclaim();
        }
        if self.free() < needed {
            counters.tx_queue_full += 1;
            return Err(frame);
        }
        if !self.can_describe(&frame) {
            counters.tx_unsupported += 1;
            return Err(frame);
        }
        if frame.chain.parts() > PARTS_MAX {
            let Some(gathered) = frame.chain.gathered(self.pool) else {
                counters.tx_no_memory += 1;
                return Err(frame);
            };
            frame.chain = gathered;
        }
        if let Some(checksum) = frame.checksum {
            self.set_context(checksum);
        }
        let bytes = frame.chain.len() as u64;
        self.describe(frame);
        counters.tx_frames += 1;
        counters.tx_bytes += bytes;
        Ok(())
    }

    /// Whether the card understands the frame: nobody should ask for what the port's
    /// capabilities do not promise.
    fn can_describe(&self, frame: &TxFrame) -> bool {
        let fits = |part: &mbuf::Mbuf| Span::of(part).len() <= descriptor::DATA_BYTES_MAX;
        frame.segment.is_none()
            && (1..=FRAME_BYTES_MAX).contains(&frame.chain.len())
            && frame.chain.iter().all(fits)
            && frame
                .checksum
                .is_none_or(|checksum| descriptor::context(checksum).is_some())
    }

    #[inline]
    fn set_context(&mut self, checksum: ChecksumOffload) {
        if self.context == Some(checksum) {
            return;
        }
        if let Some(words) = descriptor::context(checksum) {
            self.push(words);
            self.context = Some(checksum);
        }
    }

    #[inline]
    fn describe(&mut self, frame: TxFrame) {
        let mut left = frame.chain.parts();
        for part in frame.chain.iter() {
            left -= 1;
            let words = descriptor::data(Span::of(part), left == 0, frame.checksum.is_some());
            self.push(words);
        }
        let last = usize::from(self.end.wrapping_sub(1) % SLOTS);
        self.frames[last] = Some(frame.chain);
        self.in_flight += 1;
    }

    #[inline]
    fn push(&mut self, words: Words) {
        self.ring.write(self.end, words);
        self.end = self.end.wrapping_add(1);
    }

    /// Frees what the card has read, in order.
    pub(crate) fn reclaim(&mut self) {
        let mut slot = self.oldest;
        while slot != self.end {
            let frame = &mut self.frames[usize::from(slot % SLOTS)];
            slot = slot.wrapping_add(1);
            if frame.is_none() {
                continue;
            }
            if !descriptor::is_sent(self.ring.status(slot.wrapping_sub(1))) {
                break;
            }
            *frame = None;
            self.in_flight -= 1;
            self.oldest = slot;
        }
    }

    /// Frames that the card has not read yet.
    pub(crate) fn unsent(&mut self) -> usize {
        self.reclaim();
        self.in_flight
    }

    /// Gives the card everything that was queued.
    pub(crate) fn kick(&mut self) {
        self.ring.give_up_to(self.end);
    }

    /// The card has been reset.
    pub(crate) fn retire(&mut self) {
        self.ring.retire();
    }

    /// The card may read on forever: what it knows is never freed.
    pub(crate) fn abandon(&mut self) {
        core::mem::forget(core::mem::take(&mut self.frames));
    }
}
