//! How a thread takes other credentials: the one way, with all that follows from it.

use alloc::sync::Arc;
use core::sync::atomic::Ordering;

use cred::{Credentials, Resource, UserShare};
use sync::{Error, Result};

use super::Thread;

impl Thread {
    /// Takes other credentials. The process ceases to be dumpable if they give another user's
    /// or group's rights or more capabilities, and its parent's end is not signalled any more.
    pub fn take_credentials(&self, new: Credentials) {
        let old = self.credentials.get();
        if new.differs_in_rights(&old) {
            // First: nobody may look in with the new rights.
            self.process.dumpable.store(false, Ordering::Relaxed);
            self.parent_death_signal.store(0, Ordering::Relaxed);
        }
        if new.user.real != old.user.real {
            self.count_for(new.user.real);
        }
        drop(self.credentials.replace(Arc::new(new)));
    }

    /// It counts for another user. Where that has too many, the thread goes on (a server that
    /// gives up its rights must not keep them because of this), but runs no other program.
    fn count_for(&self, uid: u32) {
        let limit = self.process.limits.soft(Resource::Processes);
        let share = UserShare::of(uid);
        self.is_one_too_many
            .store(share.is_beyond(limit), Ordering::Relaxed);
        let old = self.share.lock().replace(share);
        drop(old);
    }

    /// Whether it may run another program (RLIMIT_NPROC at execve(2)).
    ///
    /// Errors: `WouldBlock`.
    pub fn check_program_limit(&self) -> Result<()> {
        let limit = self.process.limits.soft(Resource::Processes);
        let is_still = || {
            self.share
                .lock()
                .as_ref()
                .is_some_and(|share| share.is_beyond(limit))
        };
        if self.is_one_too_many.load(Ordering::Relaxed) && is_still() {
            return Err(Error::WouldBlock);
        }
        self.is_one_too_many.store(false, Ordering::Relaxed);
        Ok(())
    }
}
