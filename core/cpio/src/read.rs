//! The reader: an iterator over the members of an archive in memory.

use crate::{Entry, HEADER_BYTES, MAGIC, MAGIC_CRC, TRAILER, padded};

/// Why an archive cannot be read further. Offsets are bytes from its start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadError {
    /// The archive ends in the middle of the member that starts here.
    Truncated {
        /// Where the member starts.
        offset: usize,
    },
    /// No header starts here.
    BadMagic {
        /// Where a header should be.
        offset: usize,
    },
    /// A field of the header that starts here holds something else than hexadecimal digits.
    BadField {
        /// Where the header starts.
        offset: usize,
    },
    /// The name of the member that starts here has no closing NUL.
    BadName {
        /// Where the member starts.
        offset: usize,
    },
}

/// An archive in memory. Iterating yields its members up to the trailer; after
/// an error the iterator ends.
#[derive(Clone, Debug)]
pub struct Archive<'a> {
    bytes: &'a [u8],
    offset: usize,
    ended: bool,
}

impl<'a> Archive<'a> {
    /// An archive that starts at the first of `bytes`. Nothing is read yet.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self {
            bytes,
            offset: 0,
            ended: false,
        }
    }

    fn read_member(&mut self) -> Result<Option<Entry<'a>>, ReadError> {
        let start = self.offset;
        if start >= self.bytes.len() {
            return Ok(None);
        }
        let header = self.take(start, HEADER_BYTES)?;
        let (magic, fields) = header.split_at(MAGIC.len());
        if magic != MAGIC && magic != MAGIC_CRC {
            return Err(ReadError::BadMagic { offset: start });
        }
        let [
            inode,
            mode,
            uid,
            gid,
            links,
            mtime_s,
            size,
            _,
            _,
            major,
            minor,
            name_len,
            _,
        ] = parse_fields(fields).ok_or(ReadError::BadField { offset: start })?;
        let name = self.take(start, name_len as usize)?;
        let name = match name.iter().position(|&byte| byte == 0) {
            Some(end) => &name[..end],
            None => return Err(ReadError::BadName { offset: start }),
        };
        self.align(start)?;
        let data = self.take(start, size as usize)?;
        if name == TRAILER {
            return Ok(None);
        }
        // The last member of a cut-off archive may lack its padding: no data is lost.
        self.align(start)
            .unwrap_or_else(|_| self.offset = self.bytes.len());
        Ok(Some(Entry {
            name,
            mode,
            uid,
            gid,
            links,
            inode,
            mtime_s,
            rdev: (major, minor),
            data,
        }))
    }

    /// The next `len` bytes of the member that begins at `start`.
    fn take(&mut self, start: usize, len: usize) -> Result<&'a [u8], ReadError> {
        let truncated = ReadError::Truncated { offset: start };
        let end = self.offset.checked_add(len).ok_or(truncated)?;
        let taken = self.bytes.get(self.offset..end).ok_or(truncated)?;
        self.offset = end;
        Ok(taken)
    }

    fn align(&mut self, start: usize) -> Result<(), ReadError> {
        let aligned = padded(self.offset).filter(|&offset| offset <= self.bytes.len());
        self.offset = aligned.ok_or(ReadError::Truncated { offset: start })?;
        Ok(())
    }
}

impl<'a> Iterator for Archive<'a> {
    type Item = Result<Entry<'a>, ReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        let member = self.read_member().transpose();
        self.ended = !matches!(member, Some(Ok(_)));
        member
    }
}

/// The thirteen fields of a header; `None` if one is not a hexadecimal number.
fn parse_fields(digits: &[u8]) -> Option<[u32; 13]> {
    let mut fields = [0; 13];
    for (field, digits) in fields.iter_mut().zip(digits.chunks_exact(8)) {
        for &digit in digits {
            *field = *field << 4 | char::from(digit).to_digit(16)?;
        }
    }
    Some(fields)
}
