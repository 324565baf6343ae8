//! Names of sockets, and the members and moves that follow from them.
//!
//! Where there are several shards, a socket is one of these:
//! - *named or nothing yet*: in the first shard, which therefore knows all names, and
//!   refuses those that are taken;
//! - *connected* (TCP): in the shard of its connection. A socket that connects moves there
//!   before; if it had a name, the socket in the first shard stays to keep that;
//! - *waiting for unknown peers* (a listener, a datagram socket with a name): a member in
//!   each shard, the first shard's being the handle's location. Calls that change it change
//!   all of them; calls that take from it begin with the calling CPU's. An address of a further
//!   interface is heard in that one's shard only; the first then just keeps the name.
//!
//! A shard that comes with an interface gets the members of all sockets that wait
//! (`latecomer`).
//!
//! Lock order: `Waiter::naming`, then a shard.

use alloc::vec::Vec;
use core::sync::atomic::Ordering;

use inet::{Endpoint, Options, Transport};
use sync::Result;

use super::handle::Handle;
use super::{bound_device, port_rights};
use net::stack::location::Location;
use net::stack::member::{Duty, begin, close, make_member};
use net::steer;

impl Handle {
    /// Names the socket's end; a datagram socket gets its members.
    pub(crate) fn bind(&self, local: Endpoint) -> Result<()> {
        port_rights::check(&self.stack, local.port)?;
        let _naming = self.waiter.naming.lock();
        self.bind_named(local)
    }

    fn bind_named(&self, local: Endpoint) -> Result<()> {
        let is_elsewhere = self.stack.further_owner(local.addr).is_some();
        let nameless = self.local()?;
        self.with(|id, stack, _| {
            let bound = match is_elsewhere {
                true => stack.bind_elsewhere(id, local),
                false => stack.bind(id, local),
            };
            Ok(bound?)
        })?;
        self.is_named.store(true, Ordering::Release);
        match self.transport {
            Transport::Udp => {
                let replicated = self.replicate(Duty::Named);
                replicated.inspect_err(|_| self.unname(nameless))
            }
            Transport::Tcp => Ok(()),
        }
    }

    /// A member could not be made, so the others are without a name again, and the program may try
    /// once more.
    fn unname(&self, nameless: Endpoint) {
        self.is_named.store(false, Ordering::Release);
        // Each of them is ours.
        let _ = self.with_all(|id, stack, _| Ok(stack.unname_datagram(id, nameless)?));
    }

    /// Sees to it that a datagram socket has a name, and so its members.
    pub(crate) fn ensure_named(&self) -> Result<()> {
        if self.stack.shard_count() == 1 || self.is_named.load(Ordering::Acquire) {
            return Ok(());
        }
        let _naming = self.waiter.naming.lock();
        if self.is_named.load(Ordering::Acquire) {
            return Ok(());
        }
        match self.local()? {
            nameless if nameless.port == 0 => self.bind_named(nameless),
            // It sent something while the stack had one shard.
            _ => {
                self.replicate(Duty::Named)?;
                self.is_named.store(true, Ordering::Release);
                Ok(())
            }
        }
    }

    /// Sees to it that a datagram socket has all members that its name wants, where that has changed.
    pub(crate) fn complete(&self) -> Result<()> {
        let _naming = self.waiter.naming.lock();
        match self.is_named.load(Ordering::Acquire) {
            true => self.replicate(Duty::Named),
            false => Ok(()),
        }
    }

    /// Turns the socket into one that waits for connections, in each shard.
    pub(crate) fn listen(&self, backlog: usize) -> Result<()> {
        let _naming = self.waiter.naming.lock();
        if !self.is_alone() {
            return self.with_all(|id, stack, _| Ok(stack.listen(id, backlog)?));
        }
        self.move_to(0)?;
        self.with(|id, stack, _| Ok(stack.listen(id, backlog)?))?;
        self.is_named.store(true, Ordering::Release);
        self.replicate(|local| Duty::Listening(local, backlog))
    }

    /// Makes the members in the other shards, with the socket's options and its duty.
    fn replicate(&self, duty: impl Fn(Endpoint) -> Duty) -> Result<()> {
        if self.stack.shard_count() == 1 {
            return Ok(());
        }
        let (options, local) = (self.options()?, self.local()?);
        let mut members = Vec::new();
        for number in self.stack.shards_that_hear(local) {
            if let Some(known) = self.waiter.members.in_shard(number) {
                self.stack
                    .in_shard(number, |stack, _| begin(stack, known.id, duty(local)))?;
                continue;
            }
            match self.make(number, &options, duty(local)) {
                Ok(member) => members.push(member),
                Err(error) => {
                    self.close_all(&members);
                    return Err(error);
                }
            }
        }
        self.add_members(&members)
    }

    fn add_members(&self, members: &[Location]) -> Result<()> {
        if members.is_empty() {
            return Ok(());
        }
        let added = self.waiter.add_members(members);
        if added.is_err() {
            self.close_all(members);
        }
        added
    }

    fn close_all(&self, members: &[Location]) {
        let close = |member: &Location| close(&self.stack, *member);
        members.iter().for_each(close);
    }

    /// The member in a shard, which a socket without a name gets now.
    pub(super) fn member_made(&self, shard: u16) -> Result<Location> {
        let _naming = self.waiter.naming.lock();
        let location = self.location.load();
        let known = self.waiter.members.in_shard(shard);
        if let Some(known) = known.or((location.shard == shard).then_some(location)) {
            return Ok(known);
        }
        let made = self.make(shard, &self.options()?, Duty::None)?;
        self.add_members(&[made]).map(|()| made)
    }

    fn make(&self, shard: u16, options: &Options, duty: Duty) -> Result<Location> {
        let kind = (self.transport, self.family);
        make_member(&self.stack, &self.waiter, kind, shard, options, duty)
    }

    /// Moves a stream socket to where its connection to `peer` will be: where its name
    /// leads, else to `wished`; says whether it was free to.
    pub(crate) fn move_to_connect(&self, peer: Endpoint, wished: u16) -> Result<bool> {
        if self.stack.shard_count() == 1 {
            return Ok(false);
        }
        let _naming = self.waiter.naming.lock();
        let is_named = self.is_named.load(Ordering::Acquire);
        let further = self.further_exit(is_named, peer)?;
        if further.is_some() || self.stack.count() == 1 {
            return self.move_to(further.unwrap_or(0)).map(|()| false);
        }
        let target = match is_named {
            true => self.with(|id, stack, _| {
                let mut local = stack.local(id)?;
                if local.addr.is_unspecified() {
                    local.addr = stack.source_for(peer.addr)?;
                }
                Ok(steer::owner_of_connection(local, peer))
            })?,
            false => wished,
        };
        self.move_to(target)?;
        Ok(!is_named)
    }

    /// The further shard by which a stream socket reaches `peer`.
    fn further_exit(&self, is_named: bool, peer: Endpoint) -> Result<Option<u16>> {
        let from = match is_named {
            true => Some(self.local()?.addr),
            false => None,
        };
        let device = bound_device::of(self);
        Ok(self.stack.further_exit(device, from, peer.addr))
    }

    /// Moves a stream socket without a connection to another shard.
    fn move_to(&self, target: u16) -> Result<()> {
        let old = self.location.load();
        if old.shard == target || self.is_connected(old) {
            return Ok(());
        }
        let is_named = self.is_named.load(Ordering::Acquire);
        let local = if is_named { Some(self.local()?) } else { None };
        let duty = local.map_or(Duty::None, Duty::Named);
        let new = self.make(target, &self.options()?, duty)?;
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
