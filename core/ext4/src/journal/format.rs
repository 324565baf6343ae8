//! Blocks of the log. All numbers in it are big-endian.

use crate::bytes::{be16, be32, be64, put, put_be32, put_be64, span};
use crate::error::{Corrupt, MountError};
use crate::sums::{BlockSum, after_zeroes};
use checksum::Crc32c;

pub(crate) const MAGIC: u32 = 0xc03b_3998;
pub(crate) const DESCRIPTOR: u32 = 1;
pub(crate) const COMMIT: u32 = 2;
const SUPERBLOCK_V2: u32 = 4;
pub(crate) const REVOKE: u32 = 5;

/// Bytes of the header of each block.
pub(crate) const HEADER_BYTES: usize = 12;
/// Bytes of a checksum at the end of descriptors and revoke blocks.
pub(crate) const TAIL_BYTES: usize = 4;
/// Bytes of a revoke block's header.
pub(crate) const REVOKE_HEADER_BYTES: usize = 16;
const UUID_BYTES: usize = 16;
/// Bytes of a commit block that are not zero.
const COMMIT_BYTES: usize = 0x38;

/// The copy's first word was the magic, and stands as zero.
pub(crate) const TAG_ESCAPED: u32 = 1;
/// No UUID follows.
pub(crate) const TAG_SAME_UUID: u32 = 2;
/// The last of the descriptor.
pub(crate) const TAG_LAST: u32 = 8;

const FEATURE_REVOKE: u32 = 1;
const FEATURE_64BIT: u32 = 2;
const FEATURE_ASYNC_COMMIT: u32 = 4;
const FEATURE_CSUM_V2: u32 = 8;
const FEATURE_CSUM_V3: u32 = 0x10;
const FEATURE_FAST_COMMIT: u32 = 0x20;
const FEATURES_KNOWN: u32 =
    FEATURE_REVOKE | FEATURE_64BIT | FEATURE_ASYNC_COMMIT | FEATURE_CSUM_V2 | FEATURE_CSUM_V3;
const CHECKSUM_CRC32C: u8 = 4;
const CHECKSUM_AT: usize = 0xfc;
const SUPERBLOCK_BYTES: usize = 1024;

/// How checksums lie in the log.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Sums {
    None,
    V2,
    V3,
}

/// The shape of a log.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Format {
    pub(crate) sums: Sums,
    pub(crate) is_64bit: bool,
    pub(crate) seed: Crc32c,
}

/// Where a copy belongs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Tag {
    pub(crate) block: u64,
    pub(crate) flags: u32,
    pub(crate) checksum: u32,
}

/// The log's superblock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct LogSuper {
    pub(crate) len: u32,
    pub(crate) first: u32,
    pub(crate) sequence: u32,
    /// The first block of the oldest transaction; 0 if there is none.
    pub(crate) start: u32,
    pub(crate) format: Format,
}

impl LogSuper {
    pub(crate) fn parse(
        raw: &[u8],
        block_bytes: usize,
        sums_begin: Crc32c,
    ) -> Result<Self, MountError> {
        if be32(raw, 0) != MAGIC || be32(raw, 4) != SUPERBLOCK_V2 {
            return Err(Corrupt::Journal.into());
        }
        let features = be32(raw, 0x28);
        if features & FEATURE_FAST_COMMIT != 0 {
            return Err(MountError::Feature("fast_commit"));
        }
        if features & !FEATURES_KNOWN != 0 {
            return Err(MountError::Feature(
                "a feature of the journal without a name",
            ));
        }
        let sums = match (
            features & FEATURE_CSUM_V2 != 0,
            features & FEATURE_CSUM_V3 != 0,
        ) {
            (false, false) => Sums::None,
            (true, false) => Sums::V2,
            (false, true) => Sums::V3,
            (true, true) => return Err(Corrupt::Journal.into()),
        };
        let parsed = Self {
            len: be32(raw, 0x10),
            first: be32(raw, 0x14),
            sequence: be32(raw, 0x18),
            start: be32(raw, 0x1c),
            format: Format {
                sums,
                is_64bit: features & FEATURE_64BIT != 0,
                seed: sums_begin.with(span(raw, 0x30, UUID_BYTES)),
            },
        };
        let is_right = be32(raw, 0xc) as usize == block_bytes
            && parsed.first >= 1
            && parsed.len > parsed.first + 16
            && parsed.start < parsed.len
            && (sums == Sums::None || be32(raw, CHECKSUM_AT) == checksum(sums_begin, raw));
        match is_right {
            true => Ok(parsed),
            false => Err(Corrupt::Journal.into()),
        }
    }

