//! What the host sends: buffers that wait to be filled, and filled ones that wait to be read.
//!
//! A filled buffer goes back to the device when its last byte was taken, not before: that
//! is the flow control.

use alloc::boxed::Box;
use alloc::collections::VecDeque;

use hal::caching::WriteBack;
use hal::owner::Device;
use hal::{DmaBuf, DmaRequest, DmaSource, HasDeviceAddr, NoBuffers};
use virtio::{Doorbell, Error, QueueShape, Transport};
use virtq::{Part, Queue};

use crate::port::Buffers;

struct Filled {
    memory: DmaBuf,
    start: usize,
    end: usize,
}

pub(crate) struct Receiver {
    queue: Queue,
    doorbell: Doorbell,
    /// The buffer of each chain in flight, by token.
    with_device: Box<[Option<DmaBuf<WriteBack, Device>>]>,
    filled: VecDeque<Filled>,
}

impl Receiver {
    pub(crate) fn new(
        transport: &Transport,
        memory: &impl DmaSource,
        shape: QueueShape,
    ) -> Result<Self, Error> {
        let (queue, doorbell) = transport.make_queue(memory, shape)?;
        let with_device = (0..queue.size()).map(|_| None).collect();
        Ok(Self {
            queue,
            doorbell,
            with_device,
            filled: VecDeque::new(),
        })
    }

    /// Gives the device buffers, at most as many as the queue has descriptors.
    pub(crate) fn add_buffers(
        &mut self,
        memory: &impl DmaSource,
        buffers: Buffers,
    ) -> Result<(), NoBuffers> {
        let request = DmaRequest::new(buffers.bytes, 8);
        for _ in 0..buffers.count.min(usize::from(self.queue.free())) {
            self.post(memory.dma_alloc(&request).map_err(|_| NoBuffers)?);
        }
        self.show();
        Ok(())
    }

    fn post(&mut self, memory: DmaBuf) {
        let memory = memory.give();
        let room = memory.dev_addr(0, memory.bytes());
        let added = room.and_then(|room| self.queue.add([Part::Write(room)]).ok());
        match added {
            Some(token) => self.with_device[token.index()] = Some(memory),
            // The queue is broken, and the device never heard of the buffer.
            None => drop(memory.take_back()),
        }
    }

    fn show(&mut self) {
        if self.queue.publish() {
            self.doorbell.ring();
        }
    }

    /// Takes all that the device has filled, and asks for an interrupt at the next.
    pub(crate) fn collect(&mut self) {
        loop {
            while let Ok(Some(used)) = self.queue.take() {
                let Some(memory) = self.with_device[used.token.index()].take() else {
                    continue;
                };
                let memory = memory.take_back();
                let end = memory.bytes().min(used.written as usize);
                self.filled.push_back(Filled {
                    memory,
                    start: 0,
                    end,
                });
            }
            if self.queue.is_broken() || !self.queue.arm() {
                break;
            }
        }
        self.recycle();
    }

    /// Bytes that have come.
    pub(crate) fn readable(&self) -> usize {
        self.filled
            .iter()
            .map(|filled| filled.end - filled.start)
            .sum()
    }

    /// Copies bytes that have come to `to`, from the first buffer only; they stay.
    pub(crate) fn peek(&self, to: &mut [u8]) -> usize {
        let Some(first) = self.filled.front() else {
            return 0;
        };
        let count = to.len().min(first.end - first.start);
        first.memory.copy_out(first.start, &mut to[..count]);
        count
    }

    /// Drops bytes of the first buffer.
    pub(crate) fn skip(&mut self, count: usize) {
        if let Some(first) = self.filled.front_mut() {
            first.start += count.min(first.end - first.start);
        }
        self.recycle();
    }

    /// Drops the first buffer: a message that was read.
    pub(crate) fn skip_buffer(&mut self) {
        self.skip(usize::MAX);
    }

    /// Empty buffers at the front go back to the device.
    fn recycle(&mut self) {
        while let Some(empty) = self.filled.pop_front_if(|first| first.start == first.end) {
            self.post(empty.memory);
        }
        self.show();
    }

    /// The device has been reset.
    pub(crate) fn retire(&mut self) {
        self.queue.retire();
        let buffers = self.with_device.iter_mut().filter_map(Option::take);
        buffers.for_each(|memory| drop(memory.take_back()));
    }
}
