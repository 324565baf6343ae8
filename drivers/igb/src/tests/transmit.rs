//! Frames to the card.

extern crate std;

use std::vec;
use std::vec::Vec;

use hal::{FramePort, QueuePair};
use mbuf::{Chain, ChecksumOffload, Mbuf, Pool, SegmentKind, SegmentOffload, TxFrame};

use super::frames::{TCP, UDP, ethernet, is_sound, packet};
use super::model::Window;
use super::model_tx::Sent;
use super::rig::{MAC, Rig};
use crate::Pair;

const V4: (&str, &str) = ("10.0.0.1", "10.0.0.2");
const V6: (&str, &str) = ("fe80::1", "fe80::2");

fn rig() -> (Rig, Vec<Pair<Window>>) {
    let rig = Rig::new(3000);
    let (pairs, _) = rig.start(2).unwrap();
    (rig, pairs)
}

fn buffer(rig: &Rig, bytes: &[u8]) -> Mbuf {
    let mut buffer = rig.pool.alloc().unwrap();
    assert_eq!(buffer.append(bytes), bytes.len());
    buffer
}

fn chain(rig: &Rig, bytes: &[u8], part: usize) -> Chain {
    let mut chain = Chain::new();
    for part in bytes.chunks(part) {
        chain.push_back(buffer(rig, part));
    }
    chain
}

fn plain(rig: &Rig, byte: u8) -> TxFrame {
    TxFrame {
        chain: chain(rig, &[byte; 60], 60),
        ..TxFrame::default()
    }
}

fn summed(rig: &Rig, protocol: u8, (src, dst): (&str, &str)) -> TxFrame {
    let bytes = packet(protocol, (src, 1), (dst, 2), &[9; 33]);
    let start = if src.contains(':') { 54 } else { 34 };
    let offset = if protocol == TCP { 16 } else { 6 };
    TxFrame {
        chain: chain(rig, &bytes, 1000),
        checksum: Some(ChecksumOffload { start, offset }),
        segment: None,
    }
}

fn large(rig: &Rig, (src, dst): (&str, &str), payload: &[u8], part: usize) -> TxFrame {
    let bytes = packet(TCP, (src, 1), (dst, 2), payload);
    let (start, kind) = match src.contains(':') {
        true => (54, SegmentKind::Tcp6),
        false => (34, SegmentKind::Tcp4),
    };
    TxFrame {
        chain: chain(rig, &bytes, part),
        checksum: Some(ChecksumOffload { start, offset: 16 }),
        segment: Some(SegmentOffload {
            mss: 1000,
            header_len: start + 20,
            kind,
        }),
    }
}

fn send(rig: &Rig, pair: &mut Pair<Window>) -> Option<Vec<Sent>> {
    pair.kick();
    rig.with(|model| model.send(usize::from(pair.vector())))
}

#[test]
fn a_frame_waits_for_the_kick_and_goes_out_of_its_own_queue() {
    let (rig, mut pairs) = rig();
    pairs[1].transmit(plain(&rig, 7)).unwrap();
    assert_eq!(rig.with(|model| model.send(1)), None);
    pairs[1].kick();
    assert_eq!(pairs[1].unsent(), 1);
    assert_eq!(rig.with(|model| model.send(0)), None);
    let sent = rig.with(|model| model.send(1)).unwrap();
    assert_eq!(
        sent,
        [Sent {
            bytes: vec![7; 60],
            tag: None
        }]
    );
    assert_eq!(pairs[1].unsent(), 0);
    rig.assert_no_complaints();
}

#[test]
fn the_parts_of_a_frame_go_out_as_one() {
    let (rig, mut pairs) = rig();
    let bytes: Vec<u8> = (0..1400).map(|at| at as u8).collect();
    let frame = TxFrame {
        chain: chain(&rig, &bytes, 300),
        ..TxFrame::default()
    };
    pairs[0].transmit(frame).unwrap();
    assert_eq!(send(&rig, &mut pairs[0]).unwrap()[0].bytes, bytes);
}

