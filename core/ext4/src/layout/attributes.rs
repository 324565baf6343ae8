//! The block of extended attributes: its header and checksum.

use crate::bytes::{le32, put_le32, span};
use checksum::Crc32c;

/// `h_magic`, and of attributes behind an inode.
pub(crate) const MAGIC: u32 = 0xea02_0000;
/// Bytes of the header.
pub(crate) const HEADER_BYTES: usize = 32;
const CHECKSUM_AT: usize = 16;
const REFERENCES_MAX: u32 = 1024;

/// Inodes that use the block.
pub(crate) fn references(block: &[u8]) -> u32 {
    le32(block, 4)
}

/// Sets how many there are.
pub(crate) fn set_references(block: &mut [u8], count: u32) {
    put_le32(block, 4, count);
}

/// Whether this is a block of attributes.
pub(crate) fn check(block: &[u8]) -> bool {
    le32(block, 0) == MAGIC
        && le32(block, 8) == 1
        && (1..=REFERENCES_MAX).contains(&references(block))
}

fn checksum(number: u64, block: &[u8], seed: Crc32c) -> u32 {
    let sum = seed.with(&number.to_le_bytes());
    let sum = sum.with(span(block, 0, CHECKSUM_AT)).with(&[0; 4]);
    sum.with(block.get(CHECKSUM_AT + 4..).unwrap_or(&[]))
        .register()
}

/// Whether the checksum is right.
pub(crate) fn is_sealed(block: &[u8], number: u64, seed: Crc32c) -> bool {
    le32(block, CHECKSUM_AT) == checksum(number, block, seed)
}

/// Stores the checksum.
pub(crate) fn seal(block: &mut [u8], number: u64, seed: Crc32c) {
    let sum = checksum(number, block, seed);
    put_le32(block, CHECKSUM_AT, sum);
}
