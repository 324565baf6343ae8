//! Frames for the tests of this crate.

use alloc::vec::Vec;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use mbuf::{Chain, HeapPool, Pool, RxFrame};
use wire::{
    EtherType, EthernetRepr, IPV4_HEADER_BYTES, IPV6_HEADER_BYTES, Ipv4Repr, Ipv6Repr, MacAddr,
    Protocol,
};

pub fn mac(last: u8) -> MacAddr {
    MacAddr([2, 0, 0, 0, 0, last])
}

/// Bytes with room for headers in front.
pub fn chain(pool: &HeapPool, bytes: &[u8]) -> Chain {
    let mut buffer = pool.alloc().expect("a buffer");
    buffer.reserve(64);
    assert_eq!(buffer.append(bytes), bytes.len());
    Chain::from(buffer)
}

pub fn bytes_of(chain: &Chain) -> Vec<u8> {
    chain.slices().flatten().copied().collect()
}

pub fn rx(pool: &HeapPool, bytes: &[u8]) -> RxFrame {
    RxFrame {
        chain: chain(pool, bytes),
        ..RxFrame::default()
    }
}

pub fn ethernet(dst: MacAddr, src: MacAddr, ether_type: EtherType, payload: &[u8]) -> Vec<u8> {
    let mut frame = alloc::vec![0; wire::ETHERNET_HEADER_BYTES];
    let header = EthernetRepr {
        dst,
        src,
        ether_type,
    };
    header.emit(&mut frame);
    frame.extend_from_slice(payload);
    frame
}

pub fn ipv4(src: Ipv4Addr, dst: Ipv4Addr, protocol: u8, payload: &[u8]) -> Vec<u8> {
    let mut packet = alloc::vec![0; IPV4_HEADER_BYTES];
    let header = Ipv4Repr {
        src,
        dst,
        protocol: Protocol::from_number(protocol),
        payload_len: payload.len() as u16,
        ttl: 64,
        tos: 0,
    };
    header.emit(&mut packet);
    packet.extend_from_slice(payload);
    packet
}

pub fn ipv6(src: Ipv6Addr, dst: Ipv6Addr, next_header: u8, payload: &[u8]) -> Vec<u8> {
    let mut packet = alloc::vec![0; IPV6_HEADER_BYTES];
    let header = Ipv6Repr {
        src,
        dst,
        next_header,
        payload_len: payload.len() as u16,
        hop_limit: 255,
        traffic_class: 0,
        flow_label: 0,
    };
    header.emit(&mut packet);
    packet.extend_from_slice(payload);
    packet
}

/// Ports, and `data` behind them, in eight bytes at least: enough of TCP or UDP to steer.
pub fn transport(src_port: u16, dst_port: u16, data: u32) -> Vec<u8> {
    let mut bytes = Vec::new();
    bytes.extend_from_slice(&src_port.to_be_bytes());
    bytes.extend_from_slice(&dst_port.to_be_bytes());
    bytes.extend_from_slice(&data.to_be_bytes());
    bytes
}

/// A frame with an IP packet of matching addresses.
pub fn packet(
    (dst, src): (MacAddr, MacAddr),
    from: IpAddr,
    to: IpAddr,
    protocol: u8,
    payload: &[u8],
) -> Vec<u8> {
    match (from, to) {
        (IpAddr::V4(from), IpAddr::V4(to)) => ethernet(
            dst,
            src,
            EtherType::Ipv4,
            &ipv4(from, to, protocol, payload),
        ),
        (IpAddr::V6(from), IpAddr::V6(to)) => ethernet(
            dst,
            src,
            EtherType::Ipv6,
            &ipv6(from, to, protocol, payload),
        ),
        _ => panic!("two families in one packet"),
    }
}
