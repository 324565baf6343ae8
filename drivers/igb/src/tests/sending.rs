//! Frames as a stack hands them over, for tests.

extern crate std;

use std::vec::Vec;

use hal::{FramePort, QueuePair};
use mbuf::{Chain, ChecksumOffload, Mbuf, Pool, SegmentKind, SegmentOffload, TxFrame};

use super::frames::{TCP, packet};
use super::model::Window;
use super::model_tx::Sent;
use super::rig::Rig;
use crate::Pair;

pub(super) const V4: (&str, &str) = ("10.0.0.1", "10.0.0.2");
pub(super) const V6: (&str, &str) = ("fe80::1", "fe80::2");

pub(super) fn rig() -> (Rig, Vec<Pair<Window>>) {
    let rig = Rig::new(3000);
    let (pairs, _) = rig.start(2).unwrap();
    (rig, pairs)
}

fn buffer(rig: &Rig, bytes: &[u8]) -> Mbuf {
    let mut buffer = rig.pool.alloc().unwrap();
    assert_eq!(buffer.append(bytes), bytes.len());
    buffer
}

pub(super) fn chain(rig: &Rig, bytes: &[u8], part: usize) -> Chain {
    let mut chain = Chain::new();
    for part in bytes.chunks(part) {
        chain.push_back(buffer(rig, part));
    }
    chain
}

pub(super) fn plain(rig: &Rig, byte: u8) -> TxFrame {
    TxFrame {
        chain: chain(rig, &[byte; 60], 60),
        ..TxFrame::default()
    }
}

pub(super) fn summed(rig: &Rig, protocol: u8, (src, dst): (&str, &str)) -> TxFrame {
    let bytes = packet(protocol, (src, 1), (dst, 2), &[9; 33]);
    let start = if src.contains(':') { 54 } else { 34 };
    let offset = if protocol == TCP { 16 } else { 6 };
    TxFrame {
        chain: chain(rig, &bytes, 1000),
        checksum: Some(ChecksumOffload { start, offset }),
        segment: None,
        tag: None,
    }
}

pub(super) fn large(rig: &Rig, (src, dst): (&str, &str), payload: &[u8], part: usize) -> TxFrame {
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
        tag: None,
    }
}

pub(super) fn send(rig: &Rig, pair: &mut Pair<Window>) -> Option<Vec<Sent>> {
    pair.kick();
    rig.with(|model| model.send(usize::from(pair.vector())))
}
