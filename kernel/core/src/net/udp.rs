//! Datagram sockets over UDP.

use alloc::sync::Arc;

use inet::{Datagram, Endpoint, Letter, Transport};

use super::handle::{Handle, stack};
use super::poll::after_send;
use super::reports::Reports;
use crate::error::{Error, Result};
use crate::io::{Sink, Source};
use crate::poll::Events;
use crate::socket::Family;
use crate::sync::Wait;

/// A UDP socket.
pub struct UdpSocket {
    pub(super) handle: Handle,
    pub(super) reports: Reports,
}

/// A datagram as a program gets it.
pub(super) struct Delivered {
    /// What its headers said.
    pub(super) heard: Heard,
    /// Bytes that fitted.
    pub(super) copied: usize,
    /// Bytes that there were.
    pub(super) len: usize,
}

/// What the headers of a datagram said.
#[derive(Clone, Copy)]
pub(super) struct Heard {
    /// Who sent it.
    pub(super) from: Endpoint,
    /// Which address of ours it came to.
    pub(super) to: Endpoint,
    /// Hops that were left.
    pub(super) hop_limit: u8,
    /// Differentiated services and ECN.
    pub(super) tos: u8,
}

impl Heard {
    fn of(datagram: &Datagram) -> Self {
        let Datagram {
            from,
            to,
            hop_limit,
            tos,
            ..
        } = *datagram;
        Self {
            from,
            to,
            hop_limit,
            tos,
        }
    }
}

impl UdpSocket {
    /// A socket without address.
    pub(super) fn open(family: Family) -> Result<Arc<Self>> {
        Ok(Arc::new(Self {
            handle: Handle::open(Transport::Udp, family)?,
            reports: Reports::default(),
        }))
    }

    /// Takes the only peer away.
    pub(super) fn disconnect(&self) -> Result<()> {
        stack(|stack, _| Ok(stack.disconnect(self.handle.id)?))
    }

    /// Sets the only peer; nothing is sent.
    pub(super) fn connect_to(&self, peer: Endpoint) -> Result<()> {
        stack(|stack, link| Ok(stack.connect(link, self.handle.id, peer)?))
    }

    /// Takes the next datagram; bytes that do not fit are lost, as always with UDP.
    pub(super) fn take(&self, to: &mut Sink<'_>, how: Option<Wait>) -> Result<Delivered> {
        loop {
            match stack(|stack, _| Ok(stack.recv_from(self.handle.id)?)) {
                Ok(datagram) => return deliver(Heard::of(&datagram), &datagram.payload, to),
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
                Ok((Heard::of(datagram), datagram.payload.clone()))
            });
            match seen {
                Ok((heard, payload)) => return deliver(heard, &payload, to),
                Err(Error::WouldBlock) => self.handle.wait(Events::IN, how)?,
                Err(error) => return Err(error),
            }
        }
    }

    /// Sends all of `from` as one datagram.
    pub(super) fn put(
        &self,
        letter: Letter,
        from: &mut Source<'_>,
        how: Option<Wait>,
    ) -> Result<usize> {
        // A datagram is copied under the lock in one go, so its pages must be there.
        from.prefault()?;
        loop {
            let len = from.remaining();
            let sent = stack(|stack, link| {
                let mut copy = |space: &mut [u8]| from.try_take(space);
                let count = stack.send_to(link, self.handle.id, letter, len, &mut copy)?;
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

fn deliver(heard: Heard, payload: &mbuf::Chain, to: &mut Sink<'_>) -> Result<Delivered> {
    let mut copied = 0;
    for bytes in payload.slices() {
        copied += to.put(bytes)?;
    }
    Ok(Delivered {
        heard,
        copied,
        len: payload.len(),
    })
}
