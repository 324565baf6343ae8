//! Directory blocks: entries that fill the block, and a checksum at its end.
//!
//! An entry is `inode[4] rec_len[2] name_len[1] file_type[1] name`, padded to four bytes;
//! `inode` 0 means unused room. Where there are checksums the last twelve bytes look like an
//! unused entry of type 0xde. Index blocks look to ext2 like unused room, too.

use crate::bytes::{byte, le16, le32, put, put_le16, put_le32, span};
use checksum::Crc32c;

/// Bytes before the name.
pub(crate) const HEADER_BYTES: usize = 8;
/// The longest name.
pub(crate) const NAME_BYTES_MAX: usize = 255;
/// Bytes of the checksum's entry.
pub(crate) const TAIL_BYTES: usize = 12;
const TAIL_TYPE: u8 = 0xde;

/// An entry as it lies in a block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Entry<'a> {
    /// Where it begins.
    pub(crate) at: usize,
    /// Bytes until the next.
    pub(crate) len: usize,
    /// 0 if unused.
    pub(crate) inode: u32,
    /// What it names.
    pub(crate) kind: u8,
    pub(crate) name: &'a [u8],
}

impl Entry<'_> {
    /// Bytes that it needs.
    pub(crate) fn used(&self) -> usize {
        if self.inode == 0 {
            0
        } else {
            needed(self.name.len())
        }
    }
}

/// Bytes of an entry with a name of this length.
pub(crate) const fn needed(name_bytes: usize) -> usize {
    (HEADER_BYTES + name_bytes).next_multiple_of(4)
}

/// The entry at `at`; `None` if what is there is none.
pub(crate) fn entry(block: &[u8], at: usize) -> Option<Entry<'_>> {
    let len = usize::from(le16(block, at + 4));
    let name_len = usize::from(byte(block, at + 6));
    let inode = le32(block, at);
    let fits = len >= HEADER_BYTES + 4
        && len.is_multiple_of(4)
        && at + len <= block.len()
        && (inode == 0 || needed(name_len) <= len);
    fits.then(|| Entry {
        at,
        len,
        inode,
        kind: byte(block, at + 7),
        name: span(
            block,
            at + HEADER_BYTES,
            if inode == 0 { 0 } else { name_len },
        ),
    })
}

/// The entries of a block from the first on; ends at one that is damaged.
pub(crate) fn entries(block: &[u8]) -> impl Iterator<Item = Entry<'_>> {
    let mut at = 0;
    core::iter::from_fn(move || {
        let found = entry(block, at).filter(|_| at < block.len())?;
        at += found.len;
        Some(found)
    })
}

/// Whether entries fill the block.
pub(crate) fn check(block: &[u8]) -> bool {
    entries(block).map(|entry| entry.len).sum::<usize>() == block.len()
        && entries(block).all(|entry| entry.inode == 0 || is_legal(entry.name))
}

fn is_legal(name: &[u8]) -> bool {
    !name.is_empty() && !name.contains(&0) && !name.contains(&b'/')
}

/// Stores an entry.
pub(crate) fn set(block: &mut [u8], at: usize, len: usize, inode: u32, kind: u8, name: &[u8]) {
    put_le32(block, at, inode);
    put_le16(block, at + 4, len as u16);
    put(block, at + 6, &[name.len() as u8, kind]);
    put(block, at + HEADER_BYTES, name);
}

/// Sets how far the entry at `at` reaches.
pub(crate) fn set_len(block: &mut [u8], at: usize, len: usize) {
    put_le16(block, at + 4, len as u16);
}

/// Sets what the entry at `at` names.
pub(crate) fn set_inode(block: &mut [u8], at: usize, inode: u32, kind: u8) {
    put_le32(block, at, inode);
    put(block, at + 7, &[kind]);
}

/// Makes a block of unused room with a tail of `tail` bytes.
pub(crate) fn init(block: &mut [u8], tail: usize) {
    let room = block.len() - tail;
    set(block, 0, room, 0, 0, b"");
    if tail != 0 {
        set(block, room, tail, 0, TAIL_TYPE, b"");
    }
}

fn tail_at(block: &[u8]) -> usize {
    block.len().saturating_sub(TAIL_BYTES)
}

/// Whether a block of entries has the right checksum.
pub(crate) fn is_sealed(block: &[u8], seed: Crc32c) -> bool {
    let at = tail_at(block);
    byte(block, at + 7) == TAIL_TYPE
        && le16(block, at + 4) as usize == TAIL_BYTES
        && le32(block, at + 8) == seed.with(span(block, 0, at)).register()
}

/// Stores the checksum of a block of entries.
pub(crate) fn seal(block: &mut [u8], seed: Crc32c) {
    let at = tail_at(block);
    let sum = seed.with(span(block, 0, at)).register();
    put_le32(block, at + 8, sum);
}
