//! Blocks: bitmaps, and which free block a file gets.
//!
//! A file's blocks go on behind the last one it has, else to the group of its inode. Bitmaps are
//! searched by words. A block that was freed is not given out before the transaction that freed it
//! is committed (`freed`), nor what is promised to others (`promise`): after a crash it belongs to its old owner, with its old bytes.

use alloc::vec::Vec;
use core::ops::Range;

use crate::bytes::{byte, put};
use crate::error::{Corrupt, Error, Result};
use crate::layout::group::{self, BLOCK_UNINIT, Group, bitmap_checksum};
use crate::seal::Seal;
use crate::store::Block;
use crate::volume::Volume;

/// A run this long is taken without looking for a longer one, once some groups were searched.
const RUN_GOOD: u32 = 64;
/// Groups that are searched for a run of the wanted length.
const GROUPS_SEARCHED: u32 = 16;

/// A group's bits: the bitmap, and what only seems free.
struct Bits<'a> {
    bitmap: &'a [u8],
    freed: &'a [u64],
    end: u32,
}

impl Bits<'_> {
    fn word(&self, index: u32) -> u64 {
        let bytes = self
            .bitmap
            .get(index as usize * 8..)
            .and_then(|rest| rest.first_chunk::<8>());
        let word = bytes.map_or(u64::MAX, |bytes| u64::from_le_bytes(*bytes));
        word | self.freed.get(index as usize).copied().unwrap_or(0)
    }

    /// The first bit from `from` on that is set in `of(word)`; `end` if there is none before it.
    fn next(&self, from: u32, end: u32, of: impl Fn(u64) -> u64) -> u32 {
        let mut index = from / 64;
        let mut word = of(self.word(index)) & u64::MAX << (from % 64);
        while word == 0 {
            index += 1;
            if index * 64 >= end {
                return end;
            }
            word = of(self.word(index));
        }
        (index * 64 + word.trailing_zeros()).min(end)
    }

    fn next_free(&self, from: u32) -> Option<u32> {
        let found = if from < self.end {
            self.next(from, self.end, |word| !word)
        } else {
            self.end
        };
        (found < self.end).then_some(found)
    }

    /// The run that begins at the free bit `from`, of `max` bits at most.
    fn run(&self, from: u32, max: u32) -> u32 {
        let end = self.end.min(from.saturating_add(max));
        self.next(from, end, |word| word) - from
    }

    /// At `goal` if it is free; else the first run of `want`, else the longest.
    fn find(&self, goal: u32, want: u32) -> Option<(u32, u32)> {
        if self.next_free(goal) == Some(goal) {
            return Some((goal, self.run(goal, want)));
        }
        let behind = self.longest(goal, self.end, want);
        match behind {
            Some((_, len)) if len >= want => behind,
            _ => behind.max_by_len(self.longest(0, goal.min(self.end), want)),
        }
    }

    fn longest(&self, mut from: u32, until: u32, want: u32) -> Option<(u32, u32)> {
        let mut best = None;
        while let Some(first) = self.next_free(from).filter(|first| *first < until) {
            let len = self.run(first, want);
            best = best.max_by_len(Some((first, len)));
            if len >= want {
                break;
            }
            from = first + len;
        }
        best
    }
}

trait Longer {
    fn max_by_len(self, other: Self) -> Self;
}

impl<T> Longer for Option<(T, u32)> {
    fn max_by_len(self, other: Self) -> Self {
        let len = |run: &Self| run.as_ref().map_or(0, |(_, len)| *len);
        if len(&other) > len(&self) {
            other
        } else {
            self
        }
    }
}

impl Volume {
    /// Where a descriptor is: its block's number and kind, and its place there.
    fn descriptor_place(&self, number: u32) -> (u64, Seal, usize) {
        let bytes = self.geometry.descriptor_bytes;
        let per_block = (self.geometry.block_bytes / bytes) as u32;
        let block = self.geometry.superblock_place().0 + 1 + u64::from(number / per_block);
        let first_group = number / per_block * per_block;
        (
            block,
            Seal::Descriptors { first_group },
            (number - first_group) as usize * bytes,
        )
    }

