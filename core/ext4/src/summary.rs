//! What a superblock says of its image to those who do not mount it: who it is, how full, how it was left.

use crate::bytes::{le16, le32, span};
use crate::layout::superblock::{BYTES, MAGIC, OFFSET, Totals};

/// An image at a glance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Summary {
    /// The number that no other image has, unless one is a copy of the other.
    pub uuid: [u8; 16],
    /// Its name, filled up with zeroes.
    pub label: [u8; 16],
    /// Its size.
    pub bytes: u64,
    /// What of it is free.
    pub free_bytes: u64,
    /// Its machine went without an unmount: the next mount replays the journal.
    pub needs_recovery: bool,
    /// Errors were found in it.
    pub has_errors: bool,
}

impl Summary {
    /// Where the superblock lies.
    pub const OFFSET: u64 = OFFSET;
    /// Its length.
    pub const BYTES: usize = BYTES;

    /// Reads it from a superblock; `None` if that is none.
    pub fn of(superblock: &[u8]) -> Option<Self> {
        if superblock.len() < BYTES || le16(superblock, 0x38) != MAGIC {
            return None;
        }
        let totals = Totals::parse(superblock);
        let block_bytes = 1024u64
            .checked_shl(le32(superblock, 0x18))
            .filter(|bytes| (1024..=1 << 16).contains(bytes))?;
        let blocks = u64::from(le32(superblock, 0x4)) | u64::from(le32(superblock, 0x150)) << 32;
        Some(Self {
            uuid: *span(superblock, 0x68, 16).first_chunk()?,
            label: *span(superblock, 0x78, 16).first_chunk()?,
            bytes: blocks.saturating_mul(block_bytes),
            free_bytes: totals.free_blocks.saturating_mul(block_bytes),
            needs_recovery: !totals.is_clean,
            has_errors: totals.has_errors,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bytes::{put_le16, put_le32};

    fn superblock() -> [u8; BYTES] {
        let mut sb = [0; BYTES];
        put_le16(&mut sb, 0x38, MAGIC);
        put_le32(&mut sb, 0x18, 2);
        put_le32(&mut sb, 0x4, 100);
        put_le32(&mut sb, 0xc, 60);
        sb[0x68..0x78].copy_from_slice(&[7; 16]);
        sb[0x78..0x7a].copy_from_slice(b"db");
        sb
    }

    #[test]
    fn a_superblock_says_who_it_is_and_how_full() {
        let summary = Summary::of(&superblock()).expect("it is one");
        assert_eq!(summary.uuid, [7; 16]);
        assert_eq!(&summary.label[..3], b"db\0");
        assert_eq!((summary.bytes, summary.free_bytes), (409_600, 245_760));
        assert!(!summary.needs_recovery && !summary.has_errors);
    }

    #[test]
    fn what_is_none_or_cannot_be_says_nothing() {
        assert_eq!(Summary::of(&[0; BYTES]), None);
        assert_eq!(Summary::of(&superblock()[1..]), None);
        let mut sb = superblock();
        put_le32(&mut sb, 0x18, 1000);
        assert_eq!(Summary::of(&sb), None);
        put_le32(&mut sb, 0x18, 63);
        assert_eq!(Summary::of(&sb), None);
    }
}
