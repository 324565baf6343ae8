//! A child's copy of an address space.
//!
//! Areas are copied one by one, their page tables piece by piece; meanwhile the whole space is
//! under change (`change`), so that no thread sees one half before the fork and one after it.
//!
//! Pinned pages (`pin`) stay the parent's as they are; the child gets copies at once. Of files that are mapped
//! shared it gets no page-table entries.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ops::Range;

use base::VirtAddr;
use mach::mem::fallible::TryGrow;
use mach::mem::{Gather, PageTable};
use sync::{Error, Result};
use vma::Area;

use super::address_space::{prot, release};
use super::{AddressSpace, Object, Page};
use crate::refusal::refused;

impl AddressSpace {
    /// A copy for a forked process; private memory is shared until either side writes.
    pub fn fork(&self) -> Result<Arc<Self>> {
        let state = self.lock_settled();
        let child = Self::new(state.layout)?;
        {
            let mut copy = child.lock();
            copy.heap = state.heap.clone();
            copy.large = state.large;
        }
        let table = self.table()?;
        let copied = self.in_pieces_of_areas(state, &mut |state, piece| {
            // One for all areas of the piece: other CPUs are interrupted once for them.
            let mut gather = Gather::new(table);
            let mut areas = state.areas.overlapping(piece.clone());
            areas.try_for_each(|area| self.copy_part(&child, area, area.clip(&piece), &mut gather))
        });
        match copied {
            Ok((state, ())) => drop(state),
            Err(error) => {
                release(child);
                return Err(error);
            }
        }
        Ok(child)
    }

    /// Copies the pages of an area in `part`, and with the first of them the area.
    fn copy_part(
        &self,
        child: &Self,
        area: &Area<Object>,
        part: Range<VirtAddr>,
        gather: &mut Gather,
    ) -> Result<()> {
        if area.traits.no_fork {
            return Ok(());
        }
        if part.start == area.start {
            let mut inherited = area.clone();
            inherited.traits.locked = false;
            inherited.traits.pinned = false;
            let mut copy = child.lock();
            copy.promise.grow(inherited.promised_bytes())?;
            copy.areas.insert(inherited).map_err(refused)?;
        }
        if area.traits.wipe_on_fork || is_looked_for(area) {
            return Ok(());
        }
        let (table, below) = (self.table()?, child.table()?);
        if area.traits.pinned && !area.traits.shared {
            return copy_pages(table, below, area, part);
        }
        let private = !area.traits.shared;
        if table.share_with(below, part.start, part.end, private, gather) {
            Ok(())
        } else {
            Err(Error::OutOfMemory)
        }
    }
}

/// Whether somebody looks for all who show the area's object, to take pages or the right to store from them
/// (`truncate`). A child is not found before it is a process, so it gets no entries, and faults.
fn is_looked_for(area: &Area<Object>) -> bool {
    let backing = area.backing.as_ref().filter(|_| area.traits.shared);
    backing.is_some_and(|backing| backing.object.memory.shown().is_some())
}

/// Copies the pages in `part` of a pinned area.
fn copy_pages(
    table: &PageTable,
    below: &PageTable,
    area: &Area<Object>,
    part: Range<VirtAddr>,
) -> Result<()> {
    let mut count = 0;
    table.for_each(part.start, part.end, &mut |_, _, _| count += 1);
    let mut pages = Vec::new();
    pages.make_room(count)?;
    let mut is_complete = true;
    table.for_each(
        part.start,
        part.end,
        &mut |at, page, _| match Page::copy_of(page) {
            Some(copy) => pages.push((at, copy)),
            None => is_complete = false,
        },
    );
    for (at, copy) in pages {
        let mapped = below.with_leaf(at, |leaf| leaf.map(at, copy, prot(area.access)).is_ok());
        is_complete &= mapped == Ok(true);
    }
    is_complete.then_some(()).ok_or(Error::OutOfMemory)
}
