//! Timeouts: of their own, and of the entry before them; as `kernel/uring/src/timeout.rs`.

use ::uring::{CqeFlags, Operation, TimeoutFlags};
use base::{Instant, SharedMemory};

use super::Ring;
use super::request::{Ending, Slot};
use super::world::{Target, World};
use crate::errno::Errno;

impl<M: SharedMemory> Ring<M> {
    /// Its time begins.
    pub(super) fn begin_timeout(
        &mut self,
        world: &mut impl World,
        slot: Slot,
        address: u64,
        (count, flags): (u32, TimeoutFlags),
    ) {
        let deadline = match world.deadline(address, flags) {
            Ok(deadline) => deadline,
            Err(error) => return self.finish(world, slot, Err(error)),
        };
        let posted = self.completions.posted();
        if count != 0 && self.counted.add(posted, count, slot).is_err() {
            return self.finish(world, slot, Err(Errno::NO_BUFFERS));
        }
        self.arm(slot, deadline);
    }

    /// Ends at `deadline`.
    fn arm(&mut self, slot: Slot, deadline: Instant) {
        let Some(request) = self.requests.get_mut(slot) else {
            return;
        };
        if let Some(old) = request.deadline.replace(deadline) {
            self.timers.remove(&(old, slot));
        }
        self.timers.insert((deadline, slot));
    }

    /// Ends those whose time is over.
    pub(super) fn expire(&mut self, now: Instant) {
        while let Some(&(at, slot)) = self.timers.first().filter(|(at, _)| *at <= now) {
            self.timers.remove(&(at, slot));
            if let Some(request) = self.requests.get_mut(slot) {
                request.deadline = None;
            }
            self.end(slot, Ending::Expired);
        }
    }

    /// Its time is over.
    pub(super) fn expired(&mut self, world: &mut impl World, slot: Slot) {
        let Some(request) = self.requests.get(slot) else {
            return;
        };
        let succeeded = match request.operation {
            Operation::Timeout { flags, .. } | Operation::LinkTimeout { flags, .. } => {
                flags.contains(TimeoutFlags::ETIME_SUCCESS)
            }
            _ => false,
        };
        if let Some(limited) = request.limited {
            self.end(limited, Ending::Cancelled);
        }
        let outcome = (-libc::ETIME, CqeFlags::empty());
        self.finish_with(world, slot, outcome, succeeded);
    }

    /// If what follows limits its time, that begins now; what follows the limit follows this.
    pub(super) fn arm_limit(&mut self, world: &mut impl World, slot: Slot) {
        let next = self.requests.get(slot).and_then(|request| request.next);
        let Some((next, limit)) = next.and_then(|next| Some((next, self.requests.get_mut(next)?)))
        else {
            return;
        };
        let Operation::LinkTimeout { address, flags } = limit.operation else {
            return;
        };
        limit.limited = Some(slot);
        // There is nothing to do for it yet.
        limit.is_started = true;
        let after = limit.next.take();
        if let Some(request) = self.requests.get_mut(slot) {
            request.next = after;
            request.limit = Some(next);
        }
        match world.deadline(address, flags) {
            Ok(deadline) => self.arm(next, deadline),
            Err(error) => self.finish(world, next, Err(error)),
        }
    }

    /// Ends another timeout, or gives it another time.
    pub(super) fn change_timeout(&mut self, world: &mut impl World, slot: Slot) {
        let Some(&Operation::TimeoutRemove {
            target,
            address,
            flags,
        }) = self.requests.get(slot).map(|request| &request.operation)
        else {
            return;
        };
        let is_meant = |operation: &Operation| matches!(operation, Operation::Timeout { .. });
        let Some(timeout) = self.find(target, is_meant) else {
            // The kernel may have one from before the ring was ours.
            return self.forward(world, slot, Target::Kernel(-1));
        };
        let changed = match address.map(|address| world.deadline(address, flags)) {
            None => {
                self.end(timeout, Ending::Cancelled);
                Ok(0)
            }
            Some(Ok(deadline)) => {
                self.arm(timeout, deadline);
                Ok(0)
            }
            Some(Err(error)) => Err(error),
        };
        self.finish(world, slot, changed);
    }
}
