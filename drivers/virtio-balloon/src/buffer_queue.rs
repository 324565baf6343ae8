//! A queue with one buffer, which is with the device or is not.

use hal::caching::WriteBack;
use hal::owner::Device;
use hal::{BalloonBroken, DmaBuf, DmaRequest, DmaSource, HasDeviceAddr};
use virtio::{Doorbell, Error, QueueShape, Transport};
use virtq::{Part, Queue};

/// Where the buffer is.
enum Buffer {
    Here(DmaBuf),
    WithDevice(DmaBuf<WriteBack, Device>),
    /// The queue broke while it was with the device.
    Lost,
}

pub(crate) struct BufferQueue {
    queue: Queue,
    doorbell: Doorbell,
    buffer: Buffer,
}

impl BufferQueue {
    /// One whose buffer takes `bytes`.
    pub(crate) fn new(
        transport: &Transport,
        memory: &impl DmaSource,
        shape: QueueShape,
        bytes: usize,
    ) -> Result<Self, Error> {
        let (queue, doorbell) = transport.make_queue(memory, shape)?;
        let request = DmaRequest::new(bytes, 8);
        let buffer = memory.dma_alloc(&request).map_err(|_| Error::OutOfMemory)?;
        Ok(Self {
            queue,
            doorbell,
            buffer: Buffer::Here(buffer),
        })
    }

    /// Sends these records, one at least, and no more than the buffer takes.
    pub(crate) fn send<const RECORD_BYTES: usize>(
        &mut self,
        records: impl ExactSizeIterator<Item = [u8; RECORD_BYTES]>,
    ) -> Result<(), BalloonBroken> {
        let bytes = records.len() * RECORD_BYTES;
        let buffer = match core::mem::replace(&mut self.buffer, Buffer::Lost) {
            Buffer::Here(buffer) if (1..=buffer.bytes()).contains(&bytes) => buffer,
            other => {
                self.buffer = other;
                return Err(BalloonBroken);
            }
        };
        for (index, record) in records.enumerate() {
            buffer.copy_in(index * RECORD_BYTES, &record);
        }
        let buffer = buffer.give();
        let part = buffer.dev_addr(0, bytes);
        let added = part.and_then(|part| self.queue.add_one(Part::Read(part)).ok());
        if added.is_none() {
            // The queue is broken, and the device never heard of the buffer.
            self.buffer = Buffer::Here(buffer.take_back());
            return Err(BalloonBroken);
        }
        self.buffer = Buffer::WithDevice(buffer);
        // The queue is empty but for this: its interrupt also comes to who does not look before resting.
        _ = self.queue.arm();
        if self.queue.publish() {
            self.doorbell.ring();
        }
        Ok(())
    }

    /// Whether the device has used what was sent last; if not, an interrupt says when to look again.
    pub(crate) fn is_done(&mut self) -> Result<bool, BalloonBroken> {
        loop {
            match self.queue.take() {
                Ok(Some(_)) => self.take_back(),
                Ok(None) => {}
                Err(_) => return Err(BalloonBroken),
            }
            match self.buffer {
                Buffer::Here(_) => return Ok(true),
                Buffer::Lost => return Err(BalloonBroken),
                Buffer::WithDevice(_) if !self.queue.arm() => return Ok(false),
                Buffer::WithDevice(_) => {}
            }
        }
    }

    fn take_back(&mut self) {
        self.buffer = match core::mem::replace(&mut self.buffer, Buffer::Lost) {
            Buffer::WithDevice(buffer) => Buffer::Here(buffer.take_back()),
            other => other,
        };
    }

    /// The device has been reset.
    pub(crate) fn retire(&mut self) {
        self.queue.retire();
        self.take_back();
    }
}
