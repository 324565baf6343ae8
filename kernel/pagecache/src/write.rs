//! write(2): through to what is below, and into the pages that are kept.

use mach::mem::fallible;
use mm::io::{Source, partial};
use pagecache::Mark;
use sync::{Error, Result};
use vfs::file::{OpenFile, StatusFlags};

use crate::PAGE;
use crate::cache::{Backing, part_of};

/// Writes at `offset`, or at the end if the open file says so.
pub fn write_at(
    of: &dyn Backing,
    open: &OpenFile,
    offset: u64,
    from: &mut Source<'_>,
) -> Result<usize> {
    let appends = open.flags().contains(StatusFlags::APPEND);
    let mut written = 0;
    while from.remaining() > 0 {
        let mut piece = fallible::zeroed(from.remaining().min(of.piece_bytes()))?;
        let at = (!appends).then_some(offset + written as u64);
        let stored = from.take(&mut piece).and_then(|count| {
            write_through(of, at, piece.get(..count).unwrap_or(&[]))?;
            Ok(count)
        });
        match stored {
            Ok(count) => written += count,
            Err(error) => return partial(written, error),
        }
    }
    Ok(written)
}

/// Writes at `offset`, or at the end.
fn write_through(of: &dyn Backing, offset: Option<u64>, data: &[u8]) -> Result<()> {
    let cache = of.cache();
    let _writing = cache.writing.lock();
    // A page that is on its way down has the bytes of before.
    let _flushing = cache.flushing.lock();
    let start = match offset {
        Some(offset) => offset,
        None => of.size()?,
    };
    let end = start.checked_add(data.len() as u64);
    let bytes = start..end.ok_or(Error::FileTooLarge)?;
    of.store(start, data)?;
    let mut pages = cache.pages.lock();
    let indices = start / PAGE..bytes.end.div_ceil(PAGE);
    pages.each(indices.clone(), &mut |index, page| {
        let part = part_of(index, &bytes);
        let from = (index * PAGE + part.start as u64 - start) as usize;
        let data = data.get(from..from + part.len());
        page.write(part.start, data.unwrap_or(&[]));
    });
    for index in indices {
        pages.set(index, Mark::Used);
    }
    Ok(())
}
