//! Reading the partitions of a disk.
//!
//! The table is read when the disk appears and when a program asks for it (BLKRRPART), which is
//! refused while a partition is open: a file of one keeps it, and with it where it lies.

use alloc::sync::Arc;
use alloc::vec::Vec;

use base::{Duration, PAGE_BYTES};
use block::{Operation, SECTOR_BYTES, SectorRange};
use mach::klog;
use mach::mem::Page;
use partitions::Shape;
use sync::{Error, Result};

use crate::disk::Disk;
use crate::nodes;
use crate::partition::Partition;
use crate::transfer::{Segment, move_pages, read_pages_at_boot};

/// At boot a table is waited for so long.
const BOOT_PATIENCE: Duration = Duration::from_secs(2);

/// Reads the table while no thread can sleep.
pub(crate) fn read_at_boot(disk: &Disk) {
    let until = mach::time::now() + BOOT_PATIENCE;
    let found = find(disk, &mut |first, segments| {
        read_pages_at_boot(disk, first, segments, until).is_ok()
    });
    replace(disk, found);
}

/// Reads it again.
///
/// Errors: `Busy` while a partition is open.
pub(crate) fn read_again(disk: &Disk) -> Result<()> {
    disk.refresh();
    let found = find(disk, &mut |first, segments| {
        move_pages(disk, Operation::Read, first, segments).is_ok()
    });
    let is_open = |partition: &Arc<Partition>| Arc::strong_count(partition) > 1;
    if disk.partitions.lock().iter().any(is_open) {
        return Err(Error::Busy);
    }
    replace(disk, found);
    crate::changed();
    crate::look();
    Ok(())
}

/// Reads the segments' bytes from a sector on; false if it cannot.
type ReadPages<'a> = &'a mut dyn FnMut(u64, &[Segment]) -> bool;

fn find(disk: &Disk, read: ReadPages<'_>) -> Vec<partitions::Partition> {
    let limits = disk.limits();
    let shape = Shape {
        block_bytes: limits.block_bytes,
        blocks: limits.sectors * SECTOR_BYTES / u64::from(limits.block_bytes),
    };
    partitions::read(shape, &mut |at, bytes| read_bytes(at, bytes, read))
}

/// Fills `bytes`, page by page.
fn read_bytes(at: u64, bytes: &mut [u8], read: ReadPages<'_>) -> bool {
    let mut at = at;
    for part in bytes.chunks_mut(PAGE_BYTES) {
        let Some(page) = Page::alloc() else {
            return false;
        };
        let segment = [Segment {
            page,
            bytes: 0..part.len(),
        }];
        if !read(at / SECTOR_BYTES, &segment) {
            return false;
        }
        let [Segment { page, .. }] = segment;
        page.read(0, part);
        at += part.len() as u64;
    }
    true
}

fn replace(disk: &Disk, found: Vec<partitions::Partition>) {
    let per_block = u64::from(disk.limits().block_bytes) / SECTOR_BYTES;
    let new = found.into_iter().map(|partition| {
        let name = nodes::partition_name(disk.name(), partition.number);
        let sectors = SectorRange {
            first: partition.first * per_block,
            count: partition.count * per_block,
        };
        Arc::new(Partition::new(partition.number, name, sectors))
    });
    let new: Vec<_> = new.collect();
    let old = core::mem::replace(&mut *disk.partitions.lock(), new.clone());
    let is_in = |list: &[Arc<Partition>], number| list.iter().any(|other| other.number == number);
    for gone in old.iter().filter(|old| !is_in(&new, old.number)) {
        nodes::remove(gone.name);
    }
    for added in new.iter().filter(|new| !is_in(&old, new.number)) {
        nodes::add(added.name, disk.device(added.number));
    }
    if !new.is_empty() {
        klog!("disk {} partitions={}", disk.name(), new.len());
    }
}
