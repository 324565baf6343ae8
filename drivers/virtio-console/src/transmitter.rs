//! What the machine sends: buffers that are free, and those that the device reads.

use alloc::boxed::Box;
use alloc::vec::Vec;

use hal::caching::WriteBack;
use hal::owner::Device;
use hal::{DmaBuf, DmaRequest, DmaSource, HasDeviceAddr, NoBuffers};
use virtio::{Doorbell, Error, QueueShape, Transport};
use virtq::{Part, Queue};

use crate::port::Buffers;

pub(crate) struct Transmitter {
    queue: Queue,
    doorbell: Doorbell,
    free: Vec<DmaBuf>,
    /// The buffer of each chain in flight, by token.
    with_device: Box<[Option<DmaBuf<WriteBack, Device>>]>,
}

impl Transmitter {
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
            free: Vec::new(),
            with_device,
        })
    }

    /// Allocates buffers, at most as many as the queue has descriptors.
    pub(crate) fn add_buffers(
        &mut self,
        memory: &impl DmaSource,
        buffers: Buffers,
    ) -> Result<(), NoBuffers> {
        let request = DmaRequest::new(buffers.bytes, 8);
        for _ in 0..buffers.count.min(usize::from(self.queue.size())) {
            let buffer = memory.dma_alloc(&request).map_err(|_| NoBuffers)?;
            self.free.push(buffer);
        }
        Ok(())
    }

    /// Takes back what the device has read.
    fn collect(&mut self) {
        while let Ok(Some(used)) = self.queue.take() {
            if let Some(memory) = self.with_device[used.token.index()].take() {
                self.free.push(memory.take_back());
            }
        }
    }

    /// Takes back until `is_enough`, as far as the device has read; if that is not enough,
    /// an interrupt says when to look again.
    fn collect_until(&mut self, is_enough: fn(&Self) -> bool) -> bool {
        while !is_enough(self) {
            self.collect();
            if is_enough(self) {
                return true;
            }
            if self.queue.is_broken() || !self.queue.arm() {
                return false;
            }
        }
        true
    }

    pub(crate) fn has_room(&mut self) -> bool {
        self.collect_until(|queue| !queue.free.is_empty())
    }

    pub(crate) fn is_flushed(&mut self) -> bool {
        self.collect_until(|queue| queue.queue.in_flight() == 0)
    }

    /// Sends as much of `bytes` as one buffer takes; returns how much.
    pub(crate) fn send(&mut self, bytes: &[u8]) -> usize {
        if bytes.is_empty() {
            return 0;
        }
        let Some(memory) = self.free.pop() else {
            return 0;
        };
        let count = bytes.len().min(memory.bytes());
        memory.copy_in(0, &bytes[..count]);
        let memory = memory.give();
        let part = memory.dev_addr(0, count);
        let added = part.and_then(|part| self.queue.add([Part::Read(part)]).ok());
        let Some(token) = added else {
            // The queue is broken, and the device never heard of the buffer.
            self.free.push(memory.take_back());
            return 0;
        };
        self.with_device[token.index()] = Some(memory);
        if self.queue.publish() {
            self.doorbell.ring();
        }
        count
    }

    /// Whether the device broke the queue.
    pub(crate) fn is_broken(&self) -> bool {
        self.queue.is_broken()
    }

    /// The device has been reset.
    pub(crate) fn retire(&mut self) {
        self.queue.retire();
        let buffers = self.with_device.iter_mut().filter_map(Option::take);
        buffers.for_each(|memory| drop(memory.take_back()));
    }
}
