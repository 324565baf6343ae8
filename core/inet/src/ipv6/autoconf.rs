//! Autoconfiguration (RFC 4862): is our address free, is there a router.
//! Not here: what routers say (`adverts`).

use core::net::{IpAddr, Ipv6Addr};

use base::{Duration, Instant};
use wire::{NdpOption, NdpRepr};

use super::address::{ADDRESSES_MAX, interface_id};
use super::{
    AddressOrigin, AddressState, InterfaceId, Ipv6, Ipv6Address, Ipv6Config, solicited_node,
};
use crate::addr::Prefix;
use crate::context::Context;
use crate::counters::DropReason;
use crate::env::Env;
use crate::error::Error;
use crate::route::{Route, RouteOrigin, Via};
use crate::stack::Stack;

/// All routers of the link.
const ALL_ROUTERS: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 2);
/// Questions whether somebody has an address (RFC 4862 5.1: DupAddrDetectTransmits).
const PROBES: u8 = 1;
/// RFC 7217 6: addresses to try of one prefix.
const TRIES_MAX: u8 = 3;
/// RFC 4861 10: questions for routers, and the time between two.
const SOLICITS: u8 = 3;
const SOLICIT_INTERVAL: Duration = Duration::from_secs(4);
/// RFC 4861 10: our first messages wait so long at most, so that hosts that start
/// together do not all talk at once.
pub(super) const START_DELAY: Duration = Duration::from_secs(1);
impl Stack {
    /// Starts IPv6 on the attached port, or starts it anew. Addresses can be used some
    /// seconds later.
    pub fn start_ipv6<E: Env>(&mut self, env: &mut E, config: Ipv6Config) {
        self.stop_ipv6(env);
        let Some(port) = self.net.port else { return };
        self.net.v6 = Some(Ipv6::new(config));
        let link = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 0);
        let mut cx = self.context(env);
        cx.add_route(
            RouteOrigin::Address,
            (link, 64),
            Via::OnLink,
            Instant::NEVER,
            0,
        );
        let id = interface_id(config.interface_id, port.mac.0, link, 0);
        let addr = Ipv6Addr::from_bits(link.to_bits() | u128::from(id));
        let mut own = cx.new_address(addr, 64, AddressOrigin::LinkLocal);
        own.due = cx.now + cx.random_part(START_DELAY);
        // The table is empty, so there is room.
        cx.assign(own).ok();
    }

    /// Whether the port speaks IPv6.
    pub fn has_ipv6(&self) -> bool {
        self.net.v6.is_some()
    }

    /// Takes all IPv6 addresses away, and what was learned with them.
    pub fn stop_ipv6<E: Env>(&mut self, env: &mut E) {
        let Some(v6) = self.net.v6.take() else { return };
        let mut cx = self.context(env);
        for own in v6.iter().filter(|_| !v6.is_follower) {
            cx.leave(IpAddr::V6(solicited_node(own.addr)));
        }
        cx.net.routes.remove(|route| {
            route.destination.network().is_ipv6() && route.origin != RouteOrigin::Static
        });
        cx.net.change_routes();
    }

    /// Gives the port an address, and its network a route. It can be used when nobody
    /// objects.
    ///
    /// Errors: `AddressNotAvailable` for an address that no host can have or without IPv6,
    /// `AddressInUse` if we have it, `NoBuffers` if we have too many.
    pub fn add_address_v6<E: Env>(
        &mut self,
        env: &mut E,
        addr: Ipv6Addr,
        prefix_len: u8,
    ) -> Result<(), Error> {
        let prefix = Prefix::new(IpAddr::V6(addr), prefix_len);
        let (Some(prefix), Some(v6)) = (prefix, &mut self.net.v6) else {
            return Err(Error::AddressNotAvailable);
        };
        if addr.is_unspecified() || addr.is_loopback() || addr.is_multicast() {
            return Err(Error::AddressNotAvailable);
        }
        if v6.find_mut(addr).is_some() {
            return Err(Error::AddressInUse);
        }
        let mut cx = self.context(env);
        let mut own = cx.new_address(addr, prefix_len, AddressOrigin::Static);
        own.due = cx.now;
        cx.assign(own)?;
        let route = Route {
            destination: prefix,
            source: None,
            via: Via::OnLink,
            metric: 0,
            origin: RouteOrigin::Static,
            expires: Instant::NEVER,
        };
        cx.net.routes.add(route)?;
        cx.net.change_routes();
        cx.expire_ipv6();
        Ok(())
    }

    /// Takes an address away; its network's route stays.
    ///
    /// Errors: `AddressNotAvailable` if we do not have it.
    pub fn remove_address_v6<E: Env>(&mut self, env: &mut E, addr: Ipv6Addr) -> Result<(), Error> {
        let mut cx = self.context(env);
        match cx.unassign(addr) {
            Some(_) => Ok(()),
            None => Err(Error::AddressNotAvailable),
        }
    }

    /// IPv6 addresses of the port, in whatever state.
    pub fn addresses_v6(&self) -> impl Iterator<Item = &Ipv6Address> {
        self.net.v6.iter().flat_map(Ipv6::iter)
    }
}

