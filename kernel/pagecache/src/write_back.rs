//! Dirty pages to what is below.
//!
//! Pages are taken in runs: their marks are cleared first, then programs lose the right to store to
//! them unheard, then their bytes go. A store that comes in between is among the bytes; one that
//! comes later faults and marks its page again.

use alloc::vec::Vec;
use core::ops::Range;

use base::Duration;
use mm::Page;
use pagecache::Mark;
use sync::{Error, Result, Wait};

use crate::cache::{Backing, identity, part_of};
use crate::{PAGE, memory};

/// How often a file that is closed is tried where memory is missing, and how long others have to free some.
const CLOSE_TRIES: usize = 50;
const CLOSE_PAUSE: Duration = Duration::from_millis(20);
/// Pages of one run.
const RUN_PAGES: u64 = 256;

/// Brings the dirty pages of a range of bytes to what is below.
///
/// Errors: that of the first run that failed. Its pages stay as they are, but are dirty no more:
/// whoever has the file open hears of it. `OutOfMemory`: they stay dirty.
pub fn write_back(of: &dyn Backing, bytes: Range<u64>) -> Result<()> {
    write_back_some(of, bytes, u64::MAX)
}

/// The same of so many pages at most, but for the last run.
pub(crate) fn write_back_some(of: &dyn Backing, bytes: Range<u64>, most: u64) -> Result<()> {
    let cache = of.cache();
    let _flushing = cache.flushing.lock();
    let mut range = bytes.start / PAGE..bytes.end.div_ceil(PAGE);
    let (mut failed, mut done) = (Ok(()), 0);
    let mut pages = Vec::new();
    while done < most {
        let run = (cache.pages.lock()).marked_run(Mark::Dirty, range.clone(), RUN_PAGES);
        let Some(run) = run else { return failed };
        pages.clear();
        // From the reserve: these pages can be given up afterwards.
        let room = pages.try_reserve_exact((run.end - run.start) as usize);
        room.map_err(|_| Error::OutOfMemory)?;
        (range.start, done) = (run.end, done + run.end - run.start);
        match bring(of, run, &mut pages) {
            Err(Error::OutOfMemory) => return failed.and(Err(Error::OutOfMemory)),
            Err(error) => {
                cache.note_failure();
                failed = failed.and(Err(error));
            }
            Ok(()) => {}
        }
        sched::resched_point();
    }
    failed
}

/// What close(2) does for a file whose pages nobody looks after: it reports no error that a later
/// fsync(2) would not find again. Nobody may come after it, so it does not give up where memory is missing.
pub fn close(of: &dyn Backing) {
    let _ = insist(|| write_back(of, 0..u64::MAX));
}

/// Does what nobody does later, again and again where memory is missing: for a second, as whoever has memory may be
/// about to end.
pub fn insist(mut act: impl FnMut() -> Result<()>) -> Result<()> {
    for _ in 1..CLOSE_TRIES {
        match act() {
            Err(Error::OutOfMemory) => {
                let soon = mach::time::now() + CLOSE_PAUSE;
                let _ = Wait::UNINTERRUPTIBLE.until(soon).park_unless(|| false);
            }
            done => return done,
        }
    }
    act()
}

fn bring(of: &dyn Backing, run: Range<u64>, pages: &mut Vec<Page>) -> Result<()> {
    let taken = take(of, &run, pages);
    let run = run.start..run.start + pages.len() as u64;
    if taken.is_stored && of.cache().is_shown() {
        mm::protect_pages(identity(of), run.clone());
    }
    let count = pages.len() as i64;
    memory::count_under_way(count);
    if taken.is_stored {
        zero_behind(of, pages, run.start);
    }
    let brought = of.size().and_then(|size| of.bring(run.start, pages, size));
    memory::count_under_way(-count);
    match brought {
        Err(Error::OutOfMemory) => give_back(of, run, taken),
        _ => {
            let settled = brought.as_ref().map_or(0, |settled| *settled);
            settle(of, run.start..run.end.min(run.start + settled), taken);
        }
    }
    brought.map(drop)
}

/// What was taken with the pages of a run.
#[derive(Clone, Copy, Default)]
struct Taken {
    /// Programs may store to some of them.
    is_stored: bool,
    /// How many had room promised.
    promised: u64,
}

/// Takes the marks of a run that begins dirty, and its pages.
fn take(of: &dyn Backing, run: &Range<u64>, into: &mut Vec<Page>) -> Taken {
    let mut pages = of.cache().pages.lock();
    let mut taken = Taken::default();
    for index in run.clone() {
        // The file may have lost some meanwhile.
        let Some(mut slot) = pages.slot(index) else {
            break;
        };
        let Some(page) = slot.page().cloned().filter(|_| slot.has(Mark::Dirty)) else {
            break;
        };
        slot.clear(Mark::Dirty);
        taken.is_stored |= slot.clear(Mark::Stored);
        taken.promised += u64::from(slot.clear(Mark::Promised));
        into.push(page);
    }
    memory::count_dirty(-(into.len() as i64));
    taken
}

/// A run has been brought down, or will never be; `settled` has all its room.
fn settle(of: &dyn Backing, settled: Range<u64>, taken: Taken) {
    of.release(taken.promised);
    let mut pages = of.cache().pages.lock();
    for index in settled {
        pages.set(index, Mark::Settled);
    }
}

/// It was not even tried. What was promised is not kept for these pages, but nobody else has got it.
fn give_back(of: &dyn Backing, run: Range<u64>, taken: Taken) {
    let mut pages = of.cache().pages.lock();
    let (mut marked, mut kept) = (0, 0);
    for index in run {
        marked += i64::from(pages.set(index, Mark::Dirty));
        // Which of them were promised nobody knows any more: each that can be counts.
        let may_keep = kept < taken.promised && !pages.has(index, Mark::Settled);
        kept += u64::from(may_keep && pages.set(index, Mark::Promised));
    }
    drop(pages);
    memory::count_dirty(marked);
    of.release(taken.promised - kept);
}

/// Behind the end of the file are zeroes, whatever a program has stored there. While somebody writes
/// the end may be elsewhere soon: then the page is dirty soon, too.
fn zero_behind(of: &dyn Backing, pages: &[Page], first: u64) {
    let Some(_writing) = of.cache().writing.try_lock() else {
        return;
    };
    let size = of.size().unwrap_or(u64::MAX);
    let last = (size / PAGE).checked_sub(first);
    let last = last.and_then(|last| pages.get(usize::try_from(last).ok()?));
    if let Some(page) = last {
        page.zero(part_of(size / PAGE, &(size..u64::MAX)));
    }
}
