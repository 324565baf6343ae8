//! A queue of a device: its rings, and its doorbell.

use hal::DmaSource;
use virtq::{Config, Queue};

use crate::{Doorbell, Error, Transport};

/// Which queue, and how it works.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct QueueShape {
    /// Its number.
    pub index: u16,
    /// Descriptors at most; the device may want fewer.
    pub size_max: u16,
    /// The interrupt that tells of what it finished; [`NO_VECTOR`](crate::NO_VECTOR) for none.
    pub vector: u16,
    /// Both sides agreed on `VIRTIO_F_EVENT_IDX`.
    pub event_index: bool,
}

impl Transport {
    /// Makes a queue, of a power of two descriptors that suits both sides (section 2.7), and
    /// tells the device of it.
    pub fn make_queue(
        &self,
        memory: &impl DmaSource,
        shape: QueueShape,
    ) -> Result<(Queue, Doorbell), Error> {
        self.make_indirect_queue(memory, shape, 0)
    }

    /// The same, whose chains may lie in tables of `parts` descriptors of their own
    /// (`VIRTIO_F_INDIRECT_DESC`).
    pub fn make_indirect_queue(
        &self,
        memory: &impl DmaSource,
        shape: QueueShape,
        parts: u16,
    ) -> Result<(Queue, Doorbell), Error> {
        let QueueShape { index, vector, .. } = shape;
        let size = self.queue_size_max(index).min(shape.size_max);
        let log2 = size.checked_ilog2().ok_or(Error::NoQueue(index))?;
        let config = Config {
            size: 1 << log2,
            event_index: shape.event_index,
            indirect_parts: parts,
        };
        let queue = Queue::new(memory, config).ok_or(Error::OutOfMemory)?;
        let at = queue.addresses().ok_or(Error::OutOfMemory)?;
        let doorbell = self.add_queue(index, config.size, at, vector)?;
        Ok((queue, doorbell))
    }
}