impl<E: Env> Context<'_, E> {
    pub(super) fn random_part(&mut self, time: Duration) -> Duration {
        Duration::from_nanos(self.env.random() % time.as_nanos().max(1))
    }

    pub(super) fn new_address(
        &mut self,
        addr: Ipv6Addr,
        prefix_len: u8,
        origin: AddressOrigin,
    ) -> Ipv6Address {
        let [a, b, c, d, e, f, ..] = self.env.random().to_le_bytes();
        Ipv6Address {
            addr,
            prefix_len,
            state: AddressState::Tentative,
            origin,
            preferred_until: Instant::NEVER,
            valid_until: Instant::NEVER,
            probes_left: PROBES,
            due: self.now,
            nonce: [a, b, c, d, e, f],
            tries: 0,
        }
    }

    /// Takes up a tentative address.
    pub(super) fn assign(&mut self, own: Ipv6Address) -> Result<(), Error> {
        let Some(v6) = &mut self.net.v6 else {
            return Err(Error::AddressNotAvailable);
        };
        if v6.addresses.len() >= ADDRESSES_MAX {
            return Err(Error::NoBuffers);
        }
        v6.addresses.try_reserve(1).map_err(|_| Error::NoBuffers)?;
        self.join(IpAddr::V6(solicited_node(own.addr)))?;
        self.net.change_upkeep();
        if let Some(v6) = &mut self.net.v6 {
            v6.addresses.push(own);
        }
        Ok(())
    }

    fn unassign(&mut self, addr: Ipv6Addr) -> Option<Ipv6Address> {
        let v6 = self.net.v6.as_mut()?;
        let at = v6.addresses.iter().position(|own| own.addr == addr)?;
        let own = v6.addresses.remove(at);
        self.leave(IpAddr::V6(solicited_node(addr)));
        self.net.change_routes();
        Some(own)
    }

    /// Does what is due: asks, uses what nobody objected to, and forgets what is over.
    pub fn expire_ipv6(&mut self) {
        let now = self.now;
        if self.net.routes.expire(now) {
            self.net.change_routes();
        }
        loop {
            let Some(v6) = &mut self.net.v6 else { return };
            if v6.solicits_left > 0 && v6.solicit_due <= now {
                self.solicit_router();
                continue;
            }
            let due = v6.addresses.iter_mut().find(|own| own.due <= now);
            match due {
                Some(own) if own.state == AddressState::Tentative => {
                    let own = *own;
                    self.probe(own);
                }
                Some(own) if own.valid_until <= now => {
                    let addr = own.addr;
                    self.unassign(addr);
                }
                Some(own) => {
                    own.settle(now);
                    self.net.change_routes();
                }
                None => return,
            }
        }
    }

    /// Asks whether somebody has the address; uses it if we have asked enough.
    fn probe(&mut self, own: Ipv6Address) {
        let retransmit = self.net.neighbors[1].timing().retransmit;
        let now = self.now;
        let Some(v6) = &mut self.net.v6 else { return };
        let Some(address) = v6.find_mut(own.addr) else {
            return;
        };
        if address.probes_left > 0 {
            address.probes_left -= 1;
            address.due = now + retransmit;
            self.send_probe(own.addr, own.nonce);
            return;
        }
        address.state = AddressState::Preferred;
        address.settle(now);
        if own.origin == AddressOrigin::LinkLocal && v6.config.accept_adverts {
            (v6.solicits_left, v6.solicit_due) = (SOLICITS, now);
        }
        self.net.change_routes();
    }

    fn solicit_router(&mut self) {
        let Some(v6) = &mut self.net.v6 else { return };
        v6.solicits_left -= 1;
        v6.solicit_due = match v6.solicits_left {
            0 => Instant::NEVER,
            _ => self.now + SOLICIT_INTERVAL,
        };
        let (Some(src), Some(port)) = (v6.link_local(), self.net.port) else {
            return;
        };
        let options = [NdpOption::SourceLink(port.mac)];
        self.send_ndp(src, ALL_ROUTERS, NdpRepr::RouterSolicit, &options, None);
    }

    /// Somebody has an address that we wanted.
    pub(super) fn on_duplicate(&mut self, addr: Ipv6Addr) {
        self.net.drop(DropReason::DuplicateAddress);
        let Some(v6) = &mut self.net.v6 else { return };
        let how = v6.config.interface_id;
        let Some(own) = v6.find_mut(addr) else { return };
        let is_ours_to_choose = own.origin != AddressOrigin::Static;
        if how == InterfaceId::Eui64 || !is_ours_to_choose || own.tries + 1 >= TRIES_MAX {
            own.state = AddressState::Duplicate;
            own.due = own.valid_until;
            v6.is_off |= own.origin == AddressOrigin::LinkLocal;
            self.net.change_routes();
            return;
        }
        let (Some(old), Some(port)) = (self.unassign(addr), self.net.port) else {
            return;
        };
        let network = Ipv6Addr::from_bits(addr.to_bits() >> 64 << 64);
        let id = interface_id(how, port.mac.0, network, old.tries + 1);
        let addr = Ipv6Addr::from_bits(network.to_bits() | u128::from(id));
        let fresh = Ipv6Address {
            tries: old.tries + 1,
            preferred_until: old.preferred_until,
            valid_until: old.valid_until,
            ..self.new_address(addr, old.prefix_len, old.origin)
        };
        // The old one's place is free.
        self.assign(fresh).ok();
    }

    pub(super) fn add_route(
        &mut self,
        origin: RouteOrigin,
        (network, prefix_len): (Ipv6Addr, u8),
        via: Via,
        expires: Instant,
        metric: u32,
    ) {
        let Some(destination) = Prefix::new(IpAddr::V6(network), prefix_len) else {
            return;
        };
        let route = Route {
            destination,
            source: None,
            via,
            metric,
            origin,
            expires,
        };
        match self.net.routes.add(route) {
            Ok(true) => self.net.change_routes(),
            Ok(false) => {}
            Err(_) => self.net.drop(DropReason::AdvertLimit),
        }
    }
}
