//! What frames say, whole, cut off and in pieces.

use alloc::vec::Vec;

use mbuf::{HeapPool, Pool};
use wire::EtherType;

use crate::headers::{Header, Packet, Piece, TCP, UDP};
use crate::testing::{chain, ethernet, ipv4, ipv6, mac, packet, transport};
use crate::vlan::{Tag, VlanId};

fn parse(frame: &[u8]) -> Option<Packet> {
    Packet::parse(&Header::parse(frame)?, frame, frame.len())
}

fn v4_frame(protocol: u8) -> Vec<u8> {
    let (from, to) = ([10, 0, 0, 1].into(), [10, 0, 0, 2].into());
    packet((mac(1), mac(2)), from, to, protocol, &transport(5, 6, 7))
}

#[test]
fn a_tag_moves_the_packet_and_names_the_vlan() {
    let mut frame = v4_frame(TCP);
    frame.splice(12..12, [0x81, 0, 0xe0, 9]);
    let header = Header::parse(&frame).expect("a header");
    assert_eq!(header.tag, Tag::Vlan(VlanId::new(9).expect("valid")));
    assert_eq!((header.ether_type, header.packet_at()), (0x0800, 18));
    let packet = Packet::parse(&header, &frame, frame.len()).expect("a packet");
    assert_eq!(packet.ports, Some((5, 6)));
}

#[test]
fn a_priority_tag_is_no_vlan_and_4095_is_reserved() {
    let mut frame = v4_frame(TCP);
    frame.splice(12..12, [0x81, 0, 0xe0, 0]);
    assert_eq!(
        Header::parse(&frame).map(|header| header.tag),
        Some(Tag::Untagged)
    );
    frame[15] = 0xff;
    frame[14] = 0x0f;
    assert_eq!(
        Header::parse(&frame).map(|header| header.tag),
        Some(Tag::Reserved)
    );
}

#[test]
fn every_truncation_is_survived_and_yields_no_ports_of_missing_bytes() {
    let v6 = ipv6(
        "fe80::1".parse().expect("ok"),
        "fe80::2".parse().expect("ok"),
        UDP,
        &transport(5, 6, 7),
    );
    for whole in [
        v4_frame(UDP),
        ethernet(mac(1), mac(2), EtherType::Ipv6, &v6),
    ] {
        for len in 0..whole.len() {
            assert_eq!(parse(&whole[..len]).and_then(|packet| packet.ports), None);
        }
        assert_eq!(parse(&whole).and_then(|packet| packet.ports), Some((5, 6)));
    }
}

#[test]
fn a_later_fragment_has_no_ports_and_a_first_one_has() {
    for (field, piece, ports) in [
        (0x2000_u16, Piece::First, Some((5, 6))),
        (0x2001, Piece::Later, None),
        (0x0001, Piece::Later, None),
        (0x4000, Piece::Whole, Some((5, 6))),
    ] {
        let from = [10, 0, 0, 1].into();
        let mut packet = ipv4(from, [10, 0, 0, 2].into(), UDP, &transport(5, 6, 7));
        packet[6..8].copy_from_slice(&field.to_be_bytes());
        packet[10..12].fill(0);
        let sum = wire::Sum::new().bytes(&packet[..20]).checksum();
        packet[10..12].copy_from_slice(&sum.to_be_bytes());
        let frame = ethernet(mac(1), mac(2), EtherType::Ipv4, &packet);
        let packet = parse(&frame).expect("a packet");
        assert_eq!((packet.piece, packet.ports), (piece, ports), "{field:#x}");
    }
}

#[test]
fn extension_headers_are_walked_to_the_transport() {
    let mut payload = Vec::new();
    payload.extend_from_slice(&[43, 0, 0, 0, 0, 0, 0, 0]);
    payload.extend_from_slice(&[44, 0, 0, 0, 0, 0, 0, 0]);
    payload.extend_from_slice(&[TCP, 0, 0, 1, 0, 0, 0, 9]);
    payload.extend_from_slice(&transport(5, 6, 7));
    let v6 = ipv6(
        "fe80::1".parse().expect("ok"),
        "fe80::2".parse().expect("ok"),
        0,
        &payload,
    );
    let frame = ethernet(mac(1), mac(2), EtherType::Ipv6, &v6);
    let packet = parse(&frame).expect("a packet");
    assert_eq!((packet.protocol, packet.piece), (TCP, Piece::First));
    assert_eq!(
        (packet.ports, packet.transport_at),
        (Some((5, 6)), 14 + 40 + 24)
    );
}

#[test]
fn endless_extension_headers_are_no_packet() {
    let payload = [60, 0, 0, 0, 0, 0, 0, 0].repeat(24);
    let v6 = ipv6(
        "fe80::1".parse().expect("ok"),
        "fe80::2".parse().expect("ok"),
        60,
        &payload,
    );
    assert_eq!(parse(&ethernet(mac(1), mac(2), EtherType::Ipv6, &v6)), None);
}

#[test]
fn the_traffic_class_of_ipv6_is_read_across_its_bytes() {
    let mut v6 = ipv6(
        "fe80::1".parse().expect("ok"),
        "fe80::2".parse().expect("ok"),
        58,
        &[0; 8],
    );
    v6[0..2].copy_from_slice(&[0x6a, 0xb0]);
    let packet = parse(&ethernet(mac(1), mac(2), EtherType::Ipv6, &v6));
    assert_eq!(packet.map(|packet| packet.dsfield), Some(0xab));
}

#[test]
fn headers_scattered_over_many_parts_read_like_whole_ones() {
    let pool = HeapPool::new(64);
    let bytes = v4_frame(TCP);
    let mut scattered = mbuf::Chain::new();
    for byte in &bytes {
        let mut part = pool.alloc().expect("a buffer");
        part.append(&[*byte]);
        scattered.push_back(part);
    }
    let whole = chain(&pool, &bytes);
    let header = Header::of(&scattered).expect("a header");
    assert_eq!(Header::of(&whole), Some(header));
    assert_eq!(Packet::of(&header, &scattered), Packet::of(&header, &whole));
    assert!(Packet::of(&header, &scattered).is_some());
}
