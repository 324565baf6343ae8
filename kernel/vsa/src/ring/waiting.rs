//! A thread that waits for a completion.
//!
//! Most often it is one, the only one that submits. So the first has a place of its own beside the completions, and is woken by
//! whoever shows the next; others that wait at the same time stand in the pollee's queue, with those that wait in epoll.
//!
//! No wake-up is lost: a thread takes the place under the lock under which completions are shown, and only if
//! none is there. Who ends the ring says so first and looks at the place then; who takes it looks whether the ring is ended
//! afterwards.

use alloc::sync::Arc;
use core::sync::atomic::Ordering;

use sched::Entity;
use sync::{Result, Wait};

use super::Ring;

/// The place of the thread that waits.
#[derive(Default)]
pub(super) struct Waiter(Option<Arc<Entity>>);

impl Waiter {
    /// Who waits no longer, and is to be woken.
    #[inline]
    pub(super) fn take(&mut self) -> Option<Arc<Entity>> {
        self.0.take()
    }

    /// Whether the running thread has the place now.
    fn enter(&mut self) -> bool {
        self.leave();
        let is_free = self.0.is_none();
        if is_free {
            self.0 = Some(sched::current_counted());
        }
        is_free
    }

    /// The running thread does not have the place any more.
    fn leave(&mut self) {
        let me = sched::current();
        self.0.take_if(|thread| core::ptr::eq(&**thread, &*me));
    }
}

/// What became of a thread that is going to wait.
enum Entered {
    /// It need not.
    Ready,
    /// It has the place.
    Placed,
    /// Another one has.
    Occupied,
}

impl Ring {
    /// Waits until a completion is there, or the ring is not used any more.
    ///
    /// Errors: those of `how`.
    pub fn wait(&self, how: Wait) -> Result<()> {
        loop {
            match self.enter() {
                Entered::Ready => return Ok(()),
                Entered::Placed => {}
                Entered::Occupied => return self.wait_in_queue(how),
            }
            let parked = how.park_unless(|| self.is_broken.load(Ordering::SeqCst));
            if parked.is_err() {
                self.putting.lock().waiter.leave();
                return match self.ready().is_empty() {
                    true => parked,
                    false => Ok(()),
                };
            }
        }
    }

    fn enter(&self) -> Entered {
        let mut putting = self.putting.lock();
        let is_empty = putting.completer.filled(&*self.memory) == Ok(0);
        if !is_empty || self.is_broken.load(Ordering::SeqCst) {
            putting.waiter.leave();
            return Entered::Ready;
        }
        match putting.waiter.enter() {
            true => Entered::Placed,
            false => Entered::Occupied,
        }
    }

    #[cold]
    fn wait_in_queue(&self, how: Wait) -> Result<()> {
        let is_ready = || (!self.ready().is_empty()).then_some(());
        self.pollee.queue.wait(how, is_ready)
    }

    /// The ring is ended: who waits hears of it.
    pub(super) fn wake_waiter(&self) {
        let waiter = self.putting.lock().waiter.take();
        if let Some(thread) = waiter {
            sched::wake(&thread);
        }
    }
}
