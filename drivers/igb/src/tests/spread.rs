//! Frames over rings by hash.

extern crate std;

use std::vec::Vec;

use hal::{NicControl, NicError, SpreadRule};
use link::toeplitz::Key;

use super::frames::{TCP, UDP, ethernet, packet};
use super::model_rx::Fate;
use super::rig::{MAC, Rig, receive_noted};

const KEY: &[u8; 40] = &Key::MICROSOFT.0;

/// Microsoft, "Verifying the RSS hash calculation": from, to, hash with and without ports.
pub(super) const VECTORS: [(&str, u16, &str, u16, u32, u32); 5] = [
    (
        "66.9.149.187",
        2794,
        "161.142.100.80",
        1766,
        0x51cc_c178,
        0x323e_8fc2,
    ),
    (
        "199.92.111.2",
        14230,
        "65.69.140.83",
        4739,
        0xc626_b0ea,
        0xd718_262a,
    ),
    (
        "24.19.198.95",
        12898,
        "12.22.207.184",
        38024,
        0x5c2b_394a,
        0xd2d0_a5de,
    ),
    (
        "3ffe:2501:200:1fff::7",
        2794,
        "3ffe:2501:200:3::1",
        1766,
        0x4020_7d3d,
        0x2cc1_8cd5,
    ),
    (
        "3ffe:501:8::260:97ff:fe40:efab",
        14230,
        "ff02::1",
        4739,
        0xdde5_1bbf,
        0x0f0c_461c,
    ),
];

fn table() -> [u16; 128] {
    core::array::from_fn(|entry| (entry * 5 % 8) as u16)
}

#[test]
fn each_flow_arrives_on_the_ring_of_its_hash_with_its_hash() {
    let rig = Rig::new(3000);
    let (mut pairs, mut control) = rig.start(8).unwrap();
    let (table, tcp_ports, udp_ports) = (table(), true, false);
    let rule = SpreadRule {
        key: KEY,
        table: &table,
        ipv6: true,
        tcp_ports,
        udp_ports,
    };
    control.spread(0, &rule).unwrap();
    for (src, sport, dst, dport, with_ports, without) in VECTORS {
        for (protocol, hash) in [(TCP, with_ports), (UDP, without)] {
            let frame = packet(protocol, (src, sport), (dst, dport), &[5; 100]);
            let ring = usize::from(table[hash as usize % 128]);
            assert_eq!(rig.with(|model| model.receive(&frame)), Fate::Stored(ring));
            let got = receive_noted(&mut pairs[ring]);
            assert_eq!(got.len(), 1);
            assert_eq!((&got[0].0, got[0].1.hash), (&frame, Some(hash)));
        }
    }
    rig.assert_no_complaints();
}

#[test]
fn udp_ports_are_hashed_on_demand() {
    let rig = Rig::new(3000);
    let (_pairs, mut control) = rig.start(8).unwrap();
    let table = table();
    let rule = SpreadRule {
        key: KEY,
        table: &table,
        ipv6: true,
        tcp_ports: false,
        udp_ports: true,
    };
    control.spread(0, &rule).unwrap();
    let (src, sport, dst, dport, with_ports, without) = VECTORS[1];
    for (protocol, hash) in [(UDP, with_ports), (TCP, without)] {
        let frame = packet(protocol, (src, sport), (dst, dport), &[]);
        let ring = usize::from(table[hash as usize % 128]);
        assert_eq!(rig.with(|model| model.receive(&frame)), Fate::Stored(ring));
    }
}

#[test]
fn ipv6_goes_to_ring_0_where_it_is_not_hashed() {
    let rig = Rig::new(3000);
    let (_pairs, mut control) = rig.start(4).unwrap();
    let rule = SpreadRule {
        key: KEY,
        table: &[3; 128],
        ipv6: false,
        tcp_ports: true,
        udp_ports: true,
    };
    control.spread(0, &rule).unwrap();
    for (src, sport, dst, dport, ..) in VECTORS {
        let ring = if src.contains(':') { 0 } else { 3 };
        for protocol in [TCP, UDP] {
            let frame = packet(protocol, (src, sport), (dst, dport), &[]);
            assert_eq!(rig.with(|model| model.receive(&frame)), Fate::Stored(ring));
        }
    }
}

#[test]
fn without_a_rule_and_without_a_hash_frames_go_to_ring_0() {
    let rig = Rig::new(3000);
    let (mut pairs, mut control) = rig.start(4).unwrap();
    let (src, sport, dst, dport, ..) = VECTORS[0];
    let flow = packet(TCP, (src, sport), (dst, dport), &[]);
    let arp = ethernet(MAC, [8, 6], &[0; 46]);
    assert_eq!(rig.with(|model| model.receive(&flow)), Fate::Stored(0));
    let rule = SpreadRule {
        key: KEY,
        table: &[3; 128],
        ipv6: true,
        tcp_ports: true,
        udp_ports: false,
    };
    control.spread(0, &rule).unwrap();
    assert_eq!(rig.with(|model| model.receive(&arp)), Fate::Stored(0));
    assert_eq!(rig.with(|model| model.receive(&flow)), Fate::Stored(3));
    let notes: Vec<_> = receive_noted(&mut pairs[0])
        .iter()
        .map(|got| got.1.hash)
        .collect();
    assert_eq!(notes, [None, None]);
}

#[test]
fn a_rule_that_names_a_ring_that_is_not_there_changes_nothing() {
    let rig = Rig::new(3000);
    let (_pairs, mut control) = rig.start(2).unwrap();
    let writes = rig.with(|model| model.writes.len());
    let outside = core::array::from_fn(|entry| if entry == 127 { 2 } else { 1 });
    let rule = SpreadRule {
        key: KEY,
        table: &outside,
        ipv6: true,
        tcp_ports: true,
        udp_ports: true,
    };
    assert_eq!(control.spread(0, &rule), Err(NicError::Unsupported));
    let table = &[1; 128];
    let rule = SpreadRule { table, ..rule };
    assert_eq!(control.spread(1, &rule), Err(NicError::Unsupported));
    assert_eq!(rig.with(|model| model.writes.len()), writes);
}
