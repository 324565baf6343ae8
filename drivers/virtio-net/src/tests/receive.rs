//! Frames from the device.

extern crate std;

use super::Bench;
use crate::rx::Receiver;
use base::DeviceAddr;
use hal::PortCounters;
use mbuf::{Checksum, Pool, RxFrame};
use std::vec;
use std::vec::Vec;
use virtio::NO_VECTOR;
use virtq::sim::Device;

struct Rig {
    bench: Bench,
    receiver: Receiver,
    device: Device,
    counters: PortCounters,
}

fn rig(buffers: usize) -> Rig {
    let bench = Bench::new(8, buffers);
    let transport = bench.transport();
    let mut receiver =
        Receiver::new(&transport, &bench.memory, bench.pool, true, 0, NO_VECTOR).unwrap();
    receiver.refill();
    let mut device = bench.device();
    device.fetch();
    Rig {
        bench,
        receiver,
        device,
        counters: PortCounters::default(),
    }
}

impl Rig {
    /// The device fills its next buffer.
    fn fill(&mut self, bytes: &[u8]) {
        self.device.fetch();
        let chain = self
            .device
            .pending
            .pop_front()
            .expect("the ring is supplied");
        self.bench
            .memory
            .write(DeviceAddr(chain.parts[0].addr), bytes)
            .unwrap();
        self.device
            .complete(u32::from(chain.head), bytes.len() as u32);
    }

    fn receive(&mut self) -> Vec<RxFrame> {
        let mut frames = Vec::new();
        self.receiver
            .receive(64, &mut self.counters, &mut |frame| frames.push(frame));
        frames
    }
}

fn header(flags: u8, buffers: u8) -> Vec<u8> {
    vec![flags, 0, 0, 0, 0, 0, 34, 0, 16, 0, buffers, 0]
}

#[test]
fn the_header_is_stripped_and_the_checksum_known() {
    let mut rig = rig(16);
    rig.fill(&[header(2, 1), vec![7; 60]].concat());
    let frames = rig.receive();
    assert_eq!(frames.len(), 1);
    assert_eq!(frames[0].chain.slices().collect::<Vec<_>>(), [&[7; 60][..]]);
    assert_eq!(frames[0].checksum, Checksum::Verified);
}

#[test]
fn merged_buffers_become_one_frame() {
    let mut rig = rig(16);
    rig.fill(&[header(0, 3), vec![1; 100]].concat());
    rig.fill(&[2; 200]);
    rig.fill(&[3; 50]);
    rig.fill(&[header(0, 1), vec![4; 60]].concat());
    let frames = rig.receive();
    let lengths: Vec<_> = frames.iter().map(|frame| frame.chain.len()).collect();
    assert_eq!(lengths, [350, 60]);
}

#[test]
fn lies_about_a_frame_cost_only_that_frame() {
    let mut rig = rig(16);
    rig.fill(&[0; 5]);
    rig.fill(&[header(0, 1), vec![0; 13]].concat());
    rig.fill(&[header(1, 1), vec![0; 51]].concat());
    rig.fill(&[header(0, 1), vec![9; 60]].concat());
    assert_eq!(rig.receive().len(), 1);
    rig.fill(&[header(0, 200), vec![9; 60]].concat());
    assert_eq!(rig.receive().len(), 0);
    let counters = rig.counters;
    let seen = (
        counters.rx_bad_length,
        counters.rx_bad_header,
        counters.rx_incomplete,
    );
    assert_eq!(seen, (2, 1, 1));
}

#[test]
fn an_empty_pool_drops_frames_but_never_starves_the_ring() {
    let mut rig = rig(8);
    assert!(rig.bench.pool.alloc().is_none());
    for round in 0..50 {
        rig.fill(&[header(0, 1), vec![round; 60]].concat());
        assert_eq!(rig.receive().len(), 0);
        rig.receiver.arm();
    }
    assert_eq!(rig.counters.rx_no_memory, 50);
}
