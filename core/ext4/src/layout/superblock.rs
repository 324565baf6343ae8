//! The superblock: 1024 bytes at offset 1024, copied into some groups.
//!
//! [`Geometry`] is what never changes while the image is mounted. What changes (counts of free
//! blocks and inodes, the head of the orphan list, the state) is [`Totals`], which a commit
//! stores in the superblock's block.

use core::ops::Range;

use crate::bytes::{byte, le16, le32, put_le16, put_le32, span};
use crate::error::{Corrupt, MountError};
use crate::layout::features::{
    COMPAT_SPARSE_SUPER2, Features, INCOMPAT_64BIT, INCOMPAT_CSUM_SEED, INCOMPAT_RECOVER,
    RO_COMPAT_SPARSE_SUPER,
};
use checksum::Crc32c;

/// Where the superblock lies.
pub(crate) const OFFSET: u64 = 1024;
/// Its length.
pub(crate) const BYTES: usize = 1024;

/// What every superblock has at byte 0x38.
pub(crate) const MAGIC: u16 = 0xef53;
const CHECKSUM_AT: usize = 0x3fc;
const CHECKSUM_CRC32C: u8 = 1;
/// `s_state`: unmounted cleanly.
const STATE_VALID: u16 = 1;
/// `s_state`: errors were found.
const STATE_ERRORS: u16 = 2;
/// `s_flags`: names are hashed as unsigned characters.
const FLAG_UNSIGNED_HASH: u32 = 2;
/// The largest block: one page.
const BLOCK_BYTES_MAX: u32 = 4096;
/// Groups at most: their descriptors are looked at one by one at mount.
const GROUPS_MAX: u64 = 1 << 20;

/// The shape of an image.
#[derive(Clone, Debug)]
pub(crate) struct Geometry {
    pub(crate) features: Features,
    pub(crate) block_bytes: usize,
    pub(crate) blocks: u64,
    pub(crate) inodes: u32,
    pub(crate) first_data_block: u64,
    pub(crate) blocks_per_group: u32,
    pub(crate) inodes_per_group: u32,
    pub(crate) inode_bytes: usize,
    pub(crate) groups: u32,
    pub(crate) descriptor_bytes: usize,
    pub(crate) reserved_gdt_blocks: u32,
    pub(crate) backup_groups: [u32; 2],
    pub(crate) first_inode: u32,
    pub(crate) want_extra_isize: u16,
    pub(crate) journal_inode: u32,
    pub(crate) uuid: [u8; 16],
    /// A sum of nothing, made as the device says.
    pub(crate) sums_begin: Crc32c,
    /// With what sums of metadata start.
    pub(crate) checksum_seed: Crc32c,
    pub(crate) hash_seed: [u32; 4],
    pub(crate) hash_version: u8,
    pub(crate) has_unsigned_hash: bool,
}

impl Geometry {
    /// Reads the superblock of a disk of `disk_bytes` and checks all but its checksum.
    pub(crate) fn parse(
        sb: &[u8],
        disk_bytes: u64,
        sums_begin: Crc32c,
    ) -> Result<Self, MountError> {
        if le16(sb, 0x38) != MAGIC {
            return Err(MountError::NotExt4);
        }
        let features = Features {
            compat: le32(sb, 0x5c),
            incompat: le32(sb, 0x60),
            ro_compat: le32(sb, 0x64),
        };
        features.check_readable()?;
        let mut geometry = Self::of_fields(sb, features, sums_begin).ok_or(Corrupt::Superblock)?;
        geometry.check(disk_bytes).ok_or(Corrupt::Superblock)?;
        geometry.groups = u32::try_from(geometry.group_count()).unwrap_or(0);
        Ok(geometry)
    }

    /// Whether the superblock's checksum is right.
    ///
    /// It lies in two sectors, and a loss of power may leave one of them old. Each transaction has
    /// a copy, so the log repairs that.
    pub(crate) fn is_sealed(&self, sb: &[u8]) -> bool {
        !self.features.has_checksums() || is_sealed(self.sums_begin, sb)
    }

