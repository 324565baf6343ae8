//! How memory is used (section 5.5.6.3): `tag[2] value[8]` each, little endian. The device keeps the last answer's buffer,
//! and returns it to ask again.

use hal::caching::WriteBack;
use hal::owner::Device;
use hal::{DmaBuf, DmaRequest, DmaSource, HasDeviceAddr, MemoryUse};
use virtio::{Doorbell, Error, QueueShape, Transport};
use virtq::{Part, Queue};

const MAJOR_FAULTS: u16 = 2;
const MINOR_FAULTS: u16 = 3;
const FREE: u16 = 4;
const TOTAL: u16 = 5;
const AVAILABLE: u16 = 6;
const CACHES: u16 = 7;

/// Figures of an answer.
const COUNT: usize = 6;
/// Bytes of one.
const RECORD_BYTES: usize = 10;
/// Bytes of an answer.
pub(crate) const ANSWER_BYTES: usize = COUNT * RECORD_BYTES;

pub(crate) fn encode(memory: &MemoryUse) -> [u8; ANSWER_BYTES] {
    let figures: [(u16, u64); COUNT] = [
        (TOTAL, memory.total_bytes),
        (FREE, memory.free_bytes),
        (AVAILABLE, memory.available_bytes),
        (CACHES, memory.cache_bytes),
        (MAJOR_FAULTS, memory.major_faults),
        (MINOR_FAULTS, memory.minor_faults),
    ];
    let mut answer = [0; ANSWER_BYTES];
    for (record, (tag, value)) in answer.chunks_exact_mut(RECORD_BYTES).zip(figures) {
        let bytes = tag.to_le_bytes().into_iter().chain(value.to_le_bytes());
        record
            .iter_mut()
            .zip(bytes)
            .for_each(|(to, from)| *to = from);
    }
    answer
}

pub(crate) struct Statistics {
    queue: Queue,
    doorbell: Doorbell,
    /// While it is ours, the host waits for an answer.
    here: Option<DmaBuf>,
    with_device: Option<DmaBuf<WriteBack, Device>>,
}

impl Statistics {
    pub(crate) fn new(
        transport: &Transport,
        memory: &impl DmaSource,
        shape: QueueShape,
    ) -> Result<Self, Error> {
        let (queue, doorbell) = transport.make_queue(memory, shape)?;
        let request = DmaRequest::new(ANSWER_BYTES, 8);
        let buffer = memory.dma_alloc(&request).map_err(|_| Error::OutOfMemory)?;
        Ok(Self {
            queue,
            doorbell,
            here: Some(buffer),
            with_device: None,
        })
    }

    /// Whether an answer is wanted; if not, an interrupt says when to look again. The first one is wanted at once.
    pub(crate) fn is_wanted(&mut self) -> bool {
        while self.here.is_none() {
            if let Ok(Some(_)) = self.queue.take() {
                self.here = self.with_device.take().map(DmaBuf::take_back);
            } else if self.queue.is_broken() || !self.queue.arm() {
                return false;
            }
        }
        !self.queue.is_broken()
    }

    pub(crate) fn answer(&mut self, memory: &MemoryUse) {
        let Some(buffer) = self.here.take() else {
            return;
        };
        buffer.copy_in(0, &encode(memory));
        let buffer = buffer.give();
        let part = buffer.dev_addr(0, ANSWER_BYTES);
        let added = part.and_then(|part| self.queue.add_one(Part::Read(part)).ok());
        if added.is_none() {
            // The queue is broken, and the device never heard of the buffer.
            self.here = Some(buffer.take_back());
            return;
        }
        self.with_device = Some(buffer);
        if self.queue.publish() {
            self.doorbell.ring();
        }
    }

    /// The device has been reset.
    pub(crate) fn retire(&mut self) {
        self.queue.retire();
        drop(self.with_device.take().map(DmaBuf::take_back));
    }
}
