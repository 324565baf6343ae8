//! Transmitting: a header in front of each frame, descriptors for its parts, buffers
//! kept until the device has read them.
//!
//! Where the frame's first buffer has headroom that nobody else uses, the device's
//! header goes there, and a small frame is a single descriptor.

use alloc::boxed::Box;
use alloc::vec::Vec;

use hal::{DmaSource, PortCounters, Span};
use mbuf::{Chain, Mbuf, Pool, TxFrame};
use virtio::{Doorbell, Error, QueueShape, Transport};
use virtq::{AddError, Part, Queue, Token};

use crate::header::{self, HEADER_BYTES};

/// Frames with the device at most, if each is one descriptor.
const QUEUE_SIZE: u16 = 256;
/// Parts of a frame at most, and fewer in a small queue: one of more than that has could never go
/// out. It is copied into few.
const PARTS_MAX: usize = 64;

pub(crate) struct Transmitter {
    queue: Queue,
    doorbell: Doorbell,
    /// What the device still reads, by token.
    frames: Box<[Option<Chain>]>,
    pool: &'static (dyn Pool + Sync),
}

impl Transmitter {
    /// Queue `index` of the device.
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
        let frames: Vec<_> = (0..queue.size()).map(|_| None).collect();
        Ok(Self {
            queue,
            doorbell,
            frames: frames.into_boxed_slice(),
            pool,
        })
    }

    /// Queues a frame; gives it back if there is no room. One that never fits is dropped.
    pub(crate) fn transmit(
        &mut self,
        mut frame: TxFrame,
        counters: &mut PortCounters,
    ) -> Result<(), TxFrame> {
        let parts_max = PARTS_MAX.min(usize::from(self.queue.size()) - 1);
        let needed = frame.chain.parts().min(parts_max) + 1;
        if usize::from(self.queue.free()) < needed.max(usize::from(self.queue.size() / 2)) {
            self.reclaim(counters);
        }
        if usize::from(self.queue.free()) < needed {
            return self.refuse(frame, counters);
        }
        if frame.chain.parts() > parts_max {
            let Some(gathered) = frame.chain.gathered(self.pool) else {
                counters.tx_no_memory += 1;
                return Err(frame);
            };
            if gathered.parts() > parts_max {
                counters.tx_unsupported += 1;
                return Ok(());
            }
            frame.chain = gathered;
        }
        let bytes = frame.chain.len() as u64;
        let Some(()) = self.put_header(&mut frame) else {
            counters.tx_no_memory += 1;
            return Err(frame);
        };
        match self.add(&frame.chain) {
            Ok(token) => {
                self.frames[token.index()] = Some(frame.chain);
                counters.tx_frames += 1;
                counters.tx_bytes += bytes;
                Ok(())
            }
            Err(_) => {
                frame.chain.advance(HEADER_BYTES);
                self.refuse(frame, counters)
            }
        }
    }

    /// There is no room, nor will there be any in a queue that the device broke.
    #[cold]
    fn refuse(&self, frame: TxFrame, counters: &mut PortCounters) -> Result<(), TxFrame> {
        if self.queue.is_broken() {
            counters.tx_reset += 1;
            return Ok(());
        }
        counters.tx_queue_full += 1;
        Err(frame)
    }

    /// A frame of one part, as most are, costs no walk.
    #[inline]
    fn add(&mut self, frame: &Chain) -> Result<Token, AddError> {
        let read = |part: &Mbuf| Part::Read(Span::of(part));
        match frame.front() {
            Some(only) if frame.parts() == 1 => self.queue.add_one(read(only)),
            _ => self.queue.add(frame.iter().map(read)),
        }
    }

    fn put_header(&mut self, frame: &mut TxFrame) -> Option<()> {
        let header = header::encode(frame);
        if let Some(room) = frame.chain.prepend(HEADER_BYTES) {
            room.copy_from_slice(&header);
            return Some(());
        }
        let mut front: Mbuf = self.pool.alloc()?;
        front.append(&header);
        frame.chain.push_front(front);
        Some(())
    }

    /// Frees what the device has read.
    pub(crate) fn reclaim(&mut self, counters: &mut PortCounters) {
        loop {
            match self.queue.take() {
                Ok(Some(used)) => drop(self.frames[used.token.index()].take()),
                Ok(None) => break,
                Err(_) => {
                    counters.queue_broken = 1;
                    break;
                }
            }
        }
    }

    /// Frames that the device has not read yet.
    pub(crate) fn unsent(&mut self, counters: &mut PortCounters) -> usize {
        self.reclaim(counters);
        usize::from(self.queue.in_flight())
    }

    /// The device has been reset.
    pub(crate) fn retire(&mut self) {
        self.queue.retire();
    }

    /// The device goes on: it keeps the rings and the frames for good.
    pub(crate) fn abandon(&mut self) {
        core::mem::forget(core::mem::take(&mut self.frames));
    }

    pub(crate) fn kick(&mut self) {
        if self.queue.publish() {
            self.doorbell.ring();
        }
    }

    /// Tells the device of what it has, whether it asked for that or not.
    pub(crate) fn remind(&mut self) {
        let _ = self.queue.publish();
        self.doorbell.ring();
    }
}
