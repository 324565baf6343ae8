//! Names of sockets, and the members and moves that follow from them.
//!
//! Where there are several shards, a socket is one of these:
//! - *named*: in the first shard, which therefore knows all names, and refuses those that are
//!   taken; a datagram socket is there from the start, a stream moves there for its name;
//! - *connected* (TCP): in the shard of its connection. A socket that connects moves there
//!   before; if it had a name, the socket in the first shard stays to keep that;
//! - *waiting for unknown peers* (a listener, a datagram socket with a name): a member in
//!   each shard in which it hears something, the first shard's being the handle's location. Calls
//!   that change it change all of them; calls that take from it begin with the calling CPU's. A
//!   datagram socket gets further members where it sends to within loopback. An address of a further
//!   interface is heard in that one's shard only; the first then just keeps the name.
//!
//! A shard that comes with an interface gets the members of all sockets that wait
//! (`latecomer`).
//!
//! Lock order: `Waiter::naming`, then a shard.

use alloc::vec::Vec;
use core::sync::atomic::Ordering;

use inet::{Endpoint, Options, SocketId, TcpSnapshot, Transport};
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
        if self.transport == Transport::Tcp && !self.is_named.load(Ordering::Acquire) {
            self.move_to(0)?;
        }
        self.with(|id, stack, _| {
            let local = self.with_port(id, stack, local);
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

    /// `local` with a port that leads to this CPU, where a datagram socket may have any.
    fn with_port(&self, id: SocketId, stack: &mut inet::Stack, local: Endpoint) -> Endpoint {
        let own = self.stack.own_for_loopback();
        let is_free = local.port == 0 && self.transport == Transport::Udp;
        if !is_free || self.stack.loopback_count() == 1 {
            return local;
        }
        let port = stack.choose_datagram_port(id, |port| steer::owner_of_port(port) == own);
        Endpoint::new(local.addr, port.unwrap_or(0))
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
            return self.listen_again(backlog);
        }
        self.move_to(0)?;
        let totals = self.with(|id, stack, _| {
            stack.listen(id, backlog)?;
            Ok(stack.listen_totals(id)?)
        })?;
        self.is_named.store(true, Ordering::Release);
        // It moves no bytes.
        self.uncount();
        self.replicate(|local| Duty::Listening(local, backlog, totals.clone()))
    }

    /// The members are there; they may have been shut down meanwhile.
    fn listen_again(&self, backlog: usize) -> Result<()> {
        let mut totals = None;
        self.with_all(|id, stack, _| {
            stack.listen(id, backlog)?;
            match &totals {
                Some(totals) => stack.share_backlog(id, totals)?,
                None => totals = Some(stack.listen_totals(id)?),
            }
            Ok(())
        })
    }

    /// There is room in the queue of a listener: members answer the SYNs that they hold.
    #[cold]
    pub(crate) fn use_room(&self) {
        // Each of them is ours.
        let _ = self.with_all(|id, stack, link| {
            stack.use_room(link, id);
            net::after_send(link);
            Ok(())
        });
    }

    /// Makes the members in the other shards, with the socket's options and its duty.
    fn replicate(&self, duty: impl Fn(Endpoint) -> Duty) -> Result<()> {
        if self.stack.shard_count() == 1 {
            return Ok(());
        }
        let (options, local) = (self.options()?, self.local()?);
        let mut members = Vec::new();
        for number in self.stack.shards_that_hear(self.transport, local) {
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

    /// The member in a shard, which the socket gets now if it has none.
    pub(crate) fn member_made(&self, shard: u16) -> Result<Location> {
        match self.member_in(shard) {
            Some(known) => Ok(known),
            None => self.make_late(shard),
        }
    }

    #[cold]
    fn make_late(&self, shard: u16) -> Result<Location> {
        let _naming = self.waiter.naming.lock();
        if let Some(known) = self.member_in(shard) {
            return Ok(known);
        }
        let duty = match (self.is_named.load(Ordering::Acquire), self.remote()) {
            (false, _) => Duty::None,
            (true, Ok(peer)) => Duty::Connected(self.local()?, peer),
            (true, Err(_)) => Duty::Named(self.local()?),
        };
        let made = self.make(shard, &self.options()?, duty)?;
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
        if let Some(further) = self.further_exit(is_named, peer)? {
            return self.move_to(further).map(|()| false);
        }
        let target = match is_named {
            true => self.with(|id, stack, _| {
                let mut local = stack.local(id)?;
                if local.addr.is_unspecified() {
                    local.addr = stack.source_for(peer.addr)?;
                }
                Ok(self.stack.owner_of_connection(local, peer))
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
        let frozen = self.with(|id, stack, _| {
            let frozen = stack.frozen(id).map(TcpSnapshot::try_clone);
            Ok(frozen.transpose()?)
        })?;
        let duty = match (local, &frozen) {
            (Some(local), None) => Duty::Named(local),
            // A connection that is being put together needs no entry for its port.
            _ => Duty::None,
        };
        let new = self.make(target, &self.options()?, duty)?;
        let is_frozen = frozen.is_some();
        if let Some(snapshot) = frozen {
            self.freeze_member(new, snapshot)?;
        }
        self.stack.in_shard(old.shard, |stack, link| {
            self.location.store(new);
            if self.is_counted.load(Ordering::Relaxed) {
                self.stack.uncount_stream(old.shard);
                self.stack.count_stream(new.shard);
            }
            link.unregister(old.id);
            if is_named && !is_frozen && old.shard == 0 && self.name.get().is_none() {
                self.name.call_once(|| old);
                return Ok(());
            }
            Ok(stack.close(link, old.id)?)
        })
    }

    /// Gives a fresh member what a frozen socket holds.
    fn freeze_member(&self, member: Location, snapshot: TcpSnapshot) -> Result<()> {
        let frozen = self.stack.in_shard(member.shard, |stack, link| {
            stack.freeze(link, member.id)?;
            *stack.frozen_mut(member.id)? = snapshot;
            Ok(())
        });
        frozen.inspect_err(|_| close(&self.stack, member))
    }

    /// Whether the stack refuses to connect the socket, so that it need not move.
    fn is_connected(&self, location: Location) -> bool {
        let state = self
            .stack
            .with_shard(location.shard, |stack, _| stack.state(location.id));
        state != Some(Ok(inet::State::Closed))
    }
}
