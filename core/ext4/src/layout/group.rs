//! Group descriptors: where a group's bitmaps and inodes are, and how many are free.

use crate::bytes::{joined32, joined64, le16, le32, put_le16, span};
use crate::crc16::crc16;
use crate::layout::features::RO_COMPAT_GDT_CSUM;
use crate::layout::superblock::Geometry;

/// `bg_flags`: the inode bitmap is all zeroes, and was never written.
pub(crate) const INODE_UNINIT: u16 = 1;
/// `bg_flags`: only the group's own metadata is in use, and the bitmap was never written.
pub(crate) const BLOCK_UNINIT: u16 = 2;

const CHECKSUM_AT: usize = 0x1e;

/// A descriptor as it is worked with; the rest of its bytes stays as it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Group {
    pub(crate) block_bitmap: u64,
    pub(crate) inode_bitmap: u64,
    pub(crate) inode_table: u64,
    pub(crate) free_blocks: u32,
    pub(crate) free_inodes: u32,
    pub(crate) directories: u32,
    pub(crate) unused_inodes: u32,
    pub(crate) flags: u16,
    pub(crate) block_bitmap_checksum: u32,
    pub(crate) inode_bitmap_checksum: u32,
}

/// Whether descriptors have 64-bit fields.
fn is_wide(geometry: &Geometry) -> bool {
    geometry.descriptor_bytes >= 64
}

impl Group {
    pub(crate) fn parse(raw: &[u8], geometry: &Geometry) -> Self {
        if is_wide(geometry) {
            return Self {
                block_bitmap: joined64(raw, 0, 0x20),
                inode_bitmap: joined64(raw, 4, 0x24),
                inode_table: joined64(raw, 8, 0x28),
                free_blocks: joined32(raw, 0xc, 0x2c),
                free_inodes: joined32(raw, 0xe, 0x2e),
                directories: joined32(raw, 0x10, 0x30),
                unused_inodes: joined32(raw, 0x1c, 0x32),
                flags: le16(raw, 0x12),
                block_bitmap_checksum: joined32(raw, 0x18, 0x38),
                inode_bitmap_checksum: joined32(raw, 0x1a, 0x3a),
            };
        }
        Self {
            block_bitmap: u64::from(le32(raw, 0)),
            inode_bitmap: u64::from(le32(raw, 4)),
            inode_table: u64::from(le32(raw, 8)),
            free_blocks: u32::from(le16(raw, 0xc)),
            free_inodes: u32::from(le16(raw, 0xe)),
            directories: u32::from(le16(raw, 0x10)),
            unused_inodes: u32::from(le16(raw, 0x1c)),
            flags: le16(raw, 0x12),
            block_bitmap_checksum: u32::from(le16(raw, 0x18)),
            inode_bitmap_checksum: u32::from(le16(raw, 0x1a)),
        }
    }

    /// Stores what changes, without the checksum.
    pub(crate) fn store(&self, raw: &mut [u8], geometry: &Geometry) {
        let counts = [
            (0xc, 0x2c, self.free_blocks),
            (0xe, 0x2e, self.free_inodes),
            (0x10, 0x30, self.directories),
            (0x1c, 0x32, self.unused_inodes),
            (0x18, 0x38, self.block_bitmap_checksum),
            (0x1a, 0x3a, self.inode_bitmap_checksum),
        ];
        for (low, high, value) in counts {
            put_le16(raw, low, value as u16);
            if is_wide(geometry) {
                put_le16(raw, high, (value >> 16) as u16);
            }
        }
        put_le16(raw, 0x12, self.flags);
    }

    pub(crate) fn has(&self, flags: u16) -> bool {
        self.flags & flags != 0
    }
}

fn checksum(number: u32, raw: &[u8], geometry: &Geometry) -> Option<u16> {
    let (front, behind) = (
        span(raw, 0, CHECKSUM_AT),
        raw.get(CHECKSUM_AT + 2..).unwrap_or(&[]),
    );
    if geometry.features.has_checksums() {
        let sum = geometry.checksum_seed.with(&number.to_le_bytes());
        return Some(sum.with(front).with(&[0; 2]).with(behind).register() as u16);
    }
    geometry
        .features
        .has_ro_compat(RO_COMPAT_GDT_CSUM)
        .then(|| {
            let seed = crc16(crc16(!0, &geometry.uuid), &number.to_le_bytes());
            crc16(crc16(seed, front), behind)
        })
}

/// Whether the descriptor's checksum is right, or the image has none.
pub(crate) fn is_sealed(number: u32, raw: &[u8], geometry: &Geometry) -> bool {
    checksum(number, raw, geometry).is_none_or(|sum| sum == le16(raw, CHECKSUM_AT))
}

/// Stores the descriptor's checksum.
pub(crate) fn seal(number: u32, raw: &mut [u8], geometry: &Geometry) {
    if let Some(sum) = checksum(number, raw, geometry) {
        put_le16(raw, CHECKSUM_AT, sum);
    }
}

/// A bitmap's checksum as far as descriptors have room for it.
pub(crate) fn bitmap_checksum(bits: &[u8], geometry: &Geometry) -> u32 {
    if !geometry.features.has_checksums() {
        return 0;
    }
    bitmap_field(geometry.checksum_seed.with(bits).register(), geometry)
}

/// The same of a bitmap's sum.
pub(crate) fn bitmap_field(sum: u32, geometry: &Geometry) -> u32 {
    if is_wide(geometry) { sum } else { sum & 0xffff }
}
