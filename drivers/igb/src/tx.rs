//! Transmitting: descriptors for the parts of a frame, and what the card remembers of the
//! last ones.

use hal::{DmaSource, PortCounters, Registers, Span};
use intel::{SLOTS, TxRing, Words};
use mbuf::{BLOCK_CAPACITY, Mbuf, Pool, TxFrame};

use crate::offload::{self, Plan, Summed};
use crate::{Error, descriptor, queue, segment};

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
    pub(crate) ring: TxRing<R>,
    pool: &'static (dyn Pool + Sync),
    /// What the card remembers.
    contexts: [Option<Words>; offload::SLOTS],
    last: Option<Summed>,
}

impl<R: Registers> Transmitter<R> {
    /// The queue whose registers begin at `place`, disabled.
    pub(crate) fn new(
        registers: &R,
        place: usize,
        memory: &impl DmaSource,
        pool: &'static (dyn Pool + Sync),
    ) -> Result<Self, Error> {
        Ok(Self {
            ring: TxRing::new(queue::new(memory, registers, place, SLOTS)?),
            pool,
            contexts: [None; offload::SLOTS],
            last: None,
        })
    }

    /// Enables the queue.
    pub(crate) fn start(&mut self) -> Result<(), Error> {
        queue::enable(self.ring.ring().registers(), THRESHOLDS)
    }

    /// Queues a frame; gives it back if there is no room.
    pub(crate) fn transmit(
        &mut self,
        mut frame: TxFrame,
        counters: &mut PortCounters,
    ) -> Result<(), TxFrame> {
        let Some(plan) = self.plan(&frame) else {
            counters.tx_unsupported += 1;
            return Ok(());
        };
        if !self
            .ring
            .has_room(frame.chain.parts().min(PARTS_MAX) + EXTRA_SLOTS)
        {
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
            && !self.remembers(slot, context)
        {
            self.ring.push(context);
            self.contexts[slot] = Some(context);
        }
        let mut left = frame.chain.parts();
        match frame.chain.front() {
            Some(only) if left == 1 => self.describe_part(only, true, plan),
            _ => {
                for part in frame.chain.iter() {
                    left -= 1;
                    self.describe_part(part, left == 0, plan);
                }
            }
        }
        self.ring.close(frame.chain);
    }

    #[inline]
    fn describe_part(&mut self, part: &Mbuf, is_last: bool, plan: Plan) {
        let span = Span::of(part);
        let words = descriptor::data(span, is_last, plan.commands, plan.options);
        self.ring.push(words);
    }

    /// `None` for what the card can never send: nobody should ask for what the port's
    /// capabilities do not promise.
    #[inline]
    fn plan(&mut self, frame: &TxFrame) -> Option<Plan> {
        let fits = |part: &Mbuf| Span::of(part).len() <= descriptor::DATA_BYTES_MAX;
        let len = frame.chain.len();
        let is_small = len <= BYTES_MAX
            && (len <= descriptor::DATA_BYTES_MAX as usize || frame.chain.iter().all(fits));
        is_small.then(|| Plan::like(&mut self.last, frame).ok())?
    }

    /// Word by word: most frames have the context of the one before.
    #[inline]
    fn remembers(&self, slot: usize, [first, second]: Words) -> bool {
        let known = self.contexts.get(slot).copied().flatten();
        known.is_some_and(|known| known[0] == first && known[1] == second)
    }

    /// Empties a queue that stands still, and has it work again.
    pub(crate) fn restart(&mut self, counters: &mut PortCounters) -> Result<(), Error> {
        if !queue::disable(self.ring.ring().registers()) {
            return Err(Error::QueueStuck);
        }
        self.contexts = [None; offload::SLOTS];
        self.ring.restart(counters).map_err(Error::Memory)?;
        self.start()
    }
}

impl<R: Registers> Drop for Transmitter<R> {
    /// Sends what was queued if it can, then stops. A queue that does not stop may read on
    /// forever: what it knows is never freed.
    fn drop(&mut self) {
        self.ring.kick();
        queue::drain(self.ring.ring());
        match queue::disable(self.ring.ring().registers()) {
            true => self.ring.retire(),
            false => self.ring.abandon(),
        }
    }
}
