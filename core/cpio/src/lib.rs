//! Reads and writes cpio archives in the `newc` format, the root file system
//! that a machine gets at boot.
//!
//! An archive is a run of members. Each member is a header of 110 ASCII bytes
//! (a magic and thirteen 8-digit hexadecimal fields), the name with a closing
//! NUL, padding to four bytes, the data, and padding to four bytes. A member
//! called `TRAILER!!!` ends the archive. The layout is that of cpio(5) and of
//! Linux's "initramfs buffer format".
//!
//! The reader borrows: names and data are slices of the archive, so the
//! kernel's root file system costs no copy. It believes nothing: a length that
//! leaves the archive is an error, never a panic.
//!
//! Data may be aligned further, by NUL bytes that lengthen the name: then the kernel
//! maps a file's pages straight from the archive.
//!
//! Invariant: data begins and ends on four-byte boundaries *of the archive*,
//! so the archive itself must start on one for the data to be aligned.
//!
//! Not here: hard links (the writer makes none; the reader shows `inode` and
//! `links` as they stand), compression, and the meaning of paths.

#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod read;
mod write;

pub use read::{Archive, ReadError};
pub use write::{TooLong, Writer};

/// The magic of the `newc` format without checksums.
const MAGIC: &[u8; 6] = b"070701";
/// The magic of the variant with a checksum field, which we read but do not verify.
const MAGIC_CRC: &[u8; 6] = b"070702";
/// Bytes of a header: the magic and thirteen fields of eight digits.
const HEADER_BYTES: usize = 6 + 13 * 8;
/// The name of the member that ends an archive.
const TRAILER: &[u8] = b"TRAILER!!!";

/// What a file is, from the `S_IFMT` bits of its mode (inode(7)).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A regular file; its bytes are the member's data.
    File,
    /// A directory.
    Directory,
    /// A symbolic link; its target is the member's data.
    Symlink,
    /// A character device with the member's `rdev` numbers.
    CharDevice,
    /// A block device with the member's `rdev` numbers.
    BlockDevice,
    /// A FIFO.
    Fifo,
    /// A Unix socket.
    Socket,
    /// Bits that mean no type of file.
    Unknown,
}

/// One member of an archive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry<'a> {
    /// The path as stored: relative, without a leading slash by custom.
    pub name: &'a [u8],
    /// Type and permission bits as in `st_mode`.
    pub mode: u32,
    /// The owner.
    pub uid: u32,
    /// The group.
    pub gid: u32,
    /// How many names the file has in the archive.
    pub links: u32,
    /// The file's number, which joins the names of a hard link.
    pub inode: u32,
    /// Last change, in seconds since the epoch.
    pub mtime_s: u32,
    /// Device numbers (major, minor) of a device node.
    pub rdev: (u32, u32),
    /// The contents of a file or the target of a symbolic link.
    pub data: &'a [u8],
}

impl Entry<'_> {
    /// The type of file that the mode names.
    pub fn kind(&self) -> Kind {
        match self.mode & 0o170_000 {
            0o100_000 => Kind::File,
            0o040_000 => Kind::Directory,
            0o120_000 => Kind::Symlink,
            0o020_000 => Kind::CharDevice,
            0o060_000 => Kind::BlockDevice,
            0o010_000 => Kind::Fifo,
            0o140_000 => Kind::Socket,
            _ => Kind::Unknown,
        }
    }

    /// The permission bits, with set-id and sticky.
    pub fn permissions(&self) -> u32 {
        self.mode & 0o7777
    }
}

/// Rounds up to the four bytes that members are padded to; `None` on overflow.
const fn padded(len: usize) -> Option<usize> {
    len.checked_next_multiple_of(4)
}

#[cfg(test)]
mod tests;
