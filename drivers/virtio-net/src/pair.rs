//! One pair of queues and its interrupt, owned by one CPU.

use alloc::sync::Arc;

use base::Instant;
use hal::{Capabilities, DmaSource, FramePort, PortCounters, Remedy, Stall, Watchdog};
use mbuf::{Pool, RxFrame, TxFrame};
use virtio::{Error, NO_VECTOR};

use crate::card::Card;
use crate::rx::Receiver;
use crate::tx::Transmitter;

/// A pair of queues.
pub struct Pair {
    rx: Receiver,
    tx: Transmitter,
    number: u16,
    counters: PortCounters,
    watchdog: Watchdog,
    card: Arc<Card>,
}

/// Parts go to the CPUs that own them.
const _: () = {
    const fn goes_to_another_cpu<T: Send>() {}
    goes_to_another_cpu::<Pair>();
    goes_to_another_cpu::<crate::Control>();
};

impl Pair {
    pub(crate) fn new(
        card: &Arc<Card>,
        number: u16,
        memory: &impl DmaSource,
        pool: &'static (dyn Pool + Sync),
        has_events: bool,
    ) -> Result<Self, Error> {
        let transport = &card.transport;
        let rx = Receiver::new(transport, memory, pool, has_events, 2 * number, number)?;
        let tx = Transmitter::new(
            transport,
            memory,
            pool,
            has_events,
            2 * number + 1,
            NO_VECTOR,
        )?;
        Ok(Self {
            rx,
            tx,
            number,
            counters: PortCounters::default(),
            watchdog: Watchdog::default(),
            card: card.join(),
        })
    }

    /// Gives the device its first buffers.
    pub(crate) fn supply(&mut self) -> Result<(), Error> {
        match self.rx.refill() {
            0 => Err(Error::OutOfMemory),
            _ => Ok(()),
        }
    }

    /// The MSI-X entry that tells of frames to receive.
    pub fn vector(&self) -> u16 {
        self.number
    }
}

impl FramePort for Pair {
    fn mac(&self) -> [u8; 6] {
        self.card.mac
    }

    fn mtu(&self) -> u16 {
        self.card.mtu
    }

    fn capabilities(&self) -> Capabilities {
        self.card.capabilities
    }

    fn transmit(&mut self, frame: TxFrame) -> Result<(), TxFrame> {
        self.tx.transmit(frame, &mut self.counters)
    }

    fn kick(&mut self) {
        self.tx.kick();
    }

    fn receive(&mut self, budget: usize, take: &mut dyn FnMut(RxFrame)) -> usize {
        self.tx.reclaim(&mut self.counters);
        self.rx.receive(budget, &mut self.counters, take)
    }

    fn unsent(&mut self) -> usize {
        self.tx.unsent(&mut self.counters)
    }

    fn reclaim(&mut self) {
        self.tx.reclaim(&mut self.counters);
    }

    fn has_received(&mut self) -> bool {
        self.rx.has_received()
    }

    fn arm(&mut self) -> bool {
        self.rx.arm()
    }

    fn disarm(&mut self) {
        self.rx.disarm();
    }

    fn counters(&mut self) -> PortCounters {
        self.counters
    }

    /// A device is reset as a whole, with the queues of other CPUs; so it is only told
    /// again of what it has.
    fn watch(&mut self, now: Instant) -> Option<Stall> {
        let frames = self.tx.unsent(&mut self.counters);
        let duration = self.watchdog.look(now, frames, &mut self.counters)?;
        self.tx.remind();
        Some(Stall {
            frames,
            duration,
            remedy: Remedy::Reminded,
        })
    }
}

impl Drop for Pair {
    /// The device must not touch buffers that are freed: it is stopped, or keeps them.
    fn drop(&mut self) {
        if self.card.leave() {
            self.rx.retire();
            self.tx.retire();
        } else {
            self.rx.abandon();
            self.tx.abandon();
        }
    }
}