#[test]
fn checksums_are_filled_in_for_both_protocols_and_both_families() {
    let (rig, mut pairs) = rig();
    for addresses in [V4, V6, V4] {
        for protocol in [TCP, UDP, UDP, TCP] {
            pairs[0]
                .transmit(summed(&rig, protocol, addresses))
                .unwrap();
            let sent = send(&rig, &mut pairs[0]).unwrap();
            assert!(is_sound(&sent[0].bytes), "{protocol} over {addresses:?}");
        }
    }
}

#[test]
fn a_context_is_told_only_when_it_changes_and_large_frames_do_not_disturb_it() {
    let (rig, mut pairs) = rig();
    let tail = |rig: &Rig| rig.with(|model| model.get(crate::registers::tx_ring(0) + 0x18));
    let mut slots = |frame: TxFrame| {
        let before = tail(&rig);
        let parts = frame.chain.parts() as u32;
        pairs[0].transmit(frame).unwrap();
        send(&rig, &mut pairs[0]).unwrap();
        tail(&rig) - before - parts
    };
    assert_eq!(slots(summed(&rig, TCP, V4)), 1);
    assert_eq!(slots(summed(&rig, TCP, V4)), 0);
    assert_eq!(slots(plain(&rig, 1)), 0);
    assert_eq!(slots(large(&rig, V4, &[1; 1500], 1800)), 1);
    assert_eq!(slots(summed(&rig, TCP, V4)), 0);
    assert_eq!(slots(large(&rig, V4, &[2; 1700], 1800)), 0);
    assert_eq!(slots(summed(&rig, UDP, V4)), 1);
}

#[test]
fn a_large_frame_goes_out_as_sound_segments_with_all_its_bytes() {
    let (rig, mut pairs) = rig();
    let payload: Vec<u8> = (0..20_300u32).map(|at| (at * 7) as u8).collect();
    for (addresses, headers) in [(V4, 54), (V6, 74)] {
        for part in [1900, 30] {
            let frame = large(&rig, addresses, &payload[..part * 10], part);
            pairs[0].transmit(frame).unwrap();
            let sent = send(&rig, &mut pairs[0]).unwrap();
            assert_eq!(sent.len(), (part * 10).div_ceil(1000));
            assert!(sent.iter().all(|segment| is_sound(&segment.bytes)));
            let bytes: Vec<u8> = sent
                .iter()
                .flat_map(|s| s.bytes[headers..].to_vec())
                .collect();
            assert_eq!(bytes, payload[..part * 10]);
        }
    }
}

#[test]
fn headers_that_somebody_else_has_are_not_touched() {
    let (rig, mut pairs) = rig();
    let frame = large(&rig, V4, &[1; 1500], 1900);
    let kept = frame.chain.share(0, frame.chain.len());
    let before = kept.as_single().unwrap().to_vec();
    pairs[0].transmit(frame).unwrap();
    assert_eq!(kept.as_single().unwrap(), before);
    let sent = send(&rig, &mut pairs[0]).unwrap();
    assert!(sent.iter().all(|segment| is_sound(&segment.bytes)));
}

#[test]
fn without_a_buffer_for_shared_headers_the_frame_comes_back_unchanged() {
    let (rig, mut pairs) = rig();
    let frame = large(&rig, V4, &[1; 1500], 1900);
    let kept = frame.chain.share(0, frame.chain.len());
    let hoard: Vec<_> = core::iter::from_fn(|| rig.pool.alloc()).collect();
    let refused = pairs[0].transmit(frame).unwrap_err();
    assert_eq!(refused.chain.as_single(), kept.as_single());
    assert_eq!(pairs[0].counters().tx_no_memory, 1);
    drop(hoard);
    pairs[0].transmit(refused).unwrap();
}

#[test]
fn a_tag_is_put_in_by_the_card_with_and_without_checksums() {
    let (rig, mut pairs) = rig();
    for (frame, tag) in [
        (plain(&rig, 3), 0x2007),
        (summed(&rig, TCP, V4), 0x2007),
        (large(&rig, V6, &[1; 1500], 1900), 9),
        (plain(&rig, 3), 10),
    ] {
        pairs[0].transmit_tagged(frame, tag).unwrap();
        let sent = send(&rig, &mut pairs[0]).unwrap();
        assert!(sent.iter().all(|frame| frame.tag == Some(tag)));
    }
    pairs[0].transmit(plain(&rig, 4)).unwrap();
    assert_eq!(send(&rig, &mut pairs[0]).unwrap()[0].tag, None);
}

