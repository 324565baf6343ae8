//! What a child of a fork has of its parent's sockets.
//!
//! The parent's stack stays the parent's, and connections with it. But a socket without a peer, a listener or one for
//! datagrams, is a name and some options: the child opens a queue of its own on the same link and a socket of
//! the same name in its stack, under the same number. Peers are spread over the two (`docs/rings.md`).

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use inet::{Endpoint, Options, State, Transport};

use crate::encoding::structures;
use crate::errno::Result;
use crate::host::{Host, Link};
use crate::open::{Direction, Open};

/// A socket of the parent's that the child can open again.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UnconnectedSocket {
    /// Its numbers in the child, one at least.
    pub numbers: Vec<u32>,
    transport: Transport,
    /// Its name, if it has one.
    local: Option<Endpoint>,
    /// Of a listener.
    backlog: Option<u32>,
    serves: bool,
    options: Options,
    is_nonblocking: bool,
    /// Limits of a wait, for receiving and for sending.
    timeouts: (Option<u64>, Option<u64>),
}

structures! {
    UnconnectedSocket { numbers, transport, local, backlog, serves, options, is_nonblocking, timeouts }
}

impl UnconnectedSocket {
    /// Whether both have the same name, which stacks allow to some (SO_REUSEPORT).
    pub fn is_named_as(&self, other: &Self) -> bool {
        self.local.is_some() && (self.transport, self.local) == (other.transport, other.local)
    }
}

impl<L: Link> Host<L> {
    /// What a child may have of our sockets.
    pub fn unconnected(&mut self) -> Vec<UnconnectedSocket> {
        let mut found: Vec<(Arc<Open>, UnconnectedSocket)> = Vec::new();
        let all: Vec<(u32, Arc<Open>)> = self.table.sockets().collect();
        for (number, open) in all {
            let known = found
                .iter_mut()
                .find(|(known, _)| Arc::ptr_eq(known, &open));
            if let Some((_, socket)) = known {
                socket.numbers.push(number);
            } else if let Some(socket) = self.unconnected_socket(number, &open) {
                found.push((open, socket));
            }
        }
        found.into_iter().map(|(_, socket)| socket).collect()
    }

    fn unconnected_socket(&mut self, number: u32, open: &Open) -> Option<UnconnectedSocket> {
        let (stack, _) = self.parts();
        let backlog = match stack.state(open.id()) {
            Ok(State::Listen) => Some(stack.accept_queue(open.id()).ok()?.1 as u32),
            _ => None,
        };
        let has_no_peer = match open.transport {
            Transport::Tcp => backlog.is_some() || !open.is_settled(),
            Transport::Udp => stack.remote(open.id()).is_err(),
        };
        let local = stack.local(open.id()).ok().filter(|local| local.port != 0);
        has_no_peer.then_some(UnconnectedSocket {
            numbers: vec![number],
            transport: open.transport,
            local,
            backlog,
            serves: open.serves.load(Relaxed),
            options: *stack.options(open.id()).ok()?,
            is_nonblocking: open.is_nonblocking(),
            timeouts: (
                open.timeout_nanos(Direction::Receive),
                open.timeout_nanos(Direction::Send),
            ),
        })
    }

    /// Opens a socket of the parent's again, under its numbers.
    ///
    /// Errors: those of the calls that made it.
    pub fn inherit(&mut self, socket: &UnconnectedSocket) -> Result<()> {
        let Some((first, others)) = socket.numbers.split_first() else {
            return Ok(());
        };
        self.add_socket(*first, socket.transport, socket.is_nonblocking)?;
        let open = self.socket(*first)?;
        let named = self.name_again(&open, socket);
        if named.is_err() {
            self.close(*first);
            return named;
        }
        for other in others {
            self.duplicate(*first, *other)?;
        }
        Ok(())
    }

    fn name_again(&mut self, open: &Open, socket: &UnconnectedSocket) -> Result<()> {
        let (stack, world) = self.parts();
        stack.configure(world, open.id(), |options| *options = socket.options)?;
        let (receiving, sending) = socket.timeouts;
        open.set_timeout_nanos(Direction::Receive, receiving.unwrap_or(0));
        open.set_timeout_nanos(Direction::Send, sending.unwrap_or(0));
        let Some(local) = socket.local else {
            return Ok(());
        };
        self.parts().0.bind(open.id(), local)?;
        open.settle();
        if let Some(backlog) = socket.backlog {
            self.parts().0.listen(open.id(), backlog as usize)?;
        }
        open.serves.store(socket.serves, Relaxed);
        self.refresh(open);
        Ok(())
    }
}
