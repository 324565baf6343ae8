//! write(2) into pages.
//!
//! Bytes go from the program's memory to their page, which is marked then. A page that has no room
//! below yet is promised some first: who hears that there is none has not written anything.
//! Where room becomes scarce promises are refused before the disk is full; then all that was
//! promised is brought down, and what is still refused goes through (`through`), where the
//! disk itself says what fits.
//!
//! `writing` is held from one fault to the next, for all of a call as a rule: of two writes one is
//! wholly before the other. A page of the program's that is not there is brought in
//! without the lock.

use core::ops::Range;

use base::PAGE_BYTES;
use mm::Page;
use mm::io::{Source, partial};
use pagecache::{Mark, Slot};
use sync::{Error, Result};
use vfs::file::{OpenFile, StatusFlags};

use crate::cache::{Backing, Keeps, part_of};
use crate::read::bring_in_alone;
use crate::{PAGE, flusher, memory, through};

/// Bytes that go through at once.
const THROUGH_BYTES: usize = 16 << 10;

/// Where a write begins.
#[derive(Clone, Copy)]
pub(crate) enum Start {
    At(u64),
    AtEnd,
}

impl Start {
    /// Where it goes on after `written` bytes.
    pub(crate) fn after(self, of: &dyn Backing, written: usize) -> Result<u64> {
        match self {
            Self::At(offset) => offset
                .checked_add(written as u64)
                .ok_or(Error::FileTooLarge),
            Self::AtEnd => of.size(),
        }
    }
}

/// Writes at `offset`, or at the end if the open file says so.
pub fn write_at(
    of: &dyn Backing,
    open: &OpenFile,
    offset: u64,
    from: &mut Source<'_>,
) -> Result<usize> {
    let start = match open.flags().contains(StatusFlags::APPEND) {
        true => Start::AtEnd,
        false => Start::At(offset),
    };
    match of.keeps() {
        Keeps::Mapped => through::write(of, start, from),
        Keeps::All => write_pages(of, start, from),
    }
}

fn write_pages(of: &dyn Backing, start: Start, from: &mut Source<'_>) -> Result<usize> {
    let before = from.done();
    loop {
        let result = write_until_fault(of, start, before, from);
        if from.done() != before {
            of.changed();
        }
        let result = result.and_then(|()| match from.is_faulted() {
            true => from.resolve(),
            false => Ok(()),
        });
        match result {
            Ok(()) if from.remaining() != 0 => {}
            Ok(()) => return Ok(from.done() - before),
            Err(error) => return partial(from.done() - before, error),
        }
    }
}

/// Writes until all is written or a page of the program's is missing.
fn write_until_fault(
    of: &dyn Backing,
    start: Start,
    before: usize,
    from: &mut Source<'_>,
) -> Result<()> {
    let _writing = of.cache().writing.lock();
    let mut at = start.after(of, from.done() - before)?;
    while from.remaining() != 0 && !from.is_faulted() {
        let count = write_page(of, at, from)?;
        at += count as u64;
        flusher::throttle(of, 1);
    }
    Ok(())
}

/// Writes into one page, as far as the bytes can be had.
fn write_page(of: &dyn Backing, at: u64, from: &mut Source<'_>) -> Result<usize> {
    let (index, within) = (at / PAGE, (at % PAGE) as usize);
    let len = (PAGE_BYTES - within).min(from.remaining());
    let Some(promised) = promise(of, index) else {
        return write_through(of, at, from);
    };
    let written = target(of, index, within, len).and_then(|(page, is_new)| {
        let count = from.try_take_page(&page, within, len);
        // Of a page that was to be new all over, the rest would have to be read.
        if is_new && count < len && (len == PAGE_BYTES || index * PAGE < of.size()?) {
            from.rewind_from_fault(count);
            return Ok(0);
        }
        let bytes = at..at + count as u64;
        if count != 0 && !mark(of, bytes, &page, is_new, promised) {
            from.rewind(count);
            let stored = write_through(of, at, from);
            // What found no room must not show when the file grows.
            page.zero(part_of(index, &(of.size()?..u64::MAX)));
            return stored;
        }
        Ok(count)
    });
    if promised && !matches!(written, Ok(1..)) {
        of.release(1);
    }
    written
}

/// Whether the page is promised room now; `None` where that is refused.
fn promise(of: &dyn Backing, index: u64) -> Option<bool> {
    {
        let mut pages = of.cache().pages.lock();
        if pages.slot(index).is_some_and(|slot| has_room(&slot)) {
            return Some(false);
        }
    }
    if of.promise(1) {
        return Some(true);
    }
    of.settle_promises();
    of.promise(1).then_some(true)
}

/// The page to write to, and whether it is new: with no byte of the file's.
fn target(of: &dyn Backing, index: u64, within: usize, len: usize) -> Result<(Page, bool)> {
    if let Some(page) = of.cache().page(index) {
        return Ok((page, false));
    }
    let size = of.size()?;
    let covers = within == 0 && (len == PAGE_BYTES || index * PAGE + len as u64 >= size);
    if index * PAGE >= size || covers {
        let page = match len == PAGE_BYTES {
            true => memory::fresh()?,
            false => memory::zeroed()?,
        };
        return Ok((page, true));
    }
    match bring_in_alone(of, index, 1)? {
        Some(page) => Ok((page, false)),
        None => Err(Error::Io),
    }
}

/// A page has `bytes` of the file that are not below. The caller holds it until then: else it could
/// be given up before (**Held is kept**). False where there is no room for it below, and nothing is marked then.
fn mark(
    of: &dyn Backing,
    bytes: Range<u64>,
    page: &Page,
    is_new: bool,
    mut is_promised: bool,
) -> bool {
    let index = bytes.start / PAGE;
    let mut pages = of.cache().pages.lock();
    // Who brought it down meanwhile has used the promise that it had, or it was given up.
    if !is_promised && !pages.slot(index).is_some_and(|slot| has_room(&slot)) {
        is_promised = of.promise(1);
        if !is_promised {
            return false;
        }
    }
    // Who finds the page dirty finds the size, too: beyond it nothing is brought down.
    of.grow(bytes.end);
    if is_new {
        let before = pages.insert(index, page.clone());
        memory::count_pages(i64::from(before.is_none()));
    }
    let (mut is_counted, mut is_dirtied) = (false, false);
    if let Some(mut slot) = pages.slot(index) {
        slot.set(Mark::Used);
        is_counted = is_promised && slot.set(Mark::Promised);
        is_dirtied = slot.set(Mark::Dirty);
    }
    drop(pages);
    memory::count_dirty(i64::from(is_dirtied));
    // A program has stored to its mapping of the page meanwhile.
    if is_promised && !is_counted {
        of.release(1);
    }
    true
}

/// Whether it needs no promise.
pub(crate) fn has_room(slot: &Slot<'_, Page>) -> bool {
    slot.has(Mark::Settled) || slot.has(Mark::Promised)
}

/// Writes some bytes where there may be no room for them.
fn write_through(of: &dyn Backing, at: u64, from: &mut Source<'_>) -> Result<usize> {
    let mut piece = mach::mem::fallible::zeroed(from.remaining().min(THROUGH_BYTES))?;
    let count = from.try_take(&mut piece);
    if count == 0 {
        return Ok(0);
    }
    let stored = through::store(of, at, piece.get(..count).unwrap_or(&[]));
    let missing = count - *stored.as_ref().unwrap_or(&0);
    if missing != 0 {
        from.rewind(missing);
    }
    stored
}
