//! One pair of queues and its interrupt, owned by one CPU.

use alloc::sync::Arc;

use hal::{Capabilities, DmaSource, FramePort, Mmio, QueuePair, Registers, RxNotes};
use mbuf::{Pool, RxFrame, TxFrame};

use crate::card::{Card, MTU};
use crate::offload::CAPABILITIES;
use crate::registers::{EICR, EIMC, EIMS};
use crate::rx::Receiver;
use crate::tx::Transmitter;
use crate::{Control, Error};

/// What happened to one pair, by reason.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counters {
    /// Frames received, those with a lost tag included.
    pub rx_frames: u64,
    /// Bytes received.
    pub rx_bytes: u64,
    /// Frames sent; one that the card cuts counts once.
    pub tx_frames: u64,
    /// Bytes sent.
    pub tx_bytes: u64,
    /// Dropped by the card: the ring had no buffer.
    pub rx_ring_empty: u64,
    /// Dropped: damaged on the wire.
    pub rx_damaged: u64,
    /// Dropped: did not end in its buffer.
    pub rx_too_long: u64,
    /// Dropped: the card claims a length that cannot be.
    pub rx_bad_length: u64,
    /// Dropped: no buffer to replace the filled one.
    pub rx_no_memory: u64,
    /// Dropped: its tag was taken out, and nobody asked for tags.
    pub rx_tag_lost: u64,
    /// Refused: no descriptors were free.
    pub tx_queue_full: u64,
    /// Refused: the frame asks for what the card cannot do.
    pub tx_unsupported: u64,
    /// Refused: no buffer to copy shared headers to.
    pub tx_no_memory: u64,
}

/// A pair of queues.
pub struct Pair<R: Registers> {
    rx: Receiver<R>,
    tx: Transmitter<R>,
    queue: u16,
    is_armed: bool,
    counters: Counters,
    /// Last, so that the queues are stopped before a card without owners is reset.
    card: Arc<Card<R>>,
}

/// Parts go to the CPUs that own them.
const _: () = {
    const fn goes_to_another_cpu<T: Send>() {}
    goes_to_another_cpu::<Pair<Mmio>>();
    goes_to_another_cpu::<Control<Mmio>>();
};

impl<R: Registers> Pair<R> {
    pub(crate) fn start(
        card: Arc<Card<R>>,
        queue: u16,
        memory: &impl DmaSource,
        pool: &'static (dyn Pool + Sync),
    ) -> Result<Self, Error> {
        let mut rx = Receiver::new(&card.registers, queue, memory, pool)?;
        let mut tx = Transmitter::new(&card.registers, queue, memory, pool)?;
        rx.start()?;
        tx.start()?;
        Ok(Self {
            rx,
            tx,
            queue,
            is_armed: false,
            counters: Counters::default(),
            card,
        })
    }

    /// What happened so far.
    pub fn counters(&mut self) -> Counters {
        self.counters.rx_ring_empty += self.rx.take_dropped();
        self.counters
    }

    fn message(&self) -> u32 {
        1 << self.queue
    }
}

impl<R: Registers> FramePort for Pair<R> {
    fn mac(&self) -> [u8; 6] {
        self.card.mac
    }

    fn mtu(&self) -> u16 {
        MTU
    }

    fn capabilities(&self) -> Capabilities {
        CAPABILITIES
    }

    fn transmit(&mut self, frame: TxFrame) -> Result<(), TxFrame> {
        self.tx.transmit(frame, None, &mut self.counters)
    }

    fn kick(&mut self) {
        self.tx.kick();
    }

    fn receive(&mut self, budget: usize, sink: &mut dyn FnMut(RxFrame)) -> usize {
        let mut lost = 0;
        let count = self.receive_noted(budget, &mut |frame, notes| match notes.tag {
            None => sink(frame),
            Some(_) => lost += 1,
        });
        self.counters.rx_tag_lost += lost;
        count
    }

    fn unsent(&mut self) -> usize {
        self.tx.unsent()
    }

    fn reclaim(&mut self) {
        self.tx.reclaim();
    }

    fn has_received(&mut self) -> bool {
        self.rx.has_frame()
    }

    fn arm(&mut self) -> bool {
        self.rx.refill();
        // The cause of frames that were taken by polling would interrupt at once. What
        // comes after it is cleared does so rightly; what came before is seen below.
        self.card.registers.write32(EICR, self.message());
        self.card.registers.write32(EIMS, self.message());
        self.is_armed = true;
        self.rx.has_frame()
    }

    fn disarm(&mut self) {
        if core::mem::take(&mut self.is_armed) {
            self.card.registers.write32(EIMC, self.message());
        }
    }
}

impl<R: Registers> QueuePair for Pair<R> {
    fn vector(&self) -> u16 {
        self.queue
    }

    fn receive_noted(&mut self, budget: usize, sink: &mut dyn FnMut(RxFrame, RxNotes)) -> usize {
        self.tx.reclaim();
        self.rx.receive(budget, &mut self.counters, sink)
    }

    fn transmit_tagged(&mut self, frame: TxFrame, tag: u16) -> Result<(), TxFrame> {
        self.tx.transmit(frame, Some(tag), &mut self.counters)
    }
}

impl<R: Registers> Drop for Pair<R> {
    fn drop(&mut self) {
        self.disarm();
    }
}
