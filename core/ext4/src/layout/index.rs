//! Blocks of the index: pairs of a hash and a block of the directory.
//!
//! The first pair has no hash: its place holds how many pairs there are and how many there may be.

use alloc::vec::Vec;

use crate::bytes::{byte, le16, le32, put, put_le16, put_le32, shift, span};
use crate::layout::dirent;
use checksum::Crc32c;

const PAIR_BYTES: usize = 8;
const TAIL_BYTES: usize = 8;
/// Where pairs begin in the root: behind `.`, `..` and eight bytes of information.
const ROOT_PAIRS_AT: usize = 0x20;
/// Where they begin in other nodes: behind an unused entry.
const NODE_PAIRS_AT: usize = 8;
const INFO_AT: usize = 0x18;
/// Levels of nodes below the root at most.
pub(crate) const LEVELS_MAX: u8 = 2;
const BLOCK_MASK: u32 = 0x0fff_ffff;

/// Where pairs begin. An index node's first entry fills the block; a root begins with `.`.
fn pairs_at(node: &[u8]) -> usize {
    if usize::from(le16(node, 4)) == node.len() {
        NODE_PAIRS_AT
    } else {
        ROOT_PAIRS_AT
    }
}

fn place(node: &[u8], index: usize) -> usize {
    pairs_at(node) + index * PAIR_BYTES
}

/// Pairs in use.
pub(crate) fn count(node: &[u8]) -> usize {
    usize::from(le16(node, pairs_at(node) + 2))
}

fn limit(node: &[u8]) -> usize {
    usize::from(le16(node, pairs_at(node)))
}

/// Whether there is no room for another pair.
pub(crate) fn is_full(node: &[u8]) -> bool {
    count(node) >= limit(node)
}

/// The lowest hash below pair `index`.
pub(crate) fn hash(node: &[u8], index: usize) -> u32 {
    if index == 0 {
        0
    } else {
        le32(node, place(node, index))
    }
}

/// The directory's block of pair `index`.
pub(crate) fn block(node: &[u8], index: usize) -> u32 {
    le32(node, place(node, index) + 4) & BLOCK_MASK
}

/// The last pair that begins at or before `hash`.
pub(crate) fn position(node: &[u8], wanted: u32) -> usize {
    let (mut low, mut high) = (1, count(node));
    while low < high {
        let middle = low.midpoint(high);
        match hash(node, middle) <= wanted {
            true => low = middle + 1,
            false => high = middle,
        }
    }
    low - 1
}

/// How names of the directory are hashed; of the root.
pub(crate) fn hash_version(root: &[u8]) -> u8 {
    byte(root, INFO_AT + 4)
}

/// Levels of nodes between the root and the leaves.
pub(crate) fn levels(root: &[u8]) -> u8 {
    byte(root, INFO_AT + 6)
}

/// Sets them.
pub(crate) fn set_levels(root: &mut [u8], levels: u8) {
    put(root, INFO_AT + 6, &[levels]);
}

fn set_count(node: &mut [u8], count: usize) {
    let at = pairs_at(node);
    put_le16(node, at + 2, count as u16);
}

/// Inserts a pair at `index`, which is not the first; there is room.
pub(crate) fn insert(node: &mut [u8], index: usize, hash: u32, block: u32) {
    let count = count(node);
    let at = place(node, index);
    shift(
        node,
        at,
        at + PAIR_BYTES,
        count.saturating_sub(index) * PAIR_BYTES,
    );
    put_le32(node, at, hash);
    put_le32(node, at + 4, block);
    set_count(node, count + 1);
}

/// Makes the block of an index node without pairs.
pub(crate) fn init(node: &mut [u8], tail: usize) {
    let len = node.len();
    dirent::set(node, 0, len, 0, 0, b"");
    let limit = (len - NODE_PAIRS_AT - tail_bytes(tail)) / PAIR_BYTES;
    put_le16(node, NODE_PAIRS_AT, limit as u16);
    put_le16(node, NODE_PAIRS_AT + 2, 0);
}

/// Makes a root of a block that has `.` and `..`, with one leaf.
pub(crate) fn init_root(root: &mut [u8], version: u8, leaf: u32, tail: usize) {
    let len = root.len();
    // `.` takes twelve bytes, `..` the rest.
    dirent::set_len(root, 12, len - 12);
    put(root, INFO_AT, &[0, 0, 0, 0, version, 8, 0, 0]);
    let limit = (len - ROOT_PAIRS_AT - tail_bytes(tail)) / PAIR_BYTES;
    put_le16(root, ROOT_PAIRS_AT, limit as u16);
    put_le16(root, ROOT_PAIRS_AT + 2, 1);
    put_le32(root, ROOT_PAIRS_AT + 4, leaf);
}

/// Bytes for the checksum, where blocks of entries have a tail.
fn tail_bytes(entry_tail: usize) -> usize {
    if entry_tail == 0 { 0 } else { TAIL_BYTES }
}

/// Takes the pairs from `index` on out of the node.
pub(crate) fn split_off(node: &mut [u8], index: usize) -> Vec<u8> {
    let (from, to) = (place(node, index), place(node, count(node)));
    let taken = node.get(from..to).unwrap_or(&[]).to_vec();
    set_count(node, index);
    taken
}

/// Puts pairs into an empty node; the first loses its hash.
pub(crate) fn fill(node: &mut [u8], pairs: &[u8]) {
    let at = pairs_at(node);
    put(node, at + 4, pairs.get(4..).unwrap_or(&[]));
    set_count(node, pairs.len() / PAIR_BYTES);
}

/// Whether this is a block of an index.
pub(crate) fn check(node: &[u8], is_root: bool, has_sums: bool) -> bool {
    let at = if is_root {
        ROOT_PAIRS_AT
    } else {
        NODE_PAIRS_AT
    };
    let tail = if has_sums { TAIL_BYTES } else { 0 };
    let has_form = match is_root {
        true => {
            usize::from(le16(node, 4)) == 12
                && usize::from(le16(node, 16)) == node.len() - 12
                && byte(node, INFO_AT + 5) == 8
                && levels(node) <= LEVELS_MAX
        }
        false => le32(node, 0) == 0 && usize::from(le16(node, 4)) == node.len(),
    };
    has_form
        && pairs_at(node) == at
        && limit(node) == (node.len() - at - tail) / PAIR_BYTES
        && (1..=limit(node)).contains(&count(node))
        && (1..count(node)).all(|index| index == 1 || hash(node, index) >= hash(node, index - 1))
}

/// Whether the checksum is right.
pub(crate) fn is_sealed(node: &[u8], seed: Crc32c) -> bool {
    let at = place(node, limit(node));
    le32(node, at + 4) == checksum(node, at, seed)
}

/// Stores the checksum.
pub(crate) fn seal(node: &mut [u8], seed: Crc32c) {
    let at = place(node, limit(node));
    let sum = checksum(node, at, seed);
    put_le32(node, at + 4, sum);
}

fn checksum(node: &[u8], tail_at: usize, seed: Crc32c) -> u32 {
    let used = span(node, 0, place(node, count(node)));
    seed.with(used)
        .with(span(node, tail_at, 4))
        .with(&[0; 4])
        .register()
}