    /// A group's descriptor.
    pub(crate) fn group(&mut self, number: u32) -> Result<Group> {
        let (block, seal, at) = self.descriptor_place(number);
        let bytes = self.store.load(block, seal, &self.geometry)?;
        let raw = bytes
            .get(at..at + self.geometry.descriptor_bytes)
            .unwrap_or(&[]);
        Ok(Group::parse(raw, &self.geometry))
    }

    /// Stores a changed descriptor.
    pub(crate) fn set_group(&mut self, number: u32, group: &Group) -> Result<()> {
        let (block, seal, at) = self.descriptor_place(number);
        let each = self.geometry.descriptor_bytes;
        let (store, geometry) = (&mut self.store, &self.geometry);
        let raw = store.modify_part(block, seal, geometry, at..at + each)?;
        group.store(raw, geometry);
        store.touch(block, at / each);
        Ok(())
    }

    /// Blocks at a group's beginning for copies of the superblock and the descriptors.
    pub(crate) fn backup_blocks(&self, number: u32) -> u64 {
        let reserved = u64::from(self.geometry.reserved_gdt_blocks);
        match self.geometry.has_backup(number) {
            true => 1 + self.geometry.descriptor_blocks() + reserved,
            false => 0,
        }
    }

    fn block_bitmap(&mut self, number: u32, group: &Group) -> Result<Block> {
        let seal = Seal::BlockBitmap { group: number };
        if let Some(bitmap) = self.store.cached(group.block_bitmap, seal) {
            return Ok(bitmap);
        }
        if group.has(BLOCK_UNINIT) {
            let bytes = self.fresh_bitmap(number, group)?;
            return self.store.keep_new(group.block_bitmap, seal, bytes);
        }
        let bitmap = self.store.load(group.block_bitmap, seal, &self.geometry)?;
        let covered = self.geometry.blocks_per_group as usize / 8;
        let bits = bitmap.get(..covered).unwrap_or(&[]);
        let sums = self.geometry.features.has_checksums();
        let used = count_ones(&bitmap, self.geometry.group_blocks(number));
        let is_right = (!sums
            || bitmap_checksum(bits, &self.geometry) == group.block_bitmap_checksum)
            && used + group.free_blocks == self.geometry.group_blocks(number);
        if !is_right {
            self.store.forget(group.block_bitmap);
            return Err(Corrupt::Bitmap(number).into());
        }
        Ok(bitmap)
    }

    /// The bitmap of a group that was never used: only its own metadata is there.
    fn fresh_bitmap(&self, number: u32, group: &Group) -> Result<Vec<u8>> {
        let mut bytes = self.store.zeroed()?;
        let start = self.geometry.group_start(number);
        let own = [
            (start, self.backup_blocks(number)),
            (group.block_bitmap, 1),
            (group.inode_bitmap, 1),
            (group.inode_table, self.geometry.inode_table_blocks()),
        ];
        let end = start + u64::from(self.geometry.group_blocks(number));
        for (first, len) in own {
            for block in (first..first + len).filter(|block| (start..end).contains(block)) {
                set_bits(&mut bytes, (block - start) as u32, 1, true);
            }
        }
        let behind = self.geometry.group_blocks(number);
        set_bits(
            &mut bytes,
            behind,
            (self.geometry.block_bytes * 8) as u32 - behind,
            true,
        );
        Ok(bytes)
    }

