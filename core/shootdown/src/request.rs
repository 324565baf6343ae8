//! Requests from CPU to CPU.

use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use base::{Atomics, Word};

use crate::Pages;

/// [`Request::count`] of a request to leave the space altogether.
const LEAVE: u64 = u64::MAX;

/// What a target is to do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Work {
    /// Forget pages of the space, which so came to `generation`.
    Forget { pages: Pages, generation: u64 },
    /// Load the kernel's table if the space is loaded.
    Leave,
}

/// An initiator's slot. It writes it while nobody waits for it; targets read it.
#[derive(Debug)]
pub(crate) struct Request<A: Atomics> {
    pub space: A::Word,
    pub generation: A::Word,
    pub first: A::Word,
    pub count: A::Word,
    /// Targets that have not done it.
    pub waiting: A::Word,
}

impl<A: Atomics> Request<A> {
    /// Fills the slot for `targets` CPUs. They see it once they see their mail.
    pub fn write(&self, space: u64, work: Work, targets: usize) {
        let (pages, generation) = match work {
            Work::Forget { pages, generation } => (pages, generation),
            Work::Leave => {
                let pages = Pages {
                    first: 0,
                    count: LEAVE,
                };
                (pages, 0)
            }
        };
        self.space.store(space, Relaxed);
        self.generation.store(generation, Relaxed);
        self.first.store(pages.first, Relaxed);
        self.count.store(pages.count, Relaxed);
        self.waiting.store(targets as u64, Relaxed);
    }

    /// The space and what to do. For a CPU that found mail from the slot's owner.
    pub fn read(&self) -> (u64, Work) {
        let pages = Pages {
            first: self.first.load(Relaxed),
            count: self.count.load(Relaxed),
        };
        let work = match pages.count {
            LEAVE => Work::Leave,
            _ => Work::Forget {
                pages,
                generation: self.generation.load(Relaxed),
            },
        };
        (self.space.load(Relaxed), work)
    }

    /// A target is done; it does not read the slot again.
    pub fn acknowledge(&self) {
        self.waiting.fetch_sub(1, Release);
    }

    /// All targets are done, and what they did before happened before.
    pub fn is_done(&self) -> bool {
        self.waiting.load(Acquire) == 0
    }
}
