//! Requests of file systems when no memory is left for any.
//!
//! # Problem
//! A commit that fails ends the file system, and what was written is not to be lost because another program takes all memory.
//!
//! # Idea
//! Each disk keeps one request for such times, which takes one piece of memory, and a page for what is copied; those who need
//! them go one after the other. Who finds memory never comes here.
//!
//! Not here: disks behind an IOMMU, where each request takes memory of the device's.

use alloc::boxed::Box;

use block::{Done, Durability, Operation, SECTOR_BYTES, SectorRange};
use mach::mem::Page;
use sync::{Error, Mutex, Result};

use crate::bio::Bio;
use crate::disk::Disk;
use crate::failure::error_of;
use crate::transfer::{Segment, move_pages};

/// What a disk keeps: a request, and a page for what is copied.
pub(crate) struct Urgent(Mutex<Kept>);

struct Kept {
    bio: Option<Box<Bio>>,
    page: Option<Page>,
}

impl Urgent {
    /// Without memory for it there is none.
    pub(crate) fn new() -> Self {
        let bio = Bio::new().and_then(|mut bio| {
            bio.reserve(1)?;
            Ok(bio)
        });
        Self(Mutex::new(Kept {
            bio: bio.ok(),
            page: Page::alloc(),
        }))
    }

    /// Does something with one piece of memory, or none.
    ///
    /// Errors: `OutOfMemory` where a device cannot be told of it; those of the device.
    pub(crate) fn run(
        &self,
        disk: &Disk,
        operation: Operation,
        sectors: SectorRange,
        memory: Option<&Segment>,
    ) -> Result<Done> {
        self.0.lock().run(disk, operation, sectors, memory)
    }

    /// Writes `len` bytes, at most a page of them, which `fill` copies, to the sector `first`.
    ///
    /// Errors: as above.
    pub(crate) fn write(
        &self,
        disk: &Disk,
        durability: Durability,
        (first, len): (u64, usize),
        fill: impl FnOnce(&Segment),
    ) -> Result<()> {
        let mut kept = self.0.lock();
        let segment = Segment {
            page: kept.page.clone().ok_or(Error::OutOfMemory)?,
            bytes: 0..len,
        };
        fill(&segment);
        let sectors = SectorRange {
            first,
            count: len as u64 / SECTOR_BYTES,
        };
        let operation = Operation::Write(durability);
        kept.run(disk, operation, sectors, Some(&segment)).map(drop)
    }
}

impl Kept {
    fn run(
        &mut self,
        disk: &Disk,
        operation: Operation,
        sectors: SectorRange,
        memory: Option<&Segment>,
    ) -> Result<Done> {
        let mut bio = self.bio.take().ok_or(Error::OutOfMemory)?;
        let is_lent = memory.is_none_or(|part| bio.push(part.page.clone(), part.bytes.clone()));
        if !is_lent {
            bio.clear();
            self.bio = Some(bio);
            return Err(Error::OutOfMemory);
        }
        let (result, mut bio) = disk.run(operation, sectors, bio);
        bio.clear();
        self.bio = Some(bio);
        result.map_err(error_of)
    }
}

/// Reads whole blocks from the sector `first` on into pages, or writes them, also when no memory is left for that.
pub(crate) fn move_surely(
    disk: &Disk,
    operation: Operation,
    first: u64,
    segments: &[Segment],
) -> Result<()> {
    match move_pages(disk, operation, first, segments) {
        Err(Error::OutOfMemory) => move_one_by_one(disk, operation, first, segments),
        done => done,
    }
}

fn move_one_by_one(
    disk: &Disk,
    operation: Operation,
    first: u64,
    segments: &[Segment],
) -> Result<()> {
    let block = disk.limits().block_bytes as usize;
    let mut at = first;
    for segment in segments {
        if !segment.bytes.len().is_multiple_of(block) {
            return Err(Error::OutOfMemory);
        }
        let sectors = SectorRange {
            first: at,
            count: segment.bytes.len() as u64 / SECTOR_BYTES,
        };
        disk.urgent
            .run(disk, operation, sectors, Some(segment))
            .map(drop)?;
        at += sectors.count;
    }
    Ok(())
}
