//! Frames that no stack of ours writes, but a test or a peer that it plays.

use std::net::{Ipv4Addr, Ipv6Addr};

use wire::{
    ETHERNET_HEADER_BYTES, EtherType, EthernetRepr, IPV4_HEADER_BYTES, IPV6_HEADER_BYTES, Ipv4Repr,
    Ipv6Repr, MacAddr, Protocol, TcpRepr,
};

use crate::host::Host;
use crate::lan::station;

/// A frame around `payload`.
pub fn ethernet(dst: MacAddr, src: MacAddr, kind: EtherType, payload: &[u8]) -> Vec<u8> {
    let mut frame = vec![0; ETHERNET_HEADER_BYTES];
    let header = EthernetRepr {
        dst,
        src,
        ether_type: kind,
    };
    header.emit(&mut frame);
    frame.extend_from_slice(payload);
    frame
}

/// An IPv4 header of the usual sort, to be completed by [`ipv4`].
pub fn header(src: Ipv4Addr, dst: Ipv4Addr, protocol: Protocol) -> Ipv4Repr {
    Ipv4Repr {
        src,
        dst,
        protocol,
        payload_len: 0,
        ttl: 64,
        tos: 0,
    }
}

/// A frame around an IPv4 packet, whose header is told the length of the payload.
pub fn ipv4(dst: MacAddr, src: MacAddr, header: Ipv4Repr, payload: &[u8]) -> Vec<u8> {
    let mut packet = vec![0; IPV4_HEADER_BYTES];
    let header = Ipv4Repr {
        payload_len: payload.len() as u16,
        ..header
    };
    header.emit(&mut packet);
    packet.extend_from_slice(payload);
    ethernet(dst, src, EtherType::Ipv4, &packet)
}

/// An IPv6 header of the usual sort, to be completed by [`ipv6`]. `next` is one of
/// [`wire::next_header`]'s numbers.
pub fn header_v6(src: Ipv6Addr, dst: Ipv6Addr, next: u8) -> Ipv6Repr {
    Ipv6Repr {
        src,
        dst,
        next_header: next,
        payload_len: 0,
        hop_limit: 64,
        traffic_class: 0,
        flow_label: 0,
    }
}

/// A frame around an IPv6 packet, whose header is told the length of the payload.
pub fn ipv6(dst: MacAddr, src: MacAddr, header: Ipv6Repr, payload: &[u8]) -> Vec<u8> {
    let mut packet = vec![0; IPV6_HEADER_BYTES];
    let header = Ipv6Repr {
        payload_len: payload.len() as u16,
        ..header
    };
    header.emit(&mut packet);
    packet.extend_from_slice(payload);
    ethernet(dst, src, EtherType::Ipv6, &packet)
}

/// A packet from host `src` of 10.0.0.0/24 to host `dst`, straight from station to station.
pub fn between(src: u8, dst: u8, protocol: Protocol, payload: &[u8]) -> Vec<u8> {
    let header = header(Host::address(src), Host::address(dst), protocol);
    ipv4(station(dst), station(src), header, payload)
}

/// A TCP segment, its checksum left out.
pub fn segment(header: &TcpRepr, payload: &[u8]) -> Vec<u8> {
    let mut segment = vec![0; header.header_len()];
    header.emit(&mut segment);
    segment.extend_from_slice(payload);
    segment
}
