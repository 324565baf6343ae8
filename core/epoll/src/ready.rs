//! The ready list of a set.
//!
//! An entry is on it once at most: its mark says so. So with room for all that are not on it,
//! queuing takes no memory. Removed entries are swept out before they are more than the others,
//! which costs each of them a constant part of a sweep.

use alloc::collections::VecDeque;
use alloc::sync::Arc;

use base::lock::{Count, Family, Lock};
use base::{Memory, NoMemory};

/// Removed entries that may always lie on the list.
const STALE_MAX: usize = 16;

/// Entries `E`, shared under locks of `F`.
pub(crate) struct Ready<F: Family, E> {
    list: F::Lock<VecDeque<Arc<E>>>,
    /// Its length, for who decides whether to wait.
    count: F::Count,
}

impl<F: Family, E> Default for Ready<F, E> {
    fn default() -> Self {
        Self {
            list: Lock::new(VecDeque::new()),
            count: Default::default(),
        }
    }
}

impl<F: Family, E> Ready<F, E> {
    pub(crate) fn len(&self) -> usize {
        self.count.get()
    }

    /// Makes room for all of `entries` that are not on the list; sweeps removed ones out if they
    /// are many.
    pub(crate) fn make_room<M: Memory>(
        &self,
        entries: usize,
        is_removed: impl Fn(&E) -> bool,
    ) -> Result<(), NoMemory> {
        let mut list = self.list.lock();
        if list.len() > 2 * entries + STALE_MAX {
            list.retain(|entry| !is_removed(entry));
            self.count.set(list.len());
        }
        if list.capacity() - list.len() >= entries {
            return Ok(());
        }
        M::reserve(|| list.try_reserve(entries))
    }

    pub(crate) fn push(&self, entry: Arc<E>) {
        let mut list = self.list.lock();
        list.push_back(entry);
        self.count.set(list.len());
    }

    pub(crate) fn pop(&self) -> Option<Arc<E>> {
        let mut list = self.list.lock();
        let entry = list.pop_front();
        self.count.set(list.len());
        entry
    }

    /// The first, which stays.
    pub(crate) fn first(&self) -> Option<Arc<E>> {
        self.list.lock().front().cloned()
    }

    /// Takes the first off if it is still `entry`.
    pub(crate) fn take_first(&self, entry: &Arc<E>) -> bool {
        let mut list = self.list.lock();
        let is_first = list.front().is_some_and(|first| Arc::ptr_eq(first, entry));
        let taken = is_first.then(|| list.pop_front());
        self.count.set(list.len());
        drop(list);
        taken.is_some()
    }
}