    fn of_fields(sb: &[u8], features: Features, sums_begin: Crc32c) -> Option<Self> {
        let is_64bit = features.has_incompat(INCOMPAT_64BIT);
        let high = |at| {
            if is_64bit {
                u64::from(le32(sb, at)) << 32
            } else {
                0
            }
        };
        let is_dynamic = le32(sb, 0x4c) >= 1;
        let uuid = *span(sb, 0x68, 16).first_chunk()?;
        let seed = match features.has_incompat(INCOMPAT_CSUM_SEED) {
            true => sums_begin.resumed(le32(sb, 0x270)),
            false => sums_begin.with(&uuid),
        };
        Some(Self {
            features,
            block_bytes: 1024usize
                .checked_shl(le32(sb, 0x18))
                .filter(|_| le32(sb, 0x18) <= 6)?,
            blocks: u64::from(le32(sb, 0x4)) | high(0x150),
            inodes: le32(sb, 0),
            first_data_block: u64::from(le32(sb, 0x14)),
            blocks_per_group: le32(sb, 0x20),
            inodes_per_group: le32(sb, 0x28),
            inode_bytes: if is_dynamic {
                usize::from(le16(sb, 0x58))
            } else {
                128
            },
            groups: 0,
            descriptor_bytes: if is_64bit {
                usize::from(le16(sb, 0xfe))
            } else {
                32
            },
            reserved_gdt_blocks: u32::from(le16(sb, 0xce)),
            backup_groups: [le32(sb, 0x24c), le32(sb, 0x250)],
            first_inode: if is_dynamic { le32(sb, 0x54) } else { 11 },
            want_extra_isize: le16(sb, 0x15e),
            journal_inode: le32(sb, 0xe0),
            uuid,
            sums_begin,
            checksum_seed: seed,
            hash_seed: [0xec, 0xf0, 0xf4, 0xf8].map(|at| le32(sb, at)),
            hash_version: byte(sb, 0xfc),
            has_unsigned_hash: le32(sb, 0x160) & FLAG_UNSIGNED_HASH != 0,
        })
    }

    /// `None` if the numbers cannot be.
    fn check(&self, disk_bytes: u64) -> Option<()> {
        let block = self.block_bytes;
        let holds = |is_so: bool| is_so.then_some(());
        holds(block <= BLOCK_BYTES_MAX as usize)?;
        holds(self.first_data_block == u64::from(block == 1024))?;
        holds(self.blocks > self.first_data_block + 8 && self.blocks < 1 << 48)?;
        holds(self.blocks.checked_mul(block as u64)? <= disk_bytes)?;
        holds(
            self.blocks_per_group as usize == block * 8 || self.blocks_per_group.is_multiple_of(8),
        )?;
        holds((1..=block * 8).contains(&(self.blocks_per_group as usize)))?;
        holds(self.inode_bytes.is_power_of_two() && (128..=block).contains(&self.inode_bytes))?;
        holds((1..=block * 8).contains(&(self.inodes_per_group as usize)))?;
        holds(self.inodes_per_group.is_multiple_of(8))?;
        let descriptor = self.descriptor_bytes;
        holds(descriptor.is_power_of_two() && (32..=block).contains(&descriptor))?;
        holds(descriptor >= 64 || !self.features.has_incompat(INCOMPAT_64BIT))?;
        let groups = self.group_count();
        holds(groups <= GROUPS_MAX)?;
        holds(u64::from(self.inodes) == groups * u64::from(self.inodes_per_group))?;
        holds(self.first_inode >= 11 && self.first_inode <= self.inodes)?;
        holds(usize::from(self.want_extra_isize) <= self.inode_bytes - 128)
    }

    fn group_count(&self) -> u64 {
        let blocks = self.blocks - self.first_data_block;
        blocks.div_ceil(u64::from(self.blocks_per_group))
    }

    /// The block of the superblock, and where in it.
    pub(crate) fn superblock_place(&self) -> (u64, usize) {
        let block = self.block_bytes as u64;
        (OFFSET / block, (OFFSET % block) as usize)
    }

    /// The first block of a group.
    pub(crate) fn group_start(&self, group: u32) -> u64 {
        self.first_data_block + u64::from(group) * u64::from(self.blocks_per_group)
    }

    /// Blocks of a group: the last may be shorter.
    pub(crate) fn group_blocks(&self, group: u32) -> u32 {
        let left = self.blocks.saturating_sub(self.group_start(group));
        u64::from(self.blocks_per_group).min(left) as u32
    }

    /// The group of a block and its place there.
    pub(crate) fn place_of_block(&self, block: u64) -> Option<(u32, u32)> {
        let at = block.checked_sub(self.first_data_block)?;
        let per_group = u64::from(self.blocks_per_group);
        (block < self.blocks).then_some(((at / per_group) as u32, (at % per_group) as u32))
    }

