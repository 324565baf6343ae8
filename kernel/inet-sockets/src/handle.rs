//! A program's hold on one socket: what TCP and UDP sockets share.
//!
//! A socket is at one location, in one shard; where there are several shards, it may have
//! members in the others too (`members` says when). Where there is one shard none of this costs more than a comparison.
//!
//! Invariant: `location` changes only under the lock of the shard that it names, and not any
//! more once there are members. Lock order: `Waiter::naming`, then a shard.

use alloc::string::String;
use alloc::sync::Arc;
use core::sync::atomic::{AtomicBool, Ordering};

use inet::{Endpoint, Options, SocketId, Transport};
use mach::sync::Once;
use sync::poll::Events;
use sync::{Error, Result, Wait};

use net::stack::env::{self, Link};
use net::stack::location::{AtomicLocation, Location};
use net::stack::locked::LockedShard;
use net::stack::member::{close, close_member, open_in};
use net::stack::waiter::Waiter;
use net::stack::{NetStack, current_stack};
use net::{Answer, refused};
use sockets::{CommonOptions, Held};
use vfs::Metadata;
use vfs::socket::{self, Blocking, Family, Shutdown};

/// A socket; dropping it closes it.
pub(crate) struct Handle {
    /// The stack in which it was made.
    pub(crate) stack: Arc<NetStack>,
    pub(crate) location: AtomicLocation,
    /// The socket that keeps the name of one that moved away.
    pub(crate) name: Once<Location>,
    /// Whether a program gave it a name.
    pub(crate) is_named: AtomicBool,
    /// Whether it is one of the streams of its location's shard.
    pub(crate) is_counted: AtomicBool,
    pub(crate) transport: Transport,
    pub(crate) family: Family,
    pub(crate) waiter: Arc<Waiter>,
    pub(crate) common: CommonOptions,
    _held: Held,
}

impl Handle {
    /// What stat(2) says of the socket; its number is also in /proc/net.
    pub(crate) fn metadata(&self) -> Metadata {
        socket::metadata(self.waiter.number)
    }

    /// Its name in /proc/PID/fd.
    pub(crate) fn label(&self) -> String {
        socket::label(self.waiter.number)
    }

    /// A new socket: a stream where one is to be opened, another one in the first shard.
    pub(crate) fn open(transport: Transport, family: Family) -> Result<Self> {
        let of = current_stack();
        let shard = match transport {
            Transport::Tcp => of.shard_to_open(),
            Transport::Udp => 0,
        };
        of.in_shard(shard, |stack, link| {
            let id = open_in(stack, transport, family)?;
            let owner = cred::credentials().with(|who| who.user.fs);
            stack.configure(link, id, |options| options.owner = owner)?;
            Self::adopt(&of, id, transport, family, stack, link)
        })
    }

    /// Holds a socket that a stack made (an accepted connection).
    ///
    /// Errors: `NoBuffers`; the socket is closed then.
    pub(crate) fn adopt(
        of: &Arc<NetStack>,
        id: SocketId,
        transport: Transport,
        family: Family,
        stack: &mut inet::Stack,
        link: &mut Link,
    ) -> Answer<Self> {
        let waiter = Arc::new(Waiter::numbered());
        if let Err(error) = link.register(id, waiter.clone()) {
            stack.close(link, id)?;
            return Err(error.into());
        }
        let location = Location {
            shard: link.number,
            id,
        };
        let is_stream = transport == Transport::Tcp;
        if is_stream {
            of.count_stream(location.shard);
        }
        Ok(Self {
            stack: of.clone(),
            location: AtomicLocation::new(location),
            name: Once::new(),
            is_named: AtomicBool::new(false),
            is_counted: AtomicBool::new(is_stream),
            transport,
            family,
            waiter,
            common: CommonOptions::default(),
            _held: Held::one(),
        })
    }

    /// Holds a connection of this listener.
    pub(crate) fn adopt_accepted(
        &self,
        id: SocketId,
        stack: &mut inet::Stack,
        link: &mut Link,
    ) -> Answer<Self> {
        let accepted = Self::adopt(&self.stack, id, self.transport, self.family, stack, link)?;
        let device = self.waiter.device.load(Ordering::Relaxed);
        accepted.waiter.device.store(device, Ordering::Relaxed);
        accepted.common.inherit(&self.common);
        Ok(accepted)
    }

    /// The shard of the socket's location, locked, and the socket there.
    ///
    /// Errors: `NetworkDown` before boot has got that far.
    #[inline(always)]
    fn enter(&self) -> Result<(LockedShard<'_>, SocketId)> {
        self.enter_by(|shard| LockedShard::new(&self.stack, shard))
    }

