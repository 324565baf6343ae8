//! A disk, or a partition of one, that is open.

use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use core::sync::atomic::{AtomicU64, Ordering};

use block::{Durability, Operation, SECTOR_BYTES, SectorRange};
use mm::io::{Sink, Source, partial};
use sync::{Error, Result};
use vfs::file::transfer::Transfer;
use vfs::file::{File, FileRef, OpenFile, StatusFlags};
use vfs::{FileType, Metadata, device_number, device_parts};

use crate::disk::Disk;
use crate::partition::Partition;
use crate::{buffered, direct, disks, requests};

/// What is open.
pub(crate) struct DiskFile {
    pub disk: Arc<Disk>,
    pub partition: Option<Arc<Partition>>,
    /// Failures of flushes that were told through this file.
    told_failures: AtomicU64,
}

/// The disk, or the partition of it, that has this number.
pub(crate) fn find(number: u64) -> Result<(Arc<Disk>, Option<Arc<Partition>>)> {
    let device = device_parts(number);
    let known = |disk: &Arc<Disk>| Some((disk.clone(), disk.partition_of(device)?));
    let mut found = disks().filter_map(known);
    let (disk, partition) = found.next().ok_or(Error::NoSuchDevice)?;
    let partition = match partition {
        0 => None,
        number => {
            let mut all = disk.partitions().into_iter();
            let found = all.find(|partition| partition.number == number);
            Some(found.ok_or(Error::NoSuchDevice)?)
        }
    };
    Ok((disk, partition))
}

/// Opens what has this number.
pub(crate) fn open(number: u64, status: StatusFlags) -> Result<FileRef> {
    let (disk, partition) = find(number)?;
    let limits = disk.refresh();
    if limits.is_read_only && status.intersects(StatusFlags::WRONLY | StatusFlags::RDWR) {
        return Err(Error::AccessDenied);
    }
    Ok(Arc::new(DiskFile {
        told_failures: AtomicU64::new(disk.flush_failures()),
        disk,
        partition,
    }))
}

impl DiskFile {
    /// Where on the disk it lies.
    pub(crate) fn sectors(&self) -> SectorRange {
        match &self.partition {
            Some(partition) => partition.sectors,
            None => SectorRange {
                first: 0,
                count: self.disk.sectors(),
            },
        }
    }

    /// Bytes.
    pub(crate) fn size(&self) -> u64 {
        self.sectors().bytes()
    }

    /// Bytes from `offset` to the end, and where on the disk they begin.
    fn rest(&self, offset: u64) -> (u64, u64) {
        let sectors = self.sectors();
        let left = sectors.bytes().saturating_sub(offset);
        (
            sectors.first * SECTOR_BYTES + offset.min(sectors.bytes()),
            left,
        )
    }

    /// Whether a direct transfer may be of these bytes.
    fn check_direct(&self, offset: u64, len: usize) -> Result<()> {
        // A power of two.
        let inside = u64::from(self.disk.block_bytes()) - 1;
        match (offset | len as u64) & inside == 0 {
            true => Ok(()),
            false => Err(Error::Invalid),
        }
    }
}

impl DiskFile {
    /// A partition has figures of its own.
    fn counted(&self, operation: Operation, act: impl FnOnce() -> Result<usize>) -> Result<usize> {
        match &self.partition {
            Some(partition) => partition.count(operation, act, |bytes| *bytes as u64),
            None => act(),
        }
    }
}

fn is_direct(open: &OpenFile) -> bool {
    open.flags().contains(StatusFlags::DIRECT)
}

impl File for DiskFile {
    fn is_seekable(&self) -> bool {
        true
    }

    fn read_at(&self, open: &OpenFile, offset: u64, to: &mut Sink<'_>) -> Result<usize> {
        let move_some = match is_direct(open) {
            true => {
                self.check_direct(offset, to.remaining())?;
                direct::read
            }
            false => buffered::read,
        };
        let (mut at, mut left) = self.rest(offset);
        let mut done = 0;
        while left != 0 && to.remaining() != 0 {
            let len = left.min(to.remaining() as u64);
            let moved = self.counted(Operation::Read, || move_some(&self.disk, at, len, to));
            let count = match moved {
                Ok(count) => count,
                Err(error) => return partial(done, error),
            };
            if count == 0 {
                break;
            }
            (at, left, done) = (at + count as u64, left - count as u64, done + count);
        }
        Ok(done)
    }

    fn write_at(&self, open: &OpenFile, offset: u64, from: &mut Source<'_>) -> Result<usize> {
        let move_some = match is_direct(open) {
            true => {
                self.check_direct(offset, from.remaining())?;
                direct::write
            }
            false => buffered::write,
        };
        let durability = match open.flags().contains(StatusFlags::DSYNC) {
            true => Durability::Forced,
            false => Durability::Volatile,
        };
        let (mut at, mut left) = self.rest(offset);
        if left == 0 && from.remaining() != 0 {
            return Err(Error::NoSpace);
        }
        let mut done = 0;
        while left != 0 && from.remaining() != 0 {
            let len = left.min(from.remaining() as u64);
            let moved = self.counted(Operation::Write(durability), || {
                move_some(&self.disk, (at, len), durability, from)
            });
            let count = match moved {
                Ok(count) => count,
                Err(error) => return partial(done, error),
            };
            (at, left, done) = (at + count as u64, left - count as u64, done + count);
        }
        Ok(done)
    }

    fn begin(&self, open: &OpenFile, transfer: Transfer<'_>) -> Option<Result<()>> {
        if !is_direct(open) {
            return None;
        }
        let len = transfer.memory.bytes();
        if let Err(error) = self.check_direct(transfer.offset, len) {
            return Some(Err(error));
        }
        let (at, left) = self.rest(transfer.offset);
        if len as u64 > left || len == 0 {
            return None;
        }
        let is_synced = transfer.is_synced || open.flags().contains(StatusFlags::DSYNC);
        let durability = match is_synced {
            true => Durability::Forced,
            false => Durability::Volatile,
        };
        direct::begin(
            &self.disk,
            self.partition.as_ref(),
            at,
            transfer,
            durability,
        )
    }

    fn send_begun(&self) {
        self.disk.send_begun();
    }

    /// A flush that failed since this file last told of it failed also for its writes.
    fn bring_out(&self) -> Result<()> {
        let flushed = self.disk.flush();
        let failures = self.disk.flush_failures();
        let told = self.told_failures.swap(failures, Ordering::AcqRel);
        flushed?;
        match told == failures {
            true => Ok(()),
            false => Err(Error::Io),
        }
    }

    fn ioctl(&self, open: &OpenFile, request: u32, argument: u64) -> Result<usize> {
        requests::answer(self, open, request, argument)
    }

    fn metadata(&self) -> Result<Metadata> {
        let mut metadata = Metadata::anonymous(FileType::BlockDevice);
        let number = self.partition.as_ref().map_or(0, |part| part.number);
        let (major, minor) = self.disk.device(number);
        metadata.node = device_number(major, minor);
        metadata.size = self.size();
        Ok(metadata)
    }

    fn label(&self) -> String {
        let name = self.partition.as_ref().map(|part| part.name);
        format!("/dev/{}", name.unwrap_or(self.disk.name()))
    }

    fn as_any(&self) -> &dyn core::any::Any {
        self
    }
}
