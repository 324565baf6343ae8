//! Threads that other CPUs have woken for one, and that stand on its run queue soon.
//!
//! The problem: whoever wakes a thread of another CPU would lock that CPU's run queue, just when
//! the CPU itself and thieves want it. Each would wait for the others.
//!
//! The idea: a few slots beside the queue. Who brings a thread puts it into a slot that is free and not
//! locked, else onto the queue. Whoever has locked the queue first moves to it what is in the slots, so
//! all see one queue. A thief takes a thread out of its slot, and leaves the queue alone.
//!
//! Invariants:
//! - **Counted**: a thread is counted before its slot is unlocked, and until it is counted on the
//!   queue or somebody has it. So there is no moment at which it waits and is not seen.
//! - A thread in a slot has no [`Place`](crate::Place). It gets one on the queue, by the rank and
//!   the affinity that it has then.

use alloc::sync::Arc;
use core::array::from_fn;

use base::CpuId;
use base::lock::{Count, Family, Lock};

use crate::waiting::Waiting;
use crate::{SchedEntity, Thread};

/// As many as fill a cache line.
pub const SLOTS: usize = 4;

/// A thread, or room for one.
pub type Slot<T> = Option<Arc<T>>;

/// The slots of one CPU.
pub struct WakeList<T, F: Family> {
    slots: [F::Lock<Slot<T>>; SLOTS],
    /// [`Waiting`] of all slots.
    counted: F::Count,
}

impl<T, F: Family> WakeList<T, F> {
    /// From empty slots, and 0.
    pub const fn new(slots: [F::Lock<Slot<T>>; SLOTS], counted: F::Count) -> Self {
        Self { slots, counted }
    }

    /// What is in the slots.
    #[inline]
    pub(crate) fn waiting(&self) -> Waiting {
        Waiting::from_word(self.counted.get())
    }
}

impl<T, F: Family> Default for WakeList<T, F> {
    fn default() -> Self {
        Self::new(from_fn(|_| Lock::new(None)), F::Count::default())
    }
}

impl<T: Thread, F: Family> WakeList<T, F> {
    /// Puts a thread that is to run on CPU `to` into a slot, CPU `from` first into one that few others
    /// begin with. Gives it back if there is none.
    pub(crate) fn put(&self, thread: Arc<T>, from: CpuId, to: CpuId) -> Result<(), Arc<T>> {
        let (before, after) = self.slots.split_at(from.index() % SLOTS);
        for slot in after.iter().chain(before) {
            let Some(mut slot) = slot.try_lock() else {
                continue;
            };
            if slot.is_none() {
                thread.sched().note_mobility(to);
                self.counted.add(Self::waiting_of(thread.sched()).word());
                *slot = Some(thread);
                return Ok(());
            }
        }
        Err(thread)
    }

    /// Takes out all threads, and says what is to be [uncounted](Self::uncount).
    pub(crate) fn take_all(&self, mut take: impl FnMut(Arc<T>)) -> Waiting {
        let (all, mut taken) = (self.waiting().ready, Waiting::NOBODY);
        for slot in &self.slots {
            if taken.ready == all {
                break;
            }
            let thread = slot.lock().take();
            if let Some(thread) = thread {
                taken = taken + Self::waiting_of(thread.sched());
                take(thread);
            }
        }
        taken
    }

    /// Takes out a thread that may run on CPU `thief`.
    pub(crate) fn steal(&self, thief: CpuId) -> Option<Arc<T>> {
        if self.waiting() == Waiting::NOBODY {
            return None;
        }
        let may_come = |thread: &mut Arc<T>| thread.sched().allows(thief);
        let thread = self
            .slots
            .iter()
            .find_map(|slot| slot.try_lock()?.take_if(may_come))?;
        self.uncount(Self::waiting_of(thread.sched()));
        Some(thread)
    }

    /// Threads that were taken are counted elsewhere by now.
    pub(crate) fn uncount(&self, taken: Waiting) {
        if taken != Waiting::NOBODY {
            self.counted.sub(taken.word());
        }
    }

    /// What a thread in a slot counts as, whatever its affinity has become.
    fn waiting_of(thread: &SchedEntity<T::Count>) -> Waiting {
        Waiting {
            ready: 1,
            movable: usize::from(thread.is_movable()),
        }
    }
}
