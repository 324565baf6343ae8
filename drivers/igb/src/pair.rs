//! One pair of queues and its interrupt, owned by one CPU.

use alloc::sync::Arc;

use base::Instant;
use hal::{
    Capabilities, DmaSource, FramePort, Mmio, PortCounters, QueuePair, Registers, Remedy, RxNotes,
    Stall, Watchdog,
};
use mbuf::{Pool, RxFrame, TxFrame};

use crate::card::{Card, MTU};
use crate::descriptor::Advanced;
use crate::offload::CAPABILITIES;
use crate::registers::{EICR, EIMC, EIMS};
use crate::rx::Receiver;
use crate::tx::Transmitter;
use crate::{Control, Error};

/// A pair of queues.
pub struct Pair<R: Registers> {
    rx: Receiver<R>,
    tx: Transmitter<R>,
    queue: u16,
    is_armed: bool,
    counters: PortCounters,
    watchdog: Watchdog,
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
            counters: PortCounters::default(),
            watchdog: Watchdog::default(),
            card,
        })
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
        self.tx.transmit(frame, &mut self.counters)
    }

    fn kick(&mut self) {
        self.tx.ring.kick();
    }

    fn receive(&mut self, budget: usize, sink: &mut dyn FnMut(RxFrame)) -> usize {
        self.receive_noted(budget, &mut |frame, _| sink(frame))
    }

    fn unsent(&mut self) -> usize {
        self.tx.ring.unsent()
    }

    fn reclaim(&mut self) {
        self.tx.ring.reclaim();
    }

    fn has_received(&mut self) -> bool {
        self.rx.ring.has_frame::<Advanced>()
    }

    fn arm(&mut self) -> bool {
        self.rx.ring.refill();
        // The cause of frames that were taken by polling would interrupt at once. What
        // comes after it is cleared does so rightly; what came before is seen below.
        self.card.registers.write32(EICR, self.message());
        self.card.registers.write32(EIMS, self.message());
        self.is_armed = true;
        self.rx.ring.has_frame::<Advanced>()
    }

    fn disarm(&mut self) {
        if core::mem::take(&mut self.is_armed) {
            self.card.registers.write32(EIMC, self.message());
        }
    }

    fn counters(&mut self) -> PortCounters {
        self.counters.rx_ring_empty += self.rx.take_dropped();
        self.counters
    }

    fn watch(&mut self, now: Instant) -> Option<Stall> {
        let frames = self.tx.ring.unsent();
        let duration = self.watchdog.look(now, frames, &mut self.counters)?;
        let remedy = Remedy::Reset.if_done(self.tx.restart(&mut self.counters));
        Some(Stall {
            frames,
            duration,
            remedy,
        })
    }
}

impl<R: Registers> QueuePair for Pair<R> {
    fn vector(&self) -> u16 {
        self.queue
    }

    fn receive_noted(&mut self, budget: usize, sink: &mut dyn FnMut(RxFrame, RxNotes)) -> usize {
        self.tx.ring.reclaim();
        let rx = &mut self.rx.ring;
        rx.receive::<Advanced>(budget, &mut self.counters, sink)
    }
}

impl<R: Registers> Drop for Pair<R> {
    fn drop(&mut self) {
        self.disarm();
    }
}
