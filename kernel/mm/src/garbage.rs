//! Pages that nobody needs any more, given back some at a time.
//!
//! What is dropped may own any number of pages, and who drops it may hold a lock, so there is
//! no place to let others go first. It leaves them here; a softirq gives them back in
//! batches. A thread runs softirqs before it goes back to its program, so the program finds
//! them free.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use crate::space::Page;

use mach::sync::Spin;
use sched::{Softirq, Work, raise, register_softirq};

/// Pages that are given back at a time.
const BATCH_PAGES: usize = 512;

/// Pages of spaces that are gone, so nobody is left to own them.
static HEAP: Spin<Vec<BTreeMap<u64, Page>>> = Spin::new(Vec::new());

/// Connects the softirq; once at boot.
pub fn init() {
    let work = Work {
        run: give_back,
        poll: || false,
        prepare_idle: || true,
    };
    register_softirq(Softirq::Garbage, work);
}

/// Gives these pages back: few now, many later.
pub fn discard(pages: BTreeMap<u64, Page>) {
    if pages.len() > BATCH_PAGES {
        let mut heap = HEAP.lock();
        // Where there is no memory for that, nothing is better than to free some at once.
        if heap.try_reserve(1).is_ok() {
            heap.push(pages);
            drop(heap);
            raise(Softirq::Garbage);
        }
    }
}

fn give_back() {
    let Some(mut pages) = HEAP.lock().pop() else {
        return;
    };
    for _ in 0..BATCH_PAGES {
        drop(pages.pop_first());
    }
    if !pages.is_empty() {
        // There is room: it was taken out.
        HEAP.lock().push(pages);
    }
    raise(Softirq::Garbage);
}
