//! The driver against QEMU's card, without a machine around it: registers and memory are
//! reached through QEMU's `qtest` protocol, the wire is a socket. What the model and QEMU
//! disagree on would show here.

mod bridge;
mod card;
mod qtest;
mod vfs;

extern crate std;

use std::vec;
use std::vec::Vec;

use hal::{FramePort, LinkState, MulticastFilter, NicControl, SpreadRule, VlanFilter};
use link::toeplitz::Key;
use mbuf::{Chain, ChecksumOffload, Pool, SegmentKind, SegmentOffload, TxFrame};

use super::frames::{TCP, UDP, ethernet, is_sound, packet, tagged};
use super::rig::MAC;
use super::spread::VECTORS;
use card::{Card, wait_until};

fn frame(card: &Card, bytes: &[u8]) -> TxFrame {
    frame_in_parts(card, bytes, 1500)
}

fn frame_in_parts(card: &Card, bytes: &[u8], part: usize) -> TxFrame {
    let mut chain = Chain::new();
    for part in bytes.chunks(part) {
        let mut buffer = card.pool.alloc().unwrap();
        buffer.append(part);
        chain.push_back(buffer);
    }
    TxFrame {
        chain,
        ..TxFrame::default()
    }
}

#[test]
fn the_card_comes_up_hears_the_link_and_goes_without_a_trace() {
    let card = Card::new("link");
    let (buffers, at_home) = (card.memory.buffers(), card.pool.free());
    let (pairs, mut control) = card.start(8);
    assert!(pairs.iter().all(|pair| pair.mac() == MAC));
    let up = LinkState::Up {
        mbps: 1000,
        is_duplex: true,
    };
    wait_until(|| control.link().unwrap() == up);
    // The news may have come between two looks, and comes again only once it was heard.
    card.has_message(8);
    assert_eq!(control.link().unwrap(), up);
    card.negotiate();
    wait_until(|| card.has_message(8));
    assert_eq!(control.link().unwrap(), up);
    drop((pairs, control));
    assert_eq!(
        (card.memory.buffers(), card.pool.free()),
        (buffers, at_home)
    );
}

#[test]
fn flows_arrive_on_the_rings_of_their_hashes() {
    let card = Card::new("spread");
    let (mut pairs, mut control) = card.start_with_link(8);
    let table = core::array::from_fn(|entry| (entry * 5 % 8) as u16);
    let rule = SpreadRule {
        key: &Key::MICROSOFT.0,
        table: &table,
        ipv6: true,
        tcp_ports: true,
        udp_ports: false,
    };
    control.spread(0, &rule).unwrap();
    for (src, sport, dst, dport, with_ports, without) in VECTORS {
        for (protocol, hash) in [(TCP, with_ports), (UDP, without)] {
            let sent = packet(protocol, (src, sport), (dst, dport), &[5; 100]);
            card.put_on_wire(&sent);
            let ring = usize::from(table[hash as usize % 128]);
            let got = card.receive(&mut pairs[ring], 1);
            assert_eq!((&got[0].0, got[0].1.hash), (&sent, Some(hash)));
        }
    }
    let (src, sport, dst, dport, _, hash) = VECTORS[0];
    let mut fragment = packet(TCP, (src, sport), (dst, dport), &[5; 100]);
    fragment[20] |= 0x20;
    card.put_on_wire(&fragment);
    let ring = usize::from(table[hash as usize % 128]);
    let got = card.receive(&mut pairs[ring], 1);
    assert_eq!(got[0].1.hash, Some(hash), "a fragment hashes without ports");
}

#[test]
fn a_thousand_frames_arrive_in_order_around_the_ring() {
    let card = Card::new("order");
    let (mut pairs, mut control) = card.start_with_link(1);
    for round in 0..50u8 {
        let sent: Vec<_> = (0..20)
            .map(|number| ethernet(MAC, [0x88, 0xb5], &vec![round; 50 + number]))
            .collect();
        sent.iter().for_each(|frame| card.put_on_wire(frame));
        let got = card.receive(&mut pairs[0], 20);
        assert!(got.into_iter().map(|(bytes, _)| bytes).eq(sent));
        pairs[0].arm();
    }
    let counted = control.counters().unwrap();
    assert_eq!(counted.rx_frames, 1000);
}

#[test]
fn an_armed_pair_gets_a_message_and_a_polled_one_none() {
    let card = Card::new("messages");
    let (mut pairs, _control) = card.start_with_link(2);
    let sent = ethernet(MAC, [0x88, 0xb5], &[1; 60]);
    assert!(!pairs[0].arm());
    card.put_on_wire(&sent);
    card.receive(&mut pairs[0], 1);
    assert!(card.has_message(0) && !card.has_message(1));
    for _ in 0..3 {
        card.put_on_wire(&sent);
        card.receive(&mut pairs[0], 1);
        assert!(!card.has_message(0));
    }
    pairs[0].arm();
    assert!(!card.has_message(0), "what was polled is no news");
    card.put_on_wire(&sent);
    card.receive(&mut pairs[0], 1);
    assert!(card.has_message(0));
}