    #[inline(always)]
    fn enter_by<'s>(
        &'s self,
        enter: impl Fn(u16) -> Option<LockedShard<'s>>,
    ) -> Result<(LockedShard<'s>, SocketId)> {
        loop {
            let seen = self.location.look();
            let locked = enter(seen.shard()).ok_or(Error::NetworkDown)?;
            if self.location.look() == seen {
                return Ok((locked, seen.id()));
            }
        }
    }

    /// Calls `work` for the socket at its location.
    #[inline]
    pub(crate) fn with<R>(
        &self,
        work: impl FnOnce(SocketId, &mut inet::Stack, &mut Link) -> Answer<R>,
    ) -> Result<R> {
        self.move_bytes(|id, stack, link| {
            self.waiter.forget();
            work(id, stack, link)
        })
    }

    /// Like [`with`](Self::with), for a call that does nothing but to move bytes.
    #[inline]
    pub(crate) fn move_bytes<R>(
        &self,
        work: impl FnOnce(SocketId, &mut inet::Stack, &mut Link) -> Answer<R>,
    ) -> Result<R> {
        let (mut locked, id) = self.enter()?;
        let (stack, link) = locked.parts();
        Ok(work(id, stack, link)?)
    }

    /// Shows the socket at its location to `look`, which needs no clock; `None` before boot
    /// has got that far.
    #[inline]
    pub(crate) fn look<R>(&self, look: impl FnOnce(SocketId, &mut inet::Stack) -> R) -> Option<R> {
        let enter = |shard| LockedShard::to_look(&self.stack, shard);
        let (mut locked, id) = self.enter_by(enter).ok()?;
        let (stack, _) = locked.parts();
        Some(look(id, stack))
    }

    /// Calls `work` for the socket, and for each of its other members.
    pub(crate) fn with_all(
        &self,
        mut work: impl FnMut(SocketId, &mut inet::Stack, &mut Link) -> Answer<()>,
    ) -> Result<()> {
        self.with(&mut work)?;
        for member in self.waiter.members.iter() {
            self.stack
                .in_shard(member.shard, |stack, link| work(member.id, stack, link))?;
        }
        Ok(())
    }

    /// From now on it is none of the streams of its shard, by which the next one's is chosen.
    pub(crate) fn uncount(&self) {
        if self.is_counted.swap(false, Ordering::Relaxed) {
            self.stack.uncount_stream(self.location.load().shard);
        }
    }

    /// Whether it has no member in another shard.
    pub(crate) fn is_alone(&self) -> bool {
        self.waiter.members.is_empty()
    }

    /// The member in a shard, the location among them.
    #[inline]
    pub(crate) fn member_in(&self, shard: u16) -> Option<Location> {
        let location = self.location.load();
        match location.shard == shard {
            true => Some(location),
            false => self.waiter.members.in_shard(shard),
        }
    }

    /// The same, or the location if there is only that.
    pub(crate) fn member(&self, shard: u16) -> Location {
        let known = self.member_in(shard);
        known.unwrap_or_else(|| self.location.load())
    }

    /// Whether no member but the location may have something.
    #[inline]
    pub(crate) fn is_heard_alone(&self) -> bool {
        self.is_alone() || self.waiter.only_may_have(self.location.look().shard())
    }

    /// The location and all members, beginning with those from the shard `first` on.
    fn all_from(&self, first: u16) -> impl Iterator<Item = Location> + '_ {
        let all = move || core::iter::once(self.location.load()).chain(self.waiter.members.iter());
        let later = all().filter(move |member| member.shard >= first);
        later.chain(all().filter(move |member| member.shard < first))
    }

    /// What `take` finds in the first member that has something, beginning with that of
    /// `first`: `WouldBlock` counts as nothing.
    pub(crate) fn first_of<R>(
        &self,
        first: u16,
        mut take: impl FnMut(SocketId, &mut inet::Stack, &mut Link) -> Answer<R>,
    ) -> Result<R> {
        if self.is_alone() {
            return self.with(take);
        }
        for member in self.all_from(first) {
            if !self.waiter.may_have(member.shard) {
                continue;
            }
            let taken = self.stack.in_shard(member.shard, |stack, link| {
                let taken = take(member.id, stack, link);
                if taken.is_err() {
                    let left = stack.poll_but_writable(member.id);
                    self.waiter.found(member.shard, left);
                }
                taken
            });
            match taken {
                Err(Error::WouldBlock) => {}
                done => return done,
            }
        }
        Err(Error::WouldBlock)
    }

    /// What is ready now.
    pub(crate) fn poll(&self) -> Events {
        env::events_of(self.ready())
    }

    /// The same in the stack's words.
    pub(crate) fn ready(&self) -> inet::Events {
        match self.is_heard_alone() {
            true => self.ready_here(),
            false => self.ready_anywhere(),
        }
    }

    /// What is ready now of what somebody is interested in, and perhaps more.
    #[inline]
    pub(crate) fn poll_for(&self, interest: Events) -> Events {
        match self.waiter.known() {
            Some(known) if !interest.intersects(Events::WRITABLE) => known,
            _ => self.poll(),
        }
    }

    #[inline]
    fn ready_here(&self) -> inet::Events {
        let ready = self.look(|id, stack| stack.poll(id));
        ready.unwrap_or(inet::Events::ERROR)
    }

    /// What the location or any other member is ready for. A datagram socket has always room to
    /// send, so its location need not be asked for that.
    #[inline(never)]
    fn ready_anywhere(&self) -> inet::Events {
        match self.transport {
            Transport::Udp => inet::Events::WRITABLE | self.heard_by(self.all_from(0)),
            Transport::Tcp => self.ready_here() | self.heard_by(self.waiter.members.iter()),
        }
    }

    /// What any of `members` is ready for. That there is room to send, each says of itself.
    fn heard_by(&self, members: impl Iterator<Item = Location>) -> inet::Events {
        let heard = members.filter(|member| self.waiter.may_have(member.shard));
        let ready = heard.filter_map(|member| {
            self.stack.with_shard(member.shard, |stack, _| {
                let ready = stack.poll_but_writable(member.id);
                self.waiter.found(member.shard, ready);
                ready
            })
        });
        ready.fold(inet::Events::empty(), |all, one| all | one)
    }

    /// Waits by the rules of `how` until one of `events` or an error is there.
    pub(crate) fn wait(&self, events: Events, how: Option<Wait>) -> Result<()> {
        let wanted = events | Events::ALWAYS;
        let ready = || self.poll_for(events).intersects(wanted).then_some(());
        self.waiter
            .pollee
            .queue
            .wait(how.ok_or(Error::WouldBlock)?, ready)
    }

    pub(crate) fn receive_wait(&self, blocking: Blocking) -> Option<Wait> {
        self.common.receive_wait(blocking)
    }

    pub(crate) fn send_wait(&self, blocking: Blocking) -> Option<Wait> {
        self.common.send_wait(blocking)
    }

    pub(crate) fn options(&self) -> Result<Options> {
        self.with(|id, stack, _| Ok(*stack.options(id)?))
    }

    pub(crate) fn configure(&self, mut change: impl FnMut(&mut Options)) -> Result<()> {
        self.with_all(|id, stack, link| {
            stack.configure(link, id, &mut change)?;
            net::after_send(link);
            Ok(())
        })
    }

    pub(crate) fn local(&self) -> Result<Endpoint> {
        self.with(|id, stack, _| Ok(stack.local(id)?))
    }

    pub(crate) fn remote(&self) -> Result<Endpoint> {
        self.with(|id, stack, _| Ok(stack.remote(id)?))
    }

    /// The pending error, which is thereby cleared.
    pub(crate) fn take_error(&self) -> Option<Error> {
        let take = |id, stack: &mut inet::Stack, _: &mut Link| {
            Ok(stack.take_error(id).ok_or(Error::WouldBlock)?)
        };
        self.first_of(self.stack.own_for_loopback(), take)
            .ok()
            .map(refused)
    }

    pub(crate) fn shutdown(&self, how: Shutdown) -> Result<()> {
        let how = match how {
            Shutdown::Read => inet::Shutdown::Read,
            Shutdown::Write => inet::Shutdown::Write,
            Shutdown::Both => inet::Shutdown::Both,
        };
        // A datagram socket without a peer says so, and is shut down all the same.
        let mut refused = None;
        self.with_all(|id, stack, link| {
            refused = refused.or(stack.shutdown(link, id, how).err());
            net::after_send(link);
            Ok(())
        })?;
        refused.map_or(Ok(()), |error| Err(net::refused(error)))
    }

    /// The filter was attached or taken away: the stack asks for it, or need not.
    pub(crate) fn filter_changed(&self) -> Result<()> {
        let is_filtered = self.waiter.filter.attached().is_some();
        self.configure(|options| options.is_filtered = is_filtered)
    }

    /// `IPV6_V6ONLY`.
    pub(crate) fn is_v6_only(&self) -> Result<bool> {
        Ok(self.options()?.v6_only)
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        let close = |location| close(&self.stack, location);
        let location = self.location.load();
        self.uncount();
        close(location);
        // From now on nobody adds one and leaves it (`NetStack::fill_shard`).
        let members = self.waiter.members.iter();
        members.for_each(|member| close_member(&self.stack, member));
        self.name.get().copied().into_iter().for_each(close);
    }
}
