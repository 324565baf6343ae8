//! Filling the block of attributes: entries that are sorted, and values at the end.

use super::entry::{self, Attribute};
use crate::bytes::put_le32;
use crate::layout::attributes::{HEADER_BYTES, MAGIC};

/// Makes a block with these attributes, for one inode.
pub(super) fn fill(block: &mut [u8], attributes: &[Attribute]) {
    let mut sorted = attributes.to_vec();
    sorted.sort_by(|one, other| entry::key(one).cmp(&entry::key(other)));
    block.fill(0);
    entry::fill(block, HEADER_BYTES, 0, &sorted);
    let hash = sorted
        .iter()
        .fold(0u32, |hash, one| hash.rotate_left(16) ^ one.hash());
    for (at, value) in [(0, MAGIC), (4, 1), (8, 1), (12, hash)] {
        put_le32(block, at, value);
    }
}
