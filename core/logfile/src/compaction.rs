//! What is alive in the oldest entry is gathered again.

use alloc::vec::Vec;

use planted::is;
use plog::{Area, Sequence};

use crate::file::{Dead, FileNumber};
use crate::files::{Error, Files};
use crate::record::{Record, Records};
use crate::recovery::OpenError;

/// What a step of compaction did.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Compacted {
    /// All of the oldest entry was gathered: it goes when that is durable.
    Moved,
    /// There was no room in the buffer for all of it: seal, and again.
    Gathered,
    /// The oldest entry is not durable, or the log has no room for the step.
    Waits,
    /// Nothing is alive that could be moved.
    Empty,
}

impl<B: AsRef<[u8]> + AsMut<[u8]>> Files<B> {
    /// Trims what is of no use at the log's head. If there is more of it when an entry is durable, that one's number.
    pub fn trim(&mut self) -> Option<Sequence> {
        let is_gathered = !self.gather.is_empty();
        self.entries.trim(&mut self.log, is_gathered)
    }

    /// Whether compaction would give back a quarter of the log or more, and the log is more than three quarters full.
    pub fn wants_compaction(&self) -> bool {
        let shape = self.log.shape();
        let ring = shape.ring_blocks();
        let alive = self.entries.alive() / u64::from(shape.block_bytes());
        self.log.free_blocks() < ring / 4 && alive < ring / 2
    }

    /// Entries that a lap of compaction looks at.
    pub fn entries(&self) -> usize {
        self.entries.len()
    }

    /// Bytes of files, and names, that the log has.
    pub fn alive(&self) -> u64 {
        self.entries.alive()
    }

    /// Gathers what is alive in the oldest entry, which is read into `entry`.
    pub fn compact(
        &mut self,
        area: &mut dyn Area,
        entry: &mut Vec<u8>,
    ) -> Result<Compacted, OpenError> {
        let Some(place) = self.entries.oldest() else {
            return Ok(Compacted::Empty);
        };
        let is_durable = place.sequence() < self.log.durable().sequence();
        if !is_durable || self.free_buffers() < 1 {
            return Ok(Compacted::Waits);
        }
        let mut cursor = self.log.cursor_at(place);
        let item = cursor.next(area, entry).map_err(OpenError::Read)?;
        if item.is_none() {
            return Ok(Compacted::Waits);
        }
        let mut records = Records::of(entry);
        loop {
            let record = records.next().map_err(|_| OpenError::NotFiles(place))?;
            let Some(record) = record else {
                return Ok(Compacted::Moved);
            };
            if self.keep(record, entry, place.sequence()).is_err() {
                return Ok(Compacted::Gathered);
            }
        }
    }

    /// Gathers a record again, if it is alive.
    fn keep(&mut self, record: Record<'_>, entry: &[u8], sequence: Sequence) -> Result<(), Error> {
        match record {
            Record::Bytes {
                number,
                offset,
                bytes,
                ..
            } => self.keep_bytes(number, offset..offset + u64::from(bytes), entry, sequence),
            Record::Name { number, .. } => self.keep_name(number, sequence),
            Record::Gone { .. } => Ok(()),
        }
    }

    fn keep_name(&mut self, number: FileNumber, sequence: Sequence) -> Result<(), Error> {
        let file = self.files.get(&number);
        let alive = file.filter(|file| file.named_in == Some(sequence));
        match alive.and_then(|file| Some((file.name.clone()?, file.size))) {
            Some((name, size)) if !is("the name in an old entry is not kept") => {
                let size = match is("a name that is moved says an old length") {
                    true => size / 2,
                    false => size,
                };
                if !self.gather.put(&Record::Name {
                    number,
                    size,
                    name: &name,
                }) {
                    return Err(Error::Gathered);
                }
                self.move_name(number, sequence)
            }
            // The name of a file that is held without one is of no use.
            _ => self.drop_name(number, sequence),
        }
        Ok(())
    }

    fn move_name(&mut self, number: FileNumber, from: Sequence) {
        let to = self.entries.gathering();
        if let Some(file) = self.files.get_mut(&number) {
            file.named_in = Some(to);
            file.changed_in = file.changed_in.max(to);
            self.entries.live(to, 1);
            self.entries.die(Dead {
                sequence: from,
                count: 1,
            });
        }
    }

    fn drop_name(&mut self, number: FileNumber, sequence: Sequence) {
        let Some(file) = self.files.get_mut(&number) else {
            return;
        };
        if file.named_in == Some(sequence) {
            file.named_in = None;
            self.entries.die(Dead { sequence, count: 1 });
        }
    }

    /// Gathers those bytes of a range that are in the entry.
    fn keep_bytes(
        &mut self,
        number: FileNumber,
        range: core::ops::Range<u64>,
        entry: &[u8],
        sequence: Sequence,
    ) -> Result<(), Error> {
        let mut offset = range.start;
        while offset < range.end {
            let found = self.files.get(&number).map(|file| file.extent_at(offset));
            let (start, extent) = match found {
                Some(Ok(found)) => found,
                Some(Err(Some(next))) => {
                    offset = next;
                    continue;
                }
                Some(Err(None)) | None => return Ok(()),
            };
            let end = (start + u64::from(extent.bytes)).min(range.end);
            if extent.sequence == sequence && is("bytes in an old entry are not kept") {
                let count = (end - offset) as u32;
                self.entries.die(Dead { sequence, count });
                offset = end;
            } else if extent.sequence == sequence {
                let from = extent.at as usize + (offset - start) as usize;
                let bytes = entry.get(from..from + (end - offset) as usize);
                let bytes = bytes.ok_or(Error::NotFound)?;
                offset += self.write(number, offset, bytes)? as u64;
            } else {
                offset = end;
            }
        }
        Ok(())
    }
}