    /// Up to `want` blocks that follow each other, near `goal`.
    pub(crate) fn allocate(&mut self, goal: u64, want: u32) -> Result<(u64, u32)> {
        let unpromised = self.promises.set_free(self.totals.free_blocks);
        let room = match self.spends_promises {
            true => self.totals.free_blocks,
            false => unpromised.unwrap_or(0),
        };
        let want = want.min(u32::try_from(room).unwrap_or(u32::MAX));
        if want == 0 {
            return Err(Error::NoSpace);
        }
        let (goal_group, goal_bit) = self.geometry.place_of_block(goal).unwrap_or((0, 0));
        let mut best: Option<((u32, u32), u32)> = None;
        for step in 0..self.geometry.groups {
            let number = (goal_group + step) % self.geometry.groups;
            let bit = if step == 0 { goal_bit } else { 0 };
            let Some((first, len)) = self.find_in_group(number, bit, want)? else {
                continue;
            };
            best = best.max_by_len(Some(((number, first), len)));
            let enough = if step < GROUPS_SEARCHED {
                want
            } else {
                RUN_GOOD.min(want)
            };
            if len >= enough || (step == 0 && first == goal_bit) {
                break;
            }
        }
        let ((number, first), len) = best.ok_or(Error::NoSpace)?;
        self.mark_used(number, first, len)?;
        // Somebody may have been promised them meanwhile.
        let is_promised = self.promises.set_free(self.totals.free_blocks).is_none();
        if is_promised && !self.spends_promises {
            return Err(Error::NoSpace);
        }
        Ok((self.geometry.group_start(number) + u64::from(first), len))
    }

    fn find_in_group(&mut self, number: u32, goal: u32, want: u32) -> Result<Option<(u32, u32)>> {
        let group = self.group(number)?;
        if group.free_blocks == 0 {
            return Ok(None);
        }
        let bitmap = self.block_bitmap(number, &group)?;
        let bits = Bits {
            bitmap: &bitmap,
            freed: match planted::is("freed blocks are used before the commit") {
                true => &[],
                false => self.freed.of_group(number),
            },
            end: self.geometry.group_blocks(number),
        };
        Ok(bits.find(goal, want))
    }

    fn mark_used(&mut self, number: u32, first: u32, len: u32) -> Result<()> {
        let mut group = self.group(number)?;
        self.block_bitmap(number, &group)?;
        group.free_blocks = group
            .free_blocks
            .checked_sub(len)
            .ok_or(Corrupt::Bitmap(number))?;
        group.flags &= !BLOCK_UNINIT;
        let seal = Seal::BlockBitmap { group: number };
        self.set_in_bitmap(group.block_bitmap, seal, first..first + len, true)?;
        self.totals.free_blocks = self.totals.free_blocks.saturating_sub(u64::from(len));
        self.set_group(number, &group)
    }

    /// Sets bits of a group's bitmap, which lies in this block.
    pub(crate) fn set_in_bitmap(
        &mut self,
        block: u64,
        seal: Seal,
        bits: Range<u32>,
        value: bool,
    ) -> Result<()> {
        let bytes = bits.start as usize / 8..bits.end.div_ceil(8) as usize;
        let part = (self.store).modify_part(block, seal, &self.geometry, bytes)?;
        let skipped = bits.start / 8 * 8;
        set_bits(part, bits.start - skipped, bits.end - bits.start, value);
        Ok(())
    }

    /// Clears the mark of a group's bitmap that it was never written.
    pub(crate) fn ensure_block_bitmap(&mut self, number: u32) -> Result<()> {
        if self.group(number)?.has(BLOCK_UNINIT) {
            self.mark_used(number, 0, 0)?;
        }
        Ok(())
    }

    /// Frees blocks of file data.
    pub(crate) fn free(&mut self, first: u64, len: u32) -> Result<()> {
        let (mut first, mut left) = (first, len);
        while left > 0 {
            let (number, bit) = self
                .geometry
                .place_of_block(first)
                .ok_or(Corrupt::BlockNumber(first))?;
            let here = left.min(self.geometry.group_blocks(number).saturating_sub(bit));
            self.free_in_group(number, bit, here)?;
            first += u64::from(here);
            left -= here;
        }
        Ok(())
    }

