//! The pages of one inode, and what is below them.

use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use base::PAGE_BYTES;
use mach::sync::Spin;
use mm::{Page, garbage};
use pagecache::{Failures, Index, Mark, Streams};
use sync::{Mutex, Result};

use crate::memory;

/// Which pages a file keeps.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Keeps {
    /// All that memory has room for: nobody else changes what is below.
    All,
    /// Those that programs map.
    Mapped,
}

/// What is below the pages of a file. All of it may block.
pub trait Backing: Send + Sync {
    /// The pages.
    fn cache(&self) -> &Cache;

    /// Which of them are kept.
    fn keeps(&self) -> Keeps;

    /// Bytes of the file.
    fn size(&self) -> Result<u64>;

    /// Bytes that one call moves well.
    fn piece_bytes(&self) -> usize;

    /// Fills whole pages, from page `first` on, with zeroes where the file ends; whether all of
    /// them have their room.
    fn fill(&self, first: u64, pages: &[Page]) -> Result<bool>;

    /// Fills `into` from `offset` on; returns how many bytes there were, none at the end.
    fn fetch(&self, offset: u64, into: &mut [u8]) -> Result<usize>;

    /// Stores `data`, or the beginning of it where there is no room for all; returns how much.
    fn store(&self, offset: u64, data: &[u8]) -> Result<usize>;

    /// Stores pages, from page `first` on, as far as the file has `size` bytes; returns how many of
    /// them, from the first on, have all their room then.
    fn bring(&self, first: u64, pages: &[Page], size: u64) -> Result<u64>;

    /// Promises room below to so many pages; false if there may be too little. Never blocks.
    fn promise(&self, _pages: u64) -> bool {
        true
    }

    /// So many promised pages have their room, or need none any more. Never blocks.
    fn release(&self, _pages: u64) {}

    /// Has pages brought down that room was promised to, of other files too.
    fn settle_promises(&self) {}

    /// Finds room below for a page at once, within its bytes and behind the end; while these and the size are kept as they are.
    fn reserve_page(&self, _page: u64) -> Result<()> {
        Ok(())
    }

    /// Bytes were written up to `end`: the file has so many at least. Never blocks, nor asks for
    /// pages.
    fn grow(&self, _end: u64) {}

    /// Its bytes have changed and are not below yet: somebody has to see to it. Never blocks.
    fn changed(&self) {}
}

/// The pages of one inode.
#[derive(Default)]
pub struct Cache {
    pub(crate) pages: Spin<Index<Page>>,
    /// Held while bytes or size change, and while a page is filled.
    pub(crate) writing: Mutex<()>,
    /// Held while dirty pages are brought down.
    pub(crate) flushing: Mutex<()>,
    /// Areas of programs that show it.
    pub(crate) shown: AtomicUsize,
    pub(crate) streams: Spin<Streams>,
    failures: Spin<Failures>,
    /// Pages written to since somebody last looked at how much is dirty.
    pub(crate) unchecked: AtomicUsize,
    /// Where pages are looked for that are given up.
    hand: AtomicU64,
}

/// What names an inode's memory in all address spaces.
pub(crate) fn identity(of: &dyn Backing) -> usize {
    core::ptr::from_ref(of).cast::<()>().addr()
}

impl Cache {
    /// Areas of programs that show it.
    pub fn shown(&self) -> &AtomicUsize {
        &self.shown
    }

    pub(crate) fn is_shown(&self) -> bool {
        self.shown.load(Ordering::SeqCst) != 0
    }

    /// Keeps the file's bytes and size as they are while `act` changes what is below.
    pub fn alone<T>(&self, act: impl FnOnce() -> Result<T>) -> Result<T> {
        let _writing = self.writing.lock();
        let _flushing = self.flushing.lock();
        act()
    }

    /// Keeps the file's blocks where they are while `act` reads them.
    pub fn unmoved<T>(&self, act: impl FnOnce() -> Result<T>) -> Result<T> {
        let _flushing = self.flushing.lock();
        act()
    }

    /// A page, if it is there.
    pub(crate) fn page(&self, index: u64) -> Option<Page> {
        let mut pages = self.pages.lock();
        let mut slot = pages.slot(index)?;
        slot.set(Mark::Used);
        slot.page().cloned()
    }

    /// Adds a page that was not there.
    pub(crate) fn add(&self, index: u64, page: Page) {
        let before = self.pages.lock().insert(index, page);
        memory::count_pages(1 - i64::from(before.is_some()));
    }

    /// Whether anything is dirty.
    pub fn is_dirty(&self) -> bool {
        self.pages.lock().count(Mark::Dirty) != 0
    }

    /// Pages that room was promised to.
    pub fn promised(&self) -> u64 {
        self.pages.lock().count(Mark::Promised) as u64
    }

    pub(crate) fn note_failure(&self) {
        self.failures.lock().note();
    }

    /// Up to which failed write-back an open file that begins now has heard.
    pub fn failures_heard(&self) -> u32 {
        self.failures.lock().heard_at_open()
    }

    /// Whether one has failed since an open file has heard up to `heard`; now it has.
    pub fn tell_failures(&self, heard: &mut u32) -> bool {
        self.failures.lock().tell(heard)
    }

    /// Gives up clean pages that nobody uses, until `wanted` are gone or all were looked at once;
    /// returns how many.
    pub fn give_up(&self, wanted: usize) -> usize {
        let start = self.hand.load(Ordering::Relaxed);
        let (mut from, mut has_wrapped, mut gone) = (start, false, 0);
        while gone < wanted && !(has_wrapped && from >= start) {
            let looked = self.pages.lock().give_up(from, Page::is_unique);
            match looked {
                Some((some, next)) => (gone, from) = (gone + some, next),
                None if has_wrapped => break,
                None => (from, has_wrapped) = (0, true),
            }
            sched::resched_point();
        }
        self.hand.store(from, Ordering::Relaxed);
        memory::count_pages(-(gone as i64));
        gone
    }

    /// Pages that the file has lost go; returns to how many of them room was promised.
    pub fn discard_all(&self) -> u64 {
        let pages = core::mem::take(&mut *self.pages.lock());
        self.discard(pages)
    }

    pub(crate) fn discard(&self, gone: Index<Page>) -> u64 {
        if gone.is_empty() {
            return 0;
        }
        let promised = gone.count(Mark::Promised) as u64;
        memory::count_pages(-(gone.len() as i64));
        memory::count_dirty(-(gone.count(Mark::Dirty) as i64));
        garbage::discard(Heap(gone));
        promised
    }
}

impl Drop for Cache {
    fn drop(&mut self) {
        self.discard_all();
    }
}

/// Pages on their way out.
struct Heap(Index<Page>);

impl garbage::Pages for Heap {
    fn len(&self) -> usize {
        self.0.len()
    }

    fn pop(&mut self) -> Option<Page> {
        self.0.pop()
    }
}

impl From<Heap> for garbage::Heap {
    fn from(pages: Heap) -> Self {
        Self::Others(alloc::boxed::Box::new(pages))
    }
}

/// The part of a range of bytes that lies in one page, by its offsets there.
pub(crate) fn part_of(index: u64, bytes: &core::ops::Range<u64>) -> core::ops::Range<usize> {
    let start = index * crate::PAGE;
    let from = bytes.start.saturating_sub(start).min(PAGE_BYTES as u64);
    let until = bytes.end.saturating_sub(start).min(PAGE_BYTES as u64);
    from as usize..until.max(from) as usize
}
