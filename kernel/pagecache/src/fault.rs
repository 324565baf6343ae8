//! Pages for programs' mappings (`mm::MemoryObject`, which an inode is by means of these).

use core::ops::Range;

use mm::{FaultError, Page};
use pagecache::{Index, Mark, Slot};
use sync::Error;

use crate::PAGE;
use crate::cache::{Backing, Cache};
use crate::memory;
use crate::read::bring_in;
use crate::write::has_room;

/// A page for a mapping; may block.
pub fn page(of: &dyn Backing, index: u64) -> Result<Page, FaultError> {
    if let Some(page) = of.cache().page(index) {
        return Ok(page);
    }
    match bring_in(of, index, 1) {
        Ok(Some(page)) => Ok(page),
        Err(Error::OutOfMemory) => Err(FaultError::OutOfMemory),
        Ok(None) | Err(_) => Err(FaultError::Bus),
    }
}

/// The same, if it is there.
pub fn ready_page(cache: &Cache, index: u64) -> Option<Page> {
    cache.page(index)
}

/// Shows those that are there.
pub fn ready_pages(cache: &Cache, pages: Range<u64>, give: &mut dyn FnMut(u64, &Page)) {
    cache.pages.lock().each(pages, give);
}

/// A program is about to store to a page, and will not say so again. Never blocks.
///
/// Errors: `NoRoom` where below may be none for it.
pub fn mark_dirty(of: &dyn Backing, index: u64) -> Result<(), FaultError> {
    let mut pages = of.cache().pages.lock();
    if !find_room(of, &mut pages, index) {
        return Err(FaultError::NoRoom);
    }
    mark(pages.slot(index));
    drop(pages);
    of.changed();
    Ok(())
}

/// The kernel has stored for a program what was permitted before. If its room is gone meanwhile write-back says so.
pub fn mark_stored(of: &dyn Backing, index: u64) {
    let mut pages = of.cache().pages.lock();
    find_room(of, &mut pages, index);
    mark(pages.slot(index));
    drop(pages);
    of.changed();
}

/// Gets room for a page at once, where promises are refused before the disk is full. May block.
pub fn make_room(of: &dyn Backing, index: u64) -> Result<(), FaultError> {
    of.settle_promises();
    let made = of.cache().alone(|| reserve(of, index));
    made.map_err(|error| match error {
        Error::OutOfMemory => FaultError::OutOfMemory,
        _ => FaultError::NoRoom,
    })
}

fn reserve(of: &dyn Backing, index: u64) -> sync::Result<()> {
    if index * PAGE < of.size()? {
        of.reserve_page(index)?;
        of.cache().pages.lock().set(index, Mark::Settled);
    }
    Ok(())
}

/// Whether a page has its room, was promised it or is now, or is not there.
fn find_room(of: &dyn Backing, pages: &mut Index<Page>, index: u64) -> bool {
    let Some(mut slot) = pages.slot(index).filter(|slot| !has_room(slot)) else {
        return true;
    };
    let is_promised = of.promise(1);
    if is_promised {
        slot.set(Mark::Promised);
    }
    is_promised
}

fn mark(slot: Option<Slot<'_, Page>>) {
    if let Some(mut slot) = slot {
        slot.set(Mark::Stored);
        memory::count_dirty(i64::from(slot.set(Mark::Dirty)));
    }
}
