//! From entries to requests; as `kernel/uring/src/submit.rs`.

use ::uring::{Link, Next, Operation, SqeFlags, Turn};
use base::SharedMemory;

use super::Ring;
use super::request::{Ending, Request, Slot};
use crate::errno::{Errno, Result};

/// Requests that a ring may have under way, with the completions that wait for room.
pub const REQUESTS_MAX: usize = 65_536;

/// Requests that follow each other, as far as their entries have been taken.
#[derive(Default)]
struct Chain {
    members: Option<(Slot, Slot)>,
    is_broken: bool,
    is_drain: bool,
}

impl<M: SharedMemory> Ring<M> {
    /// Takes up to `count` entries; how many.
    ///
    /// Errors: `AGAIN` if there is no room for a single one now.
    pub fn submit(&mut self, count: u32) -> Result<u32> {
        let mut chain = Chain::default();
        let mut taken = 0;
        while taken < count {
            let Next::Entry(sqe) = self.submissions.take(&self.rings, &self.entries) else {
                break;
            };
            if self.reserve().is_err() {
                self.submissions.put_back(&self.rings);
                break;
            }
            taken += 1;
            let slot = self.requests.insert(Request::new(sqe));
            if !self.place(&mut chain, slot) && !self.submits_all {
                break;
            }
        }
        self.launch(chain);
        match taken {
            0 if count > 0 && self.submissions.pending(&self.rings) > 0 => Err(Errno::AGAIN),
            taken => Ok(taken),
        }
    }

    /// Entries that its program has given and nobody has taken.
    pub fn pending(&self) -> u32 {
        self.submissions.pending(&self.rings)
    }

    /// Makes room for all that one more request may need.
    fn reserve(&mut self) -> Result<()> {
        if self.completions.owed().max(self.requests.len()) >= REQUESTS_MAX {
            return Err(Errno::NO_BUFFERS);
        }
        self.drain.reserve().map_err(|_| Errno::NO_BUFFERS)?;
        self.completions.reserve().map_err(|_| Errno::NO_BUFFERS)
    }

    /// Puts a request into the chain, which starts if that was its end; whether it was valid.
    fn place(&mut self, chain: &mut Chain, slot: Slot) -> bool {
        let Some(request) = self.requests.get_mut(slot) else {
            return false;
        };
        // A limit of time needs something to limit.
        if chain.members.is_none() && matches!(request.operation, Operation::LinkTimeout { .. }) {
            request.ending = Some(Ending::Invalid);
        }
        let is_valid = request.ending.is_none();
        chain.is_broken |= !is_valid;
        chain.is_drain |= request.has(SqeFlags::IO_DRAIN);
        let ends = request.link() == Link::None;
        let last = chain.members.map(|(_, last)| last);
        if let Some(last) = last.and_then(|last| self.requests.get_mut(last)) {
            last.next = Some(slot);
        }
        chain.members = Some((chain.members.map_or(slot, |(first, _)| first), slot));
        if ends {
            self.launch(core::mem::take(chain));
        }
        is_valid
    }

    /// The whole chain is there: its first request starts, or waits for a drain.
    fn launch(&mut self, chain: Chain) {
        let Some((first, last)) = chain.members else {
            return;
        };
        if let Some(last) = self.requests.get_mut(last) {
            last.is_last = true;
        }
        if chain.is_broken {
            self.break_off(first);
        }
        if let Turn::Start(first) = self.drain.submit(first, chain.is_drain) {
            self.start(first);
        }
    }

    /// Its turn has come.
    pub(super) fn start(&mut self, slot: Slot) {
        if let Some(request) = self.requests.get_mut(slot) {
            request.is_started = true;
        }
        self.wake(slot);
    }

    /// One of the chain is invalid: none runs.
    fn break_off(&mut self, first: Slot) {
        let mut member = Some(first);
        while let Some(request) = member.and_then(|slot| self.requests.get_mut(slot)) {
            request.ending.get_or_insert(Ending::Cancelled);
            member = request.next;
        }
    }
}
