//! One CPU's queue, and what is published beside it for looks without its lock.

use core::sync::atomic::{AtomicBool, AtomicU8, Ordering};

use base::lock::{Count, Family};

use crate::policy::Rank;
use crate::waiting::Waiting;
use crate::{RunQueue, WakeList};

/// What the dispatcher knows of a CPU.
#[repr(align(64))]
pub struct Cpu<T, F: Family> {
    pub(crate) queue: F::Lock<RunQueue<T>>,
    /// [`Waiting`] on the queue.
    pub(crate) ready: F::Count,
    /// When it last looked for a thread elsewhere, some queue was locked.
    was_refused: AtomicBool,
    /// The rank of what runs.
    running: AtomicU8,
    /// What others have woken for it.
    pub(crate) woken: WakeList<T, F>,
}

impl<T, F: Family> Cpu<T, F> {
    /// From an empty queue, 0, and an empty list.
    pub const fn new(queue: F::Lock<RunQueue<T>>, ready: F::Count, woken: WakeList<T, F>) -> Self {
        Self {
            queue,
            ready,
            was_refused: AtomicBool::new(false),
            running: AtomicU8::new(Rank::FAIR.0),
            woken,
        }
    }

    /// The threads that wait for it. Who comes to the queue meanwhile is counted here or there, as
    /// the queue is looked at last.
    #[inline]
    pub(crate) fn waiting(&self) -> Waiting {
        let sent = self.woken.waiting();
        sent + Waiting::from_word(self.ready.get())
    }

    pub(crate) fn was_refused(&self) -> bool {
        self.was_refused.load(Ordering::Relaxed)
    }

    /// For the CPU itself.
    pub(crate) fn note_refused(&self, refused: bool) {
        self.was_refused.store(refused, Ordering::Relaxed);
    }

    pub(crate) fn running(&self) -> Rank {
        Rank(self.running.load(Ordering::Relaxed))
    }

    #[inline]
    pub(crate) fn note_running(&self, rank: Rank) {
        if self.running() != rank {
            self.running.store(rank.0, Ordering::Relaxed);
        }
    }
}
