//! Inodes by number, and which number a new file gets.
//!
//! A directory goes to a group with many free blocks and inodes, a file to its directory's group:
//! so trees spread over the disk and what is used together is near. (Linux's Orlov allocator
//! also counts how many directories a group has.)

use alloc::vec::Vec;

use crate::balloc::{count_ones, set_bits};
use crate::bytes::byte;
use crate::error::{Corrupt, Error, Result};
use crate::layout::group::{Group, INODE_UNINIT, bitmap_checksum};
use crate::layout::inode::{self, Inode};
use crate::seal::Seal;
use crate::store::Block;
use crate::volume::Volume;

impl Volume {
    /// Where an inode is: its block's number and kind, and its place there.
    fn inode_place(&mut self, number: u32) -> Result<(u64, Seal, usize)> {
        let place = self.geometry.place_of_inode(number);
        let (group, index) = place.ok_or(Corrupt::Inode(number))?;
        let table = self.group(group)?.inode_table;
        let per_block = (self.geometry.block_bytes / self.geometry.inode_bytes) as u32;
        let block = table + u64::from(index / per_block);
        let first = number - index % per_block;
        Ok((block, Seal::Inodes { first }, (index % per_block) as usize))
    }

    /// The block of an inode, and where in it, once its checksum was found right.
    fn checked_inode(&mut self, number: u32) -> Result<(Block, core::ops::Range<usize>)> {
        let (block, seal, index) = self.inode_place(number)?;
        let bytes = self.store.load(block, seal, &self.geometry)?;
        let each = self.geometry.inode_bytes;
        let range = index * each..(index + 1) * each;
        if self.store.is_unverified(block, index) {
            let raw = bytes.get(range.clone()).unwrap_or(&[]);
            let seed = self.geometry.checksum_seed;
            if self.geometry.features.has_checksums() && !inode::is_sealed(number, raw, seed) {
                return Err(Corrupt::Inode(number).into());
            }
            self.store.set_verified(block, index);
        }
        Ok((bytes, range))
    }

    /// The bytes of an inode.
    pub(crate) fn raw_inode(&mut self, number: u32) -> Result<Vec<u8>> {
        let (bytes, range) = self.checked_inode(number)?;
        Ok(bytes.get(range).unwrap_or(&[]).to_vec())
    }

    /// An inode that is in use, of the volume's own or a program's.
    pub(crate) fn inode_of(&mut self, number: u32) -> Result<Inode> {
        let (bytes, range) = self.checked_inode(number)?;
        let raw = bytes.get(range).unwrap_or(&[]);
        let parsed = Inode::parse(number, raw, self.geometry.block_bytes);
        match inode::is_plausible(&parsed, raw) {
            true => Ok(parsed),
            false => Err(Corrupt::Inode(number).into()),
        }
    }

    /// An inode that a program may use.
    pub fn inode(&mut self, number: u32) -> Result<Inode> {
        self.check_number(number)?;
        self.inode_of(number)
    }

    /// Stores a changed inode.
    pub(crate) fn set_inode(&mut self, inode: &Inode) -> Result<()> {
        self.edit_raw(inode.number, |raw, block_bytes| {
            inode.store(raw, block_bytes)
        })
    }

    /// Changes an inode's bytes.
    pub(crate) fn edit_raw<R>(
        &mut self,
        number: u32,
        edit: impl FnOnce(&mut [u8], usize) -> R,
    ) -> Result<R> {
        let (block, seal, index) = self.inode_place(number)?;
        let (each, block_bytes) = (self.geometry.inode_bytes, self.geometry.block_bytes);
        let range = index * each..(index + 1) * each;
        let raw = (self.store).modify_part(block, seal, &self.geometry, range)?;
        let result = edit(raw, block_bytes);
        self.store.touch(block, index);
        self.changed.insert(number);
        Ok(result)
    }

    fn inode_bitmap(&mut self, number: u32, group: &Group) -> Result<Block> {
        let seal = Seal::InodeBitmap { group: number };
        if let Some(bitmap) = self.store.cached(group.inode_bitmap, seal) {
            return Ok(bitmap);
        }
        let per_group = self.geometry.inodes_per_group;
        if group.has(INODE_UNINIT) {
            let mut bytes = self.store.zeroed()?;
            let behind = (self.geometry.block_bytes * 8) as u32 - per_group;
            set_bits(&mut bytes, per_group, behind, true);
            return self.store.keep_new(group.inode_bitmap, seal, bytes);
        }
        let bitmap = self.store.load(group.inode_bitmap, seal, &self.geometry)?;
        let bits = bitmap.get(..per_group as usize / 8).unwrap_or(&[]);
        let sums = self.geometry.features.has_checksums();
        let is_right = (!sums
            || bitmap_checksum(bits, &self.geometry) == group.inode_bitmap_checksum)
            && count_ones(bits, per_group) + group.free_inodes == per_group;
        if !is_right {
            self.store.forget(group.inode_bitmap);
            return Err(Corrupt::Bitmap(number).into());
        }
        Ok(bitmap)
    }