    fn free_in_group(&mut self, number: u32, bit: u32, len: u32) -> Result<()> {
        let mut group = self.group(number)?;
        let bitmap = self.block_bitmap(number, &group)?;
        let own = [
            (group.block_bitmap, 1),
            (group.inode_bitmap, 1),
            (group.inode_table, self.geometry.inode_table_blocks()),
        ];
        let start = self.geometry.group_start(number) + u64::from(bit);
        let hits =
            |&(first, count): &(u64, u64)| first < start + u64::from(len) && start < first + count;
        if own.iter().any(hits)
            || u64::from(bit) < self.backup_blocks(number)
            || !has_all(&bitmap, bit, len)
        {
            return Err(Corrupt::Bitmap(number).into());
        }
        drop(bitmap);
        let seal = Seal::BlockBitmap { group: number };
        self.set_in_bitmap(group.block_bitmap, seal, bit..bit + len, false)?;
        group.free_blocks += len;
        self.totals.free_blocks += u64::from(len);
        self.freed.add(number, bit, len);
        self.set_group(number, &group)
    }

    /// Frees a block of metadata.
    pub(crate) fn free_metadata(&mut self, block: u64) -> Result<()> {
        self.free(block, 1)?;
        self.store.revoke(block);
        Ok(())
    }

    /// Before a commit: the checksums of changed bitmaps go into their descriptors.
    pub(crate) fn seal_bitmaps(&mut self) -> Result<()> {
        for (block, seal) in self.store.running_seals() {
            let (number, covered) = match seal {
                Seal::BlockBitmap { group } => (group, self.geometry.blocks_per_group),
                Seal::InodeBitmap { group } => (group, self.geometry.inodes_per_group),
                _ => continue,
            };
            let sum = self.bitmap_sum(block, seal, covered as usize / 8)?;
            let mut group = self.group(number)?;
            match seal {
                Seal::BlockBitmap { .. } => group.block_bitmap_checksum = sum,
                _ => group.inode_bitmap_checksum = sum,
            }
            self.set_group(number, &group)?;
        }
        Ok(())
    }

    /// The checksum of the first bytes of a changed bitmap, or of all.
    fn bitmap_sum(&mut self, block: u64, seal: Seal, covered: usize) -> Result<u32> {
        let geometry = &self.geometry;
        if geometry.features.has_checksums() && covered == geometry.block_bytes {
            let sum = self.store.sum_of(block)?;
            let sum = sum.begun_with(geometry.checksum_seed, covered);
            return Ok(group::bitmap_field(sum, geometry));
        }
        let bitmap = self.store.load(block, seal, geometry)?;
        let covered = bitmap.get(..covered).unwrap_or(&[]);
        Ok(bitmap_checksum(covered, geometry))
    }
}

/// Sets `len` bits from `first` on, bytes at once where possible.
pub(crate) fn set_bits(bytes: &mut [u8], first: u32, len: u32, value: bool) {
    let fill = if value { 0xff } else { 0 };
    let mut bit = first;
    let end = first + len;
    while bit < end {
        let at = bit as usize / 8;
        if bit.is_multiple_of(8) && end - bit >= 8 {
            put(bytes, at, &[fill]);
            bit += 8;
            continue;
        }
        let mask = 1u8 << (bit % 8);
        let changed = byte(bytes, at) & !mask | fill & mask;
        put(bytes, at, &[changed]);
        bit += 1;
    }
}

fn has_all(bytes: &[u8], first: u32, len: u32) -> bool {
    (first..first + len).all(|bit| byte(bytes, bit as usize / 8) >> (bit % 8) & 1 != 0)
}

/// How many of the first `len` bits are set.
pub(crate) fn count_ones(bytes: &[u8], len: u32) -> u32 {
    let whole = bytes.get(..len as usize / 8).unwrap_or(&[]);
    let ones: u32 = whole.iter().map(|byte| byte.count_ones()).sum();
    let rest = byte(bytes, len as usize / 8) & ((1u16 << (len % 8)) - 1) as u8;
    ones + rest.count_ones()
}
