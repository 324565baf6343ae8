//! Datagram sockets over UDP.

use alloc::sync::Arc;

use inet::{Endpoint, Transport};

use super::handle::{Handle, stack};
use super::poll::after_send;
use crate::error::{Error, Result};
use crate::io::{Sink, Source};
use crate::poll::Events;
use crate::socket::Family;
use crate::sync::Wait;

/// A UDP socket.
pub struct UdpSocket {
    pub(super) handle: Handle,
}

/// A datagram as a program gets it.
pub(super) struct Delivered {
    /// Who sent it.
    pub(super) from: Endpoint,
    /// Bytes that fitted.
    pub(super) copied: usize,
    /// Bytes that there were.
    pub(super) len: usize,
}

impl UdpSocket {
    /// A socket without address.
    pub(super) fn open(family: Family) -> Result<Arc<Self>> {
        Ok(Arc::new(Self {
            handle: Handle::open(Transport::Udp, family)?,
        }))
    }

    /// Sets the only peer; nothing is sent.
    pub(super) fn connect_to(&self, peer: Endpoint) -> Result<()> {
        stack(|stack, link| Ok(stack.connect(link, self.handle.id, peer)?))
    }

    /// Takes the next datagram; bytes that do not fit are lost, as always with UDP.
    pub(super) fn take(&self, to: &mut Sink<'_>, how: Option<Wait>) -> Result<Delivered> {
        loop {
            match stack(|stack, _| Ok(stack.recv_from(self.handle.id)?)) {
                Ok(datagram) => return deliver(datagram.from, &datagram.payload, to),
                Err(Error::WouldBlock) => self.handle.wait(Events::IN, how)?,
                Err(error) => return Err(error),
            }
        }
    }

    /// Looks at the next datagram and leaves it in the queue (MSG_PEEK).
    pub(super) fn peek(&self, to: &mut Sink<'_>, how: Option<Wait>) -> Result<Delivered> {
        loop {
            let seen = stack(|stack, _| {
                let datagram = stack.peek_from(self.handle.id)?;
                Ok((datagram.from, datagram.payload.clone()))
            });
            match seen {
                Ok((from, payload)) => return deliver(from, &payload, to),
                Err(Error::WouldBlock) => self.handle.wait(Events::IN, how)?,
                Err(error) => return Err(error),
            }
        }
    }

    /// Sends all of `from` as one datagram.
    pub(super) fn put(
        &self,
        peer: Option<Endpoint>,
        from: &mut Source<'_>,
        how: Option<Wait>,
    ) -> Result<usize> {
        // A datagram is copied under the lock in one go, so its pages must be there.
        from.prefault()?;
        loop {
            let len = from.remaining();
            let sent = stack(|stack, link| {
                let mut copy = |space: &mut [u8]| from.try_take(space);
                let count = stack.send_to(link, self.handle.id, peer, len, &mut copy)?;
                after_send(link);
                Ok(count)
            });
            match sent {
                Err(Error::WouldBlock) => self.handle.wait(Events::OUT, how)?,
                done => return done,
            }
        }
    }
}

fn deliver(from: Endpoint, payload: &mbuf::Chain, to: &mut Sink<'_>) -> Result<Delivered> {
    let mut copied = 0;
    for bytes in payload.slices() {
        copied += to.put(bytes)?;
    }
    Ok(Delivered {
        from,
        copied,
        len: payload.len(),
    })
}
