//! Frames to the card.

extern crate std;

use std::vec;

use hal::FramePort;
use mbuf::{Chain, ChecksumOffload, Mbuf, Pool, SegmentKind, SegmentOffload, TxFrame};

use super::card::{Card, Port, Sent};

const TCP: ChecksumOffload = ChecksumOffload {
    start: 34,
    offset: 16,
};
const UDP: ChecksumOffload = ChecksumOffload {
    start: 34,
    offset: 6,
};

pub(super) fn rig() -> (Card, Port) {
    let card = Card::new(1000);
    let port = card.start().unwrap();
    (card, port)
}

fn buffer(card: &Card, bytes: &[u8]) -> Mbuf {
    let mut buffer = card.pool.alloc().unwrap();
    buffer.append(bytes);
    buffer
}

pub(super) fn frame(card: &Card, byte: u8, checksum: Option<ChecksumOffload>) -> TxFrame {
    TxFrame {
        chain: Chain::from(buffer(card, &[byte; 60])),
        checksum,
        segment: None,
        tag: None,
    }
}

pub(super) fn plain(byte: u8) -> Option<Sent> {
    Some(Sent {
        bytes: vec![byte; 60],
        context: None,
        tag: None,
    })
}

#[test]
fn a_frame_waits_for_the_kick() {
    let (mut card, mut port) = rig();
    port.transmit(frame(&card, 7, None)).unwrap();
    assert_eq!(card.send(), None);
    port.kick();
    assert_eq!(port.unsent(), 1);
    assert_eq!(card.send(), plain(7));
    assert_eq!(port.unsent(), 0);
}

#[test]
fn the_parts_of_a_frame_go_out_as_one() {
    let (mut card, mut port) = rig();
    let mut chain = Chain::from(buffer(&card, &[1; 54]));
    chain.push_back(buffer(&card, &[2; 1000]));
    chain.push_back(buffer(&card, &[3; 400]));
    let sent = TxFrame {
        chain,
        ..TxFrame::default()
    };
    port.transmit(sent).unwrap();
    port.kick();
    let bytes = [vec![1; 54], vec![2; 1000], vec![3; 400]].concat();
    assert_eq!(card.send().unwrap().bytes, bytes);
}

#[test]
fn the_place_of_the_checksum_is_told_only_when_it_changes() {
    let (mut card, mut port) = rig();
    let tcp = Some([0x3222_0000_3222, 1 << 29]);
    let udp = Some([0x2822_0000_2822, 1 << 29]);
    let kinds = [Some(TCP), Some(TCP), None, Some(TCP), Some(UDP), Some(TCP)];
    for kind in kinds {
        let sent = frame(&card, 1, kind);
        port.transmit(sent).unwrap();
    }
    port.kick();
    for context in [tcp, tcp, None, tcp, udp, tcp] {
        assert_eq!(card.send().unwrap().context, context);
    }
}

#[test]
fn a_full_ring_gives_the_frame_back_until_the_card_has_sent() {
    let (mut card, mut port) = rig();
    let refused = loop {
        if let Err(refused) = port.transmit(frame(&card, 5, None)) {
            break refused;
        }
    };
    assert_eq!(port.counters().tx_queue_full, 1);
    port.kick();
    let sent = std::iter::from_fn(|| card.send()).count();
    assert_eq!(sent as u64, port.counters().tx_frames);
    port.transmit(refused).unwrap();
    port.kick();
    assert_eq!(card.send(), plain(5));
}

#[test]
fn a_frame_in_more_parts_than_the_ring_has_goes_out_whole() {
    let (mut card, mut port) = rig();
    let mut chain = Chain::new();
    for byte in 0..=255 {
        chain.push_back(buffer(&card, &[byte; 2]));
    }
    let bytes: std::vec::Vec<u8> = chain.slices().flatten().copied().collect();
    let many = TxFrame {
        chain,
        ..TxFrame::default()
    };
    port.transmit(many).unwrap();
    port.kick();
    assert_eq!(card.send().unwrap().bytes, bytes);
}

#[test]
fn what_the_card_can_never_do_is_dropped() {
    let (card, mut port) = rig();
    let segment = Some(SegmentOffload {
        mss: 1460,
        header_len: 54,
        kind: SegmentKind::Tcp4,
    });
    let large = TxFrame {
        segment,
        ..frame(&card, 1, Some(TCP))
    };
    port.transmit(large).unwrap();
    port.transmit(TxFrame::default()).unwrap();
    let mut chain = Chain::from(buffer(&card, &[1; 1500]));
    chain.push_back(buffer(&card, &[2; 23]));
    let long = TxFrame {
        chain,
        ..TxFrame::default()
    };
    port.transmit(long).unwrap();
    assert_eq!(port.counters().tx_unsupported, 3);
    assert_eq!(port.unsent(), 0);
}

#[test]
fn all_buffers_come_home() {
    let (mut card, mut port) = rig();
    let before = card.pool.free();
    for round in 0..1000 {
        let checksum = [None, Some(TCP), Some(UDP)][round % 3];
        let sent = frame(&card, 1, checksum);
        port.transmit(sent).unwrap();
        port.kick();
        card.send().unwrap();
    }
    port.reclaim();
    assert_eq!(card.pool.free(), before);
}

#[test]
fn a_tag_is_put_in_by_the_card_with_and_without_checksums() {
    let (mut card, mut port) = rig();
    let checksum = ChecksumOffload {
        start: 34,
        offset: 16,
    };
    for checksum in [None, Some(checksum)] {
        let tagged = TxFrame {
            tag: Some(0x6007),
            ..frame(&card, 5, checksum)
        };
        port.transmit(tagged).unwrap();
        port.transmit(frame(&card, 6, checksum)).unwrap();
        port.kick();
        assert_eq!(card.send().unwrap().tag, Some(0x6007));
        assert_eq!(card.send().unwrap().tag, None);
    }
}
