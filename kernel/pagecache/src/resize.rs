//! Pages that a file loses, and bytes that become zeroes.

use core::ops::Range;

use base::PAGE_BYTES;
use pagecache::Mark;
use sync::Result;

use crate::cache::{Backing, identity, part_of};
use crate::{PAGE, memory};

/// Sets the size: `set` does it below, then programs lose the pages beyond. What of the file is not
/// below yet when `set` is called, is lost with them or still dirty afterwards.
pub fn resize(of: &dyn Backing, size: u64, set: impl FnOnce() -> Result<()>) -> Result<()> {
    let cache = of.cache();
    let _writing = cache.writing.lock();
    let _flushing = cache.flushing.lock();
    set()?;
    let gone = {
        let mut pages = cache.pages.lock();
        if let Some(page) = pages.get(size / PAGE) {
            page.zero((size % PAGE) as usize..PAGE_BYTES);
        }
        // Blocks of it may be gone.
        pages.clear(size / PAGE, Mark::Settled);
        pages.split_off(size.div_ceil(PAGE))
    };
    of.release(cache.discard(gone));
    if cache.is_shown() {
        mm::forget_beyond(identity(of), size);
    }
    Ok(())
}

/// Zeroes what is kept of a range, which what is below has zeroed already.
pub fn zero(of: &dyn Backing, bytes: Range<u64>) {
    let cache = of.cache();
    let indices = bytes.start / PAGE..bytes.end.div_ceil(PAGE);
    let whole = bytes.start.div_ceil(PAGE)..bytes.end / PAGE;
    of.release(unmark(of, indices.clone(), &whole));
    if cache.is_shown() {
        mm::protect_pages(identity(of), indices.clone());
    }
    let pages = cache.pages.lock();
    pages.each(indices, &mut |index, page| {
        page.zero(part_of(index, &bytes))
    });
}

/// Pages of which nothing is to be brought down any more; returns to how many room was promised.
/// The room of the others may be gone in part.
fn unmark(of: &dyn Backing, indices: Range<u64>, whole: &Range<u64>) -> u64 {
    let mut pages = of.cache().pages.lock();
    let (mut dirty, mut promised) = (0, 0);
    let mut next = pages.next(indices.start);
    while let Some(index) = next.filter(|index| *index < indices.end) {
        pages.clear(index, Mark::Settled);
        if whole.contains(&index) {
            dirty += i64::from(pages.clear(index, Mark::Dirty));
            promised += u64::from(pages.clear(index, Mark::Promised));
            pages.clear(index, Mark::Stored);
        }
        next = pages.next(index + 1);
    }
    drop(pages);
    memory::count_dirty(-dirty);
    promised
}
