//! By which shard packets leave a stack with several interfaces, and which shard has an address.
//!
//! `inet::Egress` decides among interfaces. Each shard that has one publishes what it has and
//! reaches when that has changed ([`publish`]); whoever binds, connects or sends asks before it
//! enters a shard. While a stack has no further interface nobody publishes and nobody asks. Each
//! change begins an epoch ([`inet::Choices`]), by which answers are remembered.
//!
//! An address that an interface did not have may be one that sockets are bound to: they waited by
//! another interface, or for this one to come again. Its shard gets their members once nobody
//! holds it (`NetStack::follow_addresses`).
//!
//! What a program names instead of an address (SO_BINDTODEVICE, the interface of IP_PKTINFO) is
//! turned into the interface, or into one of its addresses, from which the same follows.
//!
//! Lock order: a shard, then the table.

use core::net::{IpAddr, Ipv4Addr};
use core::sync::atomic::Ordering;

use inet::{Device, Stack};

use super::NetStack;
use super::env::Link;
use super::interface::{CARD, LOOPBACK};
use crate::device::steer;

/// Tells the other shards what the interface of this one has and reaches, if that has changed.
/// The card's shards have the same, so its first one speaks for all.
#[inline]
pub(crate) fn publish(of: &NetStack, stack: &Stack, link: &mut Link) {
    let speaks = link.number == 0 || link.number >= of.loopback_count();
    if speaks && link.egress_version != stack.routes_version() {
        link.egress_version = stack.routes_version();
        publish_now(stack, link);
    }
}

#[cold]
fn publish_now(stack: &Stack, link: &mut Link) {
    if stack.port().is_some() {
        let now = stack.reach(link.interface);
        let has_new_address = link.shared.egress.lock().set(now);
        link.shared.choices.changed();
        if has_new_address {
            link.has_new_address = true;
            link.shared.has_new_address.store(true, Ordering::Release);
        }
    }
}

/// What a socket that is bound to the interface `number` is bound to in a shard.
pub fn device_in(number: u32, link: &Link) -> Device {
    match number {
        0 => Device::Any,
        LOOPBACK => Device::Loopback,
        number if number == link.interface => Device::Port,
        number => Device::Other(number),
    }
}

impl NetStack {
    /// Grows with each change of what an interface has or reaches.
    #[inline]
    pub fn egress_epoch(&self) -> u32 {
        self.shared.choices.epoch()
    }

    /// Whether there are, or were, interfaces with shards of their own.
    #[inline]
    pub fn has_further(&self) -> bool {
        self.shard_count() > self.loopback_count()
    }

    /// The further shard whose interface has `addr`.
    pub fn further_owner(&self, addr: IpAddr) -> Option<u16> {
        if !self.has_further() {
            return None;
        }
        let owner = self.shared.egress.lock().owner(addr);
        self.further_shard(owner?)
    }

    /// The further shard by which packets to `to` leave: that of `device`, if the socket is bound
    /// to one, else by their source, else by the routes. `None` for the card's.
    pub fn further_exit(&self, device: u32, from: Option<IpAddr>, to: IpAddr) -> Option<u16> {
        if !self.has_further() || to.is_loopback() || to.is_unspecified() {
            return None;
        }
        match (device, from, to) {
            (0, None, IpAddr::V4(to)) => self.remembered_exit(to),
            (0, from, to) => self.chosen_exit(from, to),
            (device, ..) => self.further_shard(device),
        }
    }

    fn chosen_exit(&self, from: Option<IpAddr>, to: IpAddr) -> Option<u16> {
        let chosen = self.shared.egress.lock().choose(from, to);
        self.further_shard(chosen?)
    }

    /// The same where the destination decides alone, as for each answer of a server without an
    /// address. The first shard, which is none of theirs, stands for the card's.
    #[inline]
    fn remembered_exit(&self, to: Ipv4Addr) -> Option<u16> {
        let choices = &self.shared.choices;
        let epoch = choices.epoch();
        let known = choices.get(epoch, to);
        let shard = known.unwrap_or_else(|| {
            let chosen = self.chosen_exit(None, to.into()).unwrap_or(0);
            // A socket may have an interface for all groups.
            if !to.is_multicast() {
                choices.put(epoch, to, chosen);
            }
            chosen
        });
        (shard != 0).then_some(shard)
    }

    /// [`exit`](Self::exit) without a device or a source, if it is remembered.
    #[inline]
    pub fn known_exit(&self, to: Ipv4Addr) -> Option<u16> {
        let choices = &self.shared.choices;
        match choices.get(choices.epoch(), to)? {
            0 => Some(self.shard_of(to.into(), || None)),
            further => Some(further),
        }
    }

    /// The shard by which packets to `to` leave, and by which their answers arrive, if they do not
    /// stay within loopback.
    pub fn exit(&self, device: u32, from: Option<IpAddr>, to: IpAddr) -> u16 {
        let further = self.further_exit(device, from, to);
        further.unwrap_or_else(|| self.shard_of(to, || from))
    }

    /// The shard of the card in which datagrams of `peer` arrive. If there is a choice of addresses
    /// that they go to, `from` says which we send from, if that is known.
    pub fn shard_of(&self, peer: IpAddr, from: impl FnOnce() -> Option<IpAddr>) -> u16 {
        if self.count() == 1 {
            return 0;
        }
        let routes = &self.shared.routes;
        let local = match peer {
            peer if peer.is_loopback() => Some(peer),
            IpAddr::V4(_) => routes.address().map(IpAddr::V4),
            IpAddr::V6(to) => {
                let named = || from().filter(|from| from.is_ipv6() && !from.is_unspecified());
                let only = routes.only_source_v6(to).map(IpAddr::V6);
                let known = only.or_else(named);
                known.or_else(|| routes.source_v6(to).map(IpAddr::V6))
            }
        };
        local.map_or(0, |local| steer::owner_of_hosts(local, peer))
    }

    /// The shard of an interface that has one of its own.
    pub(crate) fn further_shard(&self, interface: u32) -> Option<u16> {
        let found = self.interface(interface)?;
        found.shard.filter(|_| found.number > CARD)
    }

    /// The address from which a packet to `to` leaves by `interface`, where a program names the
    /// interface and no address; `None` where only the card can be meant, which chooses itself.
    pub fn source_on(&self, interface: u32, to: IpAddr) -> Option<IpAddr> {
        if !self.has_further() || interface <= LOOPBACK || to.is_loopback() {
            return None;
        }
        let source = self.on_interface(interface, |stack, _| match to {
            IpAddr::V4(_) => stack.address().map(|own| IpAddr::V4(own.addr())),
            IpAddr::V6(to) => {
                let is_near = to.is_unicast_link_local() || to.is_multicast();
                let mut all = stack.addresses_v6().map(|own| own.addr);
                let fitting = all.find(|own| own.is_unicast_link_local() == is_near);
                fitting.map(IpAddr::V6)
            }
        });
        source.flatten()
    }
}
