//! Pages that a file loses, and bytes that become zeroes.

use core::ops::Range;

use base::PAGE_BYTES;
use sync::Result;

use crate::PAGE;
use crate::cache::{Backing, identity, part_of};

/// Sets the size: `set` does it below, then programs lose the pages beyond.
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
        pages.split_off(size.div_ceil(PAGE))
    };
    cache.discard(gone);
    if cache.is_shown() {
        mm::forget_beyond(identity(of), size);
    }
    Ok(())
}

/// Zeroes what is kept of a range, which what is below has zeroed already.
pub fn zero(of: &dyn Backing, bytes: Range<u64>) {
    let pages = of.cache().pages.lock();
    let indices = bytes.start / PAGE..bytes.end.div_ceil(PAGE);
    pages.each(indices, &mut |index, page| {
        page.zero(part_of(index, &bytes))
    });
}
