//! What routers announce (RFC 4861 6.3.4, RFC 4862 5.5.3): themselves, prefixes, times.
//!
//! Anybody on the link can announce, so each table has a limit, times have bounds, and an
//! address is not taken away at once.

use core::net::{IpAddr, Ipv6Addr};

use base::{Duration, Instant};
use wire::{IPV6_MTU_MIN, NdpOption, NdpOptions, PrefixInfo, RouterAdvert, RouterPreference};

use super::address::{ADVERT_ADDRESSES_MAX, interface_id};
use super::autoconf::START_DELAY;
use super::{AddressOrigin, Ipv6Address, is_link_local};
use crate::addr::Prefix;
use crate::context::Context;
use crate::counters::{Count, DropReason};
use crate::env::Env;
use crate::route::{Route, RouteOrigin, Via};

/// RFC 4862 5.5.3 (e): an announcement that nobody signed cannot end an address sooner.
const LIFETIME_FLOOR: Duration = Duration::from_secs(2 * 3600);
/// Routers' wishes for time between two questions, and for trust in an answer; beyond
/// these they would make us flood the link or never ask.
const RETRANSMIT_MS: core::ops::RangeInclusive<u32> = 100..=60_000;
const REACHABLE_MS: core::ops::RangeInclusive<u32> = 1_000..=3_600_000;

