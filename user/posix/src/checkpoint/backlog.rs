//! What waits at a listener of a process that accepts nothing goes to a child of its that does.
//!
//! The listener stays where it is: its record is copied, with those who wait, and the child has them wait at its own one. Then they
//! are forgotten here.

use base::Instant;

use super::{Checkpoint, Numbered, SocketState};
use crate::errno::{Errno, Result};
use crate::host::{Host, Link};
use crate::open::Open;
use inet::Endpoint;

impl<L: Link> Host<L> {
    /// Listeners at which somebody waits, or is about to, and which others may serve and we do not.
    pub fn crowded_listeners(&mut self) -> Vec<Numbered> {
        if !self.is_withdrawn() {
            return Vec::new();
        }
        let is_asked = self.half_open() != 0;
        let all = super::save::grouped(self.table.sockets());
        let listeners = all.into_iter().filter(|(open, _)| open.listens());
        let mut is_crowded = |open: &Open| {
            let waiting = self.parts().0.accept_queue(open.id());
            is_asked || waiting.is_ok_and(|(count, _)| count != 0)
        };
        listeners.filter(|(open, _)| is_crowded(open)).collect()
    }

    /// Has those wait at a listener who are in what [`copy`](Self::copy) says of another host's, the first of them as far as there is
    /// memory; how many, and of how many.
    ///
    /// Errors: `INVALID` for what is none, or is of another address or none of a listener.
    pub fn attach_waiting(
        &mut self,
        bytes: &[u8],
        open: &Open,
        now: Instant,
    ) -> Result<(usize, usize)> {
        let mut checkpoint = Checkpoint::decode(bytes).ok_or(Errno::INVALID)?;
        let is_ours = checkpoint.host == Endpoint::v4(self.address.host(), 0);
        let record = checkpoint.sockets.pop().filter(|_| is_ours);
        let Some(SocketState::Listening(_, waiting)) = record.map(|record| record.state) else {
            return Err(Errno::INVALID);
        };
        self.set_now(now);
        let (stack, world) = self.parts();
        let mut all = waiting.iter();
        let failed = all.position(|it| stack.import_waiting(world, open.id(), it).is_err());
        self.refresh(open);
        self.note_changes();
        Ok((failed.unwrap_or(waiting.len()), waiting.len()))
    }

    /// The first of those who wait at a listener are another host's. Nothing is said to their peers.
    pub fn forget_waiting(&mut self, open: &Open, count: usize) {
        let all = self.take_waiting_connections(open);
        let (stack, world) = self.parts();
        for connection in all.iter().skip(count) {
            // There was memory for it just now.
            stack.import_waiting(world, open.id(), connection).ok();
        }
        self.refresh(open);
    }
}
