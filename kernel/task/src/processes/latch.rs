//! An event that happens once.

use core::sync::atomic::{AtomicBool, Ordering};

use sched::Flags;
use sync::{Wait, WaitQueue};

use super::current;

/// Closed, then open for good.
#[derive(Default)]
pub struct Latch {
    open: AtomicBool,
    waiters: WaitQueue,
}

impl Latch {
    /// Opens it: all waiters go on.
    pub fn open(&self) {
        // Before the look at the queue, which a waiter enters before it looks at this.
        self.open.store(true, Ordering::SeqCst);
        self.waiters.wake_all();
    }

    /// Waits until it is open, or until the current process has to end.
    pub fn wait(&self) {
        let waited = self.waiters.wait(Wait::UNINTERRUPTIBLE, || {
            let done = self.open.load(Ordering::Acquire);
            (done || current().flags().contains(Flags::EXIT)).then_some(())
        });
        debug_assert!(waited.is_ok(), "an uninterruptible wait has no deadline");
    }
}
