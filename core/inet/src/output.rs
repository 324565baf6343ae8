//! From a transport's header and payload to a frame on the port, or to ourselves.

use alloc::vec::Vec;
use core::net::Ipv4Addr;

use base::Instant;
use mbuf::{Chain, ChecksumOffload, Mbuf, SegmentOffload, TxFrame};
use wire::{
    ArpOperation, ArpRepr, ETHERNET_HEADER_BYTES, EtherType, EthernetRepr, IPV4_HEADER_BYTES,
    Ipv4Repr, MacAddr,
};

use crate::context::Context;
use crate::counters::{Count, DropReason};
use crate::env::Env;
use crate::error::Error;
use crate::neighbor::{Overdue, Resolution, Waiting};
use crate::net::Net;
use crate::port::Port;

/// Room that we leave in front of payload for headers: the longest of TCP over IPv4 over
/// Ethernet, and what a device wants in front of them.
pub(crate) const HEADROOM: usize = 128;

/// Where a packet goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum NextHop {
    /// To ourselves.
    Loopback,
    /// To a station whose address is known.
    Station(MacAddr),
    /// To a neighbour whose station must be asked for.
    Neighbor(Ipv4Addr),
}

/// A next hop that a connection remembers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct CachedRoute {
    next_hop: NextHop,
    epoch: u32,
    valid_until: Instant,
}

impl CachedRoute {
    pub const NONE: Self = Self {
        next_hop: NextHop::Loopback,
        epoch: 0,
        valid_until: Instant::START,
    };
}

/// Work left to the device, with offsets from the start of the IP header.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Offload {
    pub checksum: Option<ChecksumOffload>,
    pub segment: Option<SegmentOffload>,
}

impl Net {
    /// The next hop to `dst`, without its station.
    fn route(&self, dst: Ipv4Addr) -> Result<NextHop, Error> {
        if self.is_local(dst) {
            return Ok(NextHop::Loopback);
        }
        if self.port.is_none() {
            return Err(Error::NetworkUnreachable);
        }
        if self.is_broadcast(dst) {
            return Ok(NextHop::Station(MacAddr::BROADCAST));
        }
        if dst.is_multicast() {
            return Ok(NextHop::Station(multicast_station(dst)));
        }
        match (self.address, self.gateway) {
            (Some(own), _) if own.contains(dst) => Ok(NextHop::Neighbor(dst)),
            (Some(_), Some(gateway)) => Ok(NextHop::Neighbor(gateway)),
            _ => Err(Error::NetworkUnreachable),
        }
    }

    /// The source address of packets to `dst`.
    pub fn source_for(&self, dst: Ipv4Addr) -> Result<Ipv4Addr, Error> {
        match self.route(dst)? {
            NextHop::Loopback => Ok(dst),
            _ => Ok(self.address.map_or(Ipv4Addr::UNSPECIFIED, |own| own.addr())),
        }
    }

    /// Largest packet to `dst`.
    pub fn mtu_to(&self, dst: Ipv4Addr) -> u16 {
        match self.port {
            Some(port) if !self.is_local(dst) => port.mtu,
            _ => u16::MAX,
        }
    }

    /// The route to `dst`, from the cache if it still holds.
    #[inline]
    pub fn cached_route(
        &mut self,
        dst: Ipv4Addr,
        cache: &mut CachedRoute,
        now: Instant,
    ) -> Result<NextHop, Error> {
        if cache.epoch == self.route_epoch && now < cache.valid_until {
            return Ok(cache.next_hop);
        }
        let mut next_hop = self.route(dst)?;
        let mut valid_until = Instant::NEVER;
        if let NextHop::Neighbor(ip) = next_hop {
            // Packets pass through `resolve` until the answer is in and fresh.
            valid_until = self.neighbors.fresh_until(ip);
            if now < valid_until
                && let Resolution::Known(mac) = self.neighbors.resolve(ip, now)
            {
                next_hop = NextHop::Station(mac);
            } else {
                valid_until = now;
            }
        }
        *cache = CachedRoute {
            next_hop,
            epoch: self.route_epoch,
            valid_until,
        };
        Ok(next_hop)
    }
}

fn multicast_station(group: Ipv4Addr) -> MacAddr {
    let [_, b, c, d] = group.octets();
    MacAddr([0x01, 0x00, 0x5e, b & 0x7f, c, d])
}

