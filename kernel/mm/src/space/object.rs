//! What can be mapped into an address space besides private anonymous memory.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::any::Any;
use core::ops::Range;
use core::sync::atomic::{AtomicUsize, Ordering::SeqCst};

use hal::caching::Caching;

use super::FaultError;
pub use mach::mem::Page;

/// How a mapping sees a page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Sharing {
    /// Every later store of anybody must be visible (`MAP_SHARED`).
    Shared,
    /// Mapped read-only and copied before the first store (`MAP_PRIVATE`): the object
    /// may give out a page that must never change, such as one of the boot image.
    Private,
}

/// How far pages are brought.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Synced {
    /// To where they are kept, which a loss of power may undo.
    Written,
    /// For good (`MS_SYNC`).
    Durable,
}

/// Bytes in pages: a file, shared anonymous memory.
pub trait MemoryObject: Send + Sync {
    /// The page with the bytes from `index` * 4096 on; may block while it is read in.
    ///
    /// `Bus` for a page wholly beyond the end.
    fn page(&self, index: u64, sharing: Sharing) -> Result<Page, FaultError>;

    /// As [`MemoryObject::page`], for a page that is at hand: never blocks, takes no
    /// sleeping lock, makes no new page. A fault maps neighbours that are ready.
    fn ready_page(&self, _index: u64, _sharing: Sharing) -> Option<Page> {
        None
    }

    /// Calls `give` with those of `pages` that are ready, as [`MemoryObject::ready_page`]
    /// has them. `give` takes no lock.
    fn ready_pages(&self, pages: Range<u64>, sharing: Sharing, give: &mut dyn FnMut(u64, &Page)) {
        for index in pages {
            if let Some(page) = self.ready_page(index, sharing) {
                give(index, &page);
            }
        }
    }

    /// Its size in bytes.
    fn size(&self) -> u64;

    /// A program is about to store to a shared page; called before the first store
    /// after each [`protect_pages`](super::protect_pages) and [`MemoryObject::sync`]. Must not block.
    ///
    /// `NoRoom` where it may not.
    fn mark_dirty(&self, _index: u64) -> Result<(), FaultError> {
        Ok(())
    }

    /// The kernel has stored for a program what [`MemoryObject::mark_dirty`] permitted: the page is dirty
    /// again, even if its room is gone meanwhile. Must not block.
    fn mark_stored(&self, index: u64) {
        let _ = self.mark_dirty(index);
    }

    /// Gets room for a page that `mark_dirty` had none for; may block.
    fn make_room(&self, _index: u64) -> Result<(), FaultError> {
        Err(FaultError::NoRoom)
    }

    /// Brings dirty pages of a range of bytes to where they are kept; blocks.
    fn sync(&self, _bytes: Range<u64>, _how: Synced) -> sync::Result<()> {
        Ok(())
    }

    /// How the processor caches its pages; asked for where they are mapped shared.
    fn caching(&self) -> Caching {
        Caching::WriteBack
    }

    /// How many areas show it, or are about to; `None` where nobody asks.
    fn shown(&self) -> Option<&AtomicUsize> {
        None
    }

    /// What it is, where somebody has to know.
    fn as_any(&self) -> Option<&dyn Any> {
        None
    }

    /// Whether its pages may be held by others for good: nobody takes them out, seals them, or has to
    /// hear of each store to them.
    fn may_be_pinned(&self) -> bool {
        false
    }

    /// Its name for people where no file is mapped (`[vdso]`).
    fn label(&self) -> &'static str {
        ""
    }
}

/// The open file that something was mapped through, which stays open as long. What that is, those
/// above know; here it is only kept.
pub type MappedFile = Arc<dyn Any + Send + Sync>;

/// A memory object as an area holds it, with the open file it was mapped through.
///
/// Invariant: the object's count of areas ([`MemoryObject::shown`]) is the number of these.
#[non_exhaustive]
pub struct Object {
    /// The pages.
    pub memory: Arc<dyn MemoryObject>,
    /// The open file that stays open as long as the area.
    pub file: Option<MappedFile>,
}

impl Clone for Object {
    fn clone(&self) -> Self {
        Self::new(self.memory.clone(), self.file.clone())
    }
}

impl Drop for Object {
    fn drop(&mut self) {
        if let Some(shown) = self.memory.shown() {
            shown.fetch_sub(1, SeqCst);
        }
    }
}

impl Object {
    /// The object for one area, mapped through `file` if it was.
    pub fn new(memory: Arc<dyn MemoryObject>, file: Option<MappedFile>) -> Self {
        if let Some(shown) = memory.shown() {
            shown.fetch_add(1, SeqCst);
        }
        Self { memory, file }
    }

    fn opening(&self) -> Option<usize> {
        self.file.as_ref().map(|file| Arc::as_ptr(file).addr())
    }

    /// What names the object in all address spaces: its address.
    pub fn identity(&self) -> usize {
        Arc::as_ptr(&self.memory).addr()
    }
}

impl PartialEq for Object {
    /// Areas that are alike become one, which keeps one of the two objects, so the other must be no more than
    /// another reference to the same opening: the last one would close it under the lock of the space.
    fn eq(&self, other: &Self) -> bool {
        self.identity() == other.identity() && self.opening() == other.opening()
    }
}

/// Pages that exist already and never change places: the vDSO.
pub struct FixedPages {
    label: &'static str,
    pages: Vec<Page>,
}

impl FixedPages {
    /// An object of these pages.
    pub fn new(label: &'static str, pages: Vec<Page>) -> Self {
        Self { label, pages }
    }
}

impl MemoryObject for FixedPages {
    fn page(&self, index: u64, sharing: Sharing) -> Result<Page, FaultError> {
        self.ready_page(index, sharing).ok_or(FaultError::Bus)
    }

    fn ready_page(&self, index: u64, _: Sharing) -> Option<Page> {
        self.pages.get(usize::try_from(index).ok()?).cloned()
    }

    fn size(&self) -> u64 {
        (self.pages.len() * base::PAGE_BYTES) as u64
    }

    fn label(&self) -> &'static str {
        self.label
    }
}
