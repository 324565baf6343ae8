//! Sizes and room of files: truncate(2), fallocate(2), and the end of an inode.
//!
//! A large file is shortened in many transactions. So that a crash between them leaves nothing
//! behind, the new size is stored first and the inode put on the orphan list; a mount goes on with
//! what it finds there.

use core::ops::Range;

use crate::error::{Corrupt, Error, Result};
use crate::extents::Mapping;
use crate::file::WRITE_CREDITS;
use crate::layout::extent::Extent;
use crate::layout::inode::{FLAG_APPEND, FileType, Inode, Time};
use crate::volume::{Credits, Volume};

/// Extents that one handle removes.
const EXTENTS_AT_ONCE: usize = 8;
/// Blocks that it changes: for each extent up to five groups and a way of the tree.
const REMOVE_CREDITS: Credits = 128;

/// What fallocate(2) does with a range.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Allocate {
    /// Blocks are reserved; the file becomes longer.
    Extend,
    /// Blocks are reserved; the size stays.
    KeepSize,
    /// Blocks are given back; what was there reads as zeroes.
    PunchHole,
    /// What was there reads as zeroes; blocks are reserved.
    ZeroRange,
}

impl Volume {
    /// Sets a file's size.
    pub fn truncate(&mut self, number: u32, size: u64, now: Time) -> Result<()> {
        if size > self.size_max() {
            return Err(Error::FileTooLarge);
        }
        let rest = self.transact(REMOVE_CREDITS, |volume| {
            let mut inode = volume.writable(number)?;
            if inode.has(FLAG_APPEND) {
                return Err(Error::ReadOnly);
            }
            volume.zero_tail(&Inode {
                size: size.min(inode.size),
                ..inode
            })?;
            inode.size = size;
            inode.modified = now;
            inode.changed = now;
            volume.resized.insert(number);
            let rest = volume.remove_beyond(&mut inode)?;
            // One without names is on the list already, and stays on it.
            if rest && inode.links != 0 {
                volume.add_orphan(&mut inode)?;
            }
            volume.set_inode(&inode)?;
            Ok(rest)
        })?;
        if rest {
            self.finish_truncate(number)
        } else {
            Ok(())
        }
    }

    /// Removes some of the blocks beyond the size; whether there may be more.
    fn remove_beyond(&mut self, inode: &mut Inode) -> Result<bool> {
        let first = inode.size.div_ceil(self.geometry.block_bytes as u64);
        let left = self.remove_range(inode, first..1 << 32, EXTENTS_AT_ONCE)?;
        Ok(left.is_some())
    }

    /// Goes on with an inode of the orphan list until nothing is beyond its size.
    pub(crate) fn finish_truncate(&mut self, number: u32) -> Result<()> {
        loop {
            let rest = self.transact(REMOVE_CREDITS, |volume| {
                let mut inode = volume.inode_of(number)?;
                let rest = volume.remove_beyond(&mut inode)?;
                if !rest && inode.links != 0 {
                    volume.remove_orphan(&mut inode)?;
                }
                volume.set_inode(&inode)?;
                Ok(rest)
            })?;
            if !rest {
                return Ok(());
            }
        }
    }

    /// An inode without names that nobody uses any more: its blocks and number become free.
    ///
    /// Errors: `NotFound` if it is gone already, `Invalid` if it has a name.
    pub fn evict(&mut self, number: u32, now: Time) -> Result<()> {
        if !self.is_in_use(number)? {
            return Err(Error::NotFound);
        }
        if !self.has_tree(number)? {
            return self.transact(REMOVE_CREDITS, |volume| volume.drop_inode(number, now));
        }
        loop {
            let is_done = self.transact(REMOVE_CREDITS, |volume| {
                let mut inode = volume.inode_of(number)?;
                if inode.links != 0 {
                    return Err(Error::Invalid);
                }
                inode.size = 0;
                let rest = volume.remove_beyond(&mut inode)?;
                volume.set_inode(&inode)?;
                Ok(!rest)
            })?;
            if is_done {
                return self.transact(REMOVE_CREDITS, |volume| volume.drop_inode(number, now));
            }
        }
    }

    fn has_tree(&mut self, number: u32) -> Result<bool> {
        let inode = self.inode_of(number)?;
        Ok(match inode.kind() {
            Some(FileType::Regular | FileType::Directory) => true,
            Some(FileType::Symlink) => inode.has(crate::layout::inode::FLAG_EXTENTS),
            _ => false,
        })
    }

    fn drop_inode(&mut self, number: u32, now: Time) -> Result<()> {
        let mut inode = self.inode_of(number)?;
        if inode.links != 0 {
            return Err(Error::Invalid);
        }
        self.release_attribute_block(&mut inode)?;
        self.remove_orphan(&mut inode)?;
        inode.deleted = (now.seconds as u32).max(1);
        inode.size = 0;
        self.set_inode(&inode)?;
        self.recent.forget(number);
        self.free_inode(&inode)
    }

