//! Receiving: keeps the device supplied with empty buffers, and joins what it filled.
//!
//! Each buffer is one descriptor. With `MRG_RXBUF` a frame may fill several; the first
//! one's header says how many, and they complete in order. What the device says is
//! checked: a frame without a header, or one whose buffers do not come, is dropped and
//! counted.

use alloc::boxed::Box;
use alloc::vec;

use hal::{DmaSource, Span};
use mbuf::{Chain, Mbuf, Pool, RxFrame};
use virtio::{Doorbell, Error, Transport};
use virtq::{Config, Part, Queue, Token};

use crate::device::Counters;
use crate::header::{self, HEADER_BYTES};

/// Buffers with the device at most.
const QUEUE_SIZE: u16 = 256;
/// The device gets new buffers, and a look at its doorbell, in batches of this many.
const REFILL_BATCH: u16 = 32;
/// A frame of 64 KiB in buffers of 2 KiB, and some.
const PARTS_MAX: u16 = 40;

pub(crate) struct Receiver {
    queue: Queue,
    doorbell: Doorbell,
    /// The buffer of each chain in flight, by token.
    buffers: Box<[Option<Mbuf>]>,
    pool: &'static (dyn Pool + Sync),
}

impl Receiver {
    pub(crate) fn new(
        transport: &Transport,
        memory: &impl DmaSource,
        pool: &'static (dyn Pool + Sync),
        event_index: bool,
        vector: u16,
    ) -> Result<Self, Error> {
        let size = transport.queue_size_max(0).min(QUEUE_SIZE);
        let config = Config {
            size,
            event_index,
            indirect_parts: 0,
        };
        let queue = Queue::new(memory, config).ok_or(Error::OutOfMemory)?;
        let at = queue.addresses().ok_or(Error::OutOfMemory)?;
        let doorbell = transport.add_queue(0, size, at, vector)?;
        let buffers = vec![None; usize::from(size)].into_boxed_slice();
        Ok(Self {
            queue,
            doorbell,
            buffers,
            pool,
        })
    }

    /// Gives the device empty buffers while there are free descriptors and memory.
    pub(crate) fn refill(&mut self) {
        while self.queue.free() != 0 {
            let Some(buffer) = self.pool.alloc() else {
                break;
            };
            let span = Span {
                addr: buffer.device_addr(),
                len: buffer.capacity() as u32,
            };
            match self.queue.add([Part::Write(span)]) {
                Ok(token) => self.buffers[token.index()] = Some(buffer),
                Err(_) => break,
            }
        }
        if self.queue.publish() {
            self.doorbell.ring();
        }
    }

    fn refill_if_low(&mut self) {
        if self.queue.free() >= REFILL_BATCH {
            self.refill();
        }
    }

    /// Hands over at most `budget` frames.
    pub(crate) fn receive(
        &mut self,
        budget: usize,
        counters: &mut Counters,
        take: &mut dyn FnMut(RxFrame),
    ) -> usize {
        let mut count = 0;
        while count < budget {
            match self.next_frame(counters) {
                Some(Ok(frame)) => take(frame),
                Some(Err(())) => {}
                None => break,
            }
            count += 1;
        }
        if count != 0 {
            self.refill_if_low();
        }
        count
    }

    /// The next frame; `Err` for one that was dropped, `None` if there is none.
    fn next_frame(&mut self, counters: &mut Counters) -> Option<Result<RxFrame, ()>> {
        let mut first = self.next_buffer(counters)?;
        let Some(head) = header::decode(first.bytes()) else {
            counters.rx_no_header += 1;
            return Some(Err(()));
        };
        first.advance(HEADER_BYTES);
        let mut chain = Chain::from(first);
        for _ in 1..head.buffers.min(PARTS_MAX) {
            match self.next_buffer(counters) {
                Some(part) => chain.push_back(part),
                None => {
                    counters.rx_incomplete += 1;
                    return Some(Err(()));
                }
            }
        }
        counters.rx_frames += 1;
        counters.rx_bytes += chain.len() as u64;
        Some(Ok(RxFrame {
            chain,
            checksum: head.checksum,
            coalesced: head.coalesced,
        }))
    }

    /// The next buffer that the device filled, cut to what it wrote.
    fn next_buffer(&mut self, counters: &mut Counters) -> Option<Mbuf> {
        match self.queue.take() {
            Ok(used) => {
                let used = used?;
                let mut buffer = self.buffer_of(used.token)?;
                let _ = buffer.extend(used.written as usize);
                Some(buffer)
            }
            Err(_) => {
                counters.queue_broken = 1;
                None
            }
        }
    }

    fn buffer_of(&mut self, token: Token) -> Option<Mbuf> {
        self.buffers.get_mut(token.index())?.take()
    }

    pub(crate) fn arm(&mut self) -> bool {
        self.refill();
        self.queue.arm()
    }

    pub(crate) fn disarm(&mut self) {
        self.queue.disarm();
    }
}
