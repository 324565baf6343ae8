//! Transmitting: descriptors for the parts of a frame, buffers kept until the card has
//! read them.
//!
//! Nothing interrupts for sent frames: buffers are taken back when the ring is half full or
//! when frames are received.

use alloc::boxed::Box;

use hal::{DmaSource, Registers, Span};
use mbuf::{BLOCK_CAPACITY, Chain, Mbuf, Pool, TxFrame};

use crate::descriptor::{self, Words};
use crate::offload::{self, Plan};
use crate::pair::Counters;
use crate::ring::{Ring, SLOTS};
use crate::{Error, registers, segment};

/// Parts of a frame at most: a packet of 64 KiB fits in buffers of ours. The card reads each
/// part by a descriptor of its own, and QEMU's drops a frame of more than 64 without a word,
/// so a frame of more is copied into few.
const PARTS_MAX: usize = 40;
/// Bytes that fit into as many.
const BYTES_MAX: usize = PARTS_MAX * BLOCK_CAPACITY;
/// Fetch descriptors in eights, report each at once.
const THRESHOLDS: u32 = 8 | 1 << 8;
/// Descriptors of a frame beside those of its parts: a context, and copied headers.
const EXTRA_SLOTS: usize = 2;

pub(crate) struct Transmitter<R: Registers> {
    ring: Ring<R>,
    /// What the card still reads, by the slot of the frame's last descriptor.
    frames: Box<[Option<Chain>]>,
    pool: &'static (dyn Pool + Sync),
    /// The oldest slot that the card may still read, and the first free one.
    oldest: u16,
    end: u16,
    in_flight: usize,
    /// What the card remembers.
    contexts: [Option<Words>; offload::SLOTS],
}

impl<R: Registers> Transmitter<R> {
    /// Queue `queue`, disabled.
    pub(crate) fn new(
        registers: &R,
        queue: u16,
        memory: &impl DmaSource,
        pool: &'static (dyn Pool + Sync),
    ) -> Result<Self, Error> {
        Ok(Self {
            ring: Ring::new(memory, registers, registers::tx_ring(queue))?,
            frames: (0..SLOTS).map(|_| None).collect(),
            pool,
            oldest: 0,
            end: 0,
            in_flight: 0,
            contexts: [None; offload::SLOTS],
        })
    }

    /// Enables the queue.
    pub(crate) fn start(&mut self) -> Result<(), Error> {
        self.ring.enable(THRESHOLDS)
    }

    fn free(&self) -> usize {
        usize::from(SLOTS - 1 - self.end.wrapping_sub(self.oldest))
    }

    /// Queues a frame, with a tag to put in; gives it back if there is no room.
    pub(crate) fn transmit(
        &mut self,
        mut frame: TxFrame,
        tag: Option<u16>,
        counters: &mut Counters,
    ) -> Result<(), TxFrame> {
        let Some(plan) = plan(&frame, tag) else {
            counters.tx_unsupported += 1;
            return Err(frame);
        };
        let needed = frame.chain.parts().min(PARTS_MAX) + EXTRA_SLOTS;
        if self.free() < needed.max(usize::from(SLOTS / 2)) {
            self.reclaim();
        }
        if self.free() < needed {
            counters.tx_queue_full += 1;
            return Err(frame);
        }
        if self.prepare(&mut frame, plan).is_none() {
            counters.tx_no_memory += 1;
            return Err(frame);
        }
        counters.tx_frames += 1;
        counters.tx_bytes += frame.chain.len() as u64;
        self.describe(frame, plan);
        Ok(())
    }

    /// Brings the frame into the form that the card wants; `None` without buffers, with the
    /// same bytes as before.
    fn prepare(&self, frame: &mut TxFrame, plan: Plan) -> Option<()> {
        if frame.chain.parts() > PARTS_MAX {
            frame.chain = frame.chain.gathered(self.pool)?;
        }
        plan.segment.map_or(Some(()), |headers| {
            segment::prepare(frame, headers, self.pool).ok()
        })
    }

    #[inline]
    fn describe(&mut self, frame: TxFrame, plan: Plan) {
        if let Some((slot, context)) = plan.context
            && self.contexts[slot] != Some(context)
        {
            self.push(context);
            self.contexts[slot] = Some(context);
        }
        let mut left = frame.chain.parts();
        for part in frame.chain.iter() {
            left -= 1;
            let is_last = left == 0;
            self.push(descriptor::data(
                Span::of(part),
                is_last,
                plan.commands,
                plan.options,
            ));
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
}

/// `None` for what the card can never send: nobody should ask for what the port's
/// capabilities do not promise.
fn plan(frame: &TxFrame, tag: Option<u16>) -> Option<Plan> {
    let fits = |part: &Mbuf| Span::of(part).len() <= descriptor::DATA_BYTES_MAX;
    let is_small = frame.chain.len() <= BYTES_MAX && frame.chain.iter().all(fits);
    is_small.then(|| Plan::new(frame, tag).ok()).flatten()
}

impl<R: Registers> Drop for Transmitter<R> {
    /// Sends what was queued if it can, then stops. A queue that does not stop may read on
    /// forever: what it knows is never freed.
    fn drop(&mut self) {
        self.kick();
        self.ring.drain();
        if !self.ring.stop() {
            core::mem::forget(core::mem::take(&mut self.frames));
        }
    }
}
