//! The bytes of files.
//!
//! Data go straight between the caller's memory and the disk; blocks that are only partly
//! written are read before, or zeroed if they are new. New data are on the disk before the
//! transaction that shows them can commit, so no file ever shows what a block held before.
//!
//! Invariant: beyond a file's size its last block holds zeroes. Who shortens a file zeroes the
//! rest of the block; who makes it longer does so again, as images of others may not.
//!
//! Blocks are allocated when data are written, not later: whoever caches pages above decides how
//! much is written at once. (Delayed allocation is left to that cache.)

use alloc::vec::Vec;

use crate::device::Durability;
use crate::error::{Error, Result};
use crate::extents::{Mapping, Run};
use crate::layout::extent::{Extent, UNWRITTEN_MAX};
use crate::layout::inode::{FLAG_APPEND, FLAG_IMMUTABLE, FileType, Inode, Time};
use crate::volume::{Credits, Volume};

/// Blocks that a handle of one write changes at most: two paths of a tree, bitmaps, inode.
pub(crate) const WRITE_CREDITS: Credits = 48;
/// Blocks that one handle writes.
const BLOCKS_AT_ONCE: usize = 4096;

/// Where data or a hole is looked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Seek {
    /// The next byte that is stored.
    Data,
    /// The next that is not; every file ends with one.
    Hole,
}

impl Volume {
    /// A regular file's inode.
    pub(crate) fn regular(&mut self, number: u32) -> Result<Inode> {
        let inode = self.inode(number)?;
        match inode.kind() {
            Some(FileType::Regular) => Ok(inode),
            Some(FileType::Directory) => Err(Error::IsDirectory),
            _ => Err(Error::Invalid),
        }
    }

    /// A regular file's inode, to be changed.
    pub(crate) fn writable(&mut self, number: u32) -> Result<Inode> {
        let inode = self.regular(number)?;
        match inode.has(FLAG_IMMUTABLE) {
            true => Err(Error::ReadOnly),
            false => Ok(inode),
        }
    }

    /// Bytes that a file can have.
    pub fn size_max(&self) -> u64 {
        u64::from(u32::MAX) * self.geometry.block_bytes as u64
    }

    /// Reads from `offset` on; returns how many bytes there were.
    pub fn read(&mut self, number: u32, offset: u64, into: &mut [u8]) -> Result<usize> {
        let inode = self.regular(number)?;
        let left = inode.size.min(self.size_max()).saturating_sub(offset);
        let len = usize::try_from(left).unwrap_or(usize::MAX).min(into.len());
        let mut rest = into.get_mut(..len).unwrap_or(&mut []);
        let mut at = offset;
        while !rest.is_empty() {
            let (run, within) = self.run_at_byte(&inode, at)?;
            let bytes = self.bytes_of(&run) - within;
            let (now, later) = rest.split_at_mut(bytes.min(rest.len()));
            match run.place {
                Mapping::Written(block) => self.read_span(block, within, now)?,
                _ => now.fill(0),
            }
            at += now.len() as u64;
            rest = later;
        }
        Ok(len)
    }

    /// The run of the block that `offset` is in, and where in the block.
    fn run_at_byte(&mut self, inode: &Inode, offset: u64) -> Result<(Run, usize)> {
        let block_bytes = self.geometry.block_bytes as u64;
        let logical = u32::try_from(offset / block_bytes).map_err(|_| Error::FileTooLarge)?;
        Ok((
            self.lookup_run(inode, logical)?,
            (offset % block_bytes) as usize,
        ))
    }

    fn bytes_of(&self, run: &Run) -> usize {
        run.len as usize * self.geometry.block_bytes
    }

