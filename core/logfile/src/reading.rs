//! Where the bytes of a file are.

use plog::{Place, Sequence};

use crate::file::FileNumber;
use crate::files::Files;

/// Bytes from an offset on that lie together.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Piece<'a> {
    /// So many zeroes.
    Hole(u64),
    /// They were gathered and not sealed.
    Gathered(&'a [u8]),
    /// In the sealed buffer of this entry, `at` bytes behind the header.
    UnderWay {
        /// Its number.
        sequence: Sequence,
        /// Behind the header.
        at: usize,
        /// How many.
        bytes: usize,
    },
    /// In the bytes of the entry that the cursor at this place has next.
    Stored {
        /// Where it begins.
        place: Place,
        /// How far into its bytes.
        at: usize,
        /// How many.
        bytes: usize,
    },
}

impl<B: AsRef<[u8]> + AsMut<[u8]>> Files<B> {
    /// What is at an offset; nothing at the end of the file.
    pub fn piece(&self, number: FileNumber, offset: u64) -> Option<Piece<'_>> {
        let file = self.files.get(&number)?;
        let left = file.size.checked_sub(offset).filter(|left| *left != 0)?;
        let (start, extent) = match file.extent_at(offset) {
            Ok(found) => found,
            Err(next) => {
                let hole = next.map_or(left, |next| (next - offset).min(left));
                return Some(Piece::Hole(hole));
            }
        };
        let into = (offset - start) as u32;
        let at = (extent.at + into) as usize;
        let bytes = (extent.bytes - into) as usize;
        let sequence = extent.sequence;
        if sequence == self.entries.gathering() {
            return self
                .gather
                .records()
                .get(at..at + bytes)
                .map(Piece::Gathered);
        }
        if sequence >= self.log.durable().sequence() {
            return Some(Piece::UnderWay {
                sequence,
                at,
                bytes,
            });
        }
        let place = self.entries.place(sequence)?;
        Some(Piece::Stored { place, at, bytes })
    }
}
