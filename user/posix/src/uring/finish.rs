//! The end of a request: its completion, and what that sets free; as `kernel/uring/src/finish.rs`.

use ::uring::{Cqe, CqeFlags, Operation, SqeFlags};
use base::SharedMemory;

use super::Ring;
use super::request::{Ending, Forwarded, Slot};
use super::world::World;
use crate::errno::{Errno, Result};

impl<M: SharedMemory> Ring<M> {
    /// It ends with `outcome`, and with it what is linked to it if that is how it is linked.
    pub(super) fn finish(&mut self, world: &mut impl World, slot: Slot, outcome: Result<i32>) {
        self.finish_flagged(world, slot, outcome, CqeFlags::empty());
    }

    /// The same, with what else is to be known.
    pub(super) fn finish_flagged(
        &mut self,
        world: &mut impl World,
        slot: Slot,
        outcome: Result<i32>,
        flags: CqeFlags,
    ) {
        let result = outcome.unwrap_or_else(|error| -error.number());
        self.finish_with(world, slot, (result, flags), result >= 0);
    }

    /// The same, where success is not in the number.
    pub(super) fn finish_with(
        &mut self,
        world: &mut impl World,
        slot: Slot,
        outcome: (i32, CqeFlags),
        succeeded: bool,
    ) {
        let link = self.requests.get(slot).map(|request| request.link());
        let Some((next, limit)) = self.finish_alone(world, slot, outcome, succeeded) else {
            return;
        };
        if let Some(limit) = limit {
            let cancelled = (-Errno::CANCELED.number(), CqeFlags::empty());
            self.finish_alone(world, limit, cancelled, false);
        }
        match next {
            Some(next) if link.is_some_and(|link| link.lets_on(succeeded)) => self.start(next),
            next => self.cancel_chain(world, next),
        }
    }

    /// Posts its completion; returns what is linked to it, or `None` if it had ended before.
    fn finish_alone(
        &mut self,
        world: &mut impl World,
        slot: Slot,
        (result, flags): (i32, CqeFlags),
        succeeded: bool,
    ) -> Option<(Option<Slot>, Option<Slot>)> {
        self.watched.remove(slot, &mut self.requests);
        let request = self.requests.get_mut(slot)?;
        if core::mem::replace(&mut request.is_finished, true) {
            return None;
        }
        let cqe = Cqe {
            user_data: request.user_data,
            result,
            flags,
        };
        let is_silent = succeeded && request.has(SqeFlags::CQE_SKIP_SUCCESS);
        let (next, limit) = (request.next.take(), request.limit.take());
        let (deadline, is_last) = (request.deadline.take(), request.is_last);
        let is_counted = matches!(request.operation, Operation::Timeout { count: 1.., .. });
        let is_kernels = request.forwarded != Forwarded::No;
        if let Some(deadline) = deadline {
            self.timers.remove(&(deadline, slot));
        }
        if is_counted {
            self.counted.forget(|one| *one == slot);
        }
        match is_kernels {
            // Its place is another's when the kernel has told that it is over.
            true => self.forward_cancel(world, slot),
            false => self.requests.remove(slot),
        }
        match is_silent {
            true => self.completions.release(),
            false => self.completions.post(&self.rings, cqe),
        }
        if is_last {
            self.drain.done();
        }
        self.release();
        Some((next, limit))
    }

    /// Posts a completion and goes on; false if it found no room, and the request has to end.
    #[must_use]
    pub(super) fn post_more(&mut self, slot: Slot, result: i32, flags: CqeFlags) -> bool {
        let Some(request) = self.requests.get(slot) else {
            return false;
        };
        let cqe = Cqe {
            user_data: request.user_data,
            result,
            flags: flags | CqeFlags::MORE,
        };
        let is_posted = self.completions.post_more(&self.rings, cqe);
        if is_posted {
            self.release();
        }
        is_posted
    }

    /// Ends what was linked to something that failed.
    fn cancel_chain(&mut self, world: &mut impl World, mut next: Option<Slot>) {
        while let Some(slot) = next {
            let ending = self.requests.get(slot).and_then(|request| request.ending);
            let error = match ending {
                Some(Ending::Invalid) => Errno::INVALID,
                _ => Errno::CANCELED,
            };
            let outcome = (-error.number(), CqeFlags::empty());
            next = self
                .finish_alone(world, slot, outcome, false)
                .and_then(|(next, _)| next);
        }
    }

    /// Starts what waited for completions.
    fn release(&mut self) {
        while !self.counted.is_empty()
            && let Some(counted) = self.counted.take_due(self.completions.posted())
        {
            self.end(counted, Ending::Counted);
        }
        while let Some(first) = self.drain.start_next() {
            self.start(first);
        }
    }
}
