//! A program's hold on one socket: what TCP and UDP sockets share.
//!
//! A socket is at one place, in one shard; where there are several shards, it may have
//! members in the others too (`members` says when). Where there is one shard none of this costs more than a comparison.
//!
//! Invariant: `place` changes only under the lock of the shard that it names, and not any
//! more once there are `others`. Lock order: `naming`, then a shard.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::sync::Arc;
use core::sync::atomic::AtomicBool;

use inet::{Endpoint, Options, SocketId, Transport};
use mach::sync::{Once, Spin};
use sync::poll::Events;
use sync::{Error, Result, Wait};

use super::entered::Entered;
use super::notice::Notice;
use super::place::{AtomicPlace, Place};
use super::stack::{NetStack, current_stack};
use super::surroundings::{self, Link};
use crate::refusal::{Answer, refused};
use kernel::fs::Metadata;
use kernel::socket::{self, Blocking, CommonOptions, Family, Held, Shutdown, wait_on};

/// A socket; dropping it closes it.
pub(super) struct Handle {
    /// The stack in which it was made.
    pub(super) stack: Arc<NetStack>,
    pub(super) place: AtomicPlace,
    /// The members in the other shards, in the shards' order.
    pub(super) others: Once<Box<[Place]>>,
    /// The socket that keeps the name of one that moved away.
    pub(super) name: Once<Place>,
    /// Whether a program gave it a name.
    pub(super) is_named: AtomicBool,
    /// Held while names are given, so that this happens once.
    pub(super) naming: Spin<()>,
    pub(super) transport: Transport,
    pub(super) family: Family,
    pub(super) notice: Arc<Notice>,
    pub(super) common: CommonOptions,
    _held: Held,
}

impl Handle {
    /// What stat(2) says of the socket; its number is also in /proc/net.
    pub(super) fn metadata(&self) -> Metadata {
        socket::metadata(self.notice.number)
    }

    /// Its name in /proc/PID/fd.
    pub(super) fn label(&self) -> String {
        socket::label(self.notice.number)
    }

    /// A new socket, in the first shard.
    pub(super) fn open(transport: Transport, family: Family) -> Result<Self> {
        let of = current_stack();
        of.in_shard(0, |stack, link| {
            let id = open_in(stack, transport, family)?;
            let owner = cred::credentials().with(|who| who.user.fs);
            stack.configure(link, id, |options| options.owner = owner)?;
            Self::adopt(&of, id, transport, family, stack, link)
        })
    }

    /// Holds a socket that a stack made (an accepted connection).
    ///
    /// Errors: `NoBuffers`; the socket is closed then.
    pub(super) fn adopt(
        of: &Arc<NetStack>,
        id: SocketId,
        transport: Transport,
        family: Family,
        stack: &mut inet::Stack,
        link: &mut Link,
    ) -> Answer<Self> {
        let notice = Arc::new(Notice::new());
        if let Err(error) = link.register(id, notice.clone()) {
            stack.close(link, id)?;
            return Err(error.into());
        }
        let place = Place {
            shard: link.number,
            id,
        };
        Ok(Self {
            stack: of.clone(),
            place: AtomicPlace::new(place),
            others: Once::new(),
            name: Once::new(),
            is_named: AtomicBool::new(false),
            naming: Spin::new(()),
            transport,
            family,
            notice,
            common: CommonOptions::default(),
            _held: Held::one(),
        })
    }

    /// Holds a connection of this listener.
    pub(super) fn adopt_accepted(
        &self,
        id: SocketId,
        stack: &mut inet::Stack,
        link: &mut Link,
    ) -> Answer<Self> {
        Self::adopt(&self.stack, id, self.transport, self.family, stack, link)
    }

    /// The shard of the socket's place, entered, and the socket there.
    ///
    /// Errors: `NetworkDown` before boot has got that far.
    #[inline(always)]
    fn enter(&self) -> Result<(Entered<'_>, SocketId)> {
        self.enter_by(|shard| Entered::new(&self.stack, shard))
    }

