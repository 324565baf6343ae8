//! Interfaces that come to a stack and leave it: over links, and from stack to stack.
//!
//! Each interface of Ethernet has a shard. The first one's is the first shard, beside loopback:
//! its number is [`CARD`], and a stack that has no other is as one with a card, for all of its
//! sockets. The first stack keeps that for its card. Every further interface has a shard of its
//! own; that of one that left is taken again, for shards are never taken away. Sockets that wait
//! for whoever calls have a member there from the start ([`new_shard`](super::new_shard)), and packets leave
//! by the interface that [`egress`] chooses.

use core::sync::atomic::Ordering;

use sync::{Error, Result};

use super::env::{Attachment, Port};
use super::interface::{CARD, Interface};
use super::{NetStack, egress, raw_listener};
use crate::device::pair::Pair;
use vfs::socket::InterfaceName;

/// The lowest number of an interface with a shard of its own.
const FURTHER_MIN: u32 = CARD + 1;

impl NetStack {
    /// Adds an interface with its port; returns its number and its shard.
    ///
    /// Errors: `NoBuffers` at the limit, `OutOfMemory`.
    pub(crate) fn add_interface(
        &self,
        name: InterfaceName,
        facts: inet::Port,
        port: Port,
    ) -> Result<(u32, u16)> {
        let changing = self.changing.lock();
        let (number, shard) = self.free_interface()?;
        let before = self.with_shard(shard, |stack, link| {
            stack.attach(facts);
            link.interface = number;
            link.attachment = Attachment::Own(Pair::of_link(port));
            Interface::counted(stack.stats())
        });
        let interface = Interface {
            before: before.unwrap_or_default(),
            ..Interface::ethernet(number, name, Some(shard), &facts)
        };
        self.shared.interfaces.put(interface);
        self.shared.choices.changed();
        drop(changing);
        if number >= FURTHER_MIN {
            self.introduce(number, shard)?;
        }
        Ok((number, shard))
    }

    /// Gives an interface's shard what the stack's other shards have: members of sockets that wait
    /// for whoever calls, reserved ports, raw sockets that overhear TCP or UDP; has the first
    /// interface known where it was the only one.
    /// Takes the new one away again if there is no memory for that.
    fn introduce(&self, number: u32, shard: u16) -> Result<()> {
        self.with_shard(0, |stack, link| egress::publish(self, stack, link));
        let reserved = self.reserved_ports();
        let overhears = raw_listener::is_transport_shown(&self.shared);
        self.with_shard(shard, |stack, _| {
            stack.reserve_ports(reserved);
            if overhears {
                stack.show_transports();
            }
        });
        let filled = self.fill_shard(shard);
        if filled.is_err() {
            self.remove_interface(number);
        }
        filled
    }

    /// A number and a shard that nobody has.
    fn free_interface(&self) -> Result<(u32, u16)> {
        if !self.is_first() && self.interface(CARD).is_none() {
            return Ok((CARD, 0));
        }
        let all = self.interfaces();
        let number = free_number(&all)?;
        let is_unused = |shard: &u16| all.iter().all(|one| one.shard != Some(*shard));
        let mut made = self.loopback_count()..self.shard_count.load(Ordering::Acquire);
        let shard = made.find(is_unused).map_or_else(|| self.add_shard(), Ok)?;
        Ok((number, shard))
    }

    /// Adds the interface of a card that a program drives: no stack of ours gets its frames.
    ///
    /// Errors: `Exists` if there is one of that name, `NoBuffers` at the limit.
    pub(crate) fn add_mirrored(&self, name: InterfaceName, facts: &inet::Port) -> Result<u32> {
        let _changing = self.changing.lock();
        let all = self.interfaces();
        if all.iter().any(|one| one.name == name) {
            return Err(Error::Exists);
        }
        let number = free_number(&all)?;
        let interface = Interface::ethernet(number, name, None, facts);
        self.shared.interfaces.put(interface);
        Ok(number)
    }

    /// Takes an interface away, with its addresses, routes and neighbours. Connections over it stay
    /// until they time out.
    pub(crate) fn remove_interface(&self, number: u32) {
        let _changing = self.changing.lock();
        let Some(gone) = self.interface(number) else {
            return;
        };
        self.forget_interface(number);
        let Some(shard) = gone.shard else { return };
        let port = self.with_shard(shard, |stack, link| {
            stack.detach(link);
            core::mem::replace(&mut link.attachment, Attachment::None)
        });
        // Without a port the shard says no more what it reaches.
        self.shared.egress.lock().remove(number);
        self.shared.choices.changed();
        // Its end may take locks.
        drop(port);
    }

    /// An interface has another address and MTU now.
    pub(crate) fn change_interface(&self, number: u32, mac: wire::MacAddr, mtu: u16) {
        let Some(was) = self.interface(number) else {
            return;
        };
        let Some(shard) = was.shard else { return };
        let changed = self.with_shard(shard, |stack, _| {
            let facts = *stack.port()?;
            let now = inet::Port { mac, mtu, ..facts };
            (now != facts).then(|| stack.attach(now))
        });
        if changed.flatten().is_some() {
            self.shared.interfaces.put(Interface {
                mac: mac.0,
                mtu: mtu.into(),
                ..was
            });
        }
    }
}

/// The lowest number of a further interface that none of `all` has.
fn free_number(all: &[Interface]) -> Result<u32> {
    let is_free = |number: &u32| all.iter().all(|one| one.number != *number);
    let mut numbers = FURTHER_MIN..;
    numbers.find(is_free).ok_or(Error::NoBuffers)
}