impl<E: Env> Context<'_, E> {
    /// A buffer for headers or payload, with headroom.
    #[inline]
    pub fn buffer(&mut self) -> Option<Mbuf> {
        let mut buffer = self.env.alloc()?;
        buffer.reserve(HEADROOM);
        Some(buffer)
    }

    /// Makes room for a header in front of the packet: in place if the payload's buffer has
    /// it (and room for Ethernet's), otherwise in a buffer of its own.
    #[inline]
    pub fn make_room<'p>(&mut self, packet: &'p mut Chain, bytes: usize) -> Option<&'p mut [u8]> {
        let is_roomy = packet
            .front()
            .is_some_and(|front| front.headroom() >= bytes + ETHERNET_HEADER_BYTES);
        let spare = if is_roomy { None } else { self.buffer() };
        if !is_roomy && spare.is_none() {
            self.net.drop(DropReason::NoBuffer);
            return None;
        }
        match spare {
            Some(buffer) => packet.prepend_in(bytes, buffer),
            None => packet.prepend(bytes),
        }
    }

    /// Sends a packet that starts with its IP header.
    #[inline]
    pub fn send_packet(&mut self, mut packet: Chain, next_hop: NextHop, offload: Offload) {
        match next_hop {
            NextHop::Loopback => self.net.push_loopback(packet),
            NextHop::Station(mac) => {
                let Some(port) = self.net.port else {
                    self.net.drop(DropReason::NoRoute);
                    return;
                };
                if self.prepend_ethernet(&mut packet, &port, mac, EtherType::Ipv4) {
                    self.transmit(packet, offload);
                }
            }
            NextHop::Neighbor(ip) => self.send_to_neighbor(packet, ip, offload),
        }
    }

    fn transmit(&mut self, chain: Chain, offload: Offload) {
        self.net.count(Count::FramesOut);
        self.net.count_bytes(Count::BytesOut, &chain);
        let header = ETHERNET_HEADER_BYTES as u16;
        let checksum = offload.checksum.map(|sum| ChecksumOffload {
            start: sum.start + header,
            ..sum
        });
        let segment = offload.segment.map(|cut| SegmentOffload {
            header_len: cut.header_len + header,
            ..cut
        });
        self.env.transmit(TxFrame {
            chain,
            checksum,
            segment,
        });
    }

    fn prepend_ethernet(
        &mut self,
        packet: &mut Chain,
        port: &Port,
        dst: MacAddr,
        ether_type: EtherType,
    ) -> bool {
        let header = EthernetRepr {
            dst,
            src: port.mac,
            ether_type,
        };
        match packet.prepend(ETHERNET_HEADER_BYTES) {
            Some(space) => {
                header.emit(space);
                true
            }
            None => {
                self.net.drop(DropReason::NoBuffer);
                false
            }
        }
    }

    fn send_to_neighbor(&mut self, packet: Chain, ip: Ipv4Addr, offload: Offload) {
        let resolution = self.net.neighbors.resolve(ip, self.now);
        match resolution {
            Resolution::Known(mac) => {
                self.send_packet(packet, NextHop::Station(mac), offload);
            }
            Resolution::Stale(mac) => {
                self.send_arp(ArpOperation::Request, mac, ip);
                self.send_packet(packet, NextHop::Station(mac), offload);
            }
            Resolution::Ask | Resolution::Wait => {
                if resolution == Resolution::Ask {
                    self.send_arp(ArpOperation::Request, MacAddr::BROADCAST, ip);
                }
                if self
                    .net
                    .neighbors
                    .wait(ip, Waiting { packet, offload })
                    .is_err()
                {
                    self.net.drop(DropReason::NeighborUnresolved);
                }
            }
        }
    }

    /// Sends packets that waited for a station.
    pub fn send_waiting(&mut self, waiting: Vec<Waiting>, mac: MacAddr) {
        for Waiting { packet, offload } in waiting {
            self.send_packet(packet, NextHop::Station(mac), offload);
        }
    }

    /// Asks for `ip`, or answers it, at `station`.
    pub fn send_arp(&mut self, operation: ArpOperation, station: MacAddr, ip: Ipv4Addr) {
        let Some(port) = self.net.port else { return };
        let Some(mut buffer) = self.buffer() else {
            self.net.drop(DropReason::NoBuffer);
            return;
        };
        let target_mac = match operation {
            ArpOperation::Request => MacAddr::default(),
            ArpOperation::Reply => station,
        };
        let sender_ip = self
            .net
            .address
            .map_or(Ipv4Addr::UNSPECIFIED, |own| own.addr());
        let arp = ArpRepr {
            operation,
            sender_mac: port.mac,
            sender_ip,
            target_mac,
            target_ip: ip,
        };
        if let Some(space) = buffer.extend(ArpRepr::BYTES) {
            arp.emit(space);
        }
        if operation == ArpOperation::Request {
            self.net.count(Count::ArpRequests);
        }
        let mut packet = Chain::from(buffer);
        if self.prepend_ethernet(&mut packet, &port, station, EtherType::Arp) {
            self.transmit(packet, Offload::default());
        }
    }

    /// Repeats questions that nobody has answered, and gives up on old ones.
    pub fn expire_neighbors(&mut self) {
        while let Some(overdue) = self.net.neighbors.pop_overdue(self.now) {
            match overdue {
                Overdue::Ask(ip, mac) => {
                    let station = mac.unwrap_or(MacAddr::BROADCAST);
                    self.send_arp(ArpOperation::Request, station, ip);
                }
                Overdue::Gone(packets) => {
                    self.net.route_epoch = self.net.route_epoch.wrapping_add(1);
                    for _ in packets {
                        self.net.drop(DropReason::NeighborUnresolved);
                    }
                }
            }
        }
    }

    /// Puts an IPv4 header in front of a transport's packet and sends it: the path of
    /// everything but TCP.
    pub fn send_ipv4(&mut self, mut header: Ipv4Repr, mut packet: Chain, offload: Offload) {
        let mut cache = CachedRoute::NONE;
        let next_hop = match self.net.cached_route(header.dst, &mut cache, self.now) {
            Ok(next_hop) => next_hop,
            Err(_) => {
                self.net.drop(DropReason::NoRoute);
                return;
            }
        };
        header.payload_len = packet.len() as u16;
        let Some(space) = self.make_room(&mut packet, IPV4_HEADER_BYTES) else {
            return;
        };
        header.emit(space);
        self.send_packet(packet, next_hop, offload);
    }
}
