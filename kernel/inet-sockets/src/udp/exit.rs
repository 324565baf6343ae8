//! By which shard a datagram leaves.
//!
//! The peer of each datagram decides, and what the socket has set: its address, its device. While
//! there is one shard nothing is asked, and beside an interface that nobody uses little: whether
//! the socket has an address is remembered (`Waiter`), and so is where a connected one sends.

use core::net::IpAddr;

use inet::{Endpoint, SendOptions};

use super::UdpSocket;
use crate::{bound_device, groups};

impl UdpSocket {
    /// The shard by which a datagram to the peer of `send`, or to the only one, is sent.
    #[inline]
    pub(crate) fn shard_to(&self, send: &SendOptions) -> u16 {
        if self.handle.stack.shard_count() == 1 {
            return 0;
        }
        let known = self.known_shard(send);
        known.unwrap_or_else(|| self.chosen_shard(send))
    }

    /// The same where the destination decides alone, and is known.
    #[inline]
    fn known_shard(&self, send: &SendOptions) -> Option<u16> {
        let (Some(to), None) = (send.to, send.from) else {
            return None;
        };
        let stack = &self.handle.stack;
        let is_free = self.handle.waiter.has_no_address() && bound_device::of(&self.handle) == 0;
        if is_free
            && stack.has_further()
            && let IpAddr::V4(to) = to.addr
            && let Some(shard) = stack.known_exit(to)
        {
            // Where loopback leads is not among what is remembered.
            return Some(shard);
        }
        if to.addr.is_loopback() && self.handle.waiter.may_loop() {
            return stack.loopback_exit(None, to);
        }
        (is_free && stack.has_one_exit()).then_some(0)
    }

    fn chosen_shard(&self, send: &SendOptions) -> u16 {
        match (send.to, send.from) {
            (Some(to), from) => self.shard_towards(to, from),
            (None, None) => self.shard_of_only(),
            (None, from) => {
                let only = self.handle.remote();
                only.map_or(0, |only| self.shard_towards(only, from))
            }
        }
    }

    fn shard_towards(&self, to: Endpoint, from: Option<IpAddr>) -> u16 {
        let stack = &self.handle.stack;
        if stack.has_one_exit() && !to.addr.is_loopback() {
            return 0;
        }
        let named = from.filter(|from| !from.is_unspecified());
        let from = || named.or_else(|| self.own_address());
        if to.addr.is_loopback()
            && let Some(shard) = stack.loopback_exit(from(), to)
        {
            return shard;
        }
        if !stack.has_further() {
            return stack.shard_of(to.addr, from);
        }
        let from = from();
        stack.exit(self.device_towards(to.addr), from, to.addr)
    }

    /// The interface to which the socket is bound for datagrams to `to`, or 0.
    fn device_towards(&self, to: IpAddr) -> u32 {
        match bound_device::of(&self.handle) {
            0 if to.is_multicast() => groups::sends_by(&self.handle),
            device => device,
        }
    }

    /// The address that the socket has, if any.
    fn own_address(&self) -> Option<IpAddr> {
        let waiter = &self.handle.waiter;
        if waiter.has_no_address() {
            return None;
        }
        let address = self.handle.look(|id, stack| {
            let local = stack.local(id).ok()?.addr;
            if local.is_unspecified() {
                waiter.note_no_address();
                return None;
            }
            if local.is_loopback() {
                waiter.note_loopback_address();
            }
            Some(local)
        });
        address.flatten()
    }

    /// The shard by which a connected socket sends; the first, which refuses it, of another one.
    fn shard_of_only(&self) -> u16 {
        let epoch = self.handle.stack.egress_epoch();
        let known = self.handle.waiter.sends_by(epoch);
        known.unwrap_or_else(|| self.find_shard_of_only(epoch))
    }

    #[cold]
    fn find_shard_of_only(&self, epoch: u32) -> u16 {
        let found = self.handle.look(|id, stack| {
            let from = stack.local(id).ok()?.addr;
            let to = stack.remote(id).ok()?;
            let of = &self.handle.stack;
            let within = of.loopback_exit(Some(from), to);
            if within.is_none() && !of.has_further() && !of.has_one_exit() {
                return Some(of.shard_of(to.addr, || Some(from)));
            }
            let exit = || of.exit(self.device_towards(to.addr), Some(from), to.addr);
            let shard = within.unwrap_or_else(exit);
            // What the socket sends to groups by is set without a lock.
            if !to.addr.is_multicast() {
                self.handle.waiter.note_sends_by(epoch, shard);
            }
            Some(shard)
        });
        found.flatten().unwrap_or(0)
    }
}
