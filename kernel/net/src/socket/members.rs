//! Names of sockets, and the members and moves that follow from them.
//!
//! Where there are several shards, a socket is one of these:
//! - *named or nothing yet*: in the first shard, which therefore knows all names, and
//!   refuses those that are taken;
//! - *connected* (TCP): in the shard of its connection. A socket that connects moves there
//!   before; if it had a name, the socket in the first shard stays to keep that;
//! - *waiting for unknown peers* (a listener, a datagram socket with a name): a member in
//!   each shard, the first shard's being the handle's location. Calls that change it change
//!   all of them; calls that take from it begin with the calling CPU's. IPv6 comes to the
//!   first shard only, so what hears nothing else has its one member there.
//!
//! Lock order: a handle's `naming`, then a shard.

use alloc::vec::Vec;
use core::sync::atomic::Ordering;

use inet::{Endpoint, Options, SocketId, Transport};
use sync::Result;

use super::handle::{Handle, close, open_in};
use super::location::Location;
use super::port_rights;
use crate::device::steer;
use crate::refusal::Answer;

impl Handle {
    /// Names the socket's end; a datagram socket gets its members.
    pub(crate) fn bind(&self, local: Endpoint) -> Result<()> {
        port_rights::check(&self.stack, local.port)?;
        let _naming = self.naming.lock();
        self.bind_named(local)
    }

    fn bind_named(&self, local: Endpoint) -> Result<()> {
        self.with(|id, stack, _| Ok(stack.bind(id, local)?))?;
        self.is_named.store(true, Ordering::Release);
        match self.transport {
            Transport::Udp => self.replicate(|_, _| Ok(())),
            Transport::Tcp => Ok(()),
        }
    }

    /// Sees to it that a datagram socket has a name, and so its members.
    pub(crate) fn ensure_named(&self) -> Result<()> {
        if self.stack.count() == 1 || self.is_named.load(Ordering::Acquire) {
            return Ok(());
        }
        let _naming = self.naming.lock();
        match self.is_named.load(Ordering::Acquire) {
            true => Ok(()),
            false => self.bind_named(self.local()?),
        }
    }

    /// Turns the socket into one that waits for connections, in each shard.
    pub(crate) fn listen(&self, backlog: usize) -> Result<()> {
        let _naming = self.naming.lock();
        if self.others.get().is_some() {
            return self.with_all(|id, stack, _| Ok(stack.listen(id, backlog)?));
        }
        self.move_to(0)?;
        self.with(|id, stack, _| Ok(stack.listen(id, backlog)?))?;
        self.is_named.store(true, Ordering::Release);
        self.replicate(|stack, id| Ok(stack.listen(id, backlog)?))
    }

    /// Makes the members in the other shards, with the socket's options and name, and
    /// has `begin` do what makes them wait.
    fn replicate(&self, begin: impl Fn(&mut inet::Stack, SocketId) -> Answer<()>) -> Result<()> {
        if self.stack.count() == 1 {
            return Ok(());
        }
        let (options, local) = (self.options()?, self.local()?);
        if !hears_ipv4(local, &options) {
            return Ok(());
        }
        let mut members = Vec::new();
        for number in 1..self.stack.count() {
            let made = self.make(number, &options, Some(local));
            let begun = made.and_then(|member| {
                members.push(member);
                self.stack
                    .in_shard(number, |stack, _| begin(stack, member.id))
            });
            if let Err(error) = begun {
                let close = |member| close(&self.stack, member);
                members.into_iter().for_each(close);
                return Err(error);
            }
        }
        self.others.call_once(|| members.into_boxed_slice());
        Ok(())
    }

    /// A socket like this one in another shard, with a name if it is to have one.
    fn make(&self, number: u16, options: &Options, local: Option<Endpoint>) -> Result<Location> {
        let location = self.stack.in_shard(number, |stack, _| {
            let id = open_in(stack, self.transport, self.family)?;
            Ok(Location { shard: number, id })
        })?;
        let furnished = self.stack.in_shard(number, |stack, link| {
            link.register(location.id, self.waiter.clone())?;
            stack.configure(link, location.id, |new| *new = *options)?;
            Ok(local.map_or(Ok(()), |local| stack.bind(location.id, local))?)
        });
        match furnished {
            Ok(()) => Ok(location),
            Err(error) => {
                close(&self.stack, location);
                Err(error)
            }
        }
    }

    /// Moves a stream socket to where its connection to `peer` will be: where its name
    /// leads, else to `wished`; says whether it was free to. All IPv6 is the first shard's.
    pub(crate) fn move_to_connect(&self, peer: Endpoint, wished: u16) -> Result<bool> {
        if self.stack.count() == 1 {
            return Ok(false);
        }
        let _naming = self.naming.lock();
        let is_named = self.is_named.load(Ordering::Acquire);
        let may_choose = !is_named && peer.addr.is_ipv4();
        let target = match is_named {
            true => self.with(|id, stack, _| {
                let mut local = stack.local(id)?;
                if local.addr.is_unspecified() {
                    local.addr = stack.source_for(peer.addr)?;
                }
                Ok(steer::owner_of_connection(local, peer))
            })?,
            false if may_choose => wished,
            false => 0,
        };
        self.move_to(target)?;
        Ok(may_choose)
    }

    /// Moves a stream socket without a connection to another shard.
    fn move_to(&self, target: u16) -> Result<()> {
        let old = self.location.load();
        if old.shard == target || self.is_connected(old) {
            return Ok(());
        }
        let is_named = self.is_named.load(Ordering::Acquire);
        let local = if is_named { Some(self.local()?) } else { None };
        let new = self.make(target, &self.options()?, local)?;
        self.stack.in_shard(old.shard, |stack, link| {
            self.location.store(new);
            link.unregister(old.id);
            if is_named && old.shard == 0 && self.name.get().is_none() {
                self.name.call_once(|| old);
                return Ok(());
            }
            Ok(stack.close(link, old.id)?)
        })
    }

    /// Whether the stack refuses to connect the socket, so that it need not move.
    fn is_connected(&self, location: Location) -> bool {
        let state = self
            .stack
            .with_shard(location.shard, |stack, _| stack.state(location.id));
        state != Some(Ok(inet::State::Closed))
    }
}

/// Whether a socket with this name hears IPv4, which comes to every shard; IPv6 comes to the
/// first only.
fn hears_ipv4(local: Endpoint, options: &Options) -> bool {
    local.addr.is_ipv4() || local.addr.is_unspecified() && !options.v6_only
}
