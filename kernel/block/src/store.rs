//! A disk or a partition as a file system of the kernel's uses it: bytes at an offset.
//!
//! Bytes pass through pages of the kernel's, so a caller's memory may lie anywhere. What is read
//! may begin inside of a block; what is written may not.

use alloc::sync::Arc;
use alloc::vec::Vec;

use base::PAGE_BYTES;
use block::{Durability, Operation, SECTOR_BYTES, SectorRange};
use mach::mem::fallible::TryGrow;
use mach::mem::{DmaMemory, Page};
use mm::reclaim::with_shrunken_caches;
use sync::{Error, Result};
use vfs::{FileType, Walk, device_number};

use crate::disk::Disk;
use crate::file;
use crate::partition::Partition;
use crate::transfer::Segment;
use crate::urgent::move_surely;

/// Bytes of one request.
const REQUEST_BYTES: usize = 256 << 10;

/// Where a file system lies.
#[derive(Clone)]
pub struct Store {
    pub(crate) disk: Arc<Disk>,
    sectors: SectorRange,
    number: u64,
    partition: Option<Arc<Partition>>,
}

impl Store {
    /// That of the node at `path`.
    ///
    /// Errors: `NotBlockDevice` if it is none, `NoSuchDevice`, and what a walk says.
    pub fn find(path: &[u8]) -> Result<Self> {
        let node = vfs::resolve(None, path, Walk::FOLLOW)?.inode().metadata()?;
        if node.kind != FileType::BlockDevice {
            return Err(Error::NoSuchDevice);
        }
        let (disk, partition) = file::find(node.node)?;
        let limits = disk.refresh();
        let whole = SectorRange {
            first: 0,
            count: limits.sectors,
        };
        Ok(Self {
            sectors: partition
                .as_ref()
                .map_or(whole, |partition| partition.sectors),
            disk,
            number: node.node,
            partition,
        })
    }

    /// Memory that its disk reaches.
    pub fn memory(&self) -> DmaMemory {
        self.disk.memory
    }

    /// A disk, or a partition of it.
    pub(crate) fn of(disk: &Arc<Disk>, partition: Option<Arc<Partition>>) -> Self {
        let whole = SectorRange {
            first: 0,
            count: disk.sectors(),
        };
        let place = partition.as_ref().map_or(0, |partition| partition.number);
        let (major, minor) = disk.device(place);
        Self {
            sectors: partition
                .as_ref()
                .map_or(whole, |partition| partition.sectors),
            disk: disk.clone(),
            number: device_number(major, minor),
            partition,
        }
    }

