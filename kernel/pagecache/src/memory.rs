//! Where pages come from, and the machine's figures.
//!
//! Pages of files may take what memory is free, but for a part that stays for everything that
//! cannot ask others to give something up. Who needs a page when less is free has others give up
//! some, in all file systems, before it takes one.

use core::sync::atomic::{AtomicI64, Ordering::Relaxed};

use mm::{Page, reclaim};
use sync::{Error, Result};

/// Memory that stays free is one part in so many.
const FREE_SHARE: u64 = 10;
/// Pages that are given up at once, at least.
const GIVEN_UP: u64 = 512;

/// Pages that there are. Memory is the machine's, and so are these figures.
static PAGES: AtomicI64 = AtomicI64::new(0);
/// Dirty ones of the machine.
static DIRTY: AtomicI64 = AtomicI64::new(0);
/// Those of the machine that are on their way down.
static UNDER_WAY: AtomicI64 = AtomicI64::new(0);

/// Pages of files, of the whole machine.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PageCounts {
    /// All.
    pub pages: u64,
    /// Those that what is below has not got yet.
    pub dirty: u64,
    /// Those on their way there.
    pub under_way: u64,
}

/// How many there are now.
pub fn counts() -> PageCounts {
    let of = |count: &AtomicI64| count.load(Relaxed).max(0) as u64;
    PageCounts {
        pages: of(&PAGES),
        dirty: of(&DIRTY),
        under_way: of(&UNDER_WAY),
    }
}

/// Pages that there could be: what is free, and those that there are.
pub(crate) fn available() -> u64 {
    mach::mem::stats().free + counts().pages
}

pub(crate) fn count_pages(change: i64) {
    PAGES.fetch_add(change, Relaxed);
}

pub(crate) fn count_dirty(change: i64) {
    DIRTY.fetch_add(change, Relaxed);
}

pub(crate) fn count_under_way(change: i64) {
    UNDER_WAY.fetch_add(change, Relaxed);
}

/// Sees to it that there is room for `pages` more, as far as others have something to give up.
pub(crate) fn make_room(pages: u64) {
    let memory = mach::mem::stats();
    let kept = memory.total / FREE_SHARE;
    if memory.free >= kept + pages || PAGES.load(Relaxed) < GIVEN_UP as i64 {
        return;
    }
    let missing = kept + pages - memory.free;
    vfs::mount::give_up_pages(missing.max(GIVEN_UP) as usize);
}

/// A page full of zeroes.
pub(crate) fn zeroed() -> Result<Page> {
    reclaim::with_shrunken_caches(|| Page::zeroed().ok_or(Error::OutOfMemory))
}

/// A page to be filled.
pub(crate) fn fresh() -> Result<Page> {
    reclaim::with_shrunken_caches(|| Page::alloc().ok_or(Error::OutOfMemory))
}