#[test]
fn filters_and_tags_do_what_they_are_told() {
    let card = Card::new("filters");
    let (mut pairs, mut control) = card.start_with_link(1);
    let other = [2, 0, 0, 0, 0, 5];
    let nodes = [0x33, 0x33, 0, 0, 0, 1];
    let last = ethernet(MAC, [0x88, 0xb5], &[0xee; 60]);
    // What arrives of these frames, found by a last one that always does.
    let mut arrive = |frames: &[Vec<u8>]| {
        frames.iter().for_each(|frame| card.put_on_wire(frame));
        card.put_on_wire(&last);
        let mut got = card.receive_until(&mut pairs[0], &last);
        got.pop();
        got
    };
    let to = |mac| ethernet(mac, [0x88, 0xb5], &[1; 60]);
    let all = [
        to(other),
        to(nodes),
        tagged(7, &[2; 60]),
        tagged(8, &[3; 60]),
    ];
    assert_eq!(arrive(&all).len(), 3, "one to a group and the tagged ones");
    control.set_multicast(MulticastFilter::Only(&[])).unwrap();
    assert_eq!(arrive(&all).len(), 2, "tagged ones only");
    control.add_address(0, other).unwrap();
    control
        .set_multicast(MulticastFilter::Only(&[nodes]))
        .unwrap();
    control.set_vlans(VlanFilter::Only(&[7])).unwrap();
    let got = arrive(&all);
    let bare = ethernet(MAC, [0x88, 0xb5], &[2; 60]);
    let expected = [to(other), to(nodes), bare.clone()];
    assert!(got.iter().map(|(bytes, _)| bytes).eq(&expected));
    for filter in 0..22 {
        control.add_address(0, [2, 0, 0, 0, 1, filter]).unwrap();
    }
    assert_eq!(
        arrive(&[to([2, 0, 0, 0, 1, 21])]).len(),
        1,
        "the last of 24"
    );
    let got = arrive(&[tagged(0x6007, &[2; 60])]);
    assert_eq!(got[0].1.tag, Some(0x6007));
    assert_eq!(got[0].0, bare);
}

#[test]
fn sent_frames_have_their_tags_checksums_and_segments() {
    let card = Card::new("send");
    let (mut pairs, _control) = card.start_with_link(2);
    let plain = ethernet([0xff; 6], [0x88, 0xb5], &[7; 100]);
    pairs[1].transmit(frame(&card, &plain)).unwrap();
    pairs[1].kick();
    assert_eq!(card.take_from_wire(), plain);
    let parts = frame_in_parts(&card, &plain, 1);
    pairs[1].transmit(parts).unwrap();
    pairs[1].kick();
    assert_eq!(card.take_from_wire(), plain, "100 parts and more");
    assert_eq!(pairs[1].unsent(), 0);
    let tagged = TxFrame {
        tag: Some(0x2007),
        ..frame(&card, &plain)
    };
    pairs[0].transmit(tagged).unwrap();
    pairs[0].kick();
    let expected = [&plain[..12], &[0x81, 0, 0x20, 7], &plain[12..]].concat();
    assert_eq!(card.take_from_wire(), expected);
    for (src, dst, start) in [("10.0.0.1", "10.0.0.2", 34), ("fe80::1", "fe80::2", 54)] {
        for (protocol, offset) in [(TCP, 16), (UDP, 6), (TCP, 16)] {
            let bytes = packet(protocol, (src, 1), (dst, 2), &[9; 133]);
            let checksum = Some(ChecksumOffload { start, offset });
            let frame = frame(&card, &bytes);
            pairs[0].transmit(TxFrame { checksum, ..frame }).unwrap();
            pairs[0].kick();
            assert!(is_sound(&card.take_from_wire()), "{protocol} over {src}");
        }
    }
    assert_eq!(pairs[0].unsent(), 0);
}

#[test]
fn large_frames_are_cut_into_sound_segments() {
    let card = Card::new("segments");
    let (mut pairs, _control) = card.start_with_link(1);
    let payload: Vec<u8> = (0..30_000u32).map(|at| (at * 7) as u8).collect();
    for (src, dst, start, kind) in [
        ("10.0.0.1", "10.0.0.2", 34, SegmentKind::Tcp4),
        ("fe80::1", "fe80::2", 54, SegmentKind::Tcp6),
    ] {
        let bytes = packet(TCP, (src, 1), (dst, 2), &payload);
        let header_len = start + 20;
        let large = TxFrame {
            checksum: Some(ChecksumOffload { start, offset: 16 }),
            segment: Some(SegmentOffload {
                mss: 1400,
                header_len,
                kind,
            }),
            ..frame(&card, &bytes)
        };
        pairs[0].transmit(large).unwrap();
        pairs[0].kick();
        let mut got = Vec::new();
        while got.len() < payload.len() {
            let segment = card.take_from_wire();
            assert!(is_sound(&segment));
            got.extend_from_slice(&segment[usize::from(header_len)..]);
        }
        assert_eq!(got, payload);
    }
    assert_eq!(pairs[0].unsent(), 0);
}