    #[inline(always)]
    fn enter_by<'s>(
        &'s self,
        enter: impl Fn(u16) -> Option<Entered<'s>>,
    ) -> Result<(Entered<'s>, SocketId)> {
        loop {
            let seen = self.place.look();
            let entered = enter(seen.shard()).ok_or(Error::NetworkDown)?;
            if self.place.look() == seen {
                return Ok((entered, seen.id()));
            }
        }
    }

    /// Calls `work` for the socket at its place.
    #[inline]
    pub(super) fn with<R>(
        &self,
        work: impl FnOnce(SocketId, &mut inet::Stack, &mut Link) -> Answer<R>,
    ) -> Result<R> {
        self.move_bytes(|id, stack, link| {
            self.notice.forget();
            work(id, stack, link)
        })
    }

    /// Like [`with`](Self::with), for a call that does nothing but to move bytes.
    #[inline]
    pub(super) fn move_bytes<R>(
        &self,
        work: impl FnOnce(SocketId, &mut inet::Stack, &mut Link) -> Answer<R>,
    ) -> Result<R> {
        let (mut entered, id) = self.enter()?;
        let (stack, link) = entered.parts();
        Ok(work(id, stack, link)?)
    }

    /// Shows the socket at its place to `look`, which needs no clock; `None` before boot
    /// has got that far.
    #[inline]
    pub(super) fn look<R>(&self, look: impl FnOnce(SocketId, &mut inet::Stack) -> R) -> Option<R> {
        let enter = |shard| Entered::to_look(&self.stack, shard);
        let (mut entered, id) = self.enter_by(enter).ok()?;
        let (stack, _) = entered.parts();
        Some(look(id, stack))
    }

    /// Calls `work` for the socket, and for each of its other members.
    pub(super) fn with_all(
        &self,
        mut work: impl FnMut(SocketId, &mut inet::Stack, &mut Link) -> Answer<()>,
    ) -> Result<()> {
        self.with(&mut work)?;
        self.with_others(work)
    }

    /// Calls `work` for each member but the socket at its place.
    pub(super) fn with_others(
        &self,
        mut work: impl FnMut(SocketId, &mut inet::Stack, &mut Link) -> Answer<()>,
    ) -> Result<()> {
        for member in self.others() {
            self.stack
                .in_shard(member.shard, |stack, link| work(member.id, stack, link))?;
        }
        Ok(())
    }

    /// Whether it has no member in another shard.
    pub(super) fn is_alone(&self) -> bool {
        self.others().is_empty()
    }

    fn others(&self) -> &[Place] {
        self.others.get().map_or(&[], |others| others)
    }

    /// The member in a shard, or the place if there is only that.
    pub(super) fn member(&self, shard: u16) -> Place {
        let place = self.place.load();
        let others = self.others().iter();
        others
            .copied()
            .find(|member| member.shard == shard)
            .unwrap_or(place)
    }

    /// What `take` finds in the first member that has something, beginning with that of
    /// `first`: `WouldBlock` counts as nothing.
    pub(super) fn first_of<R>(
        &self,
        first: u16,
        mut take: impl FnMut(SocketId, &mut inet::Stack, &mut Link) -> Answer<R>,
    ) -> Result<R> {
        if self.is_alone() {
            return self.with(take);
        }
        let shards = self.stack.count();
        for step in 0..shards {
            let member = self.member((first + step) % shards);
            let taken = self
                .stack
                .in_shard(member.shard, |stack, link| take(member.id, stack, link));
            match taken {
                Err(Error::WouldBlock) => {}
                done => return done,
            }
        }
        Err(Error::WouldBlock)
    }

    /// What is ready now.
    pub(super) fn poll(&self) -> Events {
        surroundings::events_of(self.ready())
    }

    /// The same in the stack's words.
    pub(super) fn ready(&self) -> inet::Events {
        let ready = self.look(|id, stack| stack.poll(id));
        let ready = ready.unwrap_or(inet::Events::ERROR);
        match self.others.get() {
            None => ready,
            Some(others) => ready | self.poll_all(others),
        }
    }

    /// What any of the members is ready for.
    #[cold]
    fn poll_all(&self, members: &[Place]) -> inet::Events {
        let poll = |member: &Place| {
            self.stack
                .with_shard(member.shard, |stack, _| stack.poll(member.id))
        };
        let ready = members.iter().filter_map(poll);
        ready.fold(inet::Events::empty(), |all, one| all | one)
    }

    /// Waits by the rules of `how` until one of `events` or an error is there.
    pub(super) fn wait(&self, events: Events, how: Option<Wait>) -> Result<()> {
        let wanted = events | Events::ALWAYS;
        let ready = || self.poll().intersects(wanted).then_some(());
        wait_on(&self.notice.pollee.queue, how, ready)
    }

    pub(super) fn receive_wait(&self, blocking: Blocking) -> Option<Wait> {
        self.common.receive_wait(blocking)
    }

    pub(super) fn send_wait(&self, blocking: Blocking) -> Option<Wait> {
        self.common.send_wait(blocking)
    }

    pub(super) fn options(&self) -> Result<Options> {
        self.with(|id, stack, _| Ok(*stack.options(id)?))
    }

    pub(super) fn configure(&self, mut change: impl FnMut(&mut Options)) -> Result<()> {
        self.with_all(|id, stack, link| {
            stack.configure(link, id, &mut change)?;
            super::poll::after_send(link);
            Ok(())
        })
    }

    pub(super) fn local(&self) -> Result<Endpoint> {
        self.with(|id, stack, _| Ok(stack.local(id)?))
    }

    pub(super) fn remote(&self) -> Result<Endpoint> {
        self.with(|id, stack, _| Ok(stack.remote(id)?))
    }

    /// The pending error, which is thereby cleared.
    pub(super) fn take_error(&self) -> Option<Error> {
        let take = |id, stack: &mut inet::Stack, _: &mut Link| {
            Ok(stack.take_error(id).ok_or(Error::WouldBlock)?)
        };
        self.first_of(self.stack.own(), take).ok().map(refused)
    }

    pub(super) fn shutdown(&self, how: Shutdown) -> Result<()> {
        let how = match how {
            Shutdown::Read => inet::Shutdown::Read,
            Shutdown::Write => inet::Shutdown::Write,
            Shutdown::Both => inet::Shutdown::Both,
        };
        self.with_all(|id, stack, link| {
            stack.shutdown(link, id, how)?;
            super::poll::after_send(link);
            Ok(())
        })
    }

    /// `IPV6_V6ONLY`.
    pub(super) fn is_v6_only(&self) -> Result<bool> {
        Ok(self.options()?.v6_only)
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        let close = |place| close(&self.stack, place);
        close(self.place.load());
        self.others().iter().copied().for_each(close);
        self.name.get().copied().into_iter().for_each(close);
    }
}

pub(super) fn close(of: &NetStack, place: Place) {
    of.with_shard(place.shard, |stack, link| {
        link.unregister(place.id);
        let closed = stack.close(link, place.id);
        debug_assert!(closed.is_ok(), "a handle owns live sockets");
        super::poll::after_send(link);
    });
}

pub(super) fn open_in(
    stack: &mut inet::Stack,
    transport: Transport,
    family: Family,
) -> Answer<SocketId> {
    Ok(match family {
        Family::Inet6 => stack.open_v6(transport)?,
        _ => stack.open(transport)?,
    })
}
