//! What a thread has to do for rings of requests (io_uring) besides its program.
//!
//! Only the thread itself does it: in its own calls, and on its way to user mode when
//! `Flags::RING_WORK` says so. Who keeps rings implements it.

use core::any::Any;

use super::Thread;

/// The requests of one thread.
pub trait RingWork: Send + Sync {
    /// Goes on with those that can go on.
    fn run(&self, thread: &Thread);

    /// Ends all of them: the thread ends, or runs another program.
    fn cancel_all(&self, thread: &Thread);

    /// For narrowing to who it is.
    fn as_any(&self) -> &dyn Any;
}

/// Does what `Flags::RING_WORK` asks of the current thread.
pub fn run_ring_work(thread: &Thread) {
    let work = thread.ring_work.lock().clone();
    if let Some(work) = work {
        work.run(thread);
    }
}

/// Ends what the current thread has under way.
pub(super) fn end_ring_work(thread: &Thread) {
    let work = thread.ring_work.lock().clone();
    if let Some(work) = work {
        work.cancel_all(thread);
    }
}
