//! Stream sockets over TCP: how they come to a connection. `stream` is what read(2) and write(2)
//! do, `socket` what the other calls on sockets do; `repair` takes a connection apart.

mod lent;
mod repair;
pub(crate) mod socket;
mod stream;
mod zerocopy;

use alloc::sync::Arc;
use core::sync::atomic::{AtomicBool, AtomicU8, Ordering};

use inet::{Endpoint, State, Transport};
use mach::sync::Once;
use sync::poll::Events;
use sync::{Error, Result, Wait};

use self::zerocopy::Completions;
use crate::dial;
use crate::handle::Handle;
use crate::udp::socket::reached;
use net::after_send;
use vfs::socket::Family;

/// A TCP socket: listening, connected, or neither yet.
pub struct TcpSocket {
    pub(crate) handle: Handle,
    /// Of sends without a copy, once the program asked for such.
    pub(crate) completions: Once<Arc<Completions>>,
    /// Which queue a program repairs that takes the connection apart (TCP_REPAIR_QUEUE).
    repair_queue: AtomicU8,
    /// A call to connect did not wait, and no other has told yet how it ended.
    is_outcome_untold: AtomicBool,
}

impl TcpSocket {
    /// A socket without address.
    pub(crate) fn open(family: Family) -> Result<Arc<Self>> {
        Ok(Arc::new(Self::of(Handle::open(Transport::Tcp, family)?)))
    }

    fn of(handle: Handle) -> Self {
        Self {
            handle,
            completions: Once::new(),
            repair_queue: AtomicU8::new(0),
            is_outcome_untold: AtomicBool::new(false),
        }
    }

    pub(crate) fn state(&self) -> Result<State> {
        self.handle.with(|id, stack, _| Ok(stack.state(id)?))
    }

    pub(crate) fn start_listening(&self, backlog: usize) -> Result<()> {
        self.handle.listen(backlog)
    }

    /// The next connection that waits, of the calling CPU's shard if there is one.
    pub(crate) fn next_connection(&self, how: Option<Wait>) -> Result<Arc<Self>> {
        let own = self.handle.stack.own_for_loopback();
        let mut is_held_elsewhere = false;
        loop {
            let accepted = self.handle.first_of(own, |id, stack, link| {
                let child = stack.accept(link, id)?;
                is_held_elsewhere = stack.is_held_elsewhere(id);
                after_send(link);
                let handle = self.handle.adopt_accepted(child, stack, link)?;
                handle.waiter.filter.inherit(&self.handle.waiter.filter);
                Ok(Self::of(handle))
            });
            if core::mem::take(&mut is_held_elsewhere) {
                self.handle.use_room();
            }
            match accepted {
                Err(Error::WouldBlock) => self.handle.wait(Events::IN, how)?,
                done => {
                    let accepted = done.map(Arc::new)?;
                    accepted.lend_pages(self.lends_pages());
                    return Ok(accepted);
                }
            }
        }
    }

    /// Starts to connect and waits for the outcome, unless it may not wait: then the outcome is
    /// for a later call, even where it is known at once (connect(2)).
    pub(crate) fn connect_to(&self, peer: Endpoint, how: Option<Wait>) -> Result<()> {
        if self.is_connecting() {
            return self.finish_connecting(how, Error::AlreadyInProgress);
        }
        if self.is_outcome_untold.swap(false, Ordering::Relaxed) {
            return self.handle.take_error().map_or(Ok(()), Err);
        }
        self.start_connecting(peer)?;
        if how.is_none() {
            self.is_outcome_untold.store(true, Ordering::Relaxed);
            return Err(Error::InProgress);
        }
        self.finish_connecting(how, Error::InProgress)
    }

    fn start_connecting(&self, peer: Endpoint) -> Result<()> {
        let peer = reached(peer);
        let mut outcome = Err(Error::AddressNotAvailable);
        let socket = self.handle.location.load().shard;
        for shard in dial::shards_in_turn(&self.handle.stack, peer.addr, socket) {
            let may_choose = self.handle.move_to_connect(peer, shard)?;
            outcome = self.handle.with(|id, stack, link| {
                stack.connect(link, id, peer)?;
                after_send(link);
                Ok(())
            });
            if outcome != Err(Error::AddressNotAvailable) || !may_choose {
                break;
            }
            dial::note_exhausted(shard);
        }
        outcome
    }

    fn is_connecting(&self) -> bool {
        matches!(self.state(), Ok(State::SynSent | State::SynReceived))
    }

    fn finish_connecting(&self, how: Option<Wait>, pending: Error) -> Result<()> {
        match self.handle.wait(Events::OUT, how) {
            Err(Error::WouldBlock) if self.is_connecting() => Err(pending),
            Err(error @ Error::Interrupted(_)) => Err(error),
            _ => {
                self.is_outcome_untold.store(false, Ordering::Relaxed);
                self.handle.take_error().map_or(Ok(()), Err)
            }
        }
    }
}