    /// Reads from byte `within` of `block` on.
    pub(crate) fn read_span(&mut self, block: u64, within: usize, into: &mut [u8]) -> Result<()> {
        let each = self.geometry.block_bytes;
        let block = block + (within / each) as u64;
        let within = within % each;
        let head = if within == 0 {
            0
        } else {
            (each - within).min(into.len())
        };
        let (front, rest) = into.split_at_mut(head);
        let (middle, tail) = rest.split_at_mut(rest.len() / each * each);
        let mut next = block;
        if !front.is_empty() {
            self.read_part(next, within, front)?;
            next += 1;
        }
        if !middle.is_empty() {
            self.store.read_data(next, 0, middle)?;
            next += (middle.len() / each) as u64;
        }
        match tail.is_empty() {
            true => Ok(()),
            false => self.read_part(next, 0, tail),
        }
    }

    fn read_part(&mut self, block: u64, within: usize, into: &mut [u8]) -> Result<()> {
        let mut whole = self.store.zeroed()?;
        self.store.read_data(block, 0, &mut whole)?;
        into.copy_from_slice(crate::bytes::span(&whole, within, into.len()));
        Ok(())
    }

    /// Writes `data` at `offset`; returns how many bytes there was room for.
    pub fn write(&mut self, number: u32, offset: u64, data: &[u8], now: Time) -> Result<usize> {
        let end = offset
            .checked_add(data.len() as u64)
            .ok_or(Error::FileTooLarge)?;
        if end > self.size_max() {
            return Err(Error::FileTooLarge);
        }
        if planted::is("a size is committed before its data") && self.inode(number)?.size < end {
            self.truncate(number, end, now)?;
            self.commit()?;
        }
        let mut done = 0;
        while let Some(rest) = data.get(done..).filter(|rest| !rest.is_empty()) {
            let at = offset + done as u64;
            let wrote = self.transact(WRITE_CREDITS, |volume| {
                volume.write_some(number, at, rest, now)
            });
            match wrote {
                Ok(count) => done += count,
                Err(error) if done == 0 => return Err(error),
                Err(_) => break,
            }
        }
        Ok(done)
    }

    /// Writes what lies in one run.
    fn write_some(&mut self, number: u32, offset: u64, data: &[u8], now: Time) -> Result<usize> {
        let mut inode = self.writable(number)?;
        if inode.has(FLAG_APPEND) && offset < inode.size {
            return Err(Error::ReadOnly);
        }
        if offset > inode.size {
            self.zero_tail(&inode)?;
        }
        let (run, within) = self.run_at_byte(&inode, offset)?;
        let most = self
            .bytes_of(&run)
            .min(BLOCKS_AT_ONCE * self.geometry.block_bytes)
            - within;
        let data = data.get(..most).unwrap_or(data);
        let count = match run.place {
            Mapping::Written(block) => {
                self.write_span(block, within, data, Before::Kept)?;
                data.len()
            }
            Mapping::Unwritten(block) => {
                self.write_reserved(&mut inode, &run, block, within, data)?
            }
            Mapping::Hole => self.write_hole(&mut inode, run.logical, within, data)?,
        };
        let end = offset + count as u64;
        if end > inode.size {
            inode.size = end;
            self.resized.insert(number);
        }
        inode.modified = now;
        inode.changed = now;
        self.set_inode(&inode)?;
        Ok(count)
    }

    fn write_reserved(
        &mut self,
        inode: &mut Inode,
        run: &Run,
        block: u64,
        within: usize,
        data: &[u8],
    ) -> Result<usize> {
        self.write_span(block, within, data, Before::Zero)?;
        let blocks = (within + data.len()).div_ceil(self.geometry.block_bytes) as u32;
        self.mark_written(inode, run.logical, blocks)?;
        self.resized.insert(inode.number);
        Ok(data.len())
    }

    fn write_hole(
        &mut self,
        inode: &mut Inode,
        logical: u32,
        within: usize,
        data: &[u8],
    ) -> Result<usize> {
        let wanted = (within + data.len()).div_ceil(self.geometry.block_bytes) as u32;
        let new = self.allocate_for(inode, logical, wanted)?;
        let room = new.len as usize * self.geometry.block_bytes - within;
        let data = data.get(..room).unwrap_or(data);
        self.write_span(new.physical, within, data, Before::Zero)?;
        self.insert_extent(inode, &new)?;
        Ok(data.len())
    }

