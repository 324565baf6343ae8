//! Dirty pages to what is below.
//!
//! Pages are taken in runs: their marks are cleared first, then programs lose the right to store to
//! them unheard, then their bytes go. A store that comes in between is among the bytes; one that
//! comes later faults and marks its page again.

use alloc::vec::Vec;
use core::ops::Range;

use mach::mem::fallible::TryGrow;
use mm::Page;
use pagecache::Mark;
use sync::Result;

use crate::cache::{Backing, identity, part_of};
use crate::{PAGE, memory};

/// Pages of one run.
const RUN_PAGES: u64 = 256;

/// Brings the dirty pages of a range of bytes to what is below.
///
/// Errors: that of the first run that failed. Its pages stay as they are, but are dirty no more:
/// whoever has the file open hears of it.
pub fn write_back(of: &dyn Backing, bytes: Range<u64>) -> Result<()> {
    let cache = of.cache();
    let _flushing = cache.flushing.lock();
    let mut range = bytes.start / PAGE..bytes.end.div_ceil(PAGE);
    let mut failed = Ok(());
    loop {
        let run = (cache.pages.lock()).marked_run(Mark::Dirty, range.clone(), RUN_PAGES);
        let Some(run) = run else { return failed };
        range.start = run.end;
        let brought = bring(of, run);
        if brought.is_err() {
            cache.note_failure();
            failed = failed.and(brought);
        }
        sched::resched_point();
    }
}

/// What close(2) does for a file whose pages nobody looks after: it reports no error that a later
/// fsync(2) would not find again.
pub fn close(of: &dyn Backing) {
    let _ = write_back(of, 0..u64::MAX);
}

fn bring(of: &dyn Backing, run: Range<u64>) -> Result<()> {
    let mut pages = Vec::new();
    pages.make_room((run.end - run.start) as usize)?;
    let is_stored = take(of, &run, &mut pages);
    let end = run.start + pages.len() as u64;
    if is_stored {
        mm::protect_pages(identity(of), run.start..end);
    }
    let count = pages.len() as i64;
    memory::count_under_way(count);
    let brought = of.size().and_then(|size| {
        zero_behind(&pages, run.start, size);
        of.bring(run.start, &pages, size)
    });
    memory::count_under_way(-count);
    brought
}

/// Takes the marks of a run that begins dirty, and its pages; whether programs may store to some.
fn take(of: &dyn Backing, run: &Range<u64>, taken: &mut Vec<Page>) -> bool {
    let mut pages = of.cache().pages.lock();
    let mut is_stored = false;
    for index in run.clone() {
        // The file may have lost some meanwhile.
        let page = pages.get(index).filter(|_| pages.has(index, Mark::Dirty));
        let Some(page) = page.cloned() else { break };
        pages.clear(index, Mark::Dirty);
        is_stored |= pages.clear(index, Mark::Stored);
        taken.push(page);
    }
    memory::count_dirty(-(taken.len() as i64));
    is_stored
}

/// Behind the end of the file are zeroes, whatever a program has stored there.
fn zero_behind(pages: &[Page], first: u64, size: u64) {
    let last = (size / PAGE).checked_sub(first);
    let last = last.and_then(|last| pages.get(usize::try_from(last).ok()?));
    if let Some(page) = last {
        page.zero(part_of(size / PAGE, &(size..u64::MAX)));
    }
}
