//! The end of a request: its completion, and what that sets free.

use alloc::sync::Arc;
use core::sync::atomic::Ordering;

use sched::timer;
use uring::{Cqe, CqeFlags, Operation, SqeFlags};

use crate::abi::Failure;
use crate::request::{Ending, Request};
use crate::ring::{Ring, State};

impl Request {
    /// It ends with `outcome`, and with it what is linked to it if that is how it is linked.
    pub fn finish(&self, outcome: Result<i32, Failure>, flags: CqeFlags) {
        let result = outcome.unwrap_or_else(|failure| self.ring.abi.number(failure));
        self.finish_with(result, flags, result >= 0);
    }

    /// The same, where success is not in the number.
    pub fn finish_with(&self, result: i32, flags: CqeFlags, succeeded: bool) {
        let Some((next, limit)) = self.finish_alone(result, flags, succeeded) else {
            return;
        };
        if let Some(limit) = limit {
            let cancelled = self.ring.abi.number(Failure::Cancelled);
            limit.finish_alone(cancelled, CqeFlags::empty(), false);
        }
        match next {
            Some(next) if self.link().lets_on(succeeded) => next.start(),
            next => cancel_chain(next),
        }
    }

    /// Posts its completion; returns what is linked to it, or `None` if it had ended before.
    #[expect(clippy::type_complexity, reason = "the two that hang on it")]
    fn finish_alone(
        &self,
        result: i32,
        flags: CqeFlags,
        succeeded: bool,
    ) -> Option<(Option<Arc<Request>>, Option<Arc<Request>>)> {
        if !self.set_finished() {
            return None;
        }
        if let Some(armed) = self.timer.lock().take() {
            timer::cancel(armed);
        }
        self.stop_observing();
        let (open, next, limit) = {
            let mut progress = self.progress.lock();
            (
                progress.open.take(),
                progress.next.take(),
                progress.limit.take(),
            )
        };
        let ring = &self.ring;
        ring.unregister(self);
        let is_silent = succeeded && self.has(SqeFlags::CQE_SKIP_SUCCESS);
        let cqe = Cqe {
            user_data: self.user_data.load(Ordering::Relaxed),
            result,
            flags,
        };
        let mut counted = None;
        {
            let mut state = ring.state.lock();
            if matches!(self.operation, Operation::Timeout { count: 1.., .. }) {
                counted = state.counted.forget(|one| core::ptr::eq(&**one, self));
            }
            match is_silent {
                true => state.completions.release(),
                false => state.completions.post(&*ring.rings, cqe),
            }
            if self.is_last.load(Ordering::SeqCst) {
                state.drain.done();
            }
        }
        ring.go_on();
        if !is_silent {
            ring.announce();
        }
        drop((open, counted));
        Some((next, limit))
    }

    /// Posts a completion and goes on; false if it found no room, and the request has to end.
    #[must_use]
    pub fn post_more(&self, result: i32, flags: CqeFlags) -> bool {
        let ring = &self.ring;
        let cqe = Cqe {
            user_data: self.user_data.load(Ordering::Relaxed),
            result,
            flags: flags | CqeFlags::MORE,
        };
        let is_posted = ring.state.lock().completions.post_more(&*ring.rings, cqe);
        if is_posted {
            ring.go_on();
            ring.announce();
        }
        is_posted
    }
}

/// Ends what was linked to something that failed.
fn cancel_chain(mut next: Option<Arc<Request>>) {
    while let Some(request) = next {
        let failure = match request.ending() {
            Ending::Invalid => Failure::Error(sync::Error::Invalid),
            _ => Failure::Cancelled,
        };
        let result = request.ring.abi.number(failure);
        let freed = request.finish_alone(result, CqeFlags::empty(), false);
        next = freed.and_then(|(next, _)| next);
        sched::resched_point();
    }
}

impl Ring {
    /// Starts what waited for completions.
    pub fn go_on(&self) {
        while let Some(counted) = self.with_state(|state| {
            let posted = state.completions.posted();
            state.counted.take_due(posted)
        }) {
            counted.end(Ending::Counted);
        }
        while let Some(first) = self.with_state(|state| state.drain.start_next()) {
            first.start();
        }
    }

    fn with_state<R>(&self, act: impl FnOnce(&mut State) -> R) -> R {
        act(&mut self.state.lock())
    }

    /// Puts a request into the table, where `reserve` made room.
    pub fn register(&self, request: &Arc<Request>) {
        let mut requests = self.requests.lock();
        request.index.store(requests.len(), Ordering::Relaxed);
        requests.push(request.clone());
    }

    /// Takes it out again.
    fn unregister(&self, request: &Request) {
        let mut requests = self.requests.lock();
        let index = request.index.load(Ordering::Relaxed);
        if index >= requests.len() {
            return;
        }
        let taken = requests.swap_remove(index);
        if let Some(moved) = requests.get(index) {
            moved.index.store(index, Ordering::Relaxed);
        }
        drop(requests);
        drop(taken);
    }
}