    /// The group of an inode and its place there.
    pub(crate) fn place_of_inode(&self, number: u32) -> Option<(u32, u32)> {
        let at = number.checked_sub(1)?;
        (number <= self.inodes).then_some((at / self.inodes_per_group, at % self.inodes_per_group))
    }

    /// Blocks of all descriptors.
    pub(crate) fn descriptor_blocks(&self) -> u64 {
        (u64::from(self.groups) * self.descriptor_bytes as u64).div_ceil(self.block_bytes as u64)
    }

    /// Blocks of a group's inode table.
    pub(crate) fn inode_table_blocks(&self) -> u64 {
        (u64::from(self.inodes_per_group) * self.inode_bytes as u64)
            .div_ceil(self.block_bytes as u64)
    }

    /// Whether the group begins with a copy of the superblock and the descriptors.
    pub(crate) fn has_backup(&self, group: u32) -> bool {
        if self.features.has_compat(COMPAT_SPARSE_SUPER2) {
            return group == 0 || self.backup_groups.contains(&group);
        }
        let is_sparse = self.features.has_ro_compat(RO_COMPAT_SPARSE_SUPER);
        !is_sparse || group <= 1 || [3, 5, 7].iter().any(|&base| is_power_of(group, base))
    }
}

fn is_power_of(mut number: u32, base: u32) -> bool {
    while number > 1 && number.is_multiple_of(base) {
        number /= base;
    }
    number == 1
}

fn checksum(sums_begin: Crc32c, sb: &[u8]) -> u32 {
    sums_begin.with(span(sb, 0, CHECKSUM_AT)).register()
}

fn is_sealed(sums_begin: Crc32c, sb: &[u8]) -> bool {
    byte(sb, 0x175) == CHECKSUM_CRC32C && le32(sb, CHECKSUM_AT) == checksum(sums_begin, sb)
}

/// What of a superblock changes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Totals {
    pub(crate) free_blocks: u64,
    pub(crate) free_inodes: u32,
    /// The first inode of the orphan list, or 0.
    pub(crate) orphans: u32,
    /// Errors were found, now or before.
    pub(crate) has_errors: bool,
    /// Unmounted, with an empty journal.
    pub(crate) is_clean: bool,
    /// The last change, in seconds.
    pub(crate) written: u64,
}

impl Totals {
    pub(crate) fn parse(sb: &[u8]) -> Self {
        Self {
            free_blocks: u64::from(le32(sb, 0xc)) | u64::from(le32(sb, 0x158)) << 32,
            free_inodes: le32(sb, 0x10),
            orphans: le32(sb, 0xe8),
            has_errors: le16(sb, 0x3a) & STATE_ERRORS != 0,
            is_clean: le32(sb, 0x60) & INCOMPAT_RECOVER == 0,
            written: u64::from(le32(sb, 0x30)) | u64::from(byte(sb, 0x274)) << 32,
        }
    }

    /// Where in a superblock it stores something.
    pub(crate) const CHANGES: [Range<usize>; 4] =
        [0xc..0x64, 0xe8..0xec, 0x158..0x15c, CHECKSUM_AT..BYTES];

    /// Stores these in the superblock `sb`, and its checksum.
    pub(crate) fn seal(&self, sb: &mut [u8], geometry: &Geometry) {
        put_le32(sb, 0xc, self.free_blocks as u32);
        if geometry.features.has_incompat(INCOMPAT_64BIT) {
            put_le32(sb, 0x158, (self.free_blocks >> 32) as u32);
        }
        put_le32(sb, 0x10, self.free_inodes);
        put_le32(sb, 0xe8, self.orphans);
        put_le32(sb, 0x30, self.written as u32);
        let errors = if self.has_errors { STATE_ERRORS } else { 0 };
        let valid = if self.is_clean || geometry.journal_inode != 0 {
            STATE_VALID
        } else {
            0
        };
        put_le16(
            sb,
            0x3a,
            le16(sb, 0x3a) & !(STATE_ERRORS | STATE_VALID) | errors | valid,
        );
        let others = le32(sb, 0x60) & !INCOMPAT_RECOVER;
        let recover = if self.is_clean { 0 } else { INCOMPAT_RECOVER };
        put_le32(sb, 0x60, others | recover);
        if geometry.features.has_checksums() {
            put_le32(sb, CHECKSUM_AT, checksum(geometry.sums_begin, sb));
        }
    }
}
