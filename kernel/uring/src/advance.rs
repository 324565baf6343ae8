//! A request goes on: what its submitter does with it, each time it can.

use core::sync::atomic::Ordering;

use task::Thread;
use uring::{CqeFlags, Operation};

use crate::abi::Failure;
use crate::request::{Ending, Request, identity};

impl Request {
    /// Does what can be done now; in its submitter, in ordinary context.
    pub fn advance(&self, thread: &Thread) {
        if self.is_finished() {
            return;
        }
        match self.ending() {
            Ending::None => self.go_on(thread),
            Ending::Cancelled => self.finish(Err(Failure::Cancelled), CqeFlags::empty()),
            Ending::Invalid => self.fail(sync::Error::Invalid),
            Ending::Counted => self.finish(Ok(0), CqeFlags::empty()),
            Ending::Expired => self.expired(),
        }
    }

    /// It ends as a call fails.
    pub fn fail(&self, error: sync::Error) {
        self.finish(Err(Failure::Error(error)), CqeFlags::empty());
    }

    fn go_on(&self, thread: &Thread) {
        let is_first = {
            let mut progress = self.progress.lock();
            !core::mem::replace(&mut progress.is_begun, true)
        };
        if is_first {
            self.arm_limit();
        }
        match self.operation {
            Operation::Nop => self.finish(Ok(0), CqeFlags::empty()),
            Operation::Poll { is_multishot, .. } => self.poll(thread, is_multishot),
            Operation::PollUpdate { .. } => self.update_poll(),
            Operation::Timeout { .. } if !is_first => {}
            Operation::Timeout {
                address,
                count,
                flags,
            } => self.begin_timeout(address, count, flags),
            // Its turn comes only with what it limits, which arms it.
            Operation::LinkTimeout { .. } => {}
            Operation::TimeoutRemove { .. } => self.change_timeout(),
            Operation::Cancel { .. } => self.cancel_others(thread),
            Operation::Close { slot } if slot != 0 => {
                let closed = self.ring.registered.lock().close(slot - 1);
                self.finish(
                    closed.map(|()| 0).map_err(Failure::Error),
                    CqeFlags::empty(),
                );
            }
            Operation::FilesUpdate {
                address,
                count,
                first,
            } => {
                let mut registered = self.ring.registered.lock();
                let updated = registered.update_files(thread, first, address, count);
                drop(registered);
                let outcome = updated.map(|count| count as i32).map_err(Failure::Error);
                self.finish(outcome, CqeFlags::empty());
            }
            _ => self.attempt(thread),
        }
    }

    fn cancel_others(&self, thread: &Thread) {
        let Operation::Cancel {
            mut key,
            is_fixed_file,
            by_file,
            is_all,
        } = self.operation
        else {
            return;
        };
        if by_file {
            match self.ring.file(thread, self.sqe.fd, is_fixed_file) {
                Ok(open) => key.file = Some(identity(&open)),
                Err(error) => return self.fail(error),
            }
        }
        let outcome = match (self.ring.cancel(&key, self, is_all), is_all) {
            (0, false) => Err(Failure::Error(sync::Error::NotFound)),
            (_, false) => Ok(0),
            (count, true) => Ok(count as i32),
        };
        self.finish(outcome, CqeFlags::empty());
    }

    /// What the program calls it.
    pub fn name(&self) -> u64 {
        self.user_data.load(Ordering::Relaxed)
    }
}
