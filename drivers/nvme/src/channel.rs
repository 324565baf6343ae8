//! One queue of a namespace.

use alloc::sync::Arc;
use core::sync::atomic::{AtomicU32, Ordering};

use block::{Broken, Channel, Command, Durability, Operation, SubmitError, Tag, Verdict};
use hal::Span;

use crate::entry::{Entry, nvm};
use crate::identify::Shape;
use crate::ring::Ring;
use crate::slots::Slots;

/// How often the controller was reset: a queue of before is no queue any more.
#[derive(Clone, Default)]
pub(crate) struct Generation(Arc<AtomicU32>);

impl Generation {
    pub(crate) fn get(&self) -> u32 {
        self.0.load(Ordering::Acquire)
    }

    pub(crate) fn advance(&self) {
        self.0.fetch_add(1, Ordering::AcqRel);
    }
}

/// What the commands of a queue are about.
#[derive(Clone, Copy)]
pub(crate) struct About {
    pub namespace: u32,
    pub shape: Shape,
}

/// A queue of a namespace.
pub(crate) struct IoQueue {
    ring: Ring,
    slots: Slots,
    about: About,
    generation: Generation,
    born: u32,
}

impl IoQueue {
    pub(crate) fn new(ring: Ring, slots: Slots, about: About, generation: Generation) -> Self {
        Self {
            ring,
            slots,
            about,
            born: generation.get(),
            generation,
        }
    }

    pub(crate) fn ring(&self) -> &Ring {
        &self.ring
    }

    fn is_over(&self) -> bool {
        self.generation.get() != self.born
    }

    /// The command as the controller reads it; `None` if it does not keep to the limits.
    fn entry(&self, slot: u16, command: &Command<'_>) -> Option<Entry> {
        let About { namespace, shape } = self.about;
        let shift = shape.block_shift - 9;
        let (first, blocks) = (
            command.sectors.first >> shift,
            command.sectors.count >> shift,
        );
        // Counted from 0.
        let last = || u16::try_from(blocks.checked_sub(1)?).ok().map(u32::from);
        let at = |flags| [first as u32, (first >> 32) as u32, flags];
        let entry = |opcode, words| Entry::admin(opcode, namespace, words);
        Some(match command.operation {
            Operation::Flush => entry(nvm::FLUSH, [0; 3]),
            Operation::Read => self.with_pages(slot, command, entry(nvm::READ, at(last()?)))?,
            Operation::Write(durability) => {
                let force = match durability {
                    Durability::Forced => nvm::FORCE_UNIT_ACCESS,
                    Durability::Volatile => 0,
                };
                self.with_pages(slot, command, entry(nvm::WRITE, at(last()? | force)))?
            }
            Operation::WriteZeroes { may_unmap } => {
                let flags = match may_unmap && shape.may_deallocate {
                    true => nvm::DEALLOCATE,
                    false => 0,
                };
                entry(nvm::WRITE_ZEROES, at(last()? | flags))
            }
            Operation::Discard => {
                let blocks = u32::try_from(blocks).ok()?;
                let range = self.slots.tell_range(slot, first, blocks)?;
                let words = [0, nvm::ATTRIBUTE_DEALLOCATE, 0];
                entry(nvm::DATASET_MANAGEMENT, words).with_page(range)
            }
        })
    }

    fn with_pages(&self, slot: u16, command: &Command<'_>, entry: Entry) -> Option<Entry> {
        let (page, pages) = self.slots.tell_pages(slot, command.spans)?;
        Some(Entry {
            page,
            pages,
            ..entry
        })
    }
}

impl Channel for IoQueue {
    fn depth(&self) -> u16 {
        self.ring.entries() - 1
    }

    fn submit(&mut self, command: &Command<'_>) -> Result<Tag, SubmitError> {
        if self.is_over() {
            return Err(SubmitError::Broken);
        }
        let slot = self.slots.take().ok_or(SubmitError::Full)?;
        let Some(entry) = self.entry(slot, command) else {
            self.slots.give_back(slot);
            return Err(SubmitError::TooLarge);
        };
        self.ring.push(&entry, slot);
        Ok(Tag(slot))
    }

    fn submit_page(
        &mut self,
        is_write: bool,
        first: u64,
        memory: Span,
    ) -> Result<Tag, SubmitError> {
        if self.is_over() {
            return Err(SubmitError::Broken);
        }
        let About { namespace, shape } = self.about;
        let first = first >> (shape.block_shift - 9);
        // Counted from 0.
        let last = (memory.len() >> shape.block_shift).checked_sub(1);
        let last = last.ok_or(SubmitError::TooLarge)?;
        let opcode = if is_write { nvm::WRITE } else { nvm::READ };
        let words = [first as u32, (first >> 32) as u32, last];
        let slot = self.slots.take().ok_or(SubmitError::Full)?;
        let entry = Entry::admin(opcode, namespace, words).with_page(memory);
        self.ring.push(&entry, slot);
        Ok(Tag(slot))
    }

    fn publish(&mut self) {
        if !self.is_over() {
            self.ring.publish();
        }
    }

    fn complete(&mut self) -> Result<Option<(Tag, Verdict)>, Broken> {
        if self.is_over() {
            return Err(Broken);
        }
        let Some(answer) = self.ring.take()? else {
            return Ok(None);
        };
        if !self.slots.give_back(answer.id) {
            return Err(Broken);
        }
        let verdict = match answer.status {
            status if status.is_success() => Verdict::Done,
            status if status.is_unknown() => Verdict::Unsupported,
            _ => Verdict::Failed,
        };
        Ok(Some((Tag(answer.id), verdict)))
    }

    fn arm(&mut self) -> bool {
        // Each end raises the interrupt, asked for or not.
        !self.is_over() && self.ring.arm()
    }

    fn retire(&mut self) {
        self.ring.retire();
        self.slots.retire();
    }
}
