//! The records of an entry. Numbers are little-endian; a record follows the one before without a gap.
//!
//! ```text
//!  0  u8 kind: 1 bytes, 2 name, 3 gone    1  zero      2  u16 bytes of the name
//!  4  u32 bytes of the file that follow                8  u64 number of the file
//! 16  u64 offset of the bytes; or the file's length   24  the name, or the bytes
//! ```

use crate::file::FileNumber;

/// Entries of this tag are lists of records.
pub const TAG: u8 = 1;
/// Bytes of a name.
pub const NAME_MAX: usize = 4096;
pub(crate) const RECORD_BYTES: usize = 24;
const BYTES: u8 = 1;
const NAME: u8 = 2;
const GONE: u8 = 3;

/// What a record says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Record<'a> {
    /// The file has these bytes at this offset; they are that far into the entry.
    Bytes {
        number: FileNumber,
        offset: u64,
        at: u32,
        bytes: u32,
    },
    /// The file has this name and is so long; what is beyond is gone. Who had the name before is gone.
    Name {
        number: FileNumber,
        size: u64,
        name: &'a [u8],
    },
    /// The file is gone.
    Gone { number: FileNumber },
}

impl Record<'_> {
    /// What stands in front of the name or the bytes.
    pub fn header(&self) -> [u8; RECORD_BYTES] {
        let (kind, name_bytes, bytes, number, place) = match *self {
            Self::Bytes {
                number,
                offset,
                bytes,
                ..
            } => (BYTES, 0, bytes, number, offset),
            Self::Name { number, size, name } => (NAME, name.len() as u16, 0, number, size),
            Self::Gone { number } => (GONE, 0, 0, number, 0),
        };
        let mut header = [0; RECORD_BYTES];
        let [low, high] = name_bytes.to_le_bytes();
        let [a, b, c, d] = bytes.to_le_bytes();
        let fields = header.as_chunks_mut::<8>().0;
        fields.copy_from_slice(&[
            [kind, 0, low, high, a, b, c, d],
            number.0.to_le_bytes(),
            place.to_le_bytes(),
        ]);
        header
    }
}

/// The records of an entry's bytes.
#[derive(Clone, Debug)]
pub(crate) struct Records<'a> {
    entry: &'a [u8],
    at: usize,
}

/// What is there is no record.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Nonsense;

impl<'a> Records<'a> {
    pub fn of(entry: &'a [u8]) -> Self {
        Self { entry, at: 0 }
    }

    /// The next one; nothing at the end.
    pub fn next(&mut self) -> Result<Option<Record<'a>>, Nonsense> {
        let rest = self.entry.get(self.at..).ok_or(Nonsense)?;
        if rest.is_empty() {
            return Ok(None);
        }
        let header = rest.first_chunk::<RECORD_BYTES>().ok_or(Nonsense)?;
        let [head, number, place] = [0, 8, 16].map(|at| word_at(header, at));
        let (name_bytes, bytes) = ((head >> 16) as u16, (head >> 32) as u32);
        let number = FileNumber(number);
        let body = self.at + RECORD_BYTES;
        let record = match (head as u16, name_bytes, bytes) {
            (1, 0, 1..) => Record::Bytes {
                number,
                offset: place,
                at: body as u32,
                bytes,
            },
            (2, _, 0) => Record::Name {
                number,
                size: place,
                name: self
                    .entry
                    .get(body..body + usize::from(name_bytes))
                    .ok_or(Nonsense)?,
            },
            (3, 0, 0) => Record::Gone { number },
            _ => return Err(Nonsense),
        };
        let end = place.checked_add(bytes.into()).ok_or(Nonsense)?;
        self.at = body + usize::from(name_bytes) + bytes as usize;
        let fits = self.at <= self.entry.len() && i64::try_from(end).is_ok();
        fits.then_some(Some(record)).ok_or(Nonsense)
    }
}

fn word_at(header: &[u8; RECORD_BYTES], at: usize) -> u64 {
    let field = header.get(at..).and_then(|rest| rest.first_chunk());
    field.map_or(0, |field| u64::from_le_bytes(*field))
}
