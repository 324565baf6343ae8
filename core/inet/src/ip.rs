//! An IP header to send, of either family, and packets larger than their path.
//!
//! TCP fits its segments to the path. Everything else is cut here: into fragments whose
//! names an outsider cannot guess (RFC 7739), each with what the path takes. IPv6 has no
//! other place to do so; for IPv4 it spares routers the work (RFC 8900).

use core::net::IpAddr;

use mbuf::Chain;
use wire::{
    FRAGMENT_HEADER_BYTES, Ipv4Fragment, Ipv4Repr, Ipv6Fragment, Ipv6Repr, Protocol, next_header,
};

use crate::addr::Addresses;
use crate::context::Context;
use crate::counters::{Count, DropReason};
use crate::counters6::Snmp6;
use crate::env::Env;
use crate::output::{CachedRoute, NextHop, Offload};

/// A header without options or extensions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct IpHeader {
    pub addresses: Addresses,
    pub protocol: Protocol,
    /// Hops that it may take.
    pub hop_limit: u8,
    /// Differentiated services and ECN.
    pub tos: u8,
}

impl IpHeader {
    pub const fn len(&self) -> usize {
        self.addresses.header_len()
    }

    /// Writes [`len`](Self::len) bytes in front of so many bytes of payload.
    #[inline]
    pub fn emit(&self, bytes: &mut [u8], payload_len: usize) {
        match self.addresses {
            Addresses::V4 { .. } => {
                if let Some(repr) = self.repr_v4(payload_len) {
                    repr.emit(bytes);
                }
            }
            Addresses::V6 { .. } => {
                self.emit_v6(bytes, self.protocol.number(), payload_len);
            }
        }
    }

    fn repr_v4(&self, payload_len: usize) -> Option<Ipv4Repr> {
        let Addresses::V4 { src, dst } = self.addresses else {
            return None;
        };
        Some(Ipv4Repr {
            src,
            dst,
            protocol: self.protocol,
            payload_len: payload_len as u16,
            ttl: self.hop_limit,
            tos: self.tos,
        })
    }

    fn emit_v6(&self, bytes: &mut [u8], next_header: u8, payload_len: usize) {
        let Addresses::V6 { src, dst } = self.addresses else {
            return;
        };
        let repr = Ipv6Repr {
            src,
            dst,
            next_header,
            payload_len: payload_len as u16,
            hop_limit: self.hop_limit,
            traffic_class: self.tos,
            flow_label: 0,
        };
        repr.emit(bytes);
    }

    /// Bytes in front of each fragment's payload.
    const fn fragment_header_len(&self) -> usize {
        match self.addresses {
            Addresses::V4 { .. } => self.len(),
            Addresses::V6 { .. } => self.len() + FRAGMENT_HEADER_BYTES,
        }
    }

    /// Writes the header of the piece of packet `ident` that belongs at `offset`.
    fn emit_fragment(&self, bytes: &mut [u8], ident: u32, offset: usize, len: usize, more: bool) {
        if let Some(repr) = self.repr_v4(len) {
            let fragment = Ipv4Fragment {
                ident: ident as u16,
                offset: offset as u16,
                has_more: more,
            };
            return repr.emit_fragment(bytes, fragment);
        }
        self.emit_v6(bytes, next_header::FRAGMENT, len + FRAGMENT_HEADER_BYTES);
        let fragment = Ipv6Fragment {
            ident,
            offset: offset as u16,
            has_more: more,
            next_header: self.protocol.number(),
        };
        fragment.emit(bytes.get_mut(self.len()..).unwrap_or_default());
    }
}

impl<E: Env> Context<'_, E> {
    /// Puts a header in front of a transport's packet and sends it, in pieces if the path
    /// asks for that: the way of everything but TCP.
    pub fn send_ip(&mut self, header: IpHeader, packet: Chain, offload: Offload) {
        let mut route = CachedRoute::NONE;
        let mtu = self.net.mtu_to(header.addresses.dst());
        self.send_ip_by(header, packet, offload, mtu, &mut route);
    }

    /// The same for one who remembers the way of its packets and says how large they may be.
    pub fn send_ip_by(
        &mut self,
        header: IpHeader,
        mut packet: Chain,
        offload: Offload,
        mtu: u16,
        route: &mut CachedRoute,
    ) {
        let (src, dst) = (header.addresses.src(), header.addresses.dst());
        let Ok(next_hop) = self.net.cached_route(&src, &dst, route, self.now) else {
            self.net.drop_out(dst, DropReason::NoRoute);
            return;
        };
        self.count_out(dst);
        let (len, mtu) = (packet.len(), usize::from(mtu));
        if header.len() + len > mtu {
            return self.send_fragments(&header, packet, next_hop, mtu);
        }
        if let Some(space) = self.make_room(&mut packet, header.len()) {
            header.emit(space, len);
            self.send_packet(packet, next_hop, offload);
        }
    }

    /// A packet to `dst` was made.
    #[inline]
    pub fn count_out(&mut self, dst: IpAddr) {
        if dst.is_ipv6() {
            self.net.count6(Snmp6::OutRequests);
            if dst.is_multicast() {
                self.net.count6(Snmp6::OutMcastPkts);
            }
        }
    }

    fn send_fragments(
        &mut self,
        header: &IpHeader,
        mut packet: Chain,
        next_hop: &NextHop,
        mtu: usize,
    ) {
        let is_v6 = header.addresses.dst().is_ipv6();
        // Fragments are counted in eights of bytes.
        let piece_len = mtu.saturating_sub(header.fragment_header_len()) & !7;
        if piece_len == 0 || packet.len() > usize::from(u16::MAX) {
            self.net
                .drop_out(header.addresses.dst(), DropReason::NoRoute);
            return;
        }
        let ident = self.env.random() as u32;
        let mut offset = 0;
        while !packet.is_empty() {
            let mut piece = packet.split_to(piece_len);
            let (len, has_more) = (piece.len(), !packet.is_empty());
            let Some(space) = self.make_room(&mut piece, header.fragment_header_len()) else {
                if is_v6 {
                    self.net.count6(Snmp6::FragFails);
                }
                return;
            };
            header.emit_fragment(space, ident, offset, len, has_more);
            offset += len;
            self.net.count(Count::FragmentsOut);
            if is_v6 {
                self.net.count6(Snmp6::FragCreates);
            }
            self.send_packet(piece, next_hop, Offload::default());
        }
        self.net.count(Count::Fragmented);
        if is_v6 {
            self.net.count6(Snmp6::FragOks);
        }
    }
}
