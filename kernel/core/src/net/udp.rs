//! Datagram sockets over UDP.

use alloc::sync::Arc;

use inet::{Endpoint, Transport};

use super::handle::{Blocking, Handle, stack};
use super::poll::after_send;
use crate::error::{Error, Result};
use crate::io::{Sink, Source};
use crate::poll::Events;

/// A UDP socket.
pub struct UdpSocket {
    pub(super) handle: Handle,
}

/// A datagram as a program gets it.
pub(super) struct Received {
    /// Who sent it.
    pub(super) from: Endpoint,
    /// Bytes that fitted.
    pub(super) copied: usize,
    /// Bytes that there were.
    pub(super) len: usize,
}

impl UdpSocket {
    /// A socket without address.
    pub fn open() -> Result<Arc<Self>> {
        Ok(Arc::new(Self { handle: Handle::open(Transport::Udp)? }))
    }

    /// Sets the only peer; nothing is sent.
    pub(super) fn connect(&self, peer: Endpoint) -> Result<()> {
        stack(|stack, link| Ok(stack.connect(link, self.handle.id, peer)?))
    }

    /// Takes the next datagram; bytes that do not fit are lost, as always with UDP.
    pub(super) fn receive(&self, to: &mut Sink<'_>, blocking: Blocking) -> Result<Received> {
        loop {
            match stack(|stack, _| Ok(stack.recv_from(self.handle.id)?)) {
                Ok(datagram) => return deliver(datagram.from, &datagram.payload, to),
                Err(Error::WouldBlock) => self.handle.wait(Events::IN, blocking)?,
                Err(error) => return Err(error),
            }
        }
    }

    /// Looks at the next datagram and leaves it in the queue (MSG_PEEK).
    pub(super) fn peek(&self, to: &mut Sink<'_>, blocking: Blocking) -> Result<Received> {
        loop {
            let seen = stack(|stack, _| {
                let datagram = stack.peek_from(self.handle.id)?;
                Ok((datagram.from, datagram.payload.clone()))
            });
            match seen {
                Ok((from, payload)) => return deliver(from, &payload, to),
                Err(Error::WouldBlock) => self.handle.wait(Events::IN, blocking)?,
                Err(error) => return Err(error),
            }
        }
    }

    /// Sends all of `from` as one datagram.
    pub(super) fn send(
        &self,
        peer: Option<Endpoint>,
        from: &mut Source<'_>,
        blocking: Blocking,
    ) -> Result<usize> {
        loop {
            let len = from.remaining();
            let sent = stack(|stack, link| {
                let count = stack.send_to(link, self.handle.id, peer, len, &mut |space| {
                    from.try_take(space)
                })?;
                after_send(link);
                Ok(count)
            });
            match sent {
                Err(Error::WouldBlock) => self.handle.wait(Events::OUT, blocking)?,
                done => return done,
            }
        }
    }
}

fn deliver(from: Endpoint, payload: &mbuf::Chain, to: &mut Sink<'_>) -> Result<Received> {
    let mut copied = 0;
    for bytes in payload.slices() {
        copied += to.put(bytes)?;
    }
    Ok(Received { from, copied, len: payload.len() })
}
