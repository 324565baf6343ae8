//! One queue at a time against a simulated device.

extern crate std;

use std::vec;
use std::vec::Vec;

use base::DeviceAddr;
use hal::sim::SimMemory;
use hal::{BalloonBroken, BalloonDevice, Handover, MemoryUse, Mmio};
use virtio::{MmioTransport, NO_VECTOR, QueueShape, Transport};
use virtq::Addresses;
use virtq::sim::Device;

use crate::list::{FRAMES_MAX, List};
use crate::statistics::{ANSWER_BYTES, Statistics, encode};
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

    fn list(&self) -> (List, Device) {
        let list = List::new(&self.transport(), &self.memory, SHAPE).unwrap();
        (list, self.device())
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
fn a_list_is_done_when_the_device_has_used_it_and_not_before() {
    let bench = Bench::new(0);
    let (mut list, mut device) = bench.list();
    assert_eq!(list.is_done(), Ok(true));
    assert_eq!(list.send(&[1, 0x0203]), Ok(2));
    assert_eq!(list.is_done(), Ok(false));
    // The second waits for the first.
    assert_eq!(list.send(&[4]), Err(BalloonBroken));
    let (head, bytes) = bench.next(&mut device);
    assert_eq!(bytes, [1, 0, 0, 0, 3, 2, 0, 0]);
    device.complete(head.into(), 0);
    assert_eq!(list.is_done(), Ok(true));
    assert_eq!(list.send(&[4]), Ok(1));
    list.retire();
}

#[test]
fn a_list_takes_no_more_than_a_buffer_holds() {
    let bench = Bench::new(0);
    let (mut list, mut device) = bench.list();
    let frames: Vec<u32> = (0..FRAMES_MAX as u32 + 1).collect();
    assert_eq!(list.send(&frames), Ok(FRAMES_MAX));
    assert_eq!(bench.next(&mut device).1.len(), 4 * FRAMES_MAX);
    list.retire();
}

#[test]
fn a_device_that_lies_is_believed_in_nothing_more() {
    let bench = Bench::new(0);
    let (mut list, mut device) = bench.list();
    assert_eq!(list.send(&[1]), Ok(1));
    let (head, _) = bench.next(&mut device);
    // The buffer was for reading.
    device.complete(head.into(), 4);
    assert_eq!(list.is_done(), Err(BalloonBroken));
    assert_eq!(list.send(&[1]), Err(BalloonBroken));
    list.retire();
}

#[test]
fn the_host_asks_how_memory_is_used_by_giving_the_last_answer_back() {
    let bench = Bench::new(0);
    let mut statistics = Statistics::new(&bench.transport(), &bench.memory, SHAPE).unwrap();
    let mut device = bench.device();
    assert!(statistics.is_wanted());
    let memory = MemoryUse {
        total_bytes: 5 << 32,
        free_bytes: 7,
        ..MemoryUse::default()
    };
    statistics.answer(&memory);
    assert!(!statistics.is_wanted());
    let (head, bytes) = bench.next(&mut device);
    assert_eq!(bytes, encode(&memory));
    assert_eq!(bytes.len(), ANSWER_BYTES);
    assert_eq!(
        bytes[..20],
        *b"\x05\0\0\0\0\0\x05\0\0\0\x04\0\x07\0\0\0\0\0\0\0"
    );
    device.complete(head.into(), 0);
    assert!(statistics.is_wanted());
    statistics.answer(&memory);
    assert_eq!(bench.next(&mut device).1, bytes);
    statistics.retire();
}

#[test]
fn the_host_says_what_it_wants_and_hears_what_it_has() {
    let bench = Bench::new(STATS_VQ | DEFLATE_ON_OOM);
    let balloon = VirtioBalloon::new(bench.transport(), &bench.memory, Interrupts::Line);
    let mut balloon = balloon.unwrap();
    assert!(balloon.lets_take_back());
    bench.registers.write32(0x100, 77);
    assert_eq!(balloon.target(), 77);
    balloon.set_actual(76);
    assert_eq!(bench.registers.read32(0x104), 76);
    // The queue for what the machine takes back was made last.
    let mut device = bench.device();
    assert_eq!(balloon.hand_over(Handover::ToMachine, &[9]), Ok(1));
    assert_eq!(balloon.is_done(), Ok(false));
    let (head, bytes) = bench.next(&mut device);
    assert_eq!(bytes, [9, 0, 0, 0]);
    device.complete(head.into(), 0);
    assert_eq!(balloon.is_done(), Ok(true));
}

#[test]
fn without_statistics_nobody_asks_for_any() {
    let bench = Bench::new(0);
    let balloon = VirtioBalloon::new(bench.transport(), &bench.memory, Interrupts::Line);
    let mut balloon = balloon.unwrap();
    assert!(!balloon.lets_take_back() && !balloon.wants_use());
    balloon.report_use(&MemoryUse::default());
}
