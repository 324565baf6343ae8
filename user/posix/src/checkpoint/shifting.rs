//! A socket goes from one of a program's hosts to another: to that of the thread that uses it.
//!
//! A program's threads would wait for each other where they share a stack, so each that waits for connections of its own may
//! have a host, with a queue of the same link. A connection begins where its listener is, and is *shifted* when it is
//! known who waits for it. The socket stays the same for who has it, with its numbers and in its sets; only what the stack
//! has of it is copied as a value, as for another process (`moving`).
//!
//! Both hosts are locked. Frames must go to the new host's queue before, and what has come must have been looked at.

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use base::Instant;
use inet::{SocketId, Transport};

use super::SocketRecord;
use super::save::grouped;
use crate::errno::Result;
use crate::host::{Host, Link};
use crate::open::{Named, Open};
use crate::sets::WatchSet;

impl<L: Link> Host<L> {
    /// Whether it is a connection, and open: what can be shifted, and is worth it. Not one whose other end is this program's: a
    /// stack keeps what it sends to its own address, so both ends must be on the same.
    pub fn is_connection(&mut self, open: &Open) -> bool {
        if open.transport != Transport::Tcp {
            return false;
        }
        let address = self.address.host();
        let is_others = |peer: &Ipv4Addr| *peer != address && !peer.is_loopback();
        let ends = self.ends(open).ok().flatten();
        ends.is_some_and(|(_, peer)| is_others(peer.ip()))
    }

    /// Whether one number has it and nobody else: no set, and no process that might claim it.
    pub fn is_single(&self, open: &Open) -> bool {
        open.numbers.load(Relaxed) == 1
            && open.holds.load(Relaxed) == 0
            && !open.is_watched()
            && self.is_up()
    }

    /// Gives a socket to another host of the program's, under its numbers here.
    ///
    /// Errors: those of the calls that make a socket; it stays here then.
    pub fn shift(
        &mut self,
        (open, numbers): (&Arc<Open>, &[u32]),
        to: &mut Self,
        now: Instant,
    ) -> Result<()> {
        let record = self.record(open, &[])?;
        to.set_now(now);
        let id = to.make(&record)?;
        self.leave(open);
        open.settle_at(id, to.place);
        for number in numbers {
            if let Some(named) = self.table.remove(*number) {
                to.table.insert(*number, named)?;
            }
        }
        to.keep(open);
        open.tell();
        (self.has_news, to.has_news) = (true, true);
        Ok(())
    }

    /// A socket of the stack as the record says.
    fn make(&mut self, record: &SocketRecord) -> Result<SocketId> {
        self.check_link()?;
        let transport = match record.is_stream {
            true => Transport::Tcp,
            false => Transport::Udp,
        };
        let id = self.parts().0.open(transport)?;
        let made = self.restore_state(id, record);
        if made.is_err() {
            let (stack, world) = self.parts();
            stack.close(world, id).ok();
        }
        made.map(|_| id)
    }

    /// The stack's socket ends without a word to its peer. A frame that was on its way to this queue when the
    /// flow went may still come: it is dropped without an answer, and the peer sends it again to where the socket is.
    fn leave(&mut self, open: &Open) {
        let id = open.id();
        if let Some(slot) = self.opens.get_mut(id.index()) {
            *slot = None;
        }
        self.station.forget_plain(id);
        let (stack, world) = self.parts();
        if stack.state(id).is_ok_and(|state| state.is_portable()) {
            // It can be, so it stands still.
            stack.freeze(world, id).ok();
        }
        stack.close(world, id).ok();
    }

    /// All sockets with their numbers.
    pub fn numbered(&self) -> Vec<(Arc<Open>, Vec<u32>)> {
        grouped(self.table.sockets())
    }

    /// All sets with their numbers.
    pub fn numbered_sets(&self) -> Vec<(Arc<WatchSet>, Vec<u32>)> {
        grouped(self.table.sets())
    }

    /// Gives a set to another host of the program's, whose members may be any hosts'. The numbers that it has.
    pub fn shift_set(&mut self, set: &Arc<WatchSet>, to: &mut Self) -> Result<Vec<u32>> {
        let all = self.table.sets();
        let its = all.filter(|(_, other)| Arc::ptr_eq(other, set));
        let numbers: Vec<u32> = its.map(|(number, _)| number).collect();
        for number in &numbers {
            self.table.remove(*number);
            to.table.insert(*number, Named::Set(set.clone()))?;
        }
        (self.has_news, to.has_news) = (true, true);
        Ok(numbers)
    }

    /// All sets.
    pub fn sets(&self) -> Vec<Arc<WatchSet>> {
        let all = self.numbered_sets();
        all.into_iter().map(|it| it.0).collect()
    }

    /// What the program has let go goes on in another host. This one is about to end.
    ///
    /// Errors: `NO_BUFFERS`, and those of the calls that make a socket.
    pub fn shift_orphans(&mut self, to: &mut Self, now: Instant) -> Result<()> {
        let (stack, world) = self.parts();
        let orphans = stack.orphan_snapshots(world)?;
        to.set_now(now);
        orphans
            .iter()
            .try_for_each(|orphan| to.restore_orphan(orphan))
    }
}
