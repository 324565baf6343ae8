//! Frames to the device.

extern crate std;

use super::Bench;
use crate::tx::Transmitter;
use base::DeviceAddr;
use hal::PortCounters;
use mbuf::{Chain, ChecksumOffload, Mbuf, Pool, TxFrame};
use std::vec;
use std::vec::Vec;
use virtio::NO_VECTOR;
use virtq::sim::Device;

struct Rig {
    bench: Bench,
    transmitter: Transmitter,
    device: Device,
    counters: PortCounters,
}

fn rig() -> Rig {
    rig_of(8, 32)
}

fn rig_of(queue_size: u32, buffers: usize) -> Rig {
    let bench = Bench::new(queue_size, buffers);
    let transport = bench.transport();
    let transmitter =
        Transmitter::new(&transport, &bench.memory, bench.pool, true, 1, NO_VECTOR).unwrap();
    let device = bench.device();
    Rig {
        bench,
        transmitter,
        device,
        counters: PortCounters::default(),
    }
}

impl Rig {
    fn buffer(&self, headroom: usize, bytes: &[u8]) -> Mbuf {
        let mut buffer = self.bench.pool.alloc().unwrap();
        buffer.reserve(headroom);
        buffer.append(bytes);
        buffer
    }

    fn send(&mut self, chain: Chain) -> Result<(), TxFrame> {
        let frame = TxFrame {
            chain,
            ..TxFrame::default()
        };
        self.transmitter.transmit(frame, &mut self.counters)
    }

    /// What the device reads next, part by part.
    fn read(&mut self) -> Vec<Vec<u8>> {
        self.device.fetch();
        let chain = self.device.pending.pop_front().unwrap();
        let parts = chain.parts.iter().map(|part| {
            let mut bytes = vec![0; part.len as usize];
            self.bench
                .memory
                .read(DeviceAddr(part.addr), &mut bytes)
                .unwrap();
            bytes
        });
        let parts = parts.collect();
        self.device.complete(u32::from(chain.head), 0);
        parts
    }
}

#[test]
fn a_small_frame_with_headroom_is_one_descriptor() {
    let mut rig = rig();
    let chain = Chain::from(rig.buffer(64, &[5; 60]));
    let checksum = Some(ChecksumOffload {
        start: 34,
        offset: 6,
    });
    let frame = TxFrame {
        chain,
        checksum,
        segment: None,
        tag: None,
    };
    rig.transmitter.transmit(frame, &mut rig.counters).unwrap();
    rig.transmitter.kick();
    let header = [1, 0, 0, 0, 0, 0, 34, 0, 6, 0, 0, 0];
    assert_eq!(rig.read(), [[&header[..], &[5; 60]].concat()]);
}

#[test]
fn a_frame_without_headroom_gets_a_buffer_for_the_header() {
    let mut rig = rig();
    let mut chain = Chain::from(rig.buffer(0, &[5; 20]));
    chain.push_back(rig.buffer(0, &[6; 30]));
    rig.send(chain).unwrap();
    rig.transmitter.kick();
    assert_eq!(rig.read(), [vec![0; 12], vec![5; 20], vec![6; 30]]);
}

#[test]
fn a_full_ring_gives_the_frame_back_unchanged_until_the_device_has_read() {
    let mut rig = rig();
    let mut sent = 0;
    let refused = loop {
        let chain = Chain::from(rig.buffer(64, &[sent; 60]));
        match rig.send(chain) {
            Ok(()) => sent += 1,
            Err(frame) => break frame,
        }
    };
    assert_eq!(refused.chain.len(), 60);
    assert_eq!(rig.counters.tx_queue_full, 1);
    rig.transmitter.kick();
    for _ in 0..sent {
        rig.read();
    }
    rig.send(refused.chain).unwrap();
}

#[test]
fn a_frame_of_many_parts_is_copied_into_few() {
    let mut rig = rig_of(32, 128);
    let mut chain = Chain::new();
    for byte in 0..100 {
        chain.push_back(rig.buffer(0, &[byte]));
    }
    rig.send(chain).unwrap();
    rig.transmitter.kick();
    let bytes: Vec<u8> = rig.read().concat();
    assert!(bytes[12..].iter().copied().eq(0..100));
}

#[test]
fn a_frame_that_never_fits_into_the_ring_is_dropped() {
    let mut rig = rig();
    let mut chain = Chain::new();
    for _ in 0..8 {
        chain.push_back(rig.buffer(0, &[1; 2000]));
    }
    rig.send(chain).unwrap();
    assert_eq!(rig.counters.tx_unsupported, 1);
    assert_eq!(rig.transmitter.unsent(&mut rig.counters), 0);
}

#[test]
fn all_buffers_come_home() {
    let mut rig = rig();
    for _ in 0..100 {
        let chain = Chain::from(rig.buffer(64, &[1; 60]));
        rig.send(chain).unwrap();
        rig.transmitter.kick();
        rig.read();
    }
    rig.transmitter.reclaim(&mut rig.counters);
    assert_eq!(rig.bench.pool.free(), rig.bench.pool.total());
}
