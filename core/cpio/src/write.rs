//! The writer: appends members to an archive in memory.

use alloc::vec::Vec;

use crate::{Entry, HEADER_BYTES, MAGIC, TRAILER, padded};

/// A name or a file is longer than the 32-bit length fields can say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooLong {
    /// The length in bytes.
    pub bytes: usize,
}

/// An archive that grows by one member at a time.
#[derive(Debug, Default)]
pub struct Writer {
    archive: Vec<u8>,
}

impl Writer {
    /// An empty archive.
    pub fn new() -> Self {
        Self::default()
    }

    /// Appends a member with all its fields as given.
    pub fn append(&mut self, entry: &Entry<'_>) -> Result<(), TooLong> {
        let name_len = length_field(entry.name.len() + 1)?;
        let size = length_field(entry.data.len())?;
        let (major, minor) = entry.rdev;
        let Entry {
            inode,
            mode,
            uid,
            gid,
            links,
            mtime_s,
            ..
        } = *entry;
        let fields = [
            inode, mode, uid, gid, links, mtime_s, size, 0, 0, major, minor, name_len, 0,
        ];
        self.archive
            .reserve(HEADER_BYTES + entry.name.len() + entry.data.len() + 8);
        self.archive.extend_from_slice(MAGIC);
        for field in fields {
            self.archive.extend_from_slice(&hex_digits(field));
        }
        self.archive.extend_from_slice(entry.name);
        self.archive.push(0);
        self.pad();
        self.archive.extend_from_slice(entry.data);
        self.pad();
        Ok(())
    }

    /// Appends the trailer and returns the archive.
    pub fn finish(mut self) -> Vec<u8> {
        let trailer = Entry {
            name: TRAILER,
            mode: 0,
            uid: 0,
            gid: 0,
            links: 1,
            inode: 0,
            mtime_s: 0,
            rdev: (0, 0),
            data: &[],
        };
        match self.append(&trailer) {
            Ok(()) => self.archive,
            Err(TooLong { .. }) => unreachable!("the trailer's name is ten bytes long"),
        }
    }

    fn pad(&mut self) {
        let len = self.archive.len();
        self.archive.resize(padded(len).unwrap_or(len), 0);
    }
}

fn length_field(bytes: usize) -> Result<u32, TooLong> {
    u32::try_from(bytes).map_err(|_| TooLong { bytes })
}

/// Eight upper-case hexadecimal digits, as cpio writes them.
fn hex_digits(value: u32) -> [u8; 8] {
    let digit_at = |place: usize| (value >> (28 - 4 * place)) & 0xf;
    core::array::from_fn(|place| b"0123456789ABCDEF"[digit_at(place) as usize])
}