    /// Stores what changes.
    pub(crate) fn store(&self, raw: &mut [u8]) {
        put_be32(raw, 0x18, self.sequence);
        put_be32(raw, 0x1c, self.start);
        let sums = match self.format.sums {
            Sums::None => 0,
            Sums::V2 => FEATURE_CSUM_V2,
            Sums::V3 => FEATURE_CSUM_V3,
        };
        let wide = if self.format.is_64bit {
            FEATURE_64BIT
        } else {
            0
        };
        put_be32(raw, 0x24, 0);
        put_be32(raw, 0x28, FEATURE_REVOKE | wide | sums);
        if self.format.sums != Sums::None {
            let sums_begin = self.format.seed.resumed(!0);
            put(raw, 0x50, &[CHECKSUM_CRC32C]);
            put_be32(raw, CHECKSUM_AT, checksum(sums_begin, raw));
        }
    }
}

fn checksum(sums_begin: Crc32c, raw: &[u8]) -> u32 {
    let sum = sums_begin.with(span(raw, 0, CHECKSUM_AT)).with(&[0; 4]);
    let rest = SUPERBLOCK_BYTES - CHECKSUM_AT - 4;
    sum.with(span(raw, CHECKSUM_AT + 4, rest)).register()
}

/// The kind of a block of transaction `sequence`, if it is one.
pub(crate) fn kind(block: &[u8], sequence: u32) -> Option<u32> {
    let is_current =
        be32(block, 8) == sequence || planted::is("an old transaction is taken for a new one");
    (be32(block, 0) == MAGIC && is_current).then(|| be32(block, 4))
}

/// Makes a block of this kind.
pub(crate) fn set_header(block: &mut [u8], kind: u32, sequence: u32) {
    put_be32(block, 0, MAGIC);
    put_be32(block, 4, kind);
    put_be32(block, 8, sequence);
}

impl Format {
    fn tag_bytes(&self) -> usize {
        let high = if self.is_64bit { 4 } else { 0 };
        match self.sums {
            Sums::None => 8 + high,
            Sums::V2 => 10 + high,
            Sums::V3 => 16,
        }
    }

    fn tail_bytes(&self) -> usize {
        if self.sums == Sums::None {
            0
        } else {
            TAIL_BYTES
        }
    }

    /// Tags that a descriptor has room for.
    pub(crate) fn tags_per_block(&self, block_bytes: usize) -> usize {
        (block_bytes - HEADER_BYTES - UUID_BYTES - self.tail_bytes()) / self.tag_bytes()
    }

    /// Revoked blocks that a block has room for.
    pub(crate) fn revokes_per_block(&self, block_bytes: usize) -> usize {
        (block_bytes - REVOKE_HEADER_BYTES - self.tail_bytes()) / self.number_bytes()
    }

    fn number_bytes(&self) -> usize {
        if self.is_64bit { 8 } else { 4 }
    }

    fn tag(&self, block: &[u8], at: usize) -> Tag {
        let low = u64::from(be32(block, at));
        let high = |at| {
            if self.is_64bit {
                u64::from(be32(block, at)) << 32
            } else {
                0
            }
        };
        match self.sums {
            Sums::V3 => Tag {
                block: low | high(at + 8),
                flags: be32(block, at + 4),
                checksum: be32(block, at + 12),
            },
            _ => Tag {
                block: low | high(at + 8),
                flags: u32::from(be16(block, at + 6)),
                checksum: u32::from(be16(block, at + 4)),
            },
        }
    }

