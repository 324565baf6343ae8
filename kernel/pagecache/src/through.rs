//! write(2) straight through to what is below, and into the pages that are kept: where others see
//! what is below, and where there is so little room that only what is below knows of it.

use core::ops::Range;

use mach::mem::fallible;
use mm::io::{Source, partial};
use pagecache::Mark;
use sync::{Error, Result};

use crate::PAGE;
use crate::cache::{Backing, part_of};
use crate::write::Start;

/// Writes all of it.
pub(crate) fn write(of: &dyn Backing, start: Start, from: &mut Source<'_>) -> Result<usize> {
    let mut written = 0;
    while from.remaining() > 0 {
        let mut piece = fallible::zeroed(from.remaining().min(of.piece_bytes()))?;
        let stored = from.take(&mut piece).and_then(|count| {
            let cache = of.cache();
            let _writing = cache.writing.lock();
            let stored = store(
                of,
                start.after(of, written)?,
                piece.get(..count).unwrap_or(&[]),
            )?;
            from.rewind(count - stored);
            Ok(stored)
        });
        match stored {
            Ok(count) => written += count,
            Err(error) => return partial(written, error),
        }
    }
    Ok(written)
}

/// Stores `data` at `start`; returns how much of it there was room for. `writing` is held.
pub(crate) fn store(of: &dyn Backing, start: u64, data: &[u8]) -> Result<usize> {
    let cache = of.cache();
    // A page that is on its way down has the bytes of before.
    let _flushing = cache.flushing.lock();
    start
        .checked_add(data.len() as u64)
        .ok_or(Error::FileTooLarge)?;
    let stored = of.store(start, data)?;
    show(of, start..start + stored as u64, data);
    of.grow(start + stored as u64);
    Ok(stored)
}

/// Stores what is below now also in the pages that are kept.
fn show(of: &dyn Backing, bytes: Range<u64>, data: &[u8]) {
    let mut pages = of.cache().pages.lock();
    let indices = bytes.start / PAGE..bytes.end.div_ceil(PAGE);
    pages.each(indices.clone(), &mut |index, page| {
        let part = part_of(index, &bytes);
        let from = (index * PAGE + part.start as u64 - bytes.start) as usize;
        let data = data.get(from..from + part.len());
        page.write(part.start, data.unwrap_or(&[]));
    });
    for index in indices {
        pages.set(index, Mark::Used);
    }
}