    /// fallocate(2).
    pub fn fallocate(
        &mut self,
        number: u32,
        range: Range<u64>,
        how: Allocate,
        now: Time,
    ) -> Result<()> {
        if range.is_empty() {
            return Err(Error::Invalid);
        }
        if range.end > self.size_max() {
            return Err(Error::FileTooLarge);
        }
        if matches!(how, Allocate::PunchHole | Allocate::ZeroRange) {
            self.punch(number, range.clone(), now)?;
        }
        if how != Allocate::PunchHole {
            self.reserve_blocks(number, range.clone())?;
        }
        self.transact(WRITE_CREDITS, |volume| {
            let mut inode = volume.writable(number)?;
            if how == Allocate::Extend && range.end > inode.size {
                volume.zero_tail(&inode)?;
                inode.size = range.end;
            }
            inode.modified = now;
            inode.changed = now;
            volume.resized.insert(number);
            volume.set_inode(&inode)
        })
    }

    /// The holes of a range get blocks that read as zeroes.
    fn reserve_blocks(&mut self, number: u32, range: Range<u64>) -> Result<()> {
        let each = self.geometry.block_bytes as u64;
        let (mut at, end) = (range.start / each, range.end.div_ceil(each));
        while at < end {
            at = self.transact(WRITE_CREDITS, |volume| {
                let mut inode = volume.writable(number)?;
                let run = volume.lookup_run(&inode, at as u32)?;
                let len = u64::from(run.len).min(end - at);
                if run.place != Mapping::Hole {
                    return Ok(at + len);
                }
                let new = volume.allocate_for(
                    &mut inode,
                    run.logical,
                    len.min(u64::from(u32::MAX)) as u32,
                )?;
                volume.insert_extent(
                    &mut inode,
                    &Extent {
                        is_unwritten: true,
                        ..new
                    },
                )?;
                volume.set_inode(&inode)?;
                Ok(at + u64::from(new.len))
            })?;
        }
        Ok(())
    }

    /// Gives back the whole blocks of a range and zeroes its edges.
    fn punch(&mut self, number: u32, range: Range<u64>, now: Time) -> Result<()> {
        let each = self.geometry.block_bytes as u64;
        let (first, end) = (range.start.div_ceil(each), range.end / each);
        self.transact(WRITE_CREDITS, |volume| {
            let mut inode = volume.writable(number)?;
            if first > end {
                volume.zero_bytes(&inode, range.start, range.end)?;
            } else {
                volume.zero_bytes(&inode, range.start, first * each)?;
                volume.zero_bytes(&inode, end * each, range.end)?;
            }
            inode.changed = now;
            volume.set_inode(&inode)
        })?;
        let mut at = Some(first).filter(|first| *first < end);
        while let Some(from) = at {
            at = self.transact(REMOVE_CREDITS, |volume| {
                let mut inode = volume.writable(number)?;
                let rest = volume.remove_range(&mut inode, from..end, EXTENTS_AT_ONCE)?;
                volume.resized.insert(number);
                volume.set_inode(&inode)?;
                Ok(rest)
            })?;
        }
        Ok(())
    }
}

/// The list of inodes that have to be shortened or freed after a crash: the superblock names the
/// first, and each names the next in its time of deletion.
impl Volume {
    pub(crate) fn add_orphan(&mut self, inode: &mut Inode) -> Result<()> {
        inode.deleted = core::mem::replace(&mut self.totals.orphans, inode.number);
        Ok(())
    }

    /// Takes an inode off the list, if it is on it.
    pub(crate) fn remove_orphan(&mut self, inode: &mut Inode) -> Result<()> {
        let next = core::mem::take(&mut inode.deleted);
        if self.totals.orphans == inode.number {
            self.totals.orphans = next;
            return Ok(());
        }
        let mut at = self.totals.orphans;
        for _ in 0..self.geometry.inodes {
            if at == 0 {
                return Ok(());
            }
            let mut before = self.inode_of(at)?;
            at = before.deleted;
            if at == inode.number {
                before.deleted = next;
                return self.set_inode(&before);
            }
        }
        Err(Corrupt::Orphans.into())
    }

    /// After a crash: shortens and frees what the list names. Returns how many there were.
    pub(crate) fn clean_orphans(&mut self) -> Result<u32> {
        let mut count = 0;
        while self.totals.orphans != 0 {
            let number = self.totals.orphans;
            let inode = self.inode_of(number).map_err(|error| match error {
                // That says nothing of the list.
                Error::Device => error,
                _ => Corrupt::Orphans.into(),
            })?;
            self.check_number(number)?;
            match inode.links {
                0 => self.evict(number, inode.changed)?,
                _ => self.finish_truncate(number)?,
            }
            count += 1;
            if count > self.geometry.inodes || self.totals.orphans == number {
                return Err(Corrupt::Orphans.into());
            }
        }
        Ok(count)
    }
}
