//! One connection goes from a host to another of the same address: to that of a child that has inherited it.
//!
//! While the other one makes it anew it is *detached* here: it stands still, and hears and says nothing. Then it
//! is [forgotten](Host::forget_moved) here without a word to its peer, or [goes on](Host::reattach). Its frames must go to the
//! other host's queue when it is detached, and must be in this one's rings before that.
//!
//! What may be asked for by others is *held* meanwhile: it is not closed with the last of the program's own numbers. But it
//! leaves the program's sets with that one, whose events would name a number that is another socket's by then.

use std::net::SocketAddrV4;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use base::Instant;
use inet::{Endpoint, Transport};

use super::{Checkpoint, Restored};
use crate::errno::{Errno, Result};
use crate::host::{Host, Link};
use crate::open::Open;

/// A connection, and its numbers.
pub type Numbered = (Arc<Open>, Vec<u32>);

/// Looks at the ring's frames before a connection leaves; more than it holds.
const LOOKS_MAX: usize = 64;

impl<L: Link> Host<L> {
    /// The connections that can go to another host: open ones, and those that are over and not closed.
    pub fn movable(&mut self) -> Vec<Numbered> {
        let all = super::save::grouped(self.table.sockets());
        let mut can_move = |open: &Open| {
            let (stack, _) = self.parts();
            let is_open = stack
                .state(open.id())
                .is_ok_and(|state| state.is_portable());
            open.transport == Transport::Tcp
                && (is_open || stack.past(open.id()).is_ok_and(|past| past.is_some()))
        };
        all.into_iter().filter(|(open, _)| can_move(open)).collect()
    }

    /// A connection stays open without a number, until it is [let go](Self::let_go_of).
    pub fn hold(&mut self, open: &Open) {
        open.holds.fetch_add(1, Relaxed);
    }

    /// It is not held any more.
    pub fn let_go_of(&mut self, open: &Arc<Open>) {
        if self.is_here(open) {
            open.holds.fetch_sub(1, Relaxed);
            self.end_unless_held(open);
        }
    }

    /// Whether it is still this host's.
    pub fn is_here(&self, open: &Open) -> bool {
        self.opens().any(|known| std::ptr::eq(&**known, open))
    }

    /// Both ends of a connection that is open, ours first; `None` of one that is over, whose peer sends nothing more.
    pub fn ends(&mut self, open: &Open) -> Result<Option<(SocketAddrV4, SocketAddrV4)>> {
        let (stack, _) = self.parts();
        if !stack.state(open.id())?.is_portable() {
            return Ok(None);
        }
        let ends = (stack.local(open.id())?, stack.remote(open.id())?);
        Ok(v4(ends.0).zip(v4(ends.1)))
    }

    /// Takes what lies in the ring.
    pub fn look_at_all(&mut self, now: Instant) {
        for _ in 0..LOOKS_MAX {
            if self.turn(now) == 0 {
                break;
            }
        }
        self.flush();
    }

    /// The connection as bytes for [`attach`](Self::attach). It stands still from then on.
    ///
    /// Errors: `INVALID` while it is being made, `NO_BUFFERS`; it goes on then.
    pub fn detach(&mut self, open: &Open) -> Result<Vec<u8>> {
        let bytes = self.copy(open)?;
        let (stack, world) = self.parts();
        if stack.state(open.id())?.is_portable() {
            stack.freeze(world, open.id())?;
        }
        self.refresh(open);
        Ok(bytes)
    }

    /// The same bytes, of a connection that goes on here: whoever makes another of it must be sure that this one ends.
    ///
    /// Errors: those of [`detach`](Self::detach).
    pub fn copy(&mut self, open: &Open) -> Result<Vec<u8>> {
        self.check_link()?;
        let checkpoint = Checkpoint {
            host: Endpoint::v4(self.address.host(), 0),
            // Whoever takes it has numbers of its own.
            sockets: vec![self.record(open, &[])?],
            orphans: Vec::new(),
            sets: Vec::new(),
            is_shared: false,
        };
        Ok(checkpoint.encode())
    }

    /// It is not taken, and goes on here.
    pub fn reattach(&mut self, open: &Open) {
        let (stack, world) = self.parts();
        // Without memory for it it stays as it is, and its peer hears of that when it asks.
        stack.thaw(world, open.id(), true).ok();
        self.refresh(open);
        open.tell();
    }

    /// It is another host's, and so are its frames. Its numbers, which name nothing any more.
    pub fn forget_moved(&mut self, open: &Arc<Open>) -> Vec<u32> {
        let numbers = self.numbers_of(open);
        for number in &numbers {
            self.table.remove(*number);
        }
        let (stack, _) = self.parts();
        let ends = stack
            .local(open.id())
            .ok()
            .zip(stack.remote(open.id()).ok());
        self.end(open);
        if let Some((local, remote)) = ends {
            self.parts().0.refuse_departed(local, remote);
        }
        numbers
    }

    /// The numbers that name it.
    pub fn numbers_of(&self, open: &Arc<Open>) -> Vec<u32> {
        let is_it = |(_, other): &(u32, Arc<Open>)| Arc::ptr_eq(other, open);
        let all = self.table.sockets().filter(is_it);
        all.map(|(number, _)| number).collect()
    }

    /// Makes the connection that another host has detached, under these numbers.
    ///
    /// Errors: `INVALID` for what is none, or is of another address; those of the calls that make a socket. Nothing is
    /// made then.
    pub fn attach(&mut self, bytes: &[u8], numbers: &[u32], now: Instant) -> Result<Arc<Open>> {
        let mut checkpoint = Checkpoint::decode(bytes).ok_or(Errno::INVALID)?;
        let is_ours = checkpoint.host == Endpoint::v4(self.address.host(), 0);
        let (Some(mut record), true) = (checkpoint.sockets.pop(), is_ours) else {
            return Err(Errno::INVALID);
        };
        if !record.is_stream || numbers.iter().any(|number| self.named(*number).is_some()) {
            return Err(Errno::INVALID);
        }
        self.set_now(now);
        record.numbers = numbers.to_vec();
        let made = self.restore_socket(&record, &mut Restored::default());
        if made.is_err() {
            numbers.iter().for_each(|number| self.close(*number));
        }
        made
    }
}

pub(super) fn v4(end: Endpoint) -> Option<SocketAddrV4> {
    match end.addr.to_canonical() {
        std::net::IpAddr::V4(host) => Some(SocketAddrV4::new(host, end.port)),
        std::net::IpAddr::V6(_) => None,
    }
}
