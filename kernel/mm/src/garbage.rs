//! Pages that nobody needs any more, given back some at a time.
//!
//! What is dropped may own any number of pages, and who drops it may hold a lock, so there is
//! no place to let others go first. It leaves them here; a softirq gives them back in
//! batches. A thread runs softirqs before it goes back to its program, so the program finds
//! them free. Each CPU gives back what was left there.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::cell::RefCell;

use crate::space::Page;

use mach::cpu::PerCpu;
use sched::{Softirq, Work, raise, register_softirq};

/// Pages that are given back at a time.
const BATCH_PAGES: usize = 512;

/// Pages of spaces that are gone, so nobody is left to own them.
static HEAPS: PerCpu<RefCell<Vec<Heap>>> = PerCpu::new(RefCell::default);

/// Pages as somebody had them.
pub enum Heap {
    /// By their numbers in a file.
    Numbered(BTreeMap<u64, Page>),
    /// One after the other.
    Listed(Vec<Page>),
    /// As somebody else has them.
    Others(Box<dyn Pages>),
}

/// Pages of whoever keeps them in a way of its own.
pub trait Pages: Send {
    /// How many are left.
    fn len(&self) -> usize;

    /// Takes one away, if there is one.
    fn pop(&mut self) -> Option<Page>;

    /// Whether none is left.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl From<BTreeMap<u64, Page>> for Heap {
    fn from(pages: BTreeMap<u64, Page>) -> Self {
        Self::Numbered(pages)
    }
}

impl From<Vec<Page>> for Heap {
    fn from(pages: Vec<Page>) -> Self {
        Self::Listed(pages)
    }
}

impl Heap {
    fn len(&self) -> usize {
        match self {
            Self::Numbered(pages) => pages.len(),
            Self::Listed(pages) => pages.len(),
            Self::Others(pages) => pages.len(),
        }
    }

    /// Takes a page away, if there is one.
    fn pop(&mut self) -> Option<Page> {
        match self {
            Self::Numbered(pages) => pages.pop_first().map(|(_, page)| page),
            Self::Listed(pages) => pages.pop(),
            Self::Others(pages) => pages.pop(),
        }
    }
}

/// Connects the softirq; once at boot.
pub fn init() {
    let work = Work {
        run: give_back,
        look: None,
    };
    register_softirq(Softirq::Garbage, work);
}

/// Gives these pages back: few now, many later.
pub fn discard(pages: impl Into<Heap>) {
    let pages = pages.into();
    if pages.len() > BATCH_PAGES {
        // Where there is no memory for that, nothing is better than to free some at once.
        if HEAPS.get().borrow_mut().try_reserve(1).is_ok() {
            HEAPS.get().borrow_mut().push(pages);
            raise(Softirq::Garbage);
        }
    }
}

fn give_back() {
    let Some(mut pages) = HEAPS.get().borrow_mut().pop() else {
        return;
    };
    for _ in 0..BATCH_PAGES {
        drop(pages.pop());
    }
    if pages.len() != 0 {
        // There is room: it was taken out.
        HEAPS.get().borrow_mut().push(pages);
    }
    raise(Softirq::Garbage);
}
