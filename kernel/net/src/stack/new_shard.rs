//! A shard that comes late, or whose interface has a new address: sockets that wait for whoever
//! calls get a member there.
//!
//! The shard of a new interface is filled once the interface is in the stack's list. A socket that
//! gets its name meanwhile counts the shards after that, so either it makes its member there
//! or it is found here; `naming` sees to it that it is not both. A socket that is closed meanwhile
//! is not in the first shard any more before its members are closed: who has added one looks
//! there again, and closes it then.
//!
//! Sockets that are bound to an address wait where the address is. It may come to an interface that
//! is there already: its shard is filled then as if it had come anew.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::Ordering;

use inet::{Options, SocketId, Transport};
use mach::mem::fallible::TryGrow;
use sync::Result;
use vfs::socket::Family;

use super::NetStack;
use super::egress::device_in;
use super::env::Link;
use super::location::Location;
use super::member::{Duty, STRETCH, begin, close, close_member, has_members, make_member};
use super::waiter::Waiter;

/// A socket of the first shard that waits for whoever calls.
struct Waiting {
    id: SocketId,
    waiter: Arc<Waiter>,
}

impl NetStack {
    /// Fills shards whose interface has a new address; no shard is locked.
    #[inline]
    pub(crate) fn follow_addresses(&self) {
        if self.shared.has_new_address.load(Ordering::Relaxed) {
            self.fill_where_addresses_are_new();
        }
    }

    #[cold]
    fn fill_where_addresses_are_new(&self) {
        self.shared.has_new_address.store(false, Ordering::Release);
        for number in 0..self.shard_count() {
            let take = |link: &mut Link| core::mem::take(&mut link.has_new_address);
            let has_new = self.with_shard(number, |_, link| take(link)) == Some(true);
            // The first one has all sockets. The card's others have its addresses.
            let shards = match number {
                0 => 1..self.count(),
                number => number..number + 1,
            };
            for shard in shards.filter(|_| has_new) {
                // Without memory a socket hears nothing there until the address comes again.
                let _ = self.fill_shard(shard);
            }
        }
    }

    /// Gives a shard, whose interface is new, its members.
    ///
    /// Errors: `NoBuffers`, `OutOfMemory`; some sockets have their members then.
    pub(crate) fn fill_shard(&self, shard: u16) -> Result<()> {
        for waiting in self.all_waiting()? {
            let _naming = waiting.waiter.naming.lock();
            match waiting.waiter.members.in_shard(shard) {
                Some(member) => self.renew(&waiting, member),
                None => self.add_to_shard(&waiting, shard)?,
            }
        }
        Ok(())
    }

    /// All of them, by stretches of slots, so that nobody waits long for the shard.
    fn all_waiting(&self) -> Result<Vec<Waiting>> {
        let mut all = Vec::new();
        let slots = self.with_first_shard(inet::Stack::slots);
        for slot in (0..slots.unwrap_or(0)).step_by(STRETCH) {
            all.make_room(STRETCH)?;
            self.with_shard(0, |stack, link| {
                let named = stack.sockets_in(slot..slot + STRETCH);
                let waiting = named.filter(|(_, entry)| has_members(entry));
                let ids = waiting.filter_map(|(_, entry)| entry.connection.socket);
                all.extend(ids.filter_map(|id| {
                    let waiter = link.waiter_of(id)?.clone();
                    Some(Waiting { id, waiter })
                }));
            });
        }
        Ok(all)
    }

    /// The shard had another interface before, or other addresses.
    fn renew(&self, waiting: &Waiting, member: Location) {
        let duty = self.duty_of(waiting, member.shard);
        let number = waiting.waiter.device.load(Ordering::Relaxed);
        self.with_shard(member.shard, |stack, link| {
            let device = device_in(number, link);
            // Whoever closed it meanwhile has no use for it.
            let _ = stack.configure(link, member.id, |options| options.device = device);
            if let Some((_, _, duty)) = duty {
                let _ = begin(stack, member.id, duty);
            }
        });
    }

    fn add_to_shard(&self, waiting: &Waiting, shard: u16) -> Result<()> {
        let Some((options, kind, duty)) = self.duty_of(waiting, shard) else {
            return Ok(());
        };
        let member = make_member(self, &waiting.waiter, kind, shard, &options, duty)?;
        if let Err(error) = waiting.waiter.add_members(&[member]) {
            close(self, member);
            return Err(error);
        }
        if self.duty_of(waiting, shard).is_none() {
            close_member(self, member);
        }
        Ok(())
    }

    /// What a member of it does in a shard; `None` if it is gone, or hears nothing there.
    fn duty_of(
        &self,
        waiting: &Waiting,
        shard: u16,
    ) -> Option<(Options, (Transport, Family), Duty)> {
        let (options, local, peer, backlog) = self.with_shard(0, |stack, link| {
            let id = waiting.id;
            let is_held = Arc::ptr_eq(link.waiter_of(id)?, &waiting.waiter);
            let backlog = stack.accept_queue(id).ok().map(|lengths| lengths.1);
            let backlog = backlog.zip(stack.listen_totals(id).ok());
            let (options, local) = (*stack.options(id).ok()?, stack.local(id).ok()?);
            is_held.then_some((options, local, stack.remote(id).ok(), backlog))
        })??;
        let transport = match backlog {
            Some(_) => Transport::Tcp,
            None => Transport::Udp,
        };
        let mut hearing = self.shards_that_hear(transport, local);
        if !hearing.any(|one| one == shard) {
            return None;
        }
        let family = match local.addr.is_ipv6() {
            true => Family::Inet6,
            false => Family::Inet,
        };
        Some(match backlog {
            Some((backlog, totals)) => (
                options,
                (transport, family),
                Duty::Listening(local, backlog, totals),
            ),
            None => {
                let duty = peer.map_or(Duty::Named(local), |peer| Duty::Connected(local, peer));
                (options, (transport, family), duty)
            }
        })
    }
}
