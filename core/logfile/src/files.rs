//! The files, and what is done to them.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;

use planted::is;
use plog::{AppendError, HEADER_BYTES, Log, Promise, Sequence, Ticket};

use crate::entries::Entries;
use crate::file::{Dead, Extent, File, FileNumber};
use crate::gather::Gather;
use crate::record::{NAME_MAX, RECORD_BYTES, Record};

/// Buffers for which bytes of files leave room: a step of compaction, beside it a removal, beside both a name.
pub const RESERVED: u64 = 3;

/// Why something was not done. Nothing has changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Error {
    /// There is no room in the buffer: [`Files::seal`] and try again.
    Gathered,
    /// The log has no room but for compaction.
    Full,
    /// There is no such file.
    NotFound,
    /// It has no name any more.
    Removed,
    /// The name has no bytes, or more than [`NAME_MAX`] or a buffer takes.
    BadName,
    /// The file would be longer than an `i64` counts.
    TooLarge,
}

/// An entry that was sealed.
#[derive(Debug)]
pub struct Sealed<B> {
    /// Where it is.
    pub ticket: Ticket,
    /// Header and records, which stay as they are until it is durable.
    pub buffer: B,
}

/// Files on a log. Commands and their ends go through its [`log`](Self::log); appends only through [`seal`](Self::seal).
#[derive(Debug)]
pub struct Files<B> {
    pub(crate) log: Log,
    pub(crate) files: BTreeMap<FileNumber, File>,
    pub(crate) names: BTreeMap<Box<[u8]>, FileNumber>,
    pub(crate) entries: Entries,
    pub(crate) gather: Gather<B>,
    pub(crate) next_number: u64,
}

impl<B: AsRef<[u8]> + AsMut<[u8]>> Files<B> {
    /// For commands, their ends, and what is durable.
    pub fn log(&mut self) -> &mut Log {
        &mut self.log
    }

    /// The file of a name.
    pub fn find(&self, name: &[u8]) -> Option<FileNumber> {
        self.names.get(name).copied()
    }

    /// All names, in order.
    pub fn names(&self) -> impl Iterator<Item = (&[u8], FileNumber)> {
        self.names.iter().map(|(name, number)| (&**name, *number))
    }

    /// The name of a file.
    pub fn name(&self, number: FileNumber) -> Option<&[u8]> {
        self.files.get(&number)?.name.as_deref()
    }

    /// Bytes of a file.
    pub fn size(&self, number: FileNumber) -> Option<u64> {
        self.files.get(&number).map(|file| file.size)
    }

    /// The entry of a file's last change: it is all durable when that is.
    pub fn changed_in(&self, number: FileNumber) -> Option<Sequence> {
        self.files.get(&number).map(|file| file.changed_in)
    }

    /// All bytes of the file before this offset are durable.
    pub fn durable_up_to(&self, number: FileNumber) -> u64 {
        let durable = self.log.durable().sequence();
        let Some(file) = self.files.get(&number) else {
            return 0;
        };
        let mut extents = file.extents();
        let first = extents.find(|(_, extent)| extent.sequence >= durable);
        first.map_or(file.size, |(offset, _)| offset)
    }

    /// Whether something was gathered and not sealed.
    pub fn is_gathered(&self) -> bool {
        !self.gather.is_empty()
    }

    /// Whether so many bytes in so many pieces are gathered without a [`seal`](Self::seal).
    pub fn gathers(&self, bytes: usize, pieces: usize) -> bool {
        let needed = pieces
            .checked_mul(RECORD_BYTES)
            .and_then(|all| all.checked_add(bytes));
        let room = self.gather.capacity() - self.gather.records().len();
        needed.is_some_and(|needed| needed <= room)
    }

    /// Whether there is room for so many bytes of a file, all of them.
    pub fn has_room(&self, bytes: usize) -> bool {
        // What was gathered, what does not fill a buffer, and what follows.
        let buffers = 2 + bytes / (self.gather.capacity() - RECORD_BYTES).max(1);
        self.free_buffers() >= buffers as u64 + RESERVED
    }

    /// Buffers that the log has room for.
    pub(crate) fn free_buffers(&self) -> u64 {
        let block_bytes = u64::from(self.log.shape().block_bytes());
        let buffer = (self.gather.capacity() + HEADER_BYTES) as u64;
        self.log.free_blocks() / buffer.div_ceil(block_bytes).max(1)
    }

    /// A file of its own under this name; who had it before has none any more.
    ///
    /// Errors: `Gathered`, `Full`, `BadName`.
    pub fn create(&mut self, name: &[u8]) -> Result<FileNumber, Error> {
        let number = FileNumber(self.next_number);
        self.files.insert(number, File::default());
        let named = self.put_name(number, name, 0);
        if named.is_err() {
            self.files.remove(&number);
        }
        named?;
        self.next_number += 1;
        Ok(number)
    }

    /// Gives a file another name; who had it before has none any more.
    ///
    /// Errors: as [`create`](Self::create), `NotFound`, `Removed`.
    pub fn rename(&mut self, number: FileNumber, name: &[u8]) -> Result<(), Error> {
        let file = self.files.get(&number).ok_or(Error::NotFound)?;
        let size = file.size;
        file.name.as_ref().ok_or(Error::Removed)?;
        self.put_name(number, name, size)
    }

    /// Makes a file shorter or longer.
    ///
    /// Errors: `Gathered`, `Full`, `NotFound`, `TooLarge`.
    pub fn set_size(&mut self, number: FileNumber, size: u64) -> Result<(), Error> {
        i64::try_from(size).map_err(|_| Error::TooLarge)?;
        let file = self.files.get_mut(&number).ok_or(Error::NotFound)?;
        let name = file.name.clone();
        match name {
            Some(_) if is("a truncation is not written") => {}
            Some(name) => self.put_name(number, &name, size)?,
            // Nothing of it outlives the program.
            None => {}
        }
        let file = self.files.get_mut(&number).ok_or(Error::NotFound)?;
        file.set_size(size, &mut |dead| self.entries.die(dead));
        Ok(())
    }

