//! Ending requests before they are done; as `kernel/uring/src/cancel.rs`.

use ::uring::{Key, Operation};
use base::SharedMemory;

use super::Ring;
use super::request::{Ending, Forwarded, Slot};
use super::world::{Target, World};
use crate::errno::Errno;

impl<M: SharedMemory> Ring<M> {
    /// Ends what another request means.
    pub(super) fn cancel_others(&mut self, world: &mut impl World, slot: Slot) {
        let Some(request) = self.requests.get(slot) else {
            return;
        };
        let Operation::Cancel {
            mut key,
            is_fixed_file,
            by_file,
            is_all,
        } = request.operation
        else {
            return;
        };
        if by_file {
            match self.file_of(world, request.sqe.fd, is_fixed_file) {
                Ok(file) => key.file = Some(file),
                Err(error) => return self.finish(world, slot, Err(error)),
            }
        }
        if is_all {
            let count = self.cancel_all(world, &key, slot);
            return self.finish(world, slot, Ok(count));
        }
        let Some(meant) = self.find_meant(&key, slot) else {
            return match by_file {
                true => self.finish(world, slot, Err(Errno::NOT_FOUND)),
                // The kernel may have one from before the ring was ours.
                false => self.forward(world, slot, Target::Kernel(-1)),
            };
        };
        match self.requests.get(meant).map(|one| one.forwarded) {
            Some(Forwarded::Whole) => self.forward_about(world, slot, meant),
            _ => {
                self.end(meant, Ending::Cancelled);
                self.finish(world, slot, Ok(0));
            }
        }
    }

    fn find_meant(&self, key: &Key, except: Slot) -> Option<Slot> {
        let mut all = self.requests.iter();
        let found = all.find(|(slot, one)| {
            let is_live = one.is_started && !one.is_finished && one.ending.is_none();
            is_live && *slot != except && key.means(&one.facts())
        });
        found.map(|(slot, _)| slot)
    }

    fn cancel_all(&mut self, world: &mut impl World, key: &Key, except: Slot) -> i32 {
        let is_meant = |slot: Slot, one: &super::request::Request| {
            let is_live = one.is_started && !one.is_finished && one.ending.is_none();
            is_live && slot != except && key.means(&one.facts())
        };
        let all = self.requests.iter();
        let meant = all.filter(|(slot, one)| is_meant(*slot, one));
        let meant: Vec<_> = meant.map(|(slot, one)| (slot, one.forwarded)).collect();
        for (slot, forwarded) in &meant {
            match forwarded {
                Forwarded::Whole => self.forward_cancel(world, *slot),
                _ => drop(self.end(*slot, Ending::Cancelled)),
            }
        }
        meant.len() as i32
    }
}
