//! Nodes of extent trees: a header and entries of twelve bytes.
//!
//! A node is the 60 bytes in the inode, or a block with a checksum behind the last possible
//! entry. Entries are sorted by logical block and do not overlap: [`check`] says so once for
//! each node that is read, and everything else relies on it.

use alloc::vec::Vec;

use crate::bytes::{le16, le32, put_le16, put_le32, shift};
use checksum::Crc32c;

const MAGIC: u16 = 0xf30a;
/// Bytes of the header, and of each entry.
pub(crate) const ENTRY_BYTES: usize = 12;
/// Levels of a tree at most, not counting its root.
pub(crate) const DEPTH_MAX: u16 = 5;
/// Blocks of an extent that was written.
pub(crate) const WRITTEN_MAX: u32 = 32768;
/// Blocks of one that was only reserved.
pub(crate) const UNWRITTEN_MAX: u32 = 32767;

/// Blocks that follow each other in the file and on the disk.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Extent {
    /// The first block in the file.
    pub(crate) logical: u32,
    /// How many.
    pub(crate) len: u32,
    /// The first block on the disk.
    pub(crate) physical: u64,
    /// Reserved, and read as zeroes.
    pub(crate) is_unwritten: bool,
}

impl Extent {
    /// The block of the file behind it.
    pub(crate) fn end(&self) -> u64 {
        u64::from(self.logical) + u64::from(self.len)
    }

    /// From `logical` on, which is inside.
    pub(crate) fn from(&self, logical: u32) -> Self {
        let skip = logical.saturating_sub(self.logical).min(self.len);
        Self {
            logical: self.logical + skip,
            len: self.len - skip,
            physical: self.physical + u64::from(skip),
            ..*self
        }
    }

    /// The first `len` blocks.
    pub(crate) fn first(&self, len: u32) -> Self {
        Self {
            len: self.len.min(len),
            ..*self
        }
    }

    /// Both as one, if `next` continues this one.
    pub(crate) fn joined(&self, next: &Self) -> Option<Self> {
        let max = if self.is_unwritten {
            UNWRITTEN_MAX
        } else {
            WRITTEN_MAX
        };
        let continues = self.end() == u64::from(next.logical)
            && self.physical + u64::from(self.len) == next.physical
            && self.is_unwritten == next.is_unwritten
            && self.len + next.len <= max;
        continues.then_some(Self {
            len: self.len + next.len,
            ..*self
        })
    }
}

/// Entries in use.
pub(crate) fn count(node: &[u8]) -> usize {
    usize::from(le16(node, 2)).min(node.len() / ENTRY_BYTES)
}

/// Levels below.
pub(crate) fn depth(node: &[u8]) -> u16 {
    le16(node, 6)
}

fn capacity(node: &[u8]) -> usize {
    usize::from(le16(node, 4))
}

/// Whether there is no room for another entry.
pub(crate) fn is_full(node: &[u8]) -> bool {
    count(node) >= capacity(node)
}

/// Where entry `index` begins.
fn place(index: usize) -> usize {
    ENTRY_BYTES * (index + 1)
}

/// The first logical block of entry `index`.
pub(crate) fn key(node: &[u8], index: usize) -> u32 {
    le32(node, place(index))
}

/// Entry `index` of a leaf.
pub(crate) fn extent(node: &[u8], index: usize) -> Extent {
    let at = place(index);
    let len = u32::from(le16(node, at + 4));
    let is_unwritten = len > WRITTEN_MAX;
    Extent {
        logical: le32(node, at),
        len: if is_unwritten { len - WRITTEN_MAX } else { len },
        physical: u64::from(le32(node, at + 8)) | u64::from(le16(node, at + 6)) << 32,
        is_unwritten,
    }
}

/// The child's block of entry `index` of an inner node.
pub(crate) fn child(node: &[u8], index: usize) -> u64 {
    let at = place(index);
    u64::from(le32(node, at + 4)) | u64::from(le16(node, at + 8)) << 32
}

/// The last entry that begins at or before `logical`.
pub(crate) fn position(node: &[u8], logical: u32) -> Option<usize> {
    let (mut low, mut high) = (0, count(node));
    while low < high {
        let middle = low.midpoint(high);
        match key(node, middle) <= logical {
            true => low = middle + 1,
            false => high = middle,
        }
    }
    low.checked_sub(1)
}

/// Makes an empty node.
pub(crate) fn init(node: &mut [u8], depth: u16, room: usize) {
    put_le16(node, 0, MAGIC);
    put_le16(node, 2, 0);
    put_le16(node, 4, (room / ENTRY_BYTES).saturating_sub(1) as u16);
    put_le16(node, 6, depth);
    put_le32(node, 8, 0);
}