    /// What it is called in /dev.
    pub fn name(&self) -> &'static str {
        let partition = self.partition.as_ref().map(|partition| partition.name);
        partition.unwrap_or(self.disk.name())
    }

    /// Whether nobody but the caller has it, a part of it, or the disk of which it is a part: open or mounted.
    pub fn is_alone(&self) -> bool {
        let is_free =
            |partition: &Arc<Partition>, ours: usize| Arc::strong_count(partition) <= 1 + ours;
        match &self.partition {
            // The table's and ours.
            Some(partition) => is_free(partition, 1),
            None => {
                let partitions = self.disk.partitions.lock();
                // The table's and ours.
                Arc::strong_count(&self.disk) <= 2 && partitions.iter().all(|part| is_free(part, 0))
            }
        }
    }

    /// Makes bytes read as zeroes: whole blocks.
    ///
    /// Errors: `Invalid` for others, those of the device.
    pub fn zero(&self, offset: u64, len: u64) -> Result<()> {
        let end = offset.checked_add(len).filter(|end| *end <= self.bytes());
        end.ok_or(Error::Io)?;
        let sectors = SectorRange {
            first: self.sectors.first + offset / SECTOR_BYTES,
            count: len / SECTOR_BYTES,
        };
        let operation = Operation::WriteZeroes { may_unmap: false };
        match self.disk.command(operation, sectors) {
            Err(Error::Unsupported) => self.write_zeroes(offset, len),
            done => done.map(|_| ()),
        }
    }

    fn write_zeroes(&self, offset: u64, len: u64) -> Result<()> {
        let zeroes = Page::zeroed().ok_or(Error::OutOfMemory)?;
        let (mut at, mut left) = (offset, len);
        while left != 0 {
            let mut segments = Vec::new();
            segments.make_room(REQUEST_BYTES / PAGE_BYTES)?;
            let mut part = left.min(REQUEST_BYTES as u64);
            left -= part;
            let start = at;
            at += part;
            while part != 0 {
                let bytes = part.min(PAGE_BYTES as u64);
                let page = zeroes.clone();
                segments.push(Segment {
                    page,
                    bytes: 0..bytes as usize,
                });
                part -= bytes;
            }
            self.write_pages(start, &segments, Durability::Volatile)?;
            sched::resched_point();
        }
        Ok(())
    }

    /// The device's number.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Its size.
    pub fn bytes(&self) -> u64 {
        self.sectors.bytes()
    }

    /// Where on the disk it begins.
    #[inline]
    pub(crate) fn first_sector(&self) -> u64 {
        self.sectors.first
    }

    /// Bytes of the smallest unit that is read or written.
    pub fn sector_bytes(&self) -> u64 {
        u64::from(self.disk.limits().block_bytes)
    }

    /// Whether nothing can be changed.
    pub fn is_read_only(&self) -> bool {
        self.disk.limits().is_read_only
    }

    /// Where on the disk the byte `offset` is, if all `len` bytes from there on are.
    pub(crate) fn check(&self, offset: u64, len: usize) -> Result<u64> {
        let end = offset.checked_add(len as u64).ok_or(Error::Io)?;
        match end <= self.bytes() {
            true => Ok(self.sectors.first * SECTOR_BYTES + offset),
            false => Err(Error::Io),
        }
    }

    /// Fills `into` from `offset` on.
    pub fn read(&self, offset: u64, into: &mut [u8]) -> Result<()> {
        let start = self.check(offset, into.len())?;
        let block = u64::from(self.disk.limits().block_bytes);
        let mut done = 0;
        while done < into.len() {
            let at = start + done as u64;
            let skip = (at % block) as usize;
            let most = (into.len() - done).min(REQUEST_BYTES - skip);
            let segments = pages((skip + most).next_multiple_of(block as usize))?;
            let first = (at - skip as u64) / SECTOR_BYTES;
            move_surely(&self.disk, Operation::Read, first, &segments)?;
            copy_out(&segments, skip, into.get_mut(done..done + most));
            done += most;
        }
        Ok(())
    }

    /// Stores `parts` one behind the other from `offset` on.
    ///
    /// Errors: `Invalid` if all together are no whole blocks of the disk.
    pub fn write(&self, offset: u64, parts: &[&[u8]], durability: Durability) -> Result<()> {
        let mut left = parts.iter().map(|part| part.len()).sum();
        let mut at = self.check(offset, left)?;
        let block = u64::from(self.disk.limits().block_bytes);
        if !at.is_multiple_of(block) || !(left as u64).is_multiple_of(block) {
            return Err(Error::Invalid);
        }
        let mut parts = Parts {
            now: &[],
            later: parts,
        };
        while left != 0 {
            let (disk, first) = (&self.disk, at / SECTOR_BYTES);
            let len = match pages(left.min(REQUEST_BYTES)) {
                Ok(segments) => {
                    segments.iter().for_each(|segment| parts.fill(segment));
                    move_surely(disk, Operation::Write(durability), first, &segments)?;
                    left.min(REQUEST_BYTES)
                }
                Err(_) => {
                    let len = left.min(PAGE_BYTES);
                    let fill = |segment: &Segment| parts.fill(segment);
                    disk.urgent.write(disk, durability, (first, len), fill)?;
                    len
                }
            };
            (left, at) = (left - len, at + len as u64);
        }
        Ok(())
    }

    /// Empties the device's cache.
    pub fn flush(&self) -> Result<()> {
        self.disk.flush()
    }
}

/// What is still to be copied.
struct Parts<'a> {
    now: &'a [u8],
    later: &'a [&'a [u8]],
}

impl Parts<'_> {
    fn fill(&mut self, segment: &Segment) {
        let mut at = segment.bytes.start;
        while at < segment.bytes.end {
            if self.now.is_empty() {
                let Some((next, later)) = self.later.split_first() else {
                    return;
                };
                (self.now, self.later) = (next, later);
            }
            let (here, rest) = self
                .now
                .split_at(self.now.len().min(segment.bytes.end - at));
            segment.page.write(at, here);
            (self.now, at) = (rest, at + here.len());
        }
    }
}

/// Pages for `bytes`.
fn pages(bytes: usize) -> Result<Vec<Segment>> {
    let mut segments = Vec::new();
    let room = segments.try_reserve_exact(bytes.div_ceil(PAGE_BYTES));
    room.map_err(|_| Error::OutOfMemory)?;
    let mut left = bytes;
    while left != 0 {
        let part = left.min(PAGE_BYTES);
        // A commit that fails ends the file system: others give something up first.
        let page = with_shrunken_caches(|| Page::alloc().ok_or(Error::OutOfMemory))?;
        segments.push(Segment {
            page,
            bytes: 0..part,
        });
        left -= part;
    }
    Ok(segments)
}

/// Copies what lies in the pages from byte `skip` on.
fn copy_out(segments: &[Segment], skip: usize, into: Option<&mut [u8]>) {
    let mut rest = into.unwrap_or(&mut []);
    let mut skip = skip;
    for segment in segments {
        let here = segment.bytes.len().saturating_sub(skip).min(rest.len());
        let (now, later) = rest.split_at_mut(here);
        segment.page.read(skip.min(PAGE_BYTES), now);
        skip = skip.saturating_sub(segment.bytes.len());
        rest = later;
    }
}
