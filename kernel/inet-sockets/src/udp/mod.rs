//! Datagram sockets over UDP.
//!
//! A datagram arrives in the shard of its two hosts, and is sent by it, so that a card that
//! follows what is sent steers as we do. Order is kept between two hosts, not among many.
//! Within loopback it arrives in the shard of the receiver's port (`net::stack::loopback`).

mod cork;
mod exit;
mod failure;
pub(crate) mod reports;
pub(crate) mod socket;

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU32, Ordering};

use inet::{Datagram, Endpoint, SendOptions, Transport};
use mm::io::{Sink, Source};
use sync::poll::Events;
use sync::{Error, Result, Wait};

use self::reports::Reports;
use self::socket::reached;
use crate::bound_device;
use crate::handle::Handle;
use net::after_bytes;
use net::refused;
use net::stack::interface::CARD;
use net::stack::location::Location;
use sockets::cork::Cork;
use vfs::socket::Family;

/// A UDP socket.
pub struct UdpSocket {
    pub(crate) handle: Handle,
    pub(crate) reports: Reports,
    pub(crate) cork: Cork<SendOptions>,
    /// Datagrams taken, to give other shards than the caller's their turn.
    taken: AtomicU32,
}

/// After so many datagrams of the caller's own shard the next ones are looked at first.
const TURN_DATAGRAMS: u32 = 16;

/// A datagram as a program gets it.
pub(crate) struct Delivered {
    /// What its headers said.
    pub(crate) heard: Heard,
    /// Bytes that fitted.
    pub(crate) copied: usize,
    /// Bytes that there were.
    pub(crate) len: usize,
}

/// What the headers of a datagram said.
#[derive(Clone, Copy)]
pub(crate) struct Heard {
    /// Who sent it.
    pub(crate) from: Endpoint,
    /// Which address of ours it came to.
    pub(crate) to: Endpoint,
    /// Whose shard it came to.
    pub(crate) interface: u32,
    /// Hops that were left.
    pub(crate) hop_limit: u8,
    /// Differentiated services and ECN.
    pub(crate) tos: u8,
    /// Size of the datagrams that were joined into this one; zero for one alone.
    pub(crate) segment_bytes: u16,
    /// Datagrams that found no room before it.
    pub(crate) drops: u32,
}

impl Heard {
    fn of(datagram: &Datagram, interface: u32) -> Self {
        let Datagram {
            from,
            to,
            hop_limit,
            tos,
            segment_bytes,
            drops,
            ..
        } = *datagram;
        Self {
            from,
            to,
            interface,
            hop_limit,
            tos,
            segment_bytes,
            drops,
        }
    }
}

impl UdpSocket {
    /// A socket without address.
    pub(crate) fn open(family: Family) -> Result<Arc<Self>> {
        Ok(Arc::new(Self {
            handle: Handle::open(Transport::Udp, family)?,
            reports: Reports::default(),
            cork: Cork::default(),
            taken: AtomicU32::new(0),
        }))
    }

    /// Takes the only peer away.
    pub(crate) fn disconnect(&self) -> Result<()> {
        self.handle
            .with_all(|id, stack, _| Ok(stack.disconnect(id)?))?;
        self.handle.complete()
    }

    /// Sets the only peer; nothing is sent.
    pub(crate) fn connect_to(&self, peer: Endpoint) -> Result<()> {
        self.handle.ensure_named()?;
        let chosen = self.member_towards(peer)?;
        let ends = self.handle.stack.in_shard(chosen.shard, |stack, link| {
            self.handle.waiter.forget();
            stack.connect(link, chosen.id, peer)?;
            Ok((stack.local(chosen.id)?, stack.remote(chosen.id).ok()))
        })?;
        self.handle.with_all(|id, stack, link| {
            if link.number != chosen.shard {
                stack.follow_datagram(id, ends.0, ends.1)?;
            }
            Ok(())
        })
    }

    /// The member that knows which address of ours leads to `peer`: of the card's, the first.
    fn member_towards(&self, peer: Endpoint) -> Result<Location> {
        let location = self.handle.location.load();
        if self.handle.stack.shard_count() == 1 {
            return Ok(location);
        }
        let from = self.handle.local()?.addr;
        if let Some(shard) = self.handle.stack.loopback_exit(Some(from), reached(peer)) {
            return self.handle.member_made(shard);
        }
        let device = bound_device::of(&self.handle);
        let further = self
            .handle
            .stack
            .further_exit(device, Some(from), peer.addr);
        Ok(further.map_or(location, |shard| self.handle.member(shard)))
    }

    /// Takes the next datagram; bytes that do not fit are lost, as always with UDP. `None` if
    /// it would wait, and receiving was shut down.
    pub(crate) fn take(&self, to: &mut Sink<'_>, how: Option<Wait>) -> Result<Option<Delivered>> {
        loop {
            match self.next() {
                Ok((datagram, interface)) => {
                    return deliver(Heard::of(&datagram, interface), &datagram.payload, to);
                }
                Err(Error::WouldBlock) if self.is_over(how) => return Ok(None),
                Err(Error::WouldBlock) => self.wait_for_datagram(how)?,
                Err(error) => return Err(error),
            }
        }
    }