    /// Gathers a name record, and does what it says.
    pub(crate) fn put_name(
        &mut self,
        number: FileNumber,
        name: &[u8],
        size: u64,
    ) -> Result<(), Error> {
        if name.is_empty() || name.len() > NAME_MAX.min(self.gather.capacity() - RECORD_BYTES) {
            return Err(Error::BadName);
        }
        if self.free_buffers() < RESERVED && self.gather.is_empty() {
            return Err(Error::Full);
        }
        if !self.gather.put(&Record::Name { number, size, name }) {
            return Err(Error::Gathered);
        }
        self.set_name(number, name, size, self.entries.gathering());
        Ok(())
    }

    /// What a name record says: that of the entry `sequence`.
    pub(crate) fn set_name(
        &mut self,
        number: FileNumber,
        name: &[u8],
        size: u64,
        sequence: Sequence,
    ) {
        let replaced = self.names.insert(name.into(), number);
        if let Some(replaced) = replaced.filter(|replaced| *replaced != number) {
            self.take_name(replaced, sequence);
        }
        let Self { files, entries, .. } = self;
        let file = files.entry(number).or_default();
        if let Some(old) = file.name.replace(name.into())
            && *old != *name
            && !is("a file that was renamed keeps its old name")
        {
            self.names.remove(&old);
        }
        if let Some(sequence) = file.named_in.replace(sequence) {
            entries.die(Dead { sequence, count: 1 });
        }
        entries.live(sequence, 1);
        file.changed_in = sequence;
        file.set_size(size, &mut |dead| entries.die(dead));
    }

    /// The file has no name any more, and goes when nobody holds it.
    fn take_name(&mut self, number: FileNumber, sequence: Sequence) {
        let Self { files, entries, .. } = self;
        let Some(file) = files.get_mut(&number) else {
            return;
        };
        file.name = None;
        file.changed_in = sequence;
        if file.holders == 0 {
            file.forget(&mut |dead| entries.die(dead));
            files.remove(&number);
        }
    }

    /// Takes a file's name away.
    ///
    /// Errors: `Gathered`, `Full`, `NotFound`, `Removed`.
    pub fn remove(&mut self, number: FileNumber) -> Result<(), Error> {
        let file = self.files.get(&number).ok_or(Error::NotFound)?;
        file.name.as_ref().ok_or(Error::Removed)?;
        if self.free_buffers() < RESERVED - 1 && self.gather.is_empty() {
            return Err(Error::Full);
        }
        if !is("that a file was removed is not written")
            && !self.gather.put(&Record::Gone { number })
        {
            return Err(Error::Gathered);
        }
        self.set_gone(number, self.entries.gathering());
        Ok(())
    }

    /// What a record says of a file that is gone.
    pub(crate) fn set_gone(&mut self, number: FileNumber, sequence: Sequence) {
        let file = self.files.get(&number);
        if let Some(name) = file.and_then(|file| file.name.as_ref()) {
            self.names.remove(name);
        }
        self.take_name(number, sequence);
    }

    /// Gathers bytes at an offset: as many as there is room for, of which the caller has made sure by
    /// [`has_room`](Self::has_room) that the log takes them.
    ///
    /// Errors: `Gathered`, `NotFound`, `TooLarge`.
    pub fn write(&mut self, number: FileNumber, offset: u64, bytes: &[u8]) -> Result<usize, Error> {
        let file = self.files.get_mut(&number).ok_or(Error::NotFound)?;
        let end = offset.checked_add(bytes.len() as u64);
        end.and_then(|end| i64::try_from(end).ok())
            .ok_or(Error::TooLarge)?;
        if bytes.is_empty() {
            return Ok(0);
        }
        let (at, count) = self.gather.put_bytes(number, offset, bytes);
        if count == 0 {
            return Err(Error::Gathered);
        }
        let sequence = self.entries.gathering();
        let extent = Extent {
            sequence,
            at,
            bytes: count,
        };
        self.entries.live(sequence, count);
        file.changed_in = sequence;
        file.insert(offset, extent, &mut |dead| self.entries.die(dead));
        Ok(count as usize)
    }

    /// Makes an entry of what was gathered, and gathers in `next` from now on; `next` comes back if the log
    /// refuses. Not to be called if [nothing](Self::is_gathered) was.
    pub fn seal(&mut self, next: B, promise: Promise) -> Result<Sealed<B>, (AppendError, B)> {
        let appended = match self.gather.parts() {
            Some((header, records)) => {
                self.log
                    .append(crate::record::TAG, header, &[records], promise)
            }
            None => Err(AppendError::TooLong),
        };
        match appended {
            Ok(ticket) => {
                self.entries.push(ticket.end);
                let buffer = self.gather.replace(next);
                Ok(Sealed { ticket, buffer })
            }
            Err(why) => Err((why, next)),
        }
    }

    /// A descriptor names the file: it is there until [`release`](Self::release), with or without a name.
    pub fn hold(&mut self, number: FileNumber) {
        if let Some(file) = self.files.get_mut(&number) {
            file.holders += 1;
        }
    }

    /// One descriptor less.
    pub fn release(&mut self, number: FileNumber) {
        let Self { files, entries, .. } = self;
        let Some(file) = files.get_mut(&number) else {
            return;
        };
        file.holders = file.holders.saturating_sub(1);
        if file.holders == 0 && file.name.is_none() {
            file.forget(&mut |dead| entries.die(dead));
            files.remove(&number);
        }
    }
}
