//! Who waits in a queue, first come first served.

use alloc::collections::VecDeque;
use alloc::sync::Arc;

use base::{Memory, NoMemory};

/// Names a place in a queue.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Ticket(u64);

/// Threads by their tickets, which only grow.
pub struct Waiters<T> {
    waiting: VecDeque<(Ticket, Arc<T>)>,
    last: Ticket,
}

impl<T> Waiters<T> {
    /// Nobody.
    pub const fn new() -> Self {
        Self {
            waiting: VecDeque::new(),
            last: Ticket(0),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Adds `thread` behind all others.
    pub(crate) fn push<M: Memory>(&mut self, thread: Arc<T>) -> Result<Ticket, NoMemory> {
        M::reserve(|| self.waiting.try_reserve(1))?;
        self.last.0 += 1;
        self.waiting.push_back((self.last, thread));
        Ok(self.last)
    }

    /// Takes out who has waited longest.
    pub(crate) fn pop(&mut self) -> Option<Arc<T>> {
        self.waiting.pop_front().map(|(_, thread)| thread)
    }

    /// Takes out the one with this ticket; false if a waker did so.
    pub(crate) fn remove(&mut self, ticket: Ticket) -> bool {
        let found = self
            .waiting
            .binary_search_by_key(&ticket, |(ticket, _)| *ticket);
        found.is_ok_and(|at| self.waiting.remove(at).is_some())
    }
}

impl<T> Default for Waiters<T> {
    fn default() -> Self {
        Self::new()
    }
}