#[test]
fn a_checksum_behind_a_tag_in_the_frame_is_found() {
    let (rig, mut pairs) = rig();
    let bytes = packet(UDP, (V4.0, 1), (V4.1, 2), &[9; 33]);
    let bytes = [&bytes[..12], &[0x81, 0, 0, 7], &bytes[12..]].concat();
    let frame = TxFrame {
        chain: chain(&rig, &bytes, 1000),
        checksum: Some(ChecksumOffload {
            start: 38,
            offset: 6,
        }),
        segment: None,
    };
    pairs[0].transmit(frame).unwrap();
    let sent = send(&rig, &mut pairs[0]).unwrap().remove(0).bytes;
    assert!(is_sound(&[&sent[..12], &sent[16..]].concat()));
}

#[test]
fn a_full_ring_gives_the_frame_back_until_the_card_has_sent() {
    let (rig, mut pairs) = rig();
    let refused = loop {
        if let Err(refused) = pairs[0].transmit(plain(&rig, 5)) {
            break refused;
        }
    };
    assert_eq!(pairs[0].counters().tx_queue_full, 1);
    pairs[0].kick();
    let sent = core::iter::from_fn(|| rig.with(|model| model.send(0))).count();
    assert_eq!(sent as u64, pairs[0].counters().tx_frames);
    pairs[0].transmit(refused).unwrap();
    assert_eq!(send(&rig, &mut pairs[0]).unwrap()[0].bytes, [5; 60]);
}

#[test]
fn what_the_card_cannot_do_is_refused_and_changes_nothing() {
    let (rig, mut pairs) = rig();
    let good = || large(&rig, V4, &[1; 1500], 1900);
    let segment = |change: fn(&mut SegmentOffload)| {
        let mut frame = good();
        change(frame.segment.as_mut().unwrap());
        frame
    };
    let checksum = |start, offset| {
        let mut frame = summed(&rig, TCP, V4);
        frame.checksum = Some(ChecksumOffload { start, offset });
        frame
    };
    let arp = TxFrame {
        chain: chain(&rig, &ethernet(MAC, [8, 6], &[0; 60]), 1000),
        ..summed(&rig, TCP, V4)
    };
    let refused = [
        TxFrame::default(),
        arp,
        TxFrame {
            checksum: None,
            ..good()
        },
        segment(|segment| segment.mss = 0),
        segment(|segment| segment.header_len = 53),
        segment(|segment| segment.header_len = 34 + 256),
        segment(|segment| segment.header_len = 1554),
        segment(|segment| segment.header_len = u16::MAX),
        segment(|segment| segment.kind = SegmentKind::Tcp6),
        checksum(0, 16),
        checksum(33, 16),
        checksum(u16::MAX, u16::MAX),
        checksum(34, 8),
        checksum(80, 16),
        TxFrame {
            chain: chain(&rig, &[0; 600], 2),
            ..TxFrame::default()
        },
    ];
    let count = refused.len() as u64;
    for (index, frame) in refused.into_iter().enumerate() {
        let (len, parts) = (frame.chain.len(), frame.chain.parts());
        let back = pairs[0]
            .transmit(frame)
            .expect_err(&std::format!("frame {index}"));
        assert_eq!((back.chain.len(), back.chain.parts()), (len, parts));
    }
    assert_eq!(pairs[0].counters().tx_unsupported, count);
    assert_eq!(pairs[0].unsent(), 0);
}

#[test]
fn all_buffers_come_home() {
    let (rig, mut pairs) = rig();
    let before = rig.pool.free();
    for round in 0..1000 {
        let frame = match round % 4 {
            0 => plain(&rig, 1),
            1 => summed(&rig, TCP, V4),
            2 => summed(&rig, UDP, V6),
            _ => large(&rig, V4, &[1; 5000], 1900),
        };
        pairs[0].transmit(frame).unwrap();
        send(&rig, &mut pairs[0]).unwrap();
    }
    pairs[0].reclaim();
    assert_eq!(rig.pool.free(), before);
    rig.assert_no_complaints();
}
