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

    /// Has those wait at a listener who are in what [`copy`](Self::copy) says of another host's; how many.
    ///
    /// Errors: `INVALID` for what is none, or is of another address or none of a listener, and those of the calls that make connections.
    pub fn attach_waiting(&mut self, bytes: &[u8], open: &Open, now: Instant) -> Result<usize> {
        let mut checkpoint = Checkpoint::decode(bytes).ok_or(Errno::INVALID)?;
        let is_ours = checkpoint.host == Endpoint::v4(self.address.host(), 0);
        let record = checkpoint.sockets.pop().filter(|_| is_ours);
        let Some(SocketState::Listening(_, waiting)) = record.map(|record| record.state) else {
            return Err(Errno::INVALID);
        };
        self.set_now(now);
        let (stack, world) = self.parts();
        let mut made = Ok(());
        for connection in &waiting {
            let waits = stack.import_waiting(world, open.id(), connection);
            made = made.and(waits);
        }
        self.refresh(open);
        self.note_changes();
        made?;
        Ok(waiting.len())
    }
}
