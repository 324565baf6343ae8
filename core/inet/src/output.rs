//! From a packet with its IP header to a frame on the port, or to ourselves.

use alloc::collections::VecDeque;
use core::net::IpAddr;

use base::Instant;
use mbuf::{Chain, ChecksumOffload, Mbuf, SegmentOffload, TxFrame};
use wire::{ETHERNET_HEADER_BYTES, EtherType, EthernetRepr, MacAddr};

use crate::context::Context;
use crate::counters::{Count, DropReason};
use crate::env::Env;
use crate::error::Error;
use crate::neighbor::{Learned, LinkHeader, Overdue, Resolution, Waiting};
use crate::net::Net;
use crate::route::Via;

/// Room that we leave in front of payload for headers: the longest of TCP over IPv6 over
/// Ethernet, and what a device wants in front of them.
pub(crate) const HEADROOM: usize = 128;

/// Where a packet goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum NextHop {
    /// To ourselves.
    Loopback,
    /// To a station, whose frames begin so.
    Station(LinkHeader),
    /// To a neighbour whose station must be asked for.
    Neighbor(IpAddr),
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

    /// The station that frames go to, and until when; `None` without one in this epoch.
    pub fn station(&self, epoch: u32) -> Option<(LinkHeader, Instant)> {
        match self.next_hop {
            NextHop::Station(header) if self.epoch == epoch => Some((header, self.valid_until)),
            _ => None,
        }
    }
}

/// Work left to the device, with offsets from the start of the IP header.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Offload {
    pub checksum: Option<ChecksumOffload>,
    pub segment: Option<SegmentOffload>,
}

impl Net {
    /// The header of frames that carry a packet to `ip` to `station`.
    pub fn link_header(&self, station: MacAddr, ip: IpAddr) -> LinkHeader {
        LinkHeader::new(&EthernetRepr {
            dst: station,
            src: self.port.map_or(MacAddr::default(), |port| port.mac),
            ether_type: match ip {
                IpAddr::V4(_) => EtherType::Ipv4,
                IpAddr::V6(_) => EtherType::Ipv6,
            },
        })
    }

    /// The next hop to `dst`, without a neighbour's station.
    pub fn route(&self, dst: IpAddr, src: Option<IpAddr>) -> Result<NextHop, Error> {
        if self.is_local(dst) {
            return Ok(NextHop::Loopback);
        }
        if self.port.is_none() {
            return Err(Error::NetworkUnreachable);
        }
        let group = match dst {
            IpAddr::V4(dst) if self.is_broadcast(dst) => Some(MacAddr::BROADCAST),
            IpAddr::V4(dst) if dst.is_multicast() => Some(MacAddr::of_group_v4(dst)),
            IpAddr::V6(_) if self.v6.is_none() => return Err(Error::NetworkUnreachable),
            IpAddr::V6(dst) if dst.is_multicast() => Some(MacAddr::of_group_v6(dst)),
            _ => None,
        };
        if let Some(station) = group {
            return Ok(NextHop::Station(self.link_header(station, dst)));
        }
        let neighbors = self.neighbors_of(dst);
        match self
            .routes
            .lookup(dst, src, |router| neighbors.rank(router))
        {
            Some(Via::OnLink) => Ok(NextHop::Neighbor(dst)),
            Some(Via::Router(router)) => Ok(NextHop::Neighbor(router)),
            Some(Via::Unreachable) => Err(Error::HostUnreachable),
            None => Err(Error::NetworkUnreachable),
        }
    }

