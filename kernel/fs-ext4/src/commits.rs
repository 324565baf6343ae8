//! One commit or flush at a time, without the volume's lock.
//!
//! # Idea
//! Who begins one has the *turn* while it asks the volume for it (`core/ext4`, `commit`), and not while the disk works. Who needs the
//! volume alone keeps the turn and waits for what is under way: nothing new begins before it, so it does not wait for
//! one after the other.
//!
//! # Invariants
//! - **Told**: `is_under_way` is what the volume says, and changes with the volume's lock held only.

use core::sync::atomic::{AtomicBool, Ordering};

use sync::{Mutex, MutexGuard, Wait, WaitQueue};

/// See the module.
#[derive(Default)]
pub(super) struct Commits {
    turn: Mutex<()>,
    is_under_way: AtomicBool,
    ended: WaitQueue,
}

/// Nothing begins as long as it is held.
pub(super) type Turn<'a> = MutexGuard<'a, ()>;

impl Commits {
    /// What `lock` gives when nothing is under way, and the turn if that had to be waited for.
    pub(super) fn alone<T>(&self, lock: impl Fn() -> T) -> (T, Option<Turn<'_>>) {
        let held = lock();
        if !self.is_under_way.load(Ordering::Acquire) {
            return (held, None);
        }
        drop(held);
        let turn = self.turn.lock();
        self.wait();
        (lock(), Some(turn))
    }

    /// For who begins something.
    pub(super) fn turn(&self) -> Turn<'_> {
        self.turn.lock()
    }

    /// What the volume says, whose lock the caller holds.
    pub(super) fn note(&self, is_under_way: bool) {
        self.is_under_way.store(is_under_way, Ordering::Release);
    }

    /// Something has ended.
    pub(super) fn wake(&self) {
        self.ended.wake_all();
    }

    /// Until nothing is under way.
    pub(super) fn wait(&self) {
        let is_over = || (!self.is_under_way.load(Ordering::Acquire)).then_some(());
        // Without a deadline it ends with what it waits for.
        let _ = self.ended.wait(Wait::UNINTERRUPTIBLE, is_over);
    }
}
