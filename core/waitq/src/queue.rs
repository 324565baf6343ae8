//! A queue of threads that wait for a condition.

use base::lock::{Count, Family, Lock};

use crate::waiters::Ticket;
use crate::{Host, LockOf, Thread, Waiters};

/// How a thread that found its condition false is to park.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Parking {
    /// Until it is woken.
    Queued,
    /// Not for long: there was no memory to queue it, so nobody will wake it.
    Unqueued,
}

/// Threads that wait, first come first served.
pub struct WaitQueue<H: Host> {
    count: <H::Family as Family>::Count,
    waiters: LockOf<H, Waiters<H::Thread>>,
}

impl<H: Host> Default for WaitQueue<H> {
    fn default() -> Self {
        Self::new(Default::default(), Lock::new(Waiters::new()))
    }
}

impl<H: Host> WaitQueue<H> {
    /// From 0 and nobody.
    pub const fn new(
        count: <H::Family as Family>::Count,
        waiters: LockOf<H, Waiters<H::Thread>>,
    ) -> Self {
        Self { count, waiters }
    }

    /// Blocks until `ready` yields a value, or `park` refuses to go on.
    ///
    /// `park` blocks the running thread until it is woken, or for as long as it likes.
    pub fn wait<V, E>(
        &self,
        park: &mut dyn FnMut(Parking) -> Result<(), E>,
        ready: &mut dyn FnMut() -> Option<V>,
    ) -> Result<V, E> {
        loop {
            let ticket = self.enter();
            if let Some(value) = ready() {
                self.leave_satisfied(ticket);
                return Ok(value);
            }
            let outcome = park(ticket.map_or(Parking::Unqueued, |_| Parking::Queued));
            self.leave(ticket);
            // Whatever ended the park: a waker may have chosen this thread.
            if let Some(value) = ready() {
                return Ok(value);
            }
            outcome?;
        }
    }

    /// Wakes the thread that has waited longest; false if none waits.
    #[inline]
    pub fn wake_one(&self) -> bool {
        self.count.get() != 0 && self.wake_first()
    }

    /// Apart, so that to look whether anybody waits is short enough to stand where it is asked.
    #[inline(never)]
    fn wake_first(&self) -> bool {
        let first = self.change(Waiters::pop);
        first.is_some_and(|thread| {
            thread.unpark();
            true
        })
    }

    /// Wakes the threads that wait now; one that comes back at once is not woken twice.
    #[inline]
    pub fn wake_all(&self) {
        for _ in 0..self.count.get() {
            self.wake_one();
        }
    }

    /// Threads that wait.
    pub fn len(&self) -> usize {
        self.count.get()
    }

    /// Whether none does.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn change<R>(&self, act: impl FnOnce(&mut Waiters<H::Thread>) -> R) -> R {
        let mut waiters = self.waiters.lock();
        let done = act(&mut waiters);
        self.count.set(waiters.len());
        done
    }

    /// Puts the running thread in, if there is memory for that.
    fn enter(&self) -> Option<Ticket> {
        self.change(|waiters| waiters.push::<H::Memory>(H::current()).ok())
    }

    /// Takes the running thread out; false if a waker has done so.
    fn leave(&self, ticket: Option<Ticket>) -> bool {
        ticket.is_some_and(|ticket| self.change(|waiters| waiters.remove(ticket)))
    }

    /// The same for one that got what it wanted as soon as it was in the queue. If a waker has
    /// chosen it since, that was for something else, which another one may wait for.
    fn leave_satisfied(&self, ticket: Option<Ticket>) {
        let was_chosen = ticket.is_some() && !self.leave(ticket);
        if was_chosen {
            self.wake_one();
        }
    }
}
