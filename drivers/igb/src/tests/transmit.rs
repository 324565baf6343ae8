//! Frames to the card: the ring.

extern crate std;

use std::vec;
use std::vec::Vec;

use hal::FramePort;
use mbuf::{Pool, TxFrame};

use super::frames::{TCP, UDP, is_sound};
use super::model_tx::Sent;
use super::sending::{V4, V6, chain, large, plain, rig, send, summed};
use crate::registers::tx_ring;

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

#[test]
fn a_batch_asks_for_few_reports_and_comes_home_with_each() {
    let (rig, mut pairs) = rig();
    let before = rig.pool.free();
    for _ in 0..100 {
        pairs[0].transmit(plain(&rig, 1)).unwrap();
    }
    pairs[0].kick();
    let asked = rig.with(|model| {
        let ring = tx_ring(0);
        let base = u64::from(model.get(ring)) | u64::from(model.get(ring + 4)) << 32;
        let asks = |slot: &u64| model.words_at(base + slot * 16)[1] & 1 << 27 != 0;
        (0..256).filter(asks).collect::<Vec<_>>()
    });
    assert_eq!(asked, [31, 63, 95, 99]);
    let mut unsent = Vec::new();
    for _ in 0..100 {
        rig.with(|model| model.send(0)).unwrap();
        unsent.push(pairs[0].unsent());
    }
    unsent.dedup();
    assert_eq!(unsent, [100, 68, 36, 4, 0]);
    assert_eq!(rig.pool.free(), before);
}

#[test]
fn a_frame_in_very_many_parts_is_gathered_and_goes_out_whole() {
    let (rig, mut pairs) = rig();
    let before = rig.pool.free();
    let bytes: Vec<u8> = (0..1500).map(|at| at as u8).collect();
    let frame = TxFrame {
        chain: chain(&rig, &bytes, 3),
        ..TxFrame::default()
    };
    assert_eq!(frame.chain.parts(), 500, "more than the ring has slots");
    pairs[0].transmit(frame).unwrap();
    assert_eq!(send(&rig, &mut pairs[0]).unwrap()[0].bytes, bytes);
    pairs[0]
        .transmit(large(&rig, V6, &[7; 30_000], 100))
        .unwrap();
    let sent = send(&rig, &mut pairs[0]).unwrap();
    assert!(sent.len() == 30 && sent.iter().all(|segment| is_sound(&segment.bytes)));
    let hoard_from = rig.pool.free();
    let frame = large(&rig, V4, &[7; 30_000], 100);
    let hoard: Vec<_> = core::iter::from_fn(|| rig.pool.alloc()).collect();
    let refused = pairs[0].transmit(frame).unwrap_err();
    assert_eq!(refused.chain.len(), 30_054);
    drop((hoard, refused));
    assert_eq!(rig.pool.free(), hoard_from);
    pairs[0].reclaim();
    assert_eq!(rig.pool.free(), before);
}
