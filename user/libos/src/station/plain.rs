//! The stack's own sockets, for a program that keeps state of each itself: POSIX' bytes stay where they are
//! until they are read, and what is ready is asked for again and again.

use base::Instant;
use inet::{SocketId, Stack};
use rt::FrameIo;

use super::Station;
use crate::readiness::Kind;
use crate::world::World;

impl<P: FrameIo> Station<P> {
    /// The stack, and what it sees of the queue.
    #[inline]
    pub fn parts(&mut self) -> (&mut Stack, &mut World<P>) {
        (&mut self.stack, &mut self.world)
    }

    /// What time it is for calls between turns.
    #[inline]
    pub fn set_now(&mut self, now: Instant) {
        self.world.now = now;
    }

    /// From now on [`next_changed`](Self::next_changed) names this socket of the stack when something
    /// happens to it, and [`receive`](Self::receive) has no event of it.
    pub fn watch(&mut self, id: SocketId) {
        self.world.readiness.add(id, Kind::Plain);
    }

    /// And no longer.
    pub fn forget_plain(&mut self, id: SocketId) {
        self.world.readiness.remove(id);
    }

    /// Whether there is one that [`next_changed`](Self::next_changed) would look at.
    #[inline]
    pub fn has_changed(&self) -> bool {
        self.world.readiness.has_changed()
    }

    /// The next watched socket that something may have happened to since it was named.
    #[inline]
    pub fn next_changed(&mut self) -> Option<SocketId> {
        self.world.readiness.next_changed()
    }
}