impl<E: Env> Context<'_, E> {
    /// A router says what there is on the link (RFC 4861 6.3.4).
    pub(super) fn on_router_advert(
        &mut self,
        router: Ipv6Addr,
        advert: &RouterAdvert,
        options: &NdpOptions<'_>,
    ) {
        let Some(v6) = &mut self.net.v6 else { return };
        if !v6.config.accept_adverts {
            return;
        }
        self.net.stats.counts.count(Count::RouterAdverts);
        (v6.solicits_left, v6.solicit_due) = (0, Instant::NEVER);
        self.take_timing(advert);
        self.take_router(router, advert);
        for option in options.iter() {
            match option {
                NdpOption::Mtu(mtu) => self.take_mtu(mtu),
                NdpOption::Prefix(info) => self.take_prefix(&info),
                _ => {}
            }
        }
    }

    fn take_timing(&mut self, advert: &RouterAdvert) {
        let mut timing = self.net.neighbors[1].timing();
        if RETRANSMIT_MS.contains(&advert.retrans_ms) {
            timing.retransmit = Duration::from_millis(u64::from(advert.retrans_ms));
        }
        if REACHABLE_MS.contains(&advert.reachable_ms) {
            let base = u64::from(advert.reachable_ms);
            // RFC 4861 6.3.2: between half and one and a half, so that hosts differ.
            let millis = base / 2 + self.env.random() % base;
            timing.reachable = Duration::from_millis(millis);
        }
        if timing != self.net.neighbors[1].timing() {
            self.net.neighbors[1].set_timing(timing);
            self.net.change_routes();
        }
    }

    fn take_mtu(&mut self, mtu: u32) {
        let Some(port) = self.net.port else { return };
        let range = u32::from(IPV6_MTU_MIN)..=u32::from(port.mtu);
        if let Some(v6) = &mut self.net.v6
            && range.contains(&mtu)
            && u32::from(v6.link_mtu) != mtu
        {
            v6.link_mtu = mtu as u16;
            self.net.change_routes();
        }
    }

    fn take_router(&mut self, router: Ipv6Addr, advert: &RouterAdvert) {
        let via = Via::Router(IpAddr::V6(router));
        if advert.lifetime_secs == 0 {
            self.remove_router(router);
            return;
        }
        let metric = match advert.preference {
            RouterPreference::High => 512,
            RouterPreference::Medium => 1024,
            RouterPreference::Low => 2048,
        };
        // A router has one preference.
        let is_old = |route: &Route| {
            route.via == via && route.origin == RouteOrigin::Advert && route.metric != metric
        };
        if self.net.routes.remove(is_old) {
            self.net.change_routes();
        }
        let expires = self.now + Duration::from_secs(u64::from(advert.lifetime_secs));
        let all = (Ipv6Addr::UNSPECIFIED, 0);
        self.add_route(RouteOrigin::Advert, all, via, expires, metric);
    }

    /// It is no router any more.
    pub(super) fn remove_router(&mut self, router: Ipv6Addr) {
        let via = Via::Router(IpAddr::V6(router));
        let is_gone = |route: &Route| route.via == via && route.origin == RouteOrigin::Advert;
        if self.net.routes.remove(is_gone) {
            self.net.change_routes();
        }
    }

    fn take_prefix(&mut self, info: &PrefixInfo) {
        if is_link_local(info.prefix) || info.prefix.is_multicast() {
            return;
        }
        let until = |secs: u32| match secs {
            u32::MAX => Instant::NEVER,
            secs => self.now + Duration::from_secs(u64::from(secs)),
        };
        let (preferred, valid) = (until(info.preferred_secs), until(info.valid_secs));
        if info.is_on_link {
            let network = (info.prefix, info.prefix_len);
            match info.valid_secs {
                0 => self.remove_on_link(network),
                _ => self.add_route(RouteOrigin::Advert, network, Via::OnLink, valid, 256),
            }
        }
        if info.is_autonomous && info.prefix_len == 64 && info.preferred_secs <= info.valid_secs {
            self.take_autonomous(info.prefix, preferred, valid);
        }
    }

    fn remove_on_link(&mut self, (network, prefix_len): (Ipv6Addr, u8)) {
        let gone = Prefix::new(IpAddr::V6(network), prefix_len);
        let is_gone = |route: &Route| {
            route.origin == RouteOrigin::Advert
                && route.via == Via::OnLink
                && Some(route.destination) == gone
        };
        if self.net.routes.remove(is_gone) {
            self.net.change_routes();
        }
    }

    /// Makes an address of a prefix, or gives ours its new lifetimes (RFC 4862 5.5.3).
    fn take_autonomous(&mut self, prefix: Ipv6Addr, preferred: Instant, valid: Instant) {
        let now = self.now;
        let (Some(v6), Some(port)) = (&mut self.net.v6, self.net.port) else {
            return;
        };
        let network = prefix.to_bits() >> 64;
        let is_advert = |own: &Ipv6Address| own.origin == AddressOrigin::Advert;
        let is_of_prefix = |own: &Ipv6Address| own.addr.to_bits() >> 64 == network;
        let mut adverts = v6.addresses.iter_mut().filter(|own| is_advert(own));
        if let Some(own) = adverts.find(|own| is_of_prefix(own)) {
            let is_believed = valid > now + LIFETIME_FLOOR || valid > own.valid_until;
            if is_believed {
                own.valid_until = valid;
            } else if own.valid_until > now + LIFETIME_FLOOR {
                own.valid_until = now + LIFETIME_FLOOR;
            }
            own.preferred_until = preferred;
            let state = own.state;
            own.settle(now);
            if own.state != state {
                self.net.change_routes();
            }
            return;
        }
        if valid <= now {
            return;
        }
        if v6.addresses.iter().filter(|own| is_advert(own)).count() >= ADVERT_ADDRESSES_MAX {
            return self.net.drop(DropReason::AdvertLimit);
        }
        let id = interface_id(v6.config.interface_id, port.mac.0, prefix, 0);
        let addr = Ipv6Addr::from_bits(network << 64 | u128::from(id));
        let own = Ipv6Address {
            preferred_until: preferred,
            valid_until: valid,
            due: now + self.random_part(START_DELAY),
            ..self.new_address(addr, 64, AddressOrigin::Advert)
        };
        if self.assign(own).is_err() {
            self.net.drop(DropReason::AdvertLimit);
        }
    }
}