    /// The route of packets from `src` to `dst`, from the cache if it still holds.
    #[inline]
    pub fn cached_route<'c>(
        &mut self,
        src: &IpAddr,
        dst: &IpAddr,
        cache: &'c mut CachedRoute,
        now: Instant,
    ) -> Result<&'c NextHop, Error> {
        if cache.epoch != self.route_epoch || now >= cache.valid_until {
            *cache = self.look_up(*src, *dst, now)?;
        }
        Ok(&cache.next_hop)
    }

    #[cold]
    fn look_up(&mut self, src: IpAddr, dst: IpAddr, now: Instant) -> Result<CachedRoute, Error> {
        let mut next_hop = self.route(dst, Some(src))?;
        let mut valid_until = Instant::NEVER;
        if let NextHop::Neighbor(ip) = next_hop {
            // Packets pass through `resolve` until the answer is in and fresh.
            valid_until = self.neighbors_of(ip).fresh_until(ip);
            if now < valid_until
                && let (Resolution::Known(header), _) = self.neighbors_mut(ip).resolve(ip, now)
            {
                next_hop = NextHop::Station(header);
            } else {
                valid_until = now;
            }
        }
        Ok(CachedRoute {
            next_hop,
            epoch: self.route_epoch,
            valid_until,
        })
    }

    pub fn drop_unresolved(&mut self, packets: VecDeque<Waiting>) {
        let count = packets.len() as u64;
        self.stats.drops.add(DropReason::NeighborUnresolved, count);
    }
}

impl<E: Env> Context<'_, E> {
    /// A buffer for headers or payload, with headroom.
    #[inline]
    pub fn buffer(&mut self) -> Option<Mbuf> {
        let mut buffer = self.env.alloc()?;
        buffer.reserve(HEADROOM);
        Some(buffer)
    }

    /// The same for what a program sends.
    #[inline(always)]
    pub fn buffer_to_queue(&mut self) -> Option<Mbuf> {
        let mut buffer = self.env.alloc_to_queue()?;
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
    #[inline(always)]
    pub fn send_packet(&mut self, packet: Chain, next_hop: &NextHop, offload: Offload) {
        match next_hop {
            NextHop::Loopback => self.net.push_loopback(packet),
            NextHop::Station(header) => self.send_frame(packet, header, offload),
            NextHop::Neighbor(ip) => self.send_to_neighbor(packet, *ip, offload),
        }
    }

    /// Puts the link's header in front of what it carries and sends the frame.
    #[inline(always)]
    pub fn send_frame(&mut self, mut chain: Chain, link: &LinkHeader, offload: Offload) {
        let Some(space) = chain.prepend(ETHERNET_HEADER_BYTES) else {
            self.net.drop(DropReason::NoBuffer);
            return;
        };
        space.copy_from_slice(&link.0);
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
            tag: None,
        });
    }

    fn send_to_neighbor(&mut self, packet: Chain, ip: IpAddr, offload: Offload) {
        let (resolution, displaced) = self.net.neighbors_mut(ip).resolve(ip, self.now);
        self.net.drop_unresolved(displaced);
        if let Resolution::Known(header) = resolution {
            return self.send_frame(packet, &header, offload);
        }
        let waiting = Waiting { packet, offload };
        if self.net.neighbors_mut(ip).wait(ip, waiting).is_some() {
            self.net.drop(DropReason::NeighborUnresolved);
        }
        if resolution == Resolution::Ask {
            self.ask_for(ip, None);
        }
    }

    /// Asks everybody, or `station` alone, who has `ip`.
    fn ask_for(&mut self, ip: IpAddr, station: Option<MacAddr>) {
        match ip {
            IpAddr::V4(ip) => self.send_arp_request(station.unwrap_or(MacAddr::BROADCAST), ip),
            IpAddr::V6(ip) => self.send_neighbor_solicit(ip, station),
        }
    }

    /// Acts on what the cache has learned: sends what waited, and makes copies look anew.
    pub fn on_learned(&mut self, learned: Learned) {
        if learned.is_changed {
            self.net.change_routes();
        }
        self.net.drop_unresolved(learned.displaced);
        for Waiting { packet, offload } in learned.waiting {
            match &learned.header {
                Some(header) => self.send_frame(packet, header, offload),
                None => self.net.drop(DropReason::NeighborUnresolved),
            }
        }
    }

    /// Repeats questions that nobody has answered, and gives up on old ones.
    pub fn expire_neighbors(&mut self) {
        for is_v6 in [false, true] {
            while let Some(overdue) = self.net.neighbors[usize::from(is_v6)].pop_overdue(self.now) {
                match overdue {
                    Overdue::Ask(ip, station) => self.ask_for(ip, station),
                    Overdue::Gone(packets) => {
                        // Another router may be better now.
                        self.net.change_routes();
                        self.net.drop_unresolved(packets);
                    }
                }
            }
        }
    }
}
