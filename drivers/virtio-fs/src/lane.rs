//! A queue of the device, and which request each of its chains is.

use alloc::boxed::Box;
use alloc::vec;

use fuse::{SubmitError, Tag};
use hal::DmaSource;
use virtio::{Doorbell, Error, QueueShape, Transport};
use virtq::{Queue, QueueError};

use crate::slot::Chain;

/// A queue with what is in flight on it.
pub(crate) struct Lane {
    queue: Queue,
    doorbell: Doorbell,
    /// The tag of each chain in flight, by the queue's token.
    tags: Box<[Option<Tag>]>,
}

impl Lane {
    pub(crate) fn new(
        transport: &Transport,
        memory: &impl DmaSource,
        shape: QueueShape,
    ) -> Result<Self, Error> {
        if transport.queue_size_max(shape.index) < shape.size_max {
            return Err(Error::NoQueue(shape.index));
        }
        let (queue, doorbell) = transport.make_queue(memory, shape)?;
        Ok(Self {
            queue,
            doorbell,
            tags: vec![None; usize::from(shape.size_max)].into_boxed_slice(),
        })
    }

    pub(crate) fn is_broken(&self) -> bool {
        self.queue.is_broken()
    }

    /// Shows a chain to the device.
    pub(crate) fn send(&mut self, tag: Tag, chain: &Chain) -> Result<(), SubmitError> {
        let added = self.queue.add(chain.parts());
        let token = added.map_err(|_| SubmitError::Broken)?;
        if let Some(slot) = self.tags.get_mut(token.index()) {
            *slot = Some(tag);
        }
        if self.queue.publish() {
            self.doorbell.ring();
        }
        Ok(())
    }

    /// The next chain that the device is done with. How much it wrote it need not say (virtiofsd says
    /// zero): the reply has its length in front.
    pub(crate) fn take(&mut self) -> Result<Option<Tag>, QueueError> {
        while let Some(used) = self.queue.take()? {
            let slot = self.tags.get_mut(used.token.index());
            if let Some(tag) = slot.and_then(Option::take) {
                return Ok(Some(tag));
            }
        }
        Ok(None)
    }

    /// One of those that nobody will answer.
    pub(crate) fn give_up_one(&mut self) -> Option<Tag> {
        self.tags.iter_mut().find_map(Option::take)
    }

    /// Asks for an interrupt; whether something came meanwhile.
    pub(crate) fn arm(&mut self) -> bool {
        !self.queue.is_broken() && self.queue.arm()
    }

    pub(crate) fn retire(&mut self) {
        self.queue.retire();
    }
}