    /// A free inode's number, now in use, for a new file in `parent`.
    pub(crate) fn allocate_inode(&mut self, parent: u32, is_directory: bool) -> Result<u32> {
        let near = self
            .geometry
            .place_of_inode(parent)
            .map_or(0, |(group, _)| group);
        let first = if is_directory {
            self.spacious_group(near)?
        } else {
            near
        };
        for step in 0..self.geometry.groups {
            let number = (first + step) % self.geometry.groups;
            let group = self.group(number)?;
            if group.free_inodes == 0 {
                continue;
            }
            let bitmap = self.inode_bitmap(number, &group)?;
            let start = self.first_usable(number);
            let bits = start..self.geometry.inodes_per_group;
            let mut free =
                bits.filter(|bit| byte(&bitmap, *bit as usize / 8) >> (bit % 8) & 1 == 0);
            if let Some(bit) = free.next() {
                drop(bitmap);
                self.take_inode(number, bit, is_directory)?;
                return Ok(number * self.geometry.inodes_per_group + bit + 1);
            }
        }
        Err(Error::NoSpace)
    }

    /// The first place of a group that is not reserved.
    fn first_usable(&self, group: u32) -> u32 {
        if group == 0 {
            self.geometry.first_inode - 1
        } else {
            0
        }
    }

    /// A group with at least as many free blocks and inodes as the average, near `near`.
    fn spacious_group(&mut self, near: u32) -> Result<u32> {
        let groups = self.geometry.groups;
        let blocks = self.totals.free_blocks / u64::from(groups);
        let inodes = self.totals.free_inodes / groups;
        for step in 0..groups {
            let number = (near + step) % groups;
            let group = self.group(number)?;
            let is_spacious = group.free_inodes != 0
                && group.free_inodes >= inodes
                && u64::from(group.free_blocks) >= blocks;
            if is_spacious {
                return Ok(number);
            }
        }
        Ok(near)
    }

    fn take_inode(&mut self, number: u32, bit: u32, is_directory: bool) -> Result<()> {
        self.ensure_block_bitmap(number)?;
        let mut group = self.group(number)?;
        let seal = Seal::InodeBitmap { group: number };
        self.set_in_bitmap(group.inode_bitmap, seal, bit..bit + 1, true)?;
        let unused = if group.has(INODE_UNINIT) {
            self.geometry.inodes_per_group
        } else {
            group.unused_inodes
        };
        group.flags &= !INODE_UNINIT;
        group.unused_inodes = unused.min(self.geometry.inodes_per_group - bit - 1);
        group.free_inodes = group.free_inodes.saturating_sub(1);
        group.directories += u32::from(is_directory);
        self.totals.free_inodes = self.totals.free_inodes.saturating_sub(1);
        self.set_group(number, &group)
    }

    /// Whether the bitmap says that a number is given out.
    pub(crate) fn is_in_use(&mut self, number: u32) -> Result<bool> {
        let place = self.geometry.place_of_inode(number);
        let (group_number, bit) = place.ok_or(Corrupt::Inode(number))?;
        let group = self.group(group_number)?;
        let bitmap = self.inode_bitmap(group_number, &group)?;
        Ok(byte(&bitmap, bit as usize / 8) >> (bit % 8) & 1 != 0)
    }

    /// Frees an inode that has no blocks any more.
    pub(crate) fn free_inode(&mut self, inode: &Inode) -> Result<()> {
        let place = self.geometry.place_of_inode(inode.number);
        let (number, bit) = place.ok_or(Corrupt::Inode(inode.number))?;
        let mut group = self.group(number)?;
        let bitmap = self.inode_bitmap(number, &group)?;
        if byte(&bitmap, bit as usize / 8) >> (bit % 8) & 1 == 0 {
            return Err(Corrupt::Bitmap(number).into());
        }
        drop(bitmap);
        let seal = Seal::InodeBitmap { group: number };
        self.set_in_bitmap(group.inode_bitmap, seal, bit..bit + 1, false)?;
        group.free_inodes += 1;
        group.directories = group
            .directories
            .saturating_sub(u32::from(inode.is_directory()));
        self.totals.free_inodes += 1;
        self.set_group(number, &group)
    }

    /// Where an inode's blocks should be, if it has none yet.
    pub(crate) fn goal_of(&self, inode: &Inode) -> u64 {
        let group = self
            .geometry
            .place_of_inode(inode.number)
            .map_or(0, |(group, _)| group);
        self.geometry.group_start(group)
    }
}
