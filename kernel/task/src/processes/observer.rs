//! Who hears of threads beside their parents: performance events.
//!
//! They stand above, so they say at boot who they are ([`observe_by`]). What they keep at a thread
//! ([`Thread::watch`]) is theirs alone; it is made when the first of them looks at that thread.

use alloc::sync::Arc;
use core::any::Any;

use mach::sync::Once;
use sync::Result;

use super::Thread;

/// What an observer keeps at a thread.
pub type Watch = Once<Arc<dyn Any + Send + Sync>>;

/// Hears of threads.
pub trait Observer: Send + Sync {
    /// `new` is about to run, made by `maker`. An error keeps it from that.
    fn note_thread(&self, maker: &Thread, new: &Arc<Thread>) -> Result<()>;

    /// The new thread does not run after all.
    fn forget(&self, thread: &Thread);

    /// The running thread ends.
    fn note_exit(&self, thread: &Thread);

    /// The running thread is about to wait, and there are samples of this CPU.
    fn give_samples(&self, thread: &Thread);
}

/// Said once at boot by who measures threads.
static OBSERVER: Once<&dyn Observer> = Once::new();

/// Says who hears of threads; once at boot.
pub fn observe_by(observer: &'static dyn Observer) {
    OBSERVER.call_once(|| observer);
}

/// Tells the observer, if there is one.
#[inline]
pub(super) fn tell(what: impl FnOnce(&dyn Observer)) {
    if let Some(observer) = OBSERVER.get() {
        what(*observer);
    }
}

/// A new thread is shown to the observer, which may refuse it.
pub(super) fn admit(maker: &Thread, new: &Arc<Thread>) -> Result<()> {
    match OBSERVER.get() {
        Some(observer) => observer.note_thread(maker, new),
        None => Ok(()),
    }
}
