//! Receiving: keeps the device supplied with empty buffers, and joins what it filled.
//!
//! Each buffer is one descriptor. With `MRG_RXBUF` a frame may fill several; the first
//! one's header says how many, and they complete in order. A filled buffer is replaced
//! by an empty one before its frame goes up; when the pool has none the frame is dropped
//! and its own buffers go back, so that the ring never runs dry.
//!
//! What the device says is checked: a frame that is too short, one whose buffers do not
//! come, or whose header points outside of it is dropped and counted.

use alloc::boxed::Box;
use alloc::vec;

use hal::{DmaSource, PortCounters, Span};
use mbuf::{Chain, Mbuf, Pool, RxFrame};
use virtio::{Doorbell, Error, QueueShape, Transport};
use virtq::{Part, Queue, Used};

use crate::header::{self, HEADER_BYTES};

/// Buffers with the device at most.
const QUEUE_SIZE: u16 = 256;
/// The device is shown new buffers, and its doorbell looked at, in batches of this many.
const SHOW_BATCH: u16 = 32;
/// An Ethernet header: no frame is shorter.
const FRAME_BYTES_MIN: usize = 14;

pub(crate) struct Receiver {
    queue: Queue,
    doorbell: Doorbell,
    /// The buffer of each chain in flight, by token.
    buffers: Box<[Option<Mbuf>]>,
    pool: &'static (dyn Pool + Sync),
    /// Buffers added since the device was last shown some.
    unshown: u16,
}

/// Why a frame goes no further.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Drop {
    TooShort,
    Incomplete,
    BadHeader,
    NoMemory,
}

impl Receiver {
    /// Queue `index` of the device, whose frames raise interrupt `vector`.
    pub(crate) fn new(
        transport: &Transport,
        memory: &impl DmaSource,
        pool: &'static (dyn Pool + Sync),
        event_index: bool,
        index: u16,
        vector: u16,
    ) -> Result<Self, Error> {
        let shape = QueueShape {
            index,
            size_max: QUEUE_SIZE,
            vector,
            event_index,
        };
        let (queue, doorbell) = transport.make_queue(memory, shape)?;
        let buffers = vec![None; usize::from(queue.size())].into_boxed_slice();
        Ok(Self {
            queue,
            doorbell,
            buffers,
            pool,
            unshown: 0,
        })
    }

    /// Gives the device empty buffers while there are free descriptors and memory.
    /// Returns how many it has.
    pub(crate) fn refill(&mut self) -> u16 {
        while self.queue.free() != 0 {
            let Some(buffer) = self.pool.alloc() else {
                break;
            };
            if !self.post(buffer) {
                break;
            }
        }
        self.show();
        self.queue.in_flight()
    }

    /// Hands over at most `budget` frames; returns how many came, dropped ones included.
    pub(crate) fn receive(
        &mut self,
        budget: usize,
        counters: &mut PortCounters,
        take: &mut dyn FnMut(RxFrame),
    ) -> usize {
        let mut count = 0;
        while count < budget {
            let Some(used) = self.next_used(counters) else {
                break;
            };
            if let Err(reason) = self.hand_over(used, counters, take) {
                count_drop(counters, reason);
            }
            count += 1;
        }
        if self.unshown >= SHOW_BATCH {
            self.show();
        }
        count
    }

    #[inline]
    fn next_used(&mut self, counters: &mut PortCounters) -> Option<Used> {
        match self.queue.take() {
            Ok(used) => used,
            Err(_) => {
                counters.queue_broken = 1;
                None
            }
        }
    }

    /// Hands over the frame that begins in the buffer of `used`.
    #[inline]
    fn hand_over(
        &mut self,
        used: Used,
        counters: &mut PortCounters,
        take: &mut dyn FnMut(RxFrame),
    ) -> Result<(), Drop> {
        let mut first = self.replace(used)?;
        let head = header::decode(first.bytes()).ok_or(Drop::TooShort)?;
        first.advance(HEADER_BYTES);
        let mut chain = Chain::from(first);
        if head.buffers > 1 {
            self.join(&mut chain, head.buffers - 1, counters)?;
        }
        if chain.len() < FRAME_BYTES_MIN {
            return Err(Drop::TooShort);
        }
        if !head.fits(chain.len()) {
            return Err(Drop::BadHeader);
        }
        counters.rx_frames += 1;
        counters.rx_bytes += chain.len() as u64;
        take(RxFrame {
            chain,
            checksum: head.checksum,
            coalesced: head.coalesced,
            tag: None,
        });
        Ok(())
    }

    /// Adds the next `count` buffers to a frame. All are taken even if one is lost, so
    /// that the next frame begins where the device says.
    fn join(
        &mut self,
        chain: &mut Chain,
        count: u16,
        counters: &mut PortCounters,
    ) -> Result<(), Drop> {
        let mut outcome = Ok(());
        for _ in 0..count {
            let used = self.next_used(counters).ok_or(Drop::Incomplete)?;
            match self.replace(used) {
                Ok(part) => chain.push_back(part),
                Err(reason) => outcome = Err(reason),
            }
        }
        outcome
    }

    /// Takes a filled buffer, cut to what the device wrote, and posts an empty one.
    /// Without an empty one the filled one goes back and its bytes are lost.
    #[inline]
    fn replace(&mut self, used: Used) -> Result<Mbuf, Drop> {
        let slot = &mut self.buffers[used.token.index()];
        let mut filled = slot.take().ok_or(Drop::Incomplete)?;
        let Some(empty) = self.pool.alloc() else {
            self.post(filled);
            return Err(Drop::NoMemory);
        };
        self.post(empty);
        filled
            .extend(used.written as usize)
            .ok_or(Drop::BadHeader)?;
        Ok(filled)
    }

    /// Adds an empty buffer to the ring.
    #[inline]
    fn post(&mut self, buffer: Mbuf) -> bool {
        match self.queue.add_one(Part::Write(Span::room_of(&buffer))) {
            Ok(token) => {
                self.buffers[token.index()] = Some(buffer);
                self.unshown += 1;
                true
            }
            Err(_) => false,
        }
    }

    fn show(&mut self) {
        self.unshown = 0;
        if self.queue.publish() {
            self.doorbell.ring();
        }
    }

    pub(crate) fn has_received(&self) -> bool {
        self.queue.has_completions()
    }

    pub(crate) fn arm(&mut self) -> bool {
        self.refill();
        !self.queue.is_broken() && self.queue.arm()
    }

    /// The device has been reset.
    pub(crate) fn retire(&mut self) {
        self.queue.retire();
    }

    /// The device goes on: it keeps the rings and the buffers for good.
    pub(crate) fn abandon(&mut self) {
        core::mem::forget(core::mem::take(&mut self.buffers));
    }

    pub(crate) fn disarm(&mut self) {
        self.queue.disarm();
    }
}

#[cold]
fn count_drop(counters: &mut PortCounters, reason: Drop) {
    let counter = match reason {
        Drop::TooShort => &mut counters.rx_bad_length,
        Drop::Incomplete => &mut counters.rx_incomplete,
        Drop::BadHeader => &mut counters.rx_bad_header,
        Drop::NoMemory => &mut counters.rx_no_memory,
    };
    *counter += 1;
}
