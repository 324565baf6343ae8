//! One port, and how queues are made.

use alloc::vec::Vec;

use hal::{DmaSource, HostEnd};
use virtio::{Doorbell, Error, Transport};
use virtq::{Config, Queue};

use crate::receiver::Receiver;
use crate::transmitter::Transmitter;

/// Descriptors of a queue, and so its buffers, at most.
const QUEUE_SIZE: u16 = 32;

/// Memory for one direction of a port.
#[derive(Clone, Copy)]
pub(crate) struct Buffers {
    pub(crate) count: usize,
    pub(crate) bytes: usize,
}

/// What differs between queues.
#[derive(Clone, Copy)]
pub(crate) struct QueueShape {
    pub(crate) index: u16,
    pub(crate) vector: u16,
    pub(crate) event_index: bool,
}

/// Makes a queue and tells the device of it.
pub(crate) fn make_queue(
    transport: &Transport,
    memory: &impl DmaSource,
    shape: QueueShape,
) -> Result<(Queue, Doorbell), Error> {
    let QueueShape {
        index,
        vector,
        event_index,
    } = shape;
    let size = QUEUE_SIZE.min(transport.queue_size_max(index));
    if !size.is_power_of_two() {
        return Err(Error::NoQueue(index));
    }
    let config = Config {
        size,
        event_index,
        indirect_parts: 0,
    };
    let queue = Queue::new(memory, config).ok_or(Error::OutOfMemory)?;
    let at = queue.addresses().ok_or(Error::OutOfMemory)?;
    let doorbell = transport.add_queue(index, size, at, vector)?;
    Ok((queue, doorbell))
}

/// Both directions of a stream, and what the device said of it.
pub(crate) struct Port {
    pub(crate) receiver: Receiver,
    pub(crate) transmitter: Transmitter,
    /// Empty until the device has named it.
    pub(crate) name: Vec<u8>,
    pub(crate) host_end: HostEnd,
}

impl Port {
    /// The pair of queues that starts with the one at `shape`.
    pub(crate) fn new(
        transport: &Transport,
        memory: &impl DmaSource,
        shape: QueueShape,
    ) -> Result<Self, Error> {
        let after = QueueShape {
            index: shape.index + 1,
            ..shape
        };
        Ok(Self {
            receiver: Receiver::new(transport, memory, shape)?,
            transmitter: Transmitter::new(transport, memory, after)?,
            name: Vec::new(),
            host_end: HostEnd::Awaited,
        })
    }

    /// The device has been reset.
    pub(crate) fn retire(&mut self) {
        self.receiver.retire();
        self.transmitter.retire();
    }
}
