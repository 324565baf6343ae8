//! A member: what a socket is in one shard.
//!
//! A socket that waits for whoever calls has a member in each shard in which it hears something.
//! All members have the options of the socket and one [`Duty`]; the first shard knows the name
//! of each, and has seen to it that it is nobody else's. Who makes them, and when: `inet-sockets`
//! (`members`) as a program names its socket, and [`new_shard`](super::new_shard) as an interface comes.
//!
//! Lock order: `Waiter::naming`, then a shard.

use alloc::sync::Arc;
use core::sync::atomic::Ordering;

use inet::{Endpoint, ListenTotals, Options, SocketEntry, SocketId, State, Transport};
use sync::Result;
use vfs::socket::Family;

use super::NetStack;
use super::egress::device_in;
use super::env::Link;
use super::location::Location;
use super::waiter::Waiter;
use crate::device::poll::after_send;
use crate::device::steer;
use crate::refusal::Answer;

/// Slots that are looked at with the stack locked.
pub const STRETCH: usize = 64;

/// What a member does besides having the socket's options.
#[derive(Clone)]
pub enum Duty {
    /// Nothing yet.
    None,
    /// It has the socket's name.
    Named(Endpoint),
    /// It has the socket's name, and hears its only peer.
    Connected(Endpoint, Endpoint),
    /// It waits for connections, so many at most of all members.
    Listening(Endpoint, usize, ListenTotals),
}

impl NetStack {
    /// The shards but the first in which a socket with this name hears something.
    pub fn shards_that_hear(
        &self,
        transport: Transport,
        local: Endpoint,
    ) -> impl Iterator<Item = u16> + '_ {
        let further = self.further_owner(local.addr);
        let hears = move |shard: &u16| match further {
            Some(owner) => *shard == owner,
            None => self.hears(*shard, transport, local),
        };
        (1..self.shard_count()).filter(hears)
    }

    /// Whether a socket hears something in a shard, if its name is not of a further interface.
    fn hears(&self, shard: u16, transport: Transport, local: Endpoint) -> bool {
        let is_wild = local.addr.is_unspecified();
        if shard < self.count() {
            return true;
        }
        if shard >= self.loopback_count() {
            return is_wild || local.addr.is_multicast();
        }
        let is_reached = transport == Transport::Tcp || steer::owner_of_port(local.port) == shard;
        is_reached && (is_wild || local.addr.is_loopback())
    }
}

/// A socket like the one of `waiter` in another shard, with a duty.
pub fn make_member(
    of: &NetStack,
    waiter: &Arc<Waiter>,
    (transport, family): (Transport, Family),
    shard: u16,
    options: &Options,
    duty: Duty,
) -> Result<Location> {
    let location = of.in_shard(shard, |stack, _| {
        let id = open_in(stack, transport, family)?;
        Ok(Location { shard, id })
    })?;
    let furnished = of.in_shard(shard, |stack, link| {
        link.register(location.id, waiter.clone())?;
        let device = device_in(waiter.device.load(Ordering::Relaxed), link);
        let options = Options { device, ..*options };
        stack.configure(link, location.id, |new| *new = options)?;
        begin(stack, location.id, duty)
    });
    match furnished {
        Ok(()) => Ok(location),
        Err(error) => {
            close(of, location);
            Err(error)
        }
    }
}

/// A member takes up its duty, unless it had a name before. The first shard has seen to it that
/// the name is ours and nobody else's.
pub fn begin(stack: &mut inet::Stack, id: SocketId, duty: Duty) -> Answer<()> {
    let is_named = stack.local(id)?.port != 0;
    match duty {
        Duty::None => {}
        _ if is_named => {}
        Duty::Named(local) => stack.bind_elsewhere(id, local)?,
        Duty::Connected(local, peer) => {
            stack.bind_elsewhere(id, local)?;
            stack.follow_datagram(id, local, Some(peer))?;
        }
        Duty::Listening(local, backlog, totals) => {
            stack.bind_elsewhere(id, local)?;
            stack.listen(id, backlog)?;
            stack.share_backlog(id, &totals)?;
        }
    }
    Ok(())
}

/// Closes what only the caller holds.
pub fn close(of: &NetStack, location: Location) {
    of.with_shard(location.shard, |stack, link| {
        close_here(stack, link, location.id);
    });
}

/// The same for a member, which somebody else may have closed.
pub fn close_member(of: &NetStack, member: Location) {
    of.with_shard(member.shard, |stack, link| {
        if stack.local(member.id).is_ok() {
            close_here(stack, link, member.id);
        }
    });
}

fn close_here(stack: &mut inet::Stack, link: &mut Link, id: SocketId) {
    link.unregister(id);
    let closed = stack.close(link, id);
    debug_assert!(closed.is_ok(), "a handle owns live sockets");
    after_send(link);
}

/// A socket without a name and without options.
pub fn open_in(stack: &mut inet::Stack, transport: Transport, family: Family) -> Answer<SocketId> {
    Ok(match family {
        Family::Inet6 => stack.open_v6(transport)?,
        _ => stack.open(transport)?,
    })
}

/// Whether the socket is of a kind that has a member in each shard.
pub fn has_members(entry: &SocketEntry) -> bool {
    entry.transport == Transport::Udp || entry.connection.state == State::Listen
}
