//! The writer: appends members to an archive in memory.

use alloc::vec::Vec;

use crate::{Entry, HEADER_BYTES, MAGIC, TRAILER, padded};

/// A name or a file is longer than the 32-bit length fields can say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooLong {
    /// The length in bytes.
    pub bytes: usize,
}

/// The longest name that Linux reads, with its closing NUL.
const PATH_MAX: usize = 4096;

/// Takes space and says nothing new.
const FILLER: Entry<'static> = Entry {
    name: b".",
    mode: 0o040_755,
    uid: 0,
    gid: 0,
    links: 2,
    inode: 0,
    mtime_s: 0,
    rdev: (0, 0),
    data: &[],
};

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
        self.append_aligned(entry, 4)
    }

    /// Appends a member whose data begin at a multiple of `align_bytes`, a power of
    /// two of at least four and at most 4096. The name is padded with NUL bytes to that
    /// end, which readers take for its end.
    ///
    /// Linux skips members whose name is longer than `PATH_MAX`, so where the padding
    /// would be too long, entries for the root folder fill the space before.
    pub fn append_aligned(&mut self, entry: &Entry<'_>, align_bytes: usize) -> Result<(), TooLong> {
        let is_aligned = align_bytes > 4 && entry.name.len() < PATH_MAX / 2;
        let align_bytes = if is_aligned { align_bytes } else { 4 };
        let data_start = |archive_len: usize| {
            (archive_len + HEADER_BYTES + entry.name.len() + 1).next_multiple_of(align_bytes)
        };
        while is_aligned
            && data_start(self.archive.len()) - self.archive.len() - HEADER_BYTES > PATH_MAX
        {
            self.append(&FILLER)?;
        }
        let data_starts = data_start(self.archive.len());
        // Padding to four bytes belongs to no field; only what goes beyond does.
        let name_field_len = match is_aligned {
            true => data_starts - self.archive.len() - HEADER_BYTES,
            false => entry.name.len() + 1,
        };
        let name_len = length_field(name_field_len)?;
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
            .reserve(data_starts - self.archive.len() + entry.data.len() + 4);
        self.archive.extend_from_slice(MAGIC);
        for field in fields {
            self.archive.extend_from_slice(&hex_digits(field));
        }
        self.archive.extend_from_slice(entry.name);
        self.archive.resize(data_starts, 0);
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
