//! One queue at a time against a simulated device.

extern crate std;

use std::vec;
use std::vec::Vec;

use base::DeviceAddr;
use hal::sim::SimMemory;
use hal::{BalloonBroken, BalloonDevice, HANDOVER_FRAMES_MAX, Handover, MemoryUse, Mmio};
use virtio::{MmioTransport, NO_VECTOR, QueueShape, Transport};
use virtq::Addresses;
use virtq::sim::Device;

use crate::buffer_queue::BufferQueue;
use crate::statistics::{ANSWER_BYTES, records};
use crate::{Interrupts, VirtioBalloon};

const SHAPE: QueueShape = QueueShape {
    index: 0,
    size_max: 2,
    vector: NO_VECTOR,
    event_index: true,
};
/// Both halves of the features read alike, so that bit 1 offers statistics, and bit 0 version 1.
const VERSION_1: u32 = 1 << 0;
const STATS_VQ: u32 = 1 << 1;
const DEFLATE_ON_OOM: u32 = 1 << 2;

struct Bench {
    memory: SimMemory,
    registers: Mmio,
}

impl Bench {
    fn new(features: u32) -> Self {
        let memory = SimMemory::new();
        let registers = memory.registers(64);
        registers.write32(0x00, u32::from_le_bytes(*b"virt"));
        registers.write32(0x04, 2);
        registers.write32(0x08, 5);
        registers.write32(0x10, VERSION_1 | features);
        registers.write32(0x34, 8);
        Self { memory, registers }
    }

    fn transport(&self) -> Transport {
        let driver = self.registers.window(0, self.registers.bytes()).unwrap();
        Transport::Mmio(MmioTransport::new(driver).unwrap())
    }

    fn queue(&self, bytes: usize) -> (BufferQueue, Device) {
        let queue = BufferQueue::new(&self.transport(), &self.memory, SHAPE, bytes).unwrap();
        (queue, self.device())
    }

    fn balloon(&self) -> VirtioBalloon {
        VirtioBalloon::new(self.transport(), &self.memory, Interrupts::Line).unwrap()
    }

    /// The device with the queue that was made last.
    fn device(&self) -> Device {
        let rings = Addresses {
            descriptors: DeviceAddr(self.registers.read64(0x80)),
            available: DeviceAddr(self.registers.read64(0x90)),
            used: DeviceAddr(self.registers.read64(0xa0)),
        };
        Device::new(&self.memory, rings, self.registers.read32(0x38) as u16)
    }

    /// What the next chain holds; its head completes it.
    fn next(&self, device: &mut Device) -> (u16, Vec<u8>) {
        device.fetch();
        let chain = device.pending.pop_front().expect("a chain");
        assert_eq!((chain.parts.len(), chain.writable()), (1, 0));
        let mut bytes = vec![0; chain.parts[0].len as usize];
        let at = DeviceAddr(chain.parts[0].addr);
        self.memory.read(at, &mut bytes).unwrap();
        (chain.head, bytes)
    }
}

#[test]
fn a_buffer_is_done_when_the_device_has_used_it_and_not_before() {
    let bench = Bench::new(0);
    let (mut queue, mut device) = bench.queue(8);
    assert_eq!(queue.is_done(), Ok(true));
    assert_eq!(queue.send([[1, 0], [3, 2]].into_iter()), Ok(()));
    assert_eq!(queue.is_done(), Ok(false));
    // The second waits for the first.
    assert_eq!(queue.send([[4]].into_iter()), Err(BalloonBroken));
    let (head, bytes) = bench.next(&mut device);
    assert_eq!(bytes, [1, 0, 3, 2]);
    device.complete(head.into(), 0);
    assert_eq!(queue.is_done(), Ok(true));
    assert_eq!(queue.send([[4]].into_iter()), Ok(()));
    queue.retire();
}

#[test]
fn the_device_interrupts_for_each_buffer_also_if_nobody_has_looked_since_it_was_sent() {
    let bench = Bench::new(0);
    let (mut queue, mut device) = bench.queue(8);
    for _ in 0..3 {
        assert_eq!(queue.send([[1]].into_iter()), Ok(()));
        let (head, _) = bench.next(&mut device);
        assert!(device.complete(head.into(), 0));
        assert_eq!(queue.is_done(), Ok(true));
    }
    queue.retire();
}

#[test]
fn nothing_and_more_than_a_buffer_takes_are_not_sent() {
    let bench = Bench::new(0);
    let (mut queue, mut device) = bench.queue(8);
    assert_eq!(queue.send([[0; 2]; 5].into_iter()), Err(BalloonBroken));
    assert_eq!(queue.send([[0; 2]; 0].into_iter()), Err(BalloonBroken));
    assert_eq!(queue.send([[7; 2]; 4].into_iter()), Ok(()));
    assert_eq!(bench.next(&mut device).1, [7; 8]);
    queue.retire();
}

#[test]
fn a_device_that_lies_is_believed_in_nothing_more() {
    let bench = Bench::new(0);
    let (mut queue, mut device) = bench.queue(8);
    assert_eq!(queue.send([[1]].into_iter()), Ok(()));
    let (head, _) = bench.next(&mut device);
    // The buffer was for reading.
    device.complete(head.into(), 4);
    assert_eq!(queue.is_done(), Err(BalloonBroken));
    assert_eq!(queue.send([[1]].into_iter()), Err(BalloonBroken));
    queue.retire();
}

#[test]
fn figures_are_told_by_their_tags() {
    let memory = MemoryUse {
        total_bytes: 5 << 32,
        free_bytes: 7,
        ..MemoryUse::default()
    };
    let bytes = records(&memory).concat();
    assert_eq!(bytes.len(), ANSWER_BYTES);
    assert_eq!(
        bytes[..20],
        *b"\x05\0\0\0\0\0\x05\0\0\0\x04\0\x07\0\0\0\0\0\0\0"
    );
}

#[test]
fn the_host_says_what_it_wants_and_hears_what_it_has() {
    let bench = Bench::new(STATS_VQ | DEFLATE_ON_OOM);
    let mut balloon = bench.balloon();
    assert!(balloon.lets_take_back());
    bench.registers.write32(0x100, 77);
    assert_eq!(balloon.target(), 77);
    balloon.set_actual(76);
    assert_eq!(bench.registers.read32(0x104), 76);
    // An answer is wanted at once, and the next when the device gives that back.
    assert!(balloon.wants_use());
    balloon.report_use(&MemoryUse::default());
    assert!(!balloon.wants_use());
    // The queue for what the machine takes back was made last.
    let mut device = bench.device();
    assert_eq!(balloon.hand_over(Handover::ToMachine, &[9]), Ok(()));
    assert_eq!(balloon.is_done(), Ok(false));
    let (head, bytes) = bench.next(&mut device);
    assert_eq!(bytes, [9, 0, 0, 0]);
    device.complete(head.into(), 0);
    assert_eq!(balloon.is_done(), Ok(true));
    let most = [1; HANDOVER_FRAMES_MAX];
    assert_eq!(balloon.hand_over(Handover::ToHost, &most), Ok(()));
}

#[test]
fn without_statistics_nobody_asks_for_any() {
    let bench = Bench::new(0);
    let mut balloon = bench.balloon();
    assert!(!balloon.lets_take_back() && !balloon.wants_use());
    balloon.report_use(&MemoryUse::default());
}