    /// Waits for a datagram, or an error; failures that are queued are not waited for here.
    fn wait_for_datagram(&self, how: Option<Wait>) -> Result<()> {
        const WANTED: inet::Events = inet::Events::READABLE
            .union(inet::Events::ERROR)
            .union(inet::Events::HANGUP);
        let ready = || self.handle.ready().intersects(WANTED).then_some(());
        self.handle
            .waiter
            .pollee
            .queue
            .wait(how.ok_or(Error::WouldBlock)?, ready)
    }

    /// Whether nobody who may wait need wait.
    fn is_over(&self, how: Option<Wait>) -> bool {
        how.is_some() && self.handle.poll().contains(Events::RDHUP)
    }

    /// The next datagram, and whose shard it came to.
    fn next(&self) -> Result<(Datagram, u32)> {
        // Taking a datagram needs no clock.
        if self.handle.is_heard_alone() {
            let taken = self.handle.look(|id, stack| stack.recv_from(id));
            let datagram = taken.ok_or(Error::NetworkDown)?.map_err(refused)?;
            return Ok((datagram, CARD));
        }
        self.handle.first_of(self.turn(), |id, stack, link| {
            Ok((stack.recv_from(id)?, link.interface))
        })
    }

    /// Whose turn it is: mostly the calling CPU's shard.
    fn turn(&self) -> u16 {
        let (own, shards) = (
            self.handle.stack.own_for_loopback(),
            self.handle.stack.shard_count(),
        );
        if shards == 1 {
            return 0;
        }
        let taken = self.taken.fetch_add(1, Ordering::Relaxed);
        let turn = taken / TURN_DATAGRAMS;
        match taken % TURN_DATAGRAMS {
            0 => (own + 1 + (turn % u32::from(shards)) as u16) % shards,
            _ => own,
        }
    }

    /// Looks at the next datagram and leaves it in the queue (MSG_PEEK).
    pub(crate) fn peek(&self, to: &mut Sink<'_>, how: Option<Wait>) -> Result<Option<Delivered>> {
        loop {
            let seen =
                self.handle
                    .first_of(self.handle.stack.own_for_loopback(), |id, stack, link| {
                        let datagram = stack.peek_from(id)?;
                        let heard = Heard::of(datagram, link.interface);
                        Ok((heard, datagram.payload.clone()))
                    });
            match seen {
                Ok((heard, payload)) => return deliver(heard, &payload, to),
                Err(Error::WouldBlock) if self.is_over(how) => return Ok(None),
                Err(Error::WouldBlock) => self.wait_for_datagram(how)?,
                Err(error) => return Err(error),
            }
        }
    }

    /// Sends all of `from` as one datagram.
    pub(crate) fn put(
        &self,
        send: SendOptions,
        from: &mut Source<'_>,
        how: Option<Wait>,
    ) -> Result<usize> {
        self.handle.ensure_named()?;
        let before = from.done();
        // A datagram is copied under the lock in one go. Mostly its pages are there; if not,
        // they are brought in.
        for _ in 0..2 {
            let sent = self.put_copied(send, from, how);
            if !from.is_faulted() {
                return sent;
            }
            from.rewind(from.done() - before);
            from.prefault()?;
        }
        self.put_buffered(send, from, how)
    }

    /// The same by a buffer in between: another thread takes pages away.
    #[cold]
    fn put_buffered(
        &self,
        send: SendOptions,
        from: &mut Source<'_>,
        how: Option<Wait>,
    ) -> Result<usize> {
        let mut bytes = Vec::new();
        let len = from.remaining();
        bytes.try_reserve_exact(len).map_err(|_| Error::NoBuffers)?;
        bytes.resize(len, 0);
        from.take_whole(&mut bytes)?;
        self.put_copied(send, &mut Source::kernel(&bytes), how)
    }

    /// Sends all of `from` as one datagram; nothing is sent if it stops at a missing page.
    fn put_copied(
        &self,
        send: SendOptions,
        from: &mut Source<'_>,
        how: Option<Wait>,
    ) -> Result<usize> {
        loop {
            let len = from.remaining();
            let member = self.handle.member_made(self.shard_to(&send))?;
            let sent = self.handle.stack.in_shard(member.shard, |stack, link| {
                let mut copy = |space: &mut [u8]| from.try_take(space);
                let count = stack.send_to(link, member.id, send, len, &mut copy)?;
                after_bytes(stack, link);
                Ok(count)
            });
            match sent {
                Err(Error::WouldBlock) => self.handle.wait(Events::OUT, how)?,
                done => return done,
            }
        }
    }
}

fn deliver(heard: Heard, payload: &mbuf::Chain, to: &mut Sink<'_>) -> Result<Option<Delivered>> {
    let mut copied = 0;
    for bytes in payload.slices() {
        copied += to.put_whole(bytes)?;
    }
    Ok(Some(Delivered {
        heard,
        copied,
        len: payload.len(),
    }))
}
