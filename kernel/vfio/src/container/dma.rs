//! Mapping and unmapping (VFIO_IOMMU_MAP_DMA, VFIO_IOMMU_UNMAP_DMA).

use alloc::sync::Arc;

use base::{PAGE_BYTES, VirtAddr};
use iommu::{Lent, LentError, Pages, Rights};
use mach::mem::fallible::Heap;
use mm::user;
use sync::{Error, Result};
use vfio::{DmaMap, DmaUnmap, Iova, Refusal, numbers, pieces};

use super::{Container, Dma, Mapping, count_tables};
use crate::argument;
use crate::pinned::Pinned;

/// Where the size stands that UNMAP_DMA tells.
const UNMAP_SIZE: u64 = 16;

impl Container {
    /// Lets all functions reach memory of the program's.
    ///
    /// Errors: `Invalid`, `Exists` for what is mapped, `NoSpace` for too many mappings,
    /// `OutOfMemory` beyond a limit, `BadAddress`.
    pub(super) fn map(&self, at: u64) -> Result<usize> {
        let request: DmaMap = argument::read(at)?;
        let rights = rights(request.flags)?;
        let iova = Iova::new(request.iova, request.size).ok_or(Error::Invalid)?;
        // What is no page of a program's at all.
        if !request.vaddr.is_multiple_of(PAGE_BYTES as u64)
            || request.vaddr.checked_add(request.size - 1).is_none()
        {
            return Err(Error::Invalid);
        }
        self.with(|dma, lent| map(dma, lent, (iova, rights), request.vaddr))?;
        Ok(0)
    }

    /// Takes mappings away, and tells how many bytes those were.
    ///
    /// Errors: `Invalid`, also for a part of a mapping.
    pub(super) fn unmap(&self, at: u64) -> Result<usize> {
        let request: DmaUnmap = argument::read(at)?;
        let iova = match (request.flags, request.iova, request.size) {
            (0, start, bytes) => Iova::new(start, bytes).ok_or(Error::Invalid)?,
            (numbers::UNMAP_FLAG_ALL, 0, 0) => Iova::ALL,
            _ => return Err(Error::Invalid),
        };
        let bytes = self.with(|dma, lent| {
            let taken = dma.mappings.take(iova).map_err(refused)?;
            let sizes = taken.map(|(iova, mapping)| {
                mapping.pinned.give_back(unmap_for_all(lent, iova));
                iova.bytes()
            });
            let bytes = sizes.sum::<u64>();
            // Fewer are never too many.
            dma.tables.count(count_tables(lent), Error::OutOfMemory)?;
            Ok(bytes)
        })?;
        user::write(VirtAddr(at + UNMAP_SIZE), bytes)?;
        Ok(0)
    }
}

fn rights(flags: u32) -> Result<Rights> {
    const BOTH: u32 = numbers::MAP_READ | numbers::MAP_WRITE;
    match flags {
        numbers::MAP_READ => Ok(Rights::Read),
        numbers::MAP_WRITE => Ok(Rights::Write),
        BOTH => Ok(Rights::ReadWrite),
        _ => Err(Error::Invalid),
    }
}

fn refused(refusal: Refusal) -> Error {
    match refusal {
        Refusal::Overlaps => Error::Exists,
        Refusal::TooMany => Error::NoSpace,
        Refusal::Memory => Error::OutOfMemory,
        Refusal::Splits => Error::Invalid,
    }
}

fn map(
    dma: &mut Dma,
    lent: &[Arc<Lent>],
    (iova, rights): (Iova, Rights),
    vaddr: u64,
) -> Result<()> {
    if !dma.is_set {
        return Err(Error::Invalid);
    }
    dma.mappings.make_room::<Heap>(iova).map_err(refused)?;
    if !lent.iter().all(|lent| iova.is_usable(lent.limit())) {
        return Err(Error::Invalid);
    }
    let pinned = Pinned::new(vaddr, iova)?;
    let mapping = Mapping { pinned, rights };
    let mapped = map_for_all(dma, lent, iova, &mapping);
    if let Err(error) = mapped {
        mapping.pinned.give_back(unmap_for_all(lent, iova));
        return Err(error);
    }
    dma.mappings.insert(iova, mapping);
    Ok(())
}

/// Lets all functions reach a mapping; if that fails they may reach some of it.
fn map_for_all(dma: &mut Dma, lent: &[Arc<Lent>], iova: Iova, mapping: &Mapping) -> Result<()> {
    let mut all = lent.iter();
    all.try_for_each(|one| map_for(one, iova, mapping))?;
    dma.tables.count(count_tables(lent), Error::OutOfMemory)
}

/// Lets a function reach a mapping; if that fails it may reach some of it. May let others run.
pub(super) fn map_for(lent: &Lent, iova: Iova, mapping: &Mapping) -> Result<()> {
    if !iova.is_usable(lent.limit()) {
        return Err(Error::Invalid);
    }
    for piece in pieces(iova, mapping.pinned.frames()) {
        let pages = Pages {
            device: piece.device,
            physical: piece.physical,
            bytes: piece.bytes,
            rights: mapping.rights,
        };
        lent.map(pages).map_err(|error| match error {
            LentError::Refused => Error::OutOfMemory,
            LentError::Stuck => Error::Io,
        })?;
        sched::resched_point();
    }
    Ok(())
}

/// Takes it from all; false if one may still reach it.
fn unmap_for_all(lent: &[Arc<Lent>], iova: Iova) -> bool {
    let take = |is_out, one: &Arc<Lent>| one.unmap(iova.start(), iova.bytes()) && is_out;
    lent.iter().fold(true, take)
}
