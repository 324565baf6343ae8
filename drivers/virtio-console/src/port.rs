//! One port.

use alloc::vec::Vec;

use hal::{DmaSource, HostEnd};
use virtio::{Error, QueueShape, Transport};

use crate::receiver::Receiver;
use crate::transmitter::Transmitter;

/// Descriptors of a queue, and so its buffers, at most.
pub(crate) const QUEUE_SIZE: u16 = 32;

/// Memory for one direction of a port.
#[derive(Clone, Copy)]
pub(crate) struct Buffers {
    pub(crate) count: usize,
    pub(crate) bytes: usize,
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
