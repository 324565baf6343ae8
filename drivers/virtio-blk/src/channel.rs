//! One queue of the device.

use block::{Broken, Channel, Command, Operation, SubmitError, Tag, Verdict};
use hal::Span;
use virtio::Doorbell;
use virtq::{AddError, Part, Queue, Token};

use crate::slots::Slots;

/// A queue with its slots. A command's tag is its chain's token, and so is its slot's number.
pub(crate) struct BlkQueue {
    queue: Queue,
    doorbell: Doorbell,
    slots: Slots,
}

impl BlkQueue {
    /// `slots` has one for each token; `None` if that is not so.
    pub(crate) fn new(mut queue: Queue, doorbell: Doorbell, slots: Slots) -> Option<Self> {
        if queue.indirect_parts() != 0 {
            queue.set_frames(|token| {
                let around = slots.place(token)?;
                Some((Part::Read(around.header), Part::Write(around.status)))
            })?;
        }
        Some(Self {
            queue,
            doorbell,
            slots,
        })
    }

    #[inline]
    fn add(&mut self, token: Token, command: &Command<'_>) -> Result<Token, AddError> {
        match (command.spans, self.queue.indirect_parts()) {
            // Most commands.
            ([span], 1..) => self.queue.add_framed(data(command.operation, *span)),
            _ => self.add_parts(token, command),
        }
    }

    #[cold]
    fn add_parts(&mut self, token: Token, command: &Command<'_>) -> Result<Token, AddError> {
        let operation = command.operation;
        let around = self.slots.place(token).ok_or(AddError::Broken)?;
        let range = around.range.filter(|_| has_range(operation));
        let parts = core::iter::once(Part::Read(around.header))
            .chain(range.map(Part::Read))
            .chain(command.spans.iter().map(|span| data(operation, *span)))
            .chain(core::iter::once(Part::Write(around.status)));
        match self.queue.indirect_parts() {
            0 => self.queue.add(parts),
            _ => self.queue.add_indirect(parts),
        }
    }
}

/// A piece of memory, which the device writes to read.
#[inline]
fn data(operation: Operation, span: Span) -> Part {
    match operation {
        Operation::Read => Part::Write(span),
        _ => Part::Read(span),
    }
}

fn has_range(operation: Operation) -> bool {
    matches!(
        operation,
        Operation::Discard | Operation::WriteZeroes { .. }
    )
}

impl Channel for BlkQueue {
    fn depth(&self) -> u16 {
        self.queue.size()
    }

    fn submit(&mut self, command: &Command<'_>) -> Result<Tag, SubmitError> {
        let token = self
            .queue
            .next_token()
            .ok_or(match self.queue.is_broken() {
                true => SubmitError::Broken,
                false => SubmitError::Full,
            })?;
        self.slots.fill(token, command);
        match self.add(token, command) {
            Ok(token) => Ok(Tag(token.index() as u16)),
            Err(AddError::Full) => Err(SubmitError::Full),
            Err(AddError::Broken) => Err(SubmitError::Broken),
            Err(AddError::Empty | AddError::TooManyParts) => Err(SubmitError::TooLarge),
        }
    }

    fn submit_page(
        &mut self,
        is_write: bool,
        first: u64,
        memory: Span,
    ) -> Result<Tag, SubmitError> {
        let part = match is_write {
            false => Part::Write(memory),
            true => Part::Read(memory),
        };
        let slots = &self.slots;
        let fill = |token| slots.fill_transfer(token, is_write, first);
        match self.queue.add_framed_by(part, fill) {
            Some(token) => Ok(Tag(token.index() as u16)),
            None => self.submit(&Command::of_page(is_write, first, &memory)),
        }
    }

    fn publish(&mut self) {
        if self.queue.publish() {
            self.doorbell.ring();
        }
    }

    #[inline]
    fn complete(&mut self) -> Result<Option<(Tag, Verdict)>, Broken> {
        let Some(used) = self.queue.take().map_err(|_| Broken)? else {
            return Ok(None);
        };
        let verdict = self.slots.end(used.token);
        Ok(Some((Tag(used.token.index() as u16), verdict)))
    }

    fn arm(&mut self) -> bool {
        !self.queue.is_broken() && self.queue.arm()
    }

    fn retire(&mut self) {
        self.queue.retire();
        self.slots.retire();
    }
}
