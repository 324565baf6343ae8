//! A thread's own part of the table.

use alloc::sync::Arc;

use base::lock::{Family, Flag, Lock};

use crate::Key;
use crate::host::{Host, LockOf, Thread};
use crate::share::Share;

/// Lies in each thread.
pub struct Waiter<H: Host> {
    /// Where it waits; changes when it is moved.
    key: LockOf<H, Key>,
    woken: <H::Family as Family>::Flag,
    /// Its locks with priority inheritance.
    pub(crate) pi: LockOf<H, Share<H>>,
}

impl<H: Host> Default for Waiter<H> {
    fn default() -> Self {
        Self {
            key: Lock::new(Key::default()),
            woken: Default::default(),
            pi: Lock::new(Share::default()),
        }
    }
}

impl<H: Host> Waiter<H> {
    pub(crate) fn is_woken(&self) -> bool {
        self.woken.get()
    }

    /// A wait begins.
    pub(crate) fn expect_wake(&self) {
        self.woken.set(false);
    }

    /// What the thread waits for has happened; it is to be unparked.
    pub(crate) fn note_woken(&self) {
        self.woken.set(true);
    }

    /// What `thread` waits for has happened.
    pub(crate) fn wake(&self, thread: &Arc<H::Thread>) {
        self.note_woken();
        thread.unpark();
    }

    pub(crate) fn key(&self) -> Key {
        *self.key.lock()
    }

    pub(crate) fn set_key(&self, key: Key) {
        *self.key.lock() = key;
    }
}
