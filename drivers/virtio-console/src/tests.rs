//! One queue at a time against a simulated device.

extern crate std;

use std::vec::Vec;

use base::DeviceAddr;
use hal::Mmio;
use hal::sim::SimMemory;
use virtio::{MmioTransport, NO_VECTOR, QueueShape, Transport};
use virtq::Addresses;
use virtq::sim::Device;

use crate::port::Buffers;
use crate::receiver::Receiver;
use crate::transmitter::Transmitter;

const SHAPE: QueueShape = QueueShape {
    index: 0,
    size_max: crate::port::QUEUE_SIZE,
    vector: NO_VECTOR,
    event_index: true,
};
const TWO: Buffers = Buffers {
    count: 2,
    bytes: 64,
};

struct Bench {
    memory: SimMemory,
    registers: Mmio,
}

impl Bench {
    fn new() -> Self {
        let memory = SimMemory::new();
        let registers = memory.registers(64);
        registers.write32(0x00, u32::from_le_bytes(*b"virt"));
        registers.write32(0x04, 2);
        registers.write32(0x08, 3);
        registers.write32(0x34, 8);
        Self { memory, registers }
    }

    fn transport(&self) -> Transport {
        let driver = self.registers.window(0, self.registers.bytes()).unwrap();
        Transport::Mmio(MmioTransport::new(driver).unwrap())
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

    /// Fills the next buffer with `bytes`.
    fn fill(&self, device: &mut Device, bytes: &[u8]) {
        device.fetch();
        let chain = device.pending.pop_front().expect("a buffer");
        let at = DeviceAddr(chain.parts[0].addr);
        self.memory.write(at, bytes).unwrap();
        device.complete(chain.head.into(), bytes.len() as u32);
    }
}

fn peek(receiver: &Receiver) -> Vec<u8> {
    let mut bytes = [0; 64];
    let count = receiver.peek(&mut bytes);
    bytes[..count].to_vec()
}

#[test]
fn a_buffer_is_the_devices_again_once_its_last_byte_is_taken() {
    let bench = Bench::new();
    let mut receiver = Receiver::new(&bench.transport(), &bench.memory, SHAPE).unwrap();
    let mut device = bench.device();
    receiver.add_buffers(&bench.memory, TWO).unwrap();
    bench.fill(&mut device, b"abc");
    bench.fill(&mut device, b"de");
    assert_eq!(device.fetch(), 0);
    receiver.collect();
    assert_eq!(receiver.readable(), 5);
    receiver.skip(2);
    assert_eq!((peek(&receiver), device.fetch()), (b"c".to_vec(), 0));
    receiver.skip(1);
    assert_eq!((peek(&receiver), device.fetch()), (b"de".to_vec(), 1));
    receiver.retire();
}

#[test]
fn a_device_that_claims_more_than_a_buffer_holds_brings_nothing() {
    let bench = Bench::new();
    let mut receiver = Receiver::new(&bench.transport(), &bench.memory, SHAPE).unwrap();
    let mut device = bench.device();
    receiver.add_buffers(&bench.memory, TWO).unwrap();
    device.fetch();
    let head = device.pending[0].head;
    device.complete(head.into(), 65);
    receiver.collect();
    assert_eq!(receiver.readable(), 0);
    receiver.retire();
}

#[test]
fn what_has_no_buffer_is_not_sent_and_all_is_flushed_when_the_device_has_read_it() {
    let bench = Bench::new();
    let mut transmitter = Transmitter::new(&bench.transport(), &bench.memory, SHAPE).unwrap();
    let mut device = bench.device();
    transmitter.add_buffers(&bench.memory, TWO).unwrap();
    let long = [7; 100];
    assert_eq!(transmitter.send(&long), 64);
    assert_eq!(transmitter.send(&long[64..]), 36);
    assert_eq!(transmitter.send(b"more"), 0);
    assert!(!transmitter.has_room() && !transmitter.is_flushed());
    device.fetch();
    let heads: Vec<u16> = device.pending.drain(..).map(|chain| chain.head).collect();
    device.complete(heads[0].into(), 0);
    assert!(transmitter.has_room() && !transmitter.is_flushed());
    device.complete(heads[1].into(), 0);
    assert!(transmitter.is_flushed());
    transmitter.retire();
}