    /// The tags of a descriptor.
    pub(crate) fn tags<'a>(&self, block: &'a [u8]) -> impl Iterator<Item = Tag> + use<'a> {
        let format = *self;
        let end = block.len() - self.tail_bytes();
        let mut at = HEADER_BYTES;
        core::iter::from_fn(move || {
            if at + format.tag_bytes() > end {
                return None;
            }
            let tag = format.tag(block, at);
            at += format.tag_bytes();
            if tag.flags & TAG_SAME_UUID == 0 {
                at += UUID_BYTES;
            }
            if tag.flags & TAG_LAST != 0 {
                at = end;
            }
            Some(tag)
        })
    }

    /// Where tag `index` of a descriptor begins.
    pub(crate) fn tag_at(&self, index: usize) -> usize {
        let uuid = if index == 0 { 0 } else { UUID_BYTES };
        HEADER_BYTES + uuid + index * self.tag_bytes()
    }

    /// Writes tag `index` of a descriptor.
    pub(crate) fn put_tag(&self, block: &mut [u8], index: usize, tag: &Tag) {
        let at = self.tag_at(index);
        put_be32(block, at, tag.block as u32);
        if self.sums == Sums::V3 {
            put_be32(block, at + 4, tag.flags);
            put_be32(block, at + 12, tag.checksum);
        } else {
            put(block, at + 4, &(tag.checksum as u16).to_be_bytes());
            put(block, at + 6, &(tag.flags as u16).to_be_bytes());
        }
        if self.is_64bit {
            put_be32(block, at + 8, (tag.block >> 32) as u32);
        }
    }

    /// The checksum of a copy.
    pub(crate) fn copy_checksum(&self, sequence: u32, copy: &[u8]) -> u32 {
        self.copy_field(sequence, |begin| begin.with(copy).register())
    }

    /// The same of a copy of `len` bytes that was summed before.
    pub(crate) fn copy_checksum_of(&self, sequence: u32, sum: BlockSum, len: usize) -> u32 {
        self.copy_field(sequence, |begin| sum.begun_with(begin, len))
    }

    fn copy_field(&self, sequence: u32, sum: impl FnOnce(Crc32c) -> u32) -> u32 {
        let begin = || self.seed.with(&sequence.to_be_bytes());
        match self.sums {
            Sums::None => 0,
            Sums::V2 => sum(begin()) & 0xffff,
            Sums::V3 => sum(begin()),
        }
    }

    /// Whether the checksum at the end of a descriptor or revoke block is right.
    pub(crate) fn has_right_tail(&self, block: &[u8]) -> bool {
        let at = block.len() - TAIL_BYTES;
        self.sums == Sums::None || be32(block, at) == self.tail_checksum(block)
    }

    /// Stores it in a block that is zeroes from byte `end` on.
    pub(crate) fn seal_tail(&self, block: &mut [u8], end: usize) {
        if self.sums != Sums::None {
            let front = self.seed.with(span(block, 0, end)).register();
            let sum = after_zeroes(front, block.len() - end);
            put_be32(block, block.len() - TAIL_BYTES, sum);
        }
    }

    fn tail_checksum(&self, block: &[u8]) -> u32 {
        let front = span(block, 0, block.len() - TAIL_BYTES);
        self.seed.with(front).with(&[0; TAIL_BYTES]).register()
    }

    /// Whether a commit block's checksum is right.
    pub(crate) fn has_right_commit(&self, block: &[u8]) -> bool {
        self.sums == Sums::None || be32(block, 0x10) == self.commit_checksum(block)
    }

    /// Makes a commit block of zeroes.
    pub(crate) fn set_commit(&self, block: &mut [u8], sequence: u32, seconds: u64) {
        set_header(block, COMMIT, sequence);
        put_be64(block, 0x30, seconds);
        if self.sums != Sums::None {
            let front = self.seed.with(span(block, 0, COMMIT_BYTES)).register();
            let sum = after_zeroes(front, block.len() - COMMIT_BYTES);
            put_be32(block, 0x10, sum);
        }
    }

    fn commit_checksum(&self, block: &[u8]) -> u32 {
        let sum = self.seed.with(span(block, 0, 0x10)).with(&[0; 4]);
        sum.with(block.get(0x14..).unwrap_or(&[])).register()
    }

    /// The blocks that a revoke block names.
    pub(crate) fn revoked<'a>(&self, block: &'a [u8]) -> impl Iterator<Item = u64> + use<'a> {
        let bytes = self.number_bytes();
        let end = (be32(block, 0xc) as usize).min(block.len());
        let places = (REVOKE_HEADER_BYTES..end.saturating_sub(bytes - 1)).step_by(bytes);
        places.map(move |at| match bytes {
            8 => be64(block, at),
            _ => u64::from(be32(block, at)),
        })
    }

    /// Makes a revoke block of zeroes.
    pub(crate) fn set_revoked(&self, block: &mut [u8], sequence: u32, numbers: &[u64]) {
        set_header(block, REVOKE, sequence);
        let bytes = self.number_bytes();
        let end = REVOKE_HEADER_BYTES + numbers.len() * bytes;
        put_be32(block, 0xc, end as u32);
        for (index, number) in numbers.iter().enumerate() {
            let at = REVOKE_HEADER_BYTES + index * bytes;
            match bytes {
                8 => put_be64(block, at, *number),
                _ => put_be32(block, at, *number as u32),
            }
        }
        self.seal_tail(block, end);
    }
}