fn set_count(node: &mut [u8], count: usize) {
    put_le16(node, 2, count as u16);
}

/// Sets how many levels are below.
pub(crate) fn set_depth(node: &mut [u8], depth: u16) {
    put_le16(node, 6, depth);
}

/// Sets the first logical block of entry `index`.
pub(crate) fn set_key(node: &mut [u8], index: usize, logical: u32) {
    put_le32(node, place(index), logical);
}

/// Overwrites entry `index` of a leaf.
pub(crate) fn set_extent(node: &mut [u8], index: usize, extent: &Extent) {
    let at = place(index);
    let mark = if extent.is_unwritten { WRITTEN_MAX } else { 0 };
    put_le32(node, at, extent.logical);
    put_le16(node, at + 4, (extent.len + mark) as u16);
    put_le16(node, at + 6, (extent.physical >> 32) as u16);
    put_le32(node, at + 8, extent.physical as u32);
}

fn set_child(node: &mut [u8], index: usize, logical: u32, block: u64) {
    let at = place(index);
    put_le32(node, at, logical);
    put_le32(node, at + 4, block as u32);
    put_le16(node, at + 8, (block >> 32) as u16);
    put_le16(node, at + 10, 0);
}

fn open_gap(node: &mut [u8], index: usize) {
    let count = count(node);
    let behind = count.saturating_sub(index) * ENTRY_BYTES;
    shift(node, place(index), place(index + 1), behind);
    set_count(node, count + 1);
}

/// Inserts an extent before entry `index`; there is room.
pub(crate) fn insert_extent(node: &mut [u8], index: usize, extent: &Extent) {
    open_gap(node, index);
    set_extent(node, index, extent);
}

/// Inserts a child before entry `index`; there is room.
pub(crate) fn insert_child(node: &mut [u8], index: usize, logical: u32, block: u64) {
    open_gap(node, index);
    set_child(node, index, logical, block);
}

/// Removes entry `index`.
pub(crate) fn remove(node: &mut [u8], index: usize) {
    let count = count(node);
    let behind = count.saturating_sub(index + 1) * ENTRY_BYTES;
    shift(node, place(index + 1), place(index), behind);
    set_count(node, count.saturating_sub(1));
}

/// Takes the entries from `index` on out of the node.
pub(crate) fn split_off(node: &mut [u8], index: usize) -> Vec<u8> {
    let end = place(count(node));
    let taken = node.get(place(index)..end).unwrap_or(&[]).to_vec();
    set_count(node, index);
    taken
}

/// Puts entries that were taken from another node behind those of this one.
pub(crate) fn append(node: &mut [u8], entries: &[u8]) {
    let at = count(node);
    crate::bytes::put(node, place(at), entries);
    set_count(node, at + entries.len() / ENTRY_BYTES);
}

/// Whether this is a node with `depth` levels below and legal entries, on a disk of `blocks`.
pub(crate) fn check(node: &[u8], depth: u16, blocks: u64) -> bool {
    let room = node.len() / ENTRY_BYTES - 1;
    let is_node = le16(node, 0) == MAGIC
        && le16(node, 6) == depth
        && depth <= DEPTH_MAX
        && (1..=room).contains(&capacity(node))
        && usize::from(le16(node, 2)) <= capacity(node);
    let mut end = 0u64;
    is_node
        && (0..count(node)).all(|index| {
            let begins = u64::from(key(node, index));
            let follows = begins >= end || index == 0;
            let (len, first) = match depth {
                0 => {
                    let extent = extent(node, index);
                    (u64::from(extent.len), extent.physical)
                }
                _ => (1, child(node, index)),
            };
            end = begins + len;
            follows
                && len != 0
                && first != 0
                && first.saturating_add(len) <= blocks
                && end <= 1 << 32
        })
}

fn checksum_at(node: &[u8]) -> usize {
    place(capacity(node))
}

/// Whether a block's checksum is right.
pub(crate) fn is_sealed(node: &[u8], seed: Crc32c) -> bool {
    let at = checksum_at(node);
    at + 4 <= node.len() && le32(node, at) == seed.with(node.get(..at).unwrap_or(&[])).register()
}

/// Stores a block's checksum.
pub(crate) fn seal(node: &mut [u8], seed: Crc32c) {
    let at = checksum_at(node);
    let sum = seed.with(node.get(..at).unwrap_or(&[])).register();
    put_le32(node, at, sum);
}
