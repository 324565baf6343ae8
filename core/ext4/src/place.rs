//! Data that a cache of pages writes by itself, outside of the volume's lock.
//!
//! Long runs get blocks that are *reserved* ([`Volume::place`]): after a crash they read as zeroes.
//! Then the cache writes them, as long as that takes, and afterwards they become written and
//! the file as long as they reach ([`Volume::settle`]). So a transaction may be committed at any
//! moment and never shows a block whose data are not on the disk: the data were complete before
//! the change that shows them was made, and the flush before its commit block covers them.
//!
//! A short run at a new place is not worth two changes of the tree: it is written while it gets its
//! block ([`Volume::write_new`]). A file that is appended to has its last block before that: both are one write and one change.
//!
//! What was promised to the cache ([`Promises`](crate::Promises)) is spent here and nowhere else.

use core::ops::Range;

use crate::error::{DeviceError, Error, Result};
use crate::extents::{Mapping, Run};
use crate::file::WRITE_CREDITS;
use crate::layout::extent::Extent;
use crate::layout::inode::{Inode, Time};
use crate::volume::Volume;

/// How a file ends once some data are there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Grown {
    /// It has so many bytes at least.
    pub size: u64,
    /// When it was changed, if that is not on the disk yet.
    pub modified: Option<Time>,
}

/// Writes these of the blocks that it is asked for, counted from their first, from this block of the disk on.
pub type WriteBlocks<'a> = &'a mut dyn FnMut(u64, Range<u32>) -> Result<(), DeviceError>;

/// A run that is written in place: its block of the disk, and how many.
type Kept = (u64, u32);

impl Volume {
    /// Blocks for the beginning of `blocks` of a file; such as have none get some.
    pub fn place(&mut self, number: u32, blocks: Range<u32>) -> Result<Run> {
        let inode = self.regular(number)?;
        let run = self.first(&inode, &blocks)?;
        if run.place != Mapping::Hole {
            return Ok(run);
        }
        self.spend(|volume| {
            volume.transact(WRITE_CREDITS, |volume| {
                let mut inode = volume.regular(number)?;
                let new = volume.allocate_for(&mut inode, run.logical, run.len)?;
                let reserved = Extent {
                    is_unwritten: true,
                    ..new
                };
                volume.insert_extent(&mut inode, &reserved)?;
                volume.set_inode(&inode)?;
                Ok(Run {
                    logical: run.logical,
                    len: new.len,
                    place: Mapping::Unwritten(new.physical),
                })
            })
        })
    }

    /// The run at the beginning of `blocks`, not longer than these.
    fn first(&mut self, inode: &Inode, blocks: &Range<u32>) -> Result<Run> {
        let run = self.lookup_run(inode, blocks.start)?;
        let most = blocks.end.saturating_sub(blocks.start).max(1);
        Ok(Run {
            len: run.len.min(most),
            ..run
        })
    }

    /// What lies in `run` has been written.
    pub fn settle(&mut self, number: u32, run: &Run, grown: Grown) -> Result<()> {
        self.writes += 1;
        let inode = self.regular(number)?;
        let is_written = matches!(run.place, Mapping::Written(_));
        if is_written
            && grown.size <= inode.size
            && grown.modified.is_none_or(|time| time == inode.modified)
        {
            return Ok(());
        }
        self.spend(|volume| {
            volume.transact(WRITE_CREDITS, |volume| {
                let mut inode = volume.regular(number)?;
                if !is_written {
                    volume.mark_written(&mut inode, run.logical, run.len)?;
                    volume.resized.insert(number);
                }
                volume.grow(&mut inode, run.logical, grown)
            })
        })
    }

    /// Writes the beginning of `blocks` by `write`, if it has no place yet, or lies before what has none, and is not more than
    /// `most`; returns how many.
    pub fn write_new(
        &mut self,
        number: u32,
        blocks: Range<u32>,
        most: u32,
        grown: Grown,
        write: WriteBlocks<'_>,
    ) -> Result<Option<u32>> {
        let inode = self.regular(number)?;
        let Some((kept, hole)) = self.short_end(&inode, &blocks, most)? else {
            return Ok(None);
        };
        let mut has_failed = false;
        let written = self.spend(|volume| {
            volume.transact(WRITE_CREDITS, |volume| {
                let mut inode = inode;
                let new = volume.write_behind(&mut inode, kept, &hole, &mut |block, part| {
                    write(block, part).inspect_err(|_| has_failed = true)
                })?;
                volume.insert_extent(&mut inode, &new)?;
                let end = new.end() * volume.geometry.block_bytes as u64;
                let size = grown.size.min(end);
                volume.grow(&mut inode, blocks.start, Grown { size, ..grown })?;
                Ok(new.logical + new.len - blocks.start)
            })
        });
        match written {
            Err(Error::Busy | Error::OutOfMemory) => written.map(Some),
            // What has its place is not lost with what finds none.
            Err(_) if kept.is_some() && !has_failed => Ok(None),
            _ => written.map(Some),
        }
    }

    /// The hole at the beginning of `blocks`, or behind a run there that is written, if both have `most` blocks at most.
    fn short_end(
        &mut self,
        inode: &Inode,
        blocks: &Range<u32>,
        most: u32,
    ) -> Result<Option<(Option<Kept>, Run)>> {
        let run = self.first(inode, blocks)?;
        let rest = blocks.start + run.len..blocks.end;
        let (kept, hole) = match run.place {
            Mapping::Hole => (None, run),
            Mapping::Written(block) if run.len < most && !rest.is_empty() => {
                (Some((block, run.len)), self.first(inode, &rest)?)
            }
            _ => return Ok(None),
        };
        let len = hole.len + kept.map_or(0, |(_, len)| len);
        let is_short = hole.place == Mapping::Hole && len <= most;
        Ok(is_short.then_some((kept, hole)))
    }

    /// Gives `hole` a place and writes it, and what is `kept` before it: in one piece where they touch.
    fn write_behind(
        &mut self,
        inode: &mut Inode,
        kept: Option<Kept>,
        hole: &Run,
        write: &mut dyn FnMut(u64, Range<u32>) -> Result<(), DeviceError>,
    ) -> Result<Extent> {
        let new = self.allocate_for(inode, hole.logical, hole.len)?;
        self.writes += 1;
        let (block, len) = kept.unwrap_or((new.physical, 0));
        let all = len + new.len;
        if block + u64::from(len) == new.physical {
            write(block, 0..all)?;
        } else {
            write(block, 0..len)?;
            write(new.physical, len..all)?;
        }
        Ok(new)
    }

    /// A file grows with the data from block `first` on; what its end was before is zeroed.
    fn grow(&mut self, inode: &mut Inode, first: u32, grown: Grown) -> Result<()> {
        if grown.size > inode.size {
            if u64::from(first) * self.geometry.block_bytes as u64 > inode.size {
                self.zero_tail(inode)?;
            }
            inode.size = grown.size;
            self.resized.insert(inode.number);
        }
        if let Some(time) = grown.modified {
            inode.modified = time;
            inode.changed = time;
        }
        self.set_inode(inode)
    }

    fn spend<T>(&mut self, act: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        self.spends_promises = true;
        let result = act(self);
        self.spends_promises = false;
        result
    }
}
