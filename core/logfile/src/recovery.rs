//! The files of a log that was opened: its records are done again.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use planted::is;
use plog::{Area, HEADER_BYTES, Log, Place, ReadError, Sequence};

use crate::entries::Entries;
use crate::file::{Extent, FileNumber};
use crate::files::Files;
use crate::gather::Gather;
use crate::record::{RECORD_BYTES, Record, Records, TAG};

/// Why there are no files.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OpenError {
    /// An entry cannot be read.
    Read(ReadError),
    /// An entry is none of this kind of log.
    NotFiles(Place),
    /// The buffer takes no name, or is longer than an entry.
    BadBuffer,
}

impl<B: AsRef<[u8]> + AsMut<[u8]>> Files<B> {
    /// Reads the log, which is the files' from now on. What is written is gathered in `buffer`; all further ones are
    /// of its length: whole blocks, at most a sixteenth of the log.
    pub fn open(log: Log, area: &mut dyn Area, buffer: B) -> Result<Self, OpenError> {
        let gather = Gather::new(buffer);
        let shape = log.shape();
        let fits = gather.capacity() > RECORD_BYTES + 255
            && gather.capacity() <= shape.entry_bytes_max()
            && (gather.capacity() + HEADER_BYTES).is_multiple_of(shape.block_bytes() as usize);
        if !fits {
            return Err(OpenError::BadBuffer);
        }
        let mut files = Self {
            entries: Entries::new(log.head()),
            log,
            files: BTreeMap::new(),
            names: BTreeMap::new(),
            gather,
            next_number: 0,
        };
        files.read_all(area)?;
        files.forget_nameless();
        Ok(files)
    }

    fn read_all(&mut self, area: &mut dyn Area) -> Result<(), OpenError> {
        let mut cursor = self.log.cursor();
        let mut entry = Vec::new();
        while let Some(item) = cursor.next(area, &mut entry).map_err(OpenError::Read)? {
            if item.tag != TAG {
                return Err(OpenError::NotFiles(item.place));
            }
            let mut records = Records::of(&entry);
            loop {
                match records.next() {
                    Ok(Some(record)) => self.redo(record, item.place.sequence()),
                    Ok(None) => break,
                    Err(_) => return Err(OpenError::NotFiles(item.place)),
                }
            }
            self.entries.push(item.end);
        }
        Ok(())
    }

    fn redo(&mut self, record: Record<'_>, sequence: Sequence) {
        match record {
            Record::Bytes {
                number,
                offset,
                at,
                bytes,
            } => {
                self.note(number);
                let extent = Extent {
                    sequence,
                    at,
                    bytes,
                };
                self.entries.live(sequence, bytes);
                let file = self.files.entry(number).or_default();
                file.changed_in = sequence;
                file.insert(offset, extent, &mut |dead| self.entries.die(dead));
            }
            Record::Name { number, size, name } => {
                self.note(number);
                self.set_name(number, name, size, sequence);
            }
            Record::Gone { number } => {
                self.note(number);
                self.set_gone(number, sequence);
            }
        }
    }

    /// A number that was used.
    fn note(&mut self, number: FileNumber) {
        if !is("numbers of files are used again") {
            self.next_number = self.next_number.max(number.0.saturating_add(1));
        }
    }

    /// What was moved of files that are gone.
    fn forget_nameless(&mut self) {
        let Self { files, entries, .. } = self;
        files.retain(|_, file| {
            if file.name.is_none() {
                file.forget(&mut |dead| entries.die(dead));
            }
            file.name.is_some()
        });
    }
}
