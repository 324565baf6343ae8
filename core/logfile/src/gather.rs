//! The buffer in which the next entry is gathered: room for the log's header, then records.

use plog::HEADER_BYTES;

use crate::file::FileNumber;
use crate::record::{RECORD_BYTES, Record};

/// Where the bytes field of a record is.
const BYTES_AT: usize = 4;

/// The bytes that were gathered last, which more of the same file may follow.
#[derive(Clone, Copy, Debug)]
struct Tail {
    number: FileNumber,
    /// The offset behind them.
    end: u64,
    /// Where their record begins.
    record: usize,
    bytes: u32,
}

#[derive(Debug)]
pub(crate) struct Gather<B> {
    buffer: B,
    /// Bytes of records.
    used: usize,
    tail: Option<Tail>,
}

impl<B: AsRef<[u8]> + AsMut<[u8]>> Gather<B> {
    pub fn new(buffer: B) -> Self {
        Self {
            buffer,
            used: 0,
            tail: None,
        }
    }

    pub fn is_empty(&self) -> bool {
        self.used == 0
    }

    /// Bytes of records that it takes.
    pub fn capacity(&self) -> usize {
        self.buffer.as_ref().len().saturating_sub(HEADER_BYTES)
    }

    /// The records.
    pub fn records(&self) -> &[u8] {
        let records = self.buffer.as_ref().get(HEADER_BYTES..);
        records.map_or(&[], |records| records.get(..self.used).unwrap_or(&[]))
    }

    /// The header's room, and the records.
    pub fn parts(&mut self) -> Option<(&mut [u8; HEADER_BYTES], &[u8])> {
        let (header, records) = self.buffer.as_mut().split_first_chunk_mut()?;
        Some((header, records.get(..self.used)?))
    }

    /// The buffer, for another one.
    pub fn replace(&mut self, buffer: B) -> B {
        core::mem::replace(self, Self::new(buffer)).buffer
    }

    /// Gathers a record that no bytes follow. False if there is no room.
    pub fn put(&mut self, record: &Record<'_>) -> bool {
        let name = match record {
            Record::Name { name, .. } => name,
            _ => &[][..],
        };
        let fits = self.used + RECORD_BYTES + name.len() <= self.capacity();
        if fits {
            self.copy(&record.header());
            self.copy(name);
            self.tail = None;
        }
        fits
    }

    /// Gathers as many bytes of a file as there is room for: where they are, and how many.
    pub fn put_bytes(&mut self, number: FileNumber, offset: u64, bytes: &[u8]) -> (u32, u32) {
        let follows = |tail: &Tail| tail.number == number && tail.end == offset;
        let tail = self.tail.filter(follows);
        let header = if tail.is_some() { 0 } else { RECORD_BYTES };
        let room = self.capacity().saturating_sub(self.used + header);
        let taken = bytes.get(..room.min(bytes.len())).unwrap_or(&[]);
        let count = taken.len() as u32;
        if count == 0 {
            return (0, 0);
        }
        let mut tail = tail.unwrap_or(Tail {
            number,
            end: offset,
            record: self.used,
            bytes: 0,
        });
        tail.bytes += count;
        tail.end += u64::from(count);
        if header != 0 {
            let record = Record::Bytes {
                number,
                offset,
                at: 0,
                bytes: count,
            };
            self.copy(&record.header());
        }
        let at = self.used as u32;
        self.copy(taken);
        self.store(tail.record + BYTES_AT, &tail.bytes.to_le_bytes());
        self.tail = Some(tail);
        (at, count)
    }

    fn copy(&mut self, from: &[u8]) {
        self.store(self.used, from);
        self.used += from.len();
    }

    fn store(&mut self, at: usize, from: &[u8]) {
        let at = HEADER_BYTES + at;
        if let Some(to) = self.buffer.as_mut().get_mut(at..at + from.len()) {
            to.copy_from_slice(from);
        }
    }
}
