//! One queue of the device.

use alloc::boxed::Box;
use alloc::vec;

use block::{Broken, Channel, Command, Operation, SubmitError, Tag, Verdict};
use virtio::Doorbell;
use virtq::{AddError, Part, Queue};

use crate::slots::{Around, Slots};

/// A queue with its slots.
pub(crate) struct BlkQueue {
    queue: Queue,
    doorbell: Doorbell,
    slots: Slots,
    depth: u16,
    /// The command of each chain in flight, by the queue's token.
    tags: Box<[Option<Tag>]>,
}

impl BlkQueue {
    pub(crate) fn new(queue: Queue, doorbell: Doorbell, slots: Slots, depth: u16) -> Self {
        let tags = vec![None; usize::from(queue.size())].into_boxed_slice();
        Self {
            queue,
            doorbell,
            slots,
            depth,
            tags,
        }
    }

    fn add(&mut self, command: &Command<'_>, around: &Around) -> Result<virtq::Token, AddError> {
        let is_read = command.operation == Operation::Read;
        let data = |span| {
            if is_read {
                Part::Write(span)
            } else {
                Part::Read(span)
            }
        };
        // Most commands are these three parts.
        if let ([span], None, 1..) = (command.spans, around.range, self.queue.indirect_parts()) {
            let parts = [
                Part::Read(around.header),
                data(*span),
                Part::Write(around.status),
            ];
            return self.queue.add_indirect(parts);
        }
        let parts = core::iter::once(Part::Read(around.header))
            .chain(around.range.map(Part::Read))
            .chain(command.spans.iter().copied().map(data))
            .chain(core::iter::once(Part::Write(around.status)));
        match self.queue.indirect_parts() {
            0 => self.queue.add(parts),
            _ => self.queue.add_indirect(parts),
        }
    }
}

impl Channel for BlkQueue {
    fn depth(&self) -> u16 {
        self.depth
    }

    fn submit(&mut self, command: &Command<'_>) -> Result<Tag, SubmitError> {
        if self.queue.is_broken() {
            return Err(SubmitError::Broken);
        }
        let (tag, around) = self.slots.fill(command).ok_or(SubmitError::Full)?;
        match self.add(command, &around) {
            Ok(token) => {
                if let Some(place) = self.tags.get_mut(token.index()) {
                    *place = Some(tag);
                }
                Ok(tag)
            }
            Err(error) => {
                self.slots.give_back(tag);
                Err(match error {
                    AddError::Full => SubmitError::Full,
                    AddError::Broken => SubmitError::Broken,
                    AddError::Empty | AddError::TooManyParts => SubmitError::TooLarge,
                })
            }
        }
    }

    fn publish(&mut self) {
        if self.queue.publish() {
            self.doorbell.ring();
        }
    }

    fn complete(&mut self) -> Result<Option<(Tag, Verdict)>, Broken> {
        let Some(used) = self.queue.take().map_err(|_| Broken)? else {
            return Ok(None);
        };
        let place = self.tags.get_mut(used.token.index());
        let tag = place.and_then(Option::take).ok_or(Broken)?;
        Ok(Some((tag, self.slots.end(tag))))
    }

    fn arm(&mut self) -> bool {
        !self.queue.is_broken() && self.queue.arm()
    }

    fn retire(&mut self) {
        self.queue.retire();
        self.slots.retire();
    }
}
