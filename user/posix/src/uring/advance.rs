//! A request goes on; as `kernel/uring/src/advance.rs`.

use ::uring::{Call, CqeFlags, Operation, SqeFlags};
use base::SharedMemory;

use super::Ring;
use super::request::{Ending, Forwarded, Slot, identity};
use super::world::{Target, World};
use crate::Events;
use crate::errno::{Errno, Result};

/// What nobody has to ask for.
const ALWAYS: Events = Events::ERR.union(Events::HUP);

impl<M: SharedMemory> Ring<M> {
    /// Does what can be done now.
    pub(super) fn advance(&mut self, world: &mut impl World, slot: Slot) {
        let Some(request) = self.requests.get_mut(slot) else {
            return;
        };
        request.is_queued = false;
        if request.is_finished {
            return;
        }
        match request.ending {
            None => self.go_on(world, slot),
            Some(Ending::Invalid) => self.finish(world, slot, Err(Errno::INVALID)),
            Some(Ending::Counted) => self.finish(world, slot, Ok(0)),
            Some(Ending::Expired) => self.expired(world, slot),
            // What came of it the kernel says.
            Some(Ending::Cancelled) if request.forwarded == Forwarded::Whole => {
                self.forward_cancel(world, slot);
            }
            Some(Ending::Cancelled) => self.finish(world, slot, Err(Errno::CANCELED)),
        }
    }

    fn go_on(&mut self, world: &mut impl World, slot: Slot) {
        let Some(request) = self.requests.get_mut(slot) else {
            return;
        };
        let is_first = !core::mem::replace(&mut request.is_begun, true);
        let (operation, number) = (request.operation, request.sqe.fd);
        if is_first {
            self.arm_limit(world, slot);
        }
        match operation {
            Operation::Nop => self.finish(world, slot, Ok(0)),
            Operation::Timeout { .. } if !is_first => {}
            Operation::Timeout {
                address,
                count,
                flags,
            } => self.begin_timeout(world, slot, address, (count, flags)),
            // Its turn comes only with what it limits, which arms it.
            Operation::LinkTimeout { .. } => {}
            Operation::TimeoutRemove { .. } => self.change_timeout(world, slot),
            Operation::PollUpdate { .. } => self.update_poll(world, slot),
            Operation::Cancel { .. } => self.cancel_others(world, slot),
            Operation::Close { slot: place } => {
                let closed = match place {
                    0 => world.close(number),
                    place => self.registered.close(world, place - 1),
                };
                self.finish(world, slot, closed.map(|()| 0));
            }
            Operation::FilesUpdate {
                address,
                count,
                first,
            } => {
                let updated = self.registered.update_files(world, first, address, count);
                self.finish(world, slot, updated.map(|count| count as i32));
            }
            Operation::Call {
                call: call @ (Call::Socket | Call::EpollCtl),
                args,
            } => {
                let done = world.call(call, args);
                self.finish(world, slot, done);
            }
            Operation::Call { .. } => self.forward(world, slot, Target::Kernel(number)),
            _ => self.on_file(world, slot),
        }
    }

    fn on_file(&mut self, world: &mut impl World, slot: Slot) {
        let target = match self.resolve(world, slot) {
            Ok(target) => target,
            Err(error) => return self.finish(world, slot, Err(error)),
        };
        let Some(request) = self.requests.get_mut(slot) else {
            return;
        };
        let is_lent = request.operation.buffer_group().is_some();
        match (target, request.operation) {
            (Target::Own(number), Operation::Poll { is_multishot, .. }) => {
                self.poll(world, slot, (number, is_multishot));
            }
            (Target::Own(_), _) => self.attempt(world, slot),
            // Which buffer it gets is decided when there is something to read, and here.
            _ if is_lent && request.forwarded == Forwarded::No => self.attempt(world, slot),
            _ if is_lent => {}
            _ => self.forward(world, slot, target),
        }
    }

    /// Where its entry's descriptor leads.
    fn resolve(&mut self, world: &mut impl World, slot: Slot) -> Result<Target> {
        let request = self.requests.get_mut(slot).ok_or(Errno::BAD_NUMBER)?;
        if let Some(target) = request.target {
            return Ok(target);
        }
        let target = match request.has(SqeFlags::FIXED_FILE) {
            true => self.registered.file(world, request.sqe.fd)?,
            false => world.target(request.sqe.fd)?,
        };
        request.target = Some(target);
        Ok(target)
    }