    /// Blocks for a hole at `logical`, not yet in the tree.
    pub(crate) fn allocate_for(
        &mut self,
        inode: &mut Inode,
        logical: u32,
        wanted: u32,
    ) -> Result<Extent> {
        let goal = match logical.checked_sub(1) {
            Some(before) => match self.lookup_run(inode, before)?.place {
                Mapping::Written(block) | Mapping::Unwritten(block) => block + 1,
                Mapping::Hole => self.goal_of(inode),
            },
            None => self.goal_of(inode),
        };
        let (physical, len) = self.allocate(goal, wanted.min(UNWRITTEN_MAX))?;
        inode.sectors += u64::from(len) * self.block_sectors();
        self.resized.insert(inode.number);
        Ok(Extent {
            logical,
            len,
            physical,
            is_unwritten: false,
        })
    }

    /// Writes from byte `within` of `block` on.
    fn write_span(&mut self, block: u64, within: usize, data: &[u8], before: Before) -> Result<()> {
        self.writes += 1;
        let each = self.geometry.block_bytes;
        let head = if within == 0 {
            0
        } else {
            (each - within).min(data.len())
        };
        let (front, rest) = data.split_at(head);
        let (middle, tail) = rest.split_at(rest.len() / each * each);
        let mut next = block;
        if !front.is_empty() {
            self.write_part(next, within, front, before)?;
            next += 1;
        }
        if !middle.is_empty() {
            self.store.write_data(next, middle, Durability::Volatile)?;
            next += (middle.len() / each) as u64;
        }
        match tail.is_empty() {
            true => Ok(()),
            false => self.write_part(next, 0, tail, before),
        }
    }

    fn write_part(&mut self, block: u64, within: usize, data: &[u8], before: Before) -> Result<()> {
        let mut whole: Vec<u8> = self.store.zeroed()?;
        if before == Before::Kept {
            self.store.read_data(block, 0, &mut whole)?;
        }
        crate::bytes::put(&mut whole, within, data);
        self.store.write_data(block, &whole, Durability::Volatile)
    }

    /// Zeroes what the file's last block has beyond its end.
    pub(crate) fn zero_tail(&mut self, inode: &Inode) -> Result<()> {
        let each = self.geometry.block_bytes as u64;
        let end = inode.size.next_multiple_of(each);
        self.zero_bytes(inode, inode.size, end)
    }

    /// Zeroes bytes of one block, if it is there.
    pub(crate) fn zero_bytes(&mut self, inode: &Inode, from: u64, to: u64) -> Result<()> {
        let is_left = planted::is("the rest of a file's last block is not zeroed");
        if from >= to || from >= self.size_max() || is_left {
            return Ok(());
        }
        let (run, within) = self.run_at_byte(inode, from)?;
        let Mapping::Written(block) = run.place else {
            return Ok(());
        };
        let mut whole = self.store.zeroed()?;
        self.store.read_data(block, 0, &mut whole)?;
        let part = whole
            .get_mut(within..within + (to - from) as usize)
            .unwrap_or(&mut []);
        if part.iter().all(|byte| *byte == 0) {
            return Ok(());
        }
        part.fill(0);
        self.writes += 1;
        self.store.write_data(block, &whole, Durability::Volatile)
    }

    /// The next data or hole at or behind `offset`.
    pub fn seek(&mut self, number: u32, offset: u64, what: Seek) -> Result<u64> {
        let inode = self.regular(number)?;
        let mut at = offset;
        while at < inode.size.min(self.size_max()) {
            let (run, _) = self.run_at_byte(&inode, at)?;
            let is_data = matches!(run.place, Mapping::Written(_));
            if is_data == (what == Seek::Data) {
                return Ok(at);
            }
            let each = self.geometry.block_bytes as u64;
            at = (u64::from(run.logical) + u64::from(run.len)) * each;
        }
        match what {
            Seek::Hole if offset < inode.size => Ok(inode.size),
            _ => Err(Error::BeyondEnd),
        }
    }
}

/// What a block holds of which only a part is written.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Before {
    /// The file's bytes.
    Kept,
    /// Somebody else's: zeroes go there.
    Zero,
}
