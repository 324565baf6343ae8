//! Frames to the card: checksums, segments, tags.

extern crate std;

use std::vec::Vec;

use hal::FramePort;
use mbuf::{ChecksumOffload, Pool, SegmentKind, SegmentOffload, TxFrame};

use super::frames::{TCP, UDP, ethernet, is_sound, packet};
use super::rig::{MAC, Rig};
use super::sending::{V4, V6, chain, large, plain, rig, send, summed};

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
        let tag_in = TxFrame {
            tag: Some(tag),
            ..frame
        };
        pairs[0].transmit(tag_in).unwrap();
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
        tag: None,
    };
    pairs[0].transmit(frame).unwrap();
    let sent = send(&rig, &mut pairs[0]).unwrap().remove(0).bytes;
    assert!(is_sound(&[&sent[..12], &sent[16..]].concat()));
}

#[test]
fn what_the_card_can_never_do_is_dropped_and_queues_nothing() {
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
    let never = [
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
        large(&rig, V4, &[0; 65_600], 1900),
        TxFrame {
            chain: chain(&rig, &[0; 80_000], 1900),
            ..TxFrame::default()
        },
    ];
    let count = never.len() as u64;
    for frame in never {
        pairs[0].transmit(frame).unwrap();
    }
    assert_eq!(pairs[0].counters().tx_unsupported, count);
    assert_eq!(pairs[0].unsent(), 0);
}
