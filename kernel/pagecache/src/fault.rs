//! Pages for programs' mappings (`mm::MemoryObject`, which an inode is by means of these).

use core::ops::Range;

use mm::{FaultError, Page};
use pagecache::Mark;
use sync::Error;

use crate::cache::{Backing, Cache};
use crate::memory;
use crate::read::bring_in;

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
/// Errors: `Bus` where below is no room for it.
pub fn stored(of: &dyn Backing, index: u64) -> Result<(), FaultError> {
    {
        let mut pages = of.cache().pages.lock();
        let has_room = pages.has(index, Mark::Settled) || pages.has(index, Mark::Promised);
        if pages.get(index).is_some() && !has_room {
            if !of.promise(1) {
                return Err(FaultError::Bus);
            }
            pages.set(index, Mark::Promised);
        }
        pages.set(index, Mark::Stored);
        if pages.set(index, Mark::Dirty) {
            memory::count_dirty(1);
        }
    }
    of.changed();
    Ok(())
}
