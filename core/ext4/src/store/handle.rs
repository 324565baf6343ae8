//! The handle of an operation: its changes to blocks, all or none.
//!
//! An operation enters the running transaction by a handle. Before it changes a block for the first time, or a
//! part of one, the handle keeps that as it was, so that an operation that fails half-way (disk full, tree
//! damaged) leaves no trace. Blocks are shared copy-on-write, so that keeping one costs a copy only once it is
//! changed. Of a block of which a part is changed ([`Store::modify_part`]) only that is kept.

use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ops::Range;

use super::{Buffer, Marks, Store};
use crate::bytes::{put, span};
use crate::error::{Error, Result};
use crate::layout::superblock::Geometry;
use crate::seal::Seal;

/// What undoes a handle.
#[derive(Debug, Default)]
pub(super) struct Undo {
    /// Blocks that are changed in ways that nobody tells, before the first of these changes.
    before: BTreeMap<u64, Option<Buffer>>,
    /// Parts of others, before each of their changes.
    parts: Vec<Part>,
    revoked: usize,
    /// It will not be undone, so nothing is kept.
    is_final: bool,
}

/// Some bytes of a block before they were changed.
#[derive(Debug)]
struct Part {
    number: u64,
    at: usize,
    bytes: Vec<u8>,
    marks: Marks,
}

impl Store {
    /// Begins a handle.
    pub(crate) fn begin(&mut self) {
        self.handle = Some(Undo {
            revoked: self.running.revoked.len(),
            ..Undo::default()
        });
    }

    /// Begins a handle that is only finished: where it fails, nothing is changed any more.
    pub(crate) fn begin_final(&mut self) {
        self.handle = Some(Undo {
            is_final: true,
            ..Undo::default()
        });
    }

    /// Keeps the changes of the handle.
    pub(crate) fn finish(&mut self) {
        self.handle = None;
    }

    /// Undoes the changes of the handle.
    pub(crate) fn undo(&mut self) {
        let Some(undo) = self.handle.take() else {
            return;
        };
        if planted::is("an operation that failed is not undone") {
            return;
        }
        for (number, before) in undo.before {
            let was_running = (before.as_ref()).is_some_and(|buffer| buffer.marks.is_running);
            self.set_running(number, was_running);
            match before {
                Some(buffer) => self.buffers.insert(number, buffer),
                None => self.buffers.remove(&number),
            };
        }
        // Those of a block that was kept as a whole were changed before that.
        for part in undo.parts.into_iter().rev() {
            self.set_running(part.number, part.marks.is_running);
            if let Some(buffer) = self.buffers.get_mut(&part.number) {
                let bytes: &mut Vec<u8> = Arc::make_mut(&mut buffer.data);
                put(bytes, part.at, &part.bytes);
                buffer.marks = part.marks;
            }
        }
        self.running.revoked.truncate(undo.revoked);
    }

    fn set_running(&mut self, number: u64, is_running: bool) {
        match is_running {
            true => self.running.blocks.insert(number),
            false => self.running.blocks.remove(&number),
        };
    }

    /// Keeps a block as it is, should the handle be undone.
    fn save(&mut self, number: u64) -> Result<()> {
        let handle = self.handle.as_mut().ok_or(Error::Invalid)?;
        if !handle.is_final {
            let (before, buffers) = (handle.before.entry(number), &self.buffers);
            before.or_insert_with(|| buffers.get(&number).cloned());
        }
        self.enter(number)
    }

    /// The same of a part of a block that is in the cache.
    fn save_part(&mut self, number: u64, range: &Range<usize>) -> Result<()> {
        let handle = self.handle.as_mut().ok_or(Error::Invalid)?;
        if !handle.is_final && !handle.before.contains_key(&number) {
            let buffer = self.buffers.get(&number).ok_or(Error::Invalid)?;
            handle.parts.push(Part {
                number,
                at: range.start,
                bytes: span(&buffer.data, range.start, range.len()).to_vec(),
                marks: buffer.marks,
            });
        }
        self.enter(number)
    }

    /// A block becomes one of the running transaction.
    fn enter(&mut self, number: u64) -> Result<()> {
        let blocks = &mut self.running.blocks;
        if blocks.len() >= self.running_max && !blocks.contains(&number) {
            return Err(Error::TooLarge);
        }
        blocks.insert(number);
        Ok(())
    }

    /// The block `number` to be changed in the handle.
    pub(crate) fn modify(
        &mut self,
        number: u64,
        seal: Seal,
        geometry: &Geometry,
    ) -> Result<&mut Vec<u8>> {
        self.load(number, seal, geometry)?;
        self.save(number)?;
        let buffer = self.buffers.get_mut(&number).ok_or(Error::Invalid)?;
        (buffer.marks.is_running, buffer.marks.sum) = (true, None);
        Ok(Arc::make_mut(&mut buffer.data))
    }

    /// The same of these bytes of it: all others keep their part in its sum.
    pub(crate) fn modify_part(
        &mut self,
        number: u64,
        seal: Seal,
        geometry: &Geometry,
        range: Range<usize>,
    ) -> Result<&mut [u8]> {
        self.load(number, seal, geometry)?;
        self.save_part(number, &range)?;
        let sums = self.sums;
        let buffer = self.buffers.get_mut(&number).ok_or(Error::Invalid)?;
        buffer.marks.is_running = true;
        if let Some(sum) = &mut buffer.marks.sum {
            sum.open(sums, &buffer.data, &range);
        }
        let bytes: &mut Vec<u8> = Arc::make_mut(&mut buffer.data);
        Ok(bytes.get_mut(range).unwrap_or(&mut []))
    }

    /// A block of zeroes in place of whatever was in block `number`, which is newly allocated.
    pub(crate) fn create(&mut self, number: u64, seal: Seal) -> Result<&mut Vec<u8>> {
        self.offset(number)?;
        let bytes = self.zeroed()?;
        self.save(number)?;
        let awaits_checkpoint = self
            .buffers
            .get(&number)
            .is_some_and(|b| b.awaits_checkpoint);
        self.keep(number, seal, bytes);
        let buffer = self.buffers.get_mut(&number).ok_or(Error::Invalid)?;
        buffer.marks.is_running = true;
        buffer.awaits_checkpoint = awaits_checkpoint;
        Ok(Arc::make_mut(&mut buffer.data))
    }
}