    /// Looks at a socket; one that has several shots is watched before its first look, so that it looks once for
    /// each change.
    fn poll(&mut self, world: &mut impl World, slot: Slot, (number, is_multishot): (i32, bool)) {
        if let Err(error) = self.watch(world, number) {
            return self.finish(world, slot, Err(error));
        }
        let Some(request) = self.requests.get(slot) else {
            return;
        };
        let interest = Events::from_bits_truncate(request.events) | ALWAYS;
        let ready = match world.ready(number) {
            Ok(ready) => ready & interest,
            Err(error) => return self.finish(world, slot, Err(error)),
        };
        let result = ready.bits() as i32;
        if ready.is_empty() || (is_multishot && self.post_more(slot, result, CqeFlags::empty())) {
            return self.watched.push(number, slot, &mut self.requests);
        }
        self.finish(world, slot, Ok(result));
    }

    /// Has the world say when something happens to a socket.
    pub(super) fn watch(&mut self, world: &mut impl World, number: i32) -> Result<()> {
        if !self.watched.is_watched(number) {
            world.watch(number)?;
            self.watched.set_watched(number, true);
        }
        Ok(())
    }

    /// A number is closed: what waits for it ends, and whatever has it next is another one.
    pub fn note_closed(&mut self, world: &mut impl World, number: i32) {
        world.forget(number);
        self.watched.set_watched(number, false);
        while let Some(slot) = self.watched.pop(number, &mut self.requests) {
            self.end(slot, Ending::Cancelled);
        }
    }

    /// A number has become the kernel's: what waits for it asks anew whose it is.
    pub fn note_moved(&mut self, world: &mut impl World, number: i32) {
        world.forget(number);
        self.watched.set_watched(number, false);
        while let Some(slot) = self.watched.pop(number, &mut self.requests) {
            if let Some(request) = self.requests.get_mut(slot) {
                request.target = None;
            }
            self.wake(slot);
        }
    }

    /// It is to end; whether this is why.
    pub(super) fn end(&mut self, slot: Slot, why: Ending) -> bool {
        let Some(request) = self.requests.get_mut(slot) else {
            return false;
        };
        if request.ending.is_some() || request.is_finished {
            return false;
        }
        request.ending = Some(why);
        if request.is_started {
            self.wake(slot);
        }
        true
    }

    /// Ends or changes another poll.
    fn update_poll(&mut self, world: &mut impl World, slot: Slot) {
        let Some(&Operation::PollUpdate {
            target,
            events,
            user_data,
            ..
        }) = self.requests.get(slot).map(|request| &request.operation)
        else {
            return;
        };
        let is_meant = |operation: &Operation| matches!(operation, Operation::Poll { .. });
        let Some(poll) = self.find(target, is_meant) else {
            return self.forward(world, slot, Target::Kernel(-1));
        };
        let Some(request) = self.requests.get_mut(poll) else {
            return;
        };
        let has_kernel = request.forwarded == Forwarded::Whole;
        if let Some(name) = user_data {
            request.user_data = name;
        }
        if let Some(events) = events {
            request.events = events;
        }
        if has_kernel && (events.is_some() || user_data.is_none()) {
            return self.forward_about(world, slot, poll);
        }
        match events.is_none() && user_data.is_none() {
            true => drop(self.end(poll, Ending::Cancelled)),
            false => {
                self.watched.remove(poll, &mut self.requests);
                self.wake(poll);
            }
        }
        self.finish(world, slot, Ok(0));
    }

    /// A request of this name that is meant, whose turn has come and that is not yet to end.
    pub(super) fn find(&self, name: u64, is_meant: impl Fn(&Operation) -> bool) -> Option<Slot> {
        let mut all = self.requests.iter();
        let found = all.find(|(_, one)| {
            let is_live = one.is_started && one.ending.is_none() && !one.is_finished;
            is_live && one.user_data == name && is_meant(&one.operation)
        });
        found.map(|(slot, _)| slot)
    }

    /// What stands for the file that a cancellation names.
    pub(super) fn file_of(
        &self,
        world: &mut impl World,
        number: i32,
        is_fixed: bool,
    ) -> Result<usize> {
        let target = match is_fixed {
            true => self.registered.file(world, number)?,
            false => world.target(number)?,
        };
        Ok(identity(target))
    }
}
