//! Timeouts: of their own, and of the entry before them.

use base::Instant;
use sched::timer::{self, Target};
use uring::{CqeFlags, Operation, TimeoutFlags};

use crate::abi::Failure;
use crate::request::{Ending, Request};

impl Request {
    /// Its time begins.
    pub fn begin_timeout(&self, address: u64, count: u32, flags: TimeoutFlags) {
        let deadline = match self.ring.abi.deadline(address, flags) {
            Ok(deadline) => deadline,
            Err(error) => return self.fail(error),
        };
        if count != 0 && !self.begin_count(count) {
            return self.fail(sync::Error::OutOfMemory);
        }
        self.arm(deadline);
    }

    fn begin_count(&self, count: u32) -> bool {
        let Some(me) = self.arc() else { return false };
        let mut state = self.ring.state.lock();
        let posted = state.completions.posted();
        state.counted.add(posted, count, me).is_ok()
    }

    /// Ends at `deadline`.
    fn arm(&self, deadline: Instant) {
        let Some(me) = self.arc() else { return };
        // Held meanwhile: it may expire at once on another CPU.
        let mut armed = self.timer.lock();
        if let Some(old) = armed.replace(timer::add(deadline, Target::Call(me))) {
            timer::cancel(old);
        }
    }

    /// Its time is over.
    pub fn expired(&self) {
        let succeeded = match self.operation {
            Operation::Timeout { flags, .. } | Operation::LinkTimeout { flags, .. } => {
                flags.contains(TimeoutFlags::ETIME_SUCCESS)
            }
            _ => false,
        };
        let limited = self.progress.lock().limited.upgrade();
        if let Some(limited) = limited {
            limited.end(Ending::Cancelled);
        }
        let result = self.ring.abi.number(Failure::Expired);
        self.finish_with(result, CqeFlags::empty(), succeeded);
    }

    /// If what follows limits its time, that begins now; what follows the limit follows this.
    pub fn arm_limit(&self) {
        let (limit, address, flags) = {
            let mut progress = self.progress.lock();
            let Some(next) = &progress.next else { return };
            let Operation::LinkTimeout { address, flags } = next.operation else {
                return;
            };
            let limit = next.clone();
            let mut of_limit = limit.progress.lock();
            progress.next = of_limit.next.take();
            of_limit.limited = self
                .arc()
                .as_ref()
                .map(alloc::sync::Arc::downgrade)
                .unwrap_or_default();
            drop(of_limit);
            progress.limit = Some(limit.clone());
            (limit, address, flags)
        };
        match self.ring.abi.deadline(address, flags) {
            Ok(deadline) => {
                limit.set_started();
                limit.arm(deadline);
            }
            Err(error) => limit.fail(error),
        }
    }

    /// Ends another timeout, or gives it another time.
    pub fn change_timeout(&self) {
        let Operation::TimeoutRemove {
            target,
            address,
            flags,
        } = self.operation
        else {
            return;
        };
        let is_meant = |one: &Request| {
            matches!(one.operation, Operation::Timeout { .. }) && one.name() == target
        };
        let Some(timeout) = self.ring.find(is_meant) else {
            return self.fail(sync::Error::NotFound);
        };
        match address {
            None => {
                timeout.end(Ending::Cancelled);
            }
            Some(address) => match self.ring.abi.deadline(address, flags) {
                Ok(deadline) => timeout.arm(deadline),
                Err(error) => return self.fail(error),
            },
        }
        self.finish(Ok::<_, Failure>(0), CqeFlags::empty());
    }
}
