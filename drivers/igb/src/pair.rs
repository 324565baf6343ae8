//! One pair of queues and its interrupt, owned by one CPU.
//!
//! The pair of a physical function and that of a virtual one differ in where their rings'
//! registers lie, and in nothing that is done for a frame. A card whose pools switch frames among
//! themselves may bring a broadcast back to who sent it (QEMU's does): there, own frames are
//! dropped.

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

/// Where a pair is among the card's registers, and which message it raises.
#[derive(Clone, Copy)]
pub(crate) struct Place {
    pub(crate) rx_ring: usize,
    pub(crate) rx_slots: u16,
    pub(crate) tx_ring: usize,
    pub(crate) message: u16,
}

/// A pair of queues.
pub struct Pair<R: Registers> {
    rx: Receiver<R>,
    tx: Transmitter<R>,
    message: u16,
    /// It was armed once: its message is masked until then.
    is_unmasked: bool,
    /// It is armed, and has found no frame since: the cause of its message is clear, or a frame has come.
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
        place: Place,
        memory: &impl DmaSource,
        pool: &'static (dyn Pool + Sync),
    ) -> Result<Self, Error> {
        let mut rx = Receiver::new(&card.registers, &place, memory, pool)?;
        let mut tx = Transmitter::new(&card.registers, place.tx_ring, memory, pool)?;
        rx.start()?;
        tx.start()?;
        Ok(Self {
            rx,
            tx,
            message: place.message,
            is_unmasked: false,
            is_armed: false,
            counters: PortCounters::default(),
            watchdog: Watchdog::default(),
            card,
        })
    }

    fn message(&self) -> u32 {
        1 << self.message
    }

    /// As `receive_noted`, without what this station sent.
    fn receive_of_others(
        &mut self,
        budget: usize,
        sink: &mut dyn FnMut(RxFrame, RxNotes),
    ) -> usize {
        let own = self.card.mac;
        let (mut frames, mut bytes) = (0, 0);
        let rx = &mut self.rx.ring;
        let count = rx.receive::<Advanced>(budget, &mut self.counters, |frame, notes| {
            if is_from(&frame, own) {
                frames += 1;
                bytes += frame.chain.len() as u64;
            } else {
                sink(frame, notes);
            }
        });
        self.counters.rx_own += frames;
        self.counters.rx_frames -= frames;
        self.counters.rx_bytes -= bytes;
        count
    }
}

/// Whether a frame for several stations was sent by this one.
#[inline]
fn is_from(frame: &RxFrame, own: [u8; 6]) -> bool {
    let bytes = frame.chain.front().map_or(&[][..], |part| part.bytes());
    let is_for_several = bytes.first().is_some_and(|first| first & 1 != 0);
    is_for_several && bytes.get(6..12) == Some(&own[..])
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
        if !self.is_armed {
            // The cause of frames that were taken stands in the way of the next message. What
            // comes after it is cleared interrupts; what came before is seen below.
            self.card.registers.write32(EICR, self.message());
            self.is_armed = true;
        }
        if !self.is_unmasked {
            self.card.registers.write32(EIMS, self.message());
            self.is_unmasked = true;
        }
        self.rx.ring.has_frame::<Advanced>()
    }

    /// One message comes for an arming, and none if no frame does.
    fn disarm(&mut self) {}

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
        self.message
    }

    fn receive_noted(&mut self, budget: usize, sink: &mut dyn FnMut(RxFrame, RxNotes)) -> usize {
        self.tx.ring.reclaim();
        let count = match self.card.has_pools {
            true => self.receive_of_others(budget, sink),
            false => {
                let rx = &mut self.rx.ring;
                rx.receive::<Advanced>(budget, &mut self.counters, sink)
            }
        };
        self.is_armed &= count == 0;
        count
    }
}

impl<R: Registers> Drop for Pair<R> {
    fn drop(&mut self) {
        if self.is_unmasked {
            self.card.registers.write32(EIMC, self.message());
        }
    }
}
