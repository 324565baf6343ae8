//! Neighbour discovery (RFC 4861 section 7): IPv6's way to fill the neighbour cache.
//!
//! Every message must have crossed no router (hop limit 255) and must not have been
//! fragmented (RFC 6980); then its sender is on the link, and the worst it can do is what
//! it could do to ARP too. As there, a claim changes only what we have asked for, and adds
//! a neighbour only if it asks for us. A stack that follows another one learns just the same, and
//! leaves answers and all that concerns addresses and routers to that one.

use core::net::{IpAddr, Ipv6Addr};

use mbuf::Chain;
use wire::{Icmpv6View, MacAddr, NdpOption, NdpOptions, NdpRepr, Protocol, next_header};

use super::{is_link_local, solicited_node};
use crate::addr::Addresses;
use crate::context::Context;
use crate::counters::{Count, DropReason};
use crate::env::Env;
use crate::input::IpInfo;
use crate::ip::IpHeader;
use crate::multicast::ALL_NODES;
use crate::neighbor::Claim;
use crate::output::Offload;

/// The longest that we send: a solicitation with two options.
const MESSAGE_BYTES_MAX: usize = 64;
const HOP_LIMIT: u8 = 255;

impl<E: Env> Context<'_, E> {
    /// Takes a message; `Ok(false)` if it is none of neighbour discovery's.
    pub(super) fn discovery_input(
        &mut self,
        info: &IpInfo,
        message: &Icmpv6View<'_>,
    ) -> Result<bool, DropReason> {
        let Addresses::V6 { src, dst } = info.addresses else {
            return Ok(false);
        };
        let parsed = NdpRepr::parse(message).map_err(|_| DropReason::BadDiscovery)?;
        let Some((repr, options)) = parsed else {
            return Ok(false);
        };
        // RFC 6980: it has no fragments.
        if info.hop_limit != HOP_LIMIT || info.was_cut {
            return Err(DropReason::BadDiscovery);
        }
        match repr {
            NdpRepr::NeighborSolicit { target } => {
                self.on_solicit(src, dst, target, &options)?;
            }
            NdpRepr::NeighborAdvert {
                target,
                is_router,
                is_solicited,
                is_override,
            } => {
                if target.is_multicast() || is_solicited && dst.is_multicast() {
                    return Err(DropReason::BadDiscovery);
                }
                let claim = Claim {
                    header: station_header(self, target, options.target_link())?,
                    is_answer: is_solicited,
                    is_override,
                    is_welcome: false,
                };
                self.on_advert(target, is_router, claim)?;
            }
            NdpRepr::RouterAdvert(advert) => {
                if !is_link_local(src) {
                    return Err(DropReason::BadDiscovery);
                }
                if self.net.v6.as_ref().is_some_and(|v6| v6.is_follower) {
                    return Ok(true);
                }
                self.learn_sender(src, &options)?;
                self.on_router_advert(src, &advert, &options);
            }
            NdpRepr::Redirect { .. } => return Err(DropReason::RedirectIgnored),
            // We are no router.
            NdpRepr::RouterSolicit => return Err(DropReason::WrongAddress),
        }
        Ok(true)
    }

    /// Somebody asks for `target`.
    fn on_solicit(
        &mut self,
        src: Ipv6Addr,
        dst: Ipv6Addr,
        target: Ipv6Addr,
        options: &NdpOptions<'_>,
    ) -> Result<(), DropReason> {
        let is_probe = src.is_unspecified();
        let is_odd_probe =
            is_probe && (dst != solicited_node(target) || options.source_link().is_some());
        if target.is_multicast() || is_odd_probe {
            return Err(DropReason::BadDiscovery);
        }
        let v6 = self.net.v6.as_mut().ok_or(DropReason::Ipv6Off)?;
        let is_follower = v6.is_follower;
        let own = v6.find_mut(target).ok_or(DropReason::WrongAddress)?;
        if !own.is_assigned() {
            if is_follower {
                return Ok(());
            }
            // RFC 4862 5.4.3: who probes as we do wants it too; others get no answer.
            let is_tentative = own.state == super::AddressState::Tentative;
            if is_probe && is_tentative && options.nonce() != Some(own.nonce) {
                self.on_duplicate(target);
            }
            return Ok(());
        }
        if !is_probe {
            self.learn_sender(src, options)?;
        }
        if !is_follower {
            self.send_advert(target, src);
        }
        Ok(())
    }

    /// Remembers who asks us, or announces a router; its packets are answered next.
    fn learn_sender(&mut self, src: Ipv6Addr, options: &NdpOptions<'_>) -> Result<(), DropReason> {
        let ip = IpAddr::V6(src);
        let header = station_header(self, src, options.source_link())?;
        if header.is_none() {
            return Ok(());
        }
        let claim = Claim {
            header,
            is_answer: false,
            is_override: true,
            is_welcome: self.net.routes.is_on_link(ip),
        };
        let learned = self.net.neighbors_mut(ip).learn(ip, claim, self.now);
        self.on_learned(learned);
        Ok(())
    }

    /// Somebody says where `target` is.
    fn on_advert(
        &mut self,
        target: Ipv6Addr,
        is_router: bool,
        claim: Claim,
    ) -> Result<(), DropReason> {
        let v6 = self.net.v6.as_mut().ok_or(DropReason::Ipv6Off)?;
        let is_follower = v6.is_follower;
        if let Some(own) = v6.find_mut(target) {
            if is_follower {
                return Ok(());
            }
            if own.state == super::AddressState::Tentative {
                self.on_duplicate(target);
                return Ok(());
            }
            // RFC 4862 5.4.4: outside of the test, it is between the other and its luck.
            return Err(DropReason::DuplicateAddress);
        }
        let ip = IpAddr::V6(target);
        let learned = self.net.neighbors_mut(ip).learn(ip, claim, self.now);
        self.on_learned(learned);
        if !is_router && !is_follower && self.net.routes.uses(ip) {
            // RFC 4861 7.2.5: a router that has become a host.
            self.remove_router(target);
        }
        Ok(())
    }

    /// Says where `target`, an address of ours, is; to everybody if `asker` has no address.
    fn send_advert(&mut self, target: Ipv6Addr, asker: Ipv6Addr) {
        let Some(port) = self.net.port else { return };
        let is_solicited = !asker.is_unspecified();
        let repr = NdpRepr::NeighborAdvert {
            target,
            is_router: false,
            is_solicited,
            is_override: true,
        };
        let dst = if is_solicited { asker } else { ALL_NODES };
        let options = [NdpOption::TargetLink(port.mac)];
        self.send_ndp(target, dst, repr, &options, None);
    }

    /// Asks everybody, or `station` alone, who has `target`.
    pub fn send_neighbor_solicit(&mut self, target: Ipv6Addr, station: Option<MacAddr>) {
        let (Some(v6), Some(port)) = (&self.net.v6, self.net.port) else {
            return;
        };
        let Some(src) = v6.source_for(target) else {
            return self.net.drop(DropReason::NoRoute);
        };
        self.net.count(Count::NeighborSolicits);
        let repr = NdpRepr::NeighborSolicit { target };
        let dst = match station {
            Some(_) => target,
            None => solicited_node(target),
        };
        let options = [NdpOption::SourceLink(port.mac)];
        self.send_ndp(src, dst, repr, &options, station);
    }

    /// Asks whether somebody has an address that we want (RFC 4862 5.4.2).
    pub(super) fn send_probe(&mut self, target: Ipv6Addr, nonce: [u8; 6]) {
        self.net.count(Count::NeighborSolicits);
        let repr = NdpRepr::NeighborSolicit { target };
        let options = [NdpOption::Nonce(nonce)];
        let src = Ipv6Addr::UNSPECIFIED;
        self.send_ndp(src, solicited_node(target), repr, &options, None);
    }

    /// Sends a message, to `station` if the cache is not to be asked.
    pub(super) fn send_ndp(
        &mut self,
        src: Ipv6Addr,
        dst: Ipv6Addr,
        repr: NdpRepr,
        options: &[NdpOption],
        station: Option<MacAddr>,
    ) {
        let mut bytes = [0; MESSAGE_BYTES_MAX];
        let len = repr.emit(&mut bytes, options).min(MESSAGE_BYTES_MAX);
        let header = IpHeader {
            addresses: Addresses::V6 { src, dst },
            protocol: Protocol::Other(next_header::ICMPV6),
            hop_limit: HOP_LIMIT,
            tos: 0,
        };
        let Some(packet) = self.icmpv6_message(&header, &mut bytes[..len]) else {
            return;
        };
        match station {
            Some(station) => self.send_to_station(header, packet, station),
            None => self.send_ip(header, packet, Offload::default()),
        }
    }

    fn send_to_station(&mut self, header: IpHeader, mut packet: Chain, station: MacAddr) {
        let len = packet.len();
        let link = self.net.link_header(station, header.addresses.dst());
        if let Some(space) = self.make_room(&mut packet, header.len()) {
            header.emit(space, len);
            self.count_out(header.addresses.dst());
            self.send_frame(packet, &link, Offload::default());
        }
    }
}

/// The link header for a station that an option names.
fn station_header<E: Env>(
    cx: &Context<'_, E>,
    addr: Ipv6Addr,
    station: Option<MacAddr>,
) -> Result<Option<crate::neighbor::LinkHeader>, DropReason> {
    match station {
        Some(station) if !station.is_station() => Err(DropReason::BadDiscovery),
        Some(station) => Ok(Some(cx.net.link_header(station, IpAddr::V6(addr)))),
        None => Ok(None),
    }
}
