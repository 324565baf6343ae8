//! A disk against a simulated device.

use std::sync::Arc;

use base::{DeviceAddr, Instant};
use block::{Admitted, Cache, ChannelBox, Completion, Control, Done, Durability, Failure};
use block::{Keep, Operation, Order, Queue, Request, SectorRange};
use hal::caching::WriteBack;
use hal::owner::Device as Owned;
use hal::sim::SimMemory;
use hal::{DmaBuf, DmaRequest, DmaSource, HasDeviceAddr, Mmio, Span};
use virtio::{Error, MmioTransport, Transport};
use virtio_blk::{Interrupts, VirtioBlk};
use virtq::Addresses;
use virtq::sim::{Device, Fetched};

const RO: u32 = 1 << 5;
const BLK_SIZE: u32 = 1 << 6;
const FLUSH: u32 = 1 << 9;
const TOPOLOGY: u32 = 1 << 10;
const DISCARD: u32 = 1 << 13;
const WRITE_ZEROES: u32 = 1 << 14;
const INDIRECT: u32 = 1 << 28;

struct Memory {
    buffer: Option<DmaBuf<WriteBack, Owned>>,
    spans: Vec<Span>,
}

impl Keep for Memory {
    type Owner = Option<DmaBuf<WriteBack, Owned>>;

    fn spans(&self) -> &[Span] {
        &self.spans
    }

    fn of_page(memory: Span, buffer: Self::Owner) -> Self {
        Self {
            buffer,
            spans: vec![memory],
        }
    }
}

struct Rig {
    memory: SimMemory,
    registers: Mmio,
    control: VirtioBlk<SimMemory>,
    queue: Queue<Memory, ChannelBox>,
    device: Device,
    ended: Vec<(Result<Done, Failure>, Vec<u8>)>,
    now: Instant,
}

/// Both halves of the features read alike; bit 0 of the upper one is version 1.
fn registers(memory: &SimMemory, features: u32) -> Mmio {
    let registers = memory.registers(64);
    registers.write32(0x00, u32::from_le_bytes(*b"virt"));
    registers.write32(0x04, 2);
    registers.write32(0x08, 2);
    registers.write32(0x10, 1 | features);
    registers.write32(0x34, 128);
    // Capacity, block size, topology, discard and zeroes.
    registers.write32(0x100, 2048);
    registers.write32(0x114, 512);
    registers.write8(0x118, 3);
    registers.write32(0x11c, 128);
    registers.write32(0x124, 64);
    registers.write32(0x12c, 8);
    registers.write32(0x130, 128);
    registers
}

fn open(
    memory: &SimMemory,
    registers: &Mmio,
) -> Result<(VirtioBlk<SimMemory>, Vec<ChannelBox>), Error> {
    let driver = registers.window(0, registers.bytes()).unwrap();
    let transport = Transport::Mmio(MmioTransport::new(driver).unwrap());
    VirtioBlk::open(transport, memory.clone(), 4, Interrupts::Line)
}

fn device(memory: &SimMemory, registers: &Mmio) -> Device {
    let rings = Addresses {
        descriptors: DeviceAddr(registers.read64(0x80)),
        available: DeviceAddr(registers.read64(0x90)),
        used: DeviceAddr(registers.read64(0xa0)),
    };
    Device::new(memory, rings, registers.read32(0x38) as u16)
}

fn rig(features: u32) -> Rig {
    let memory = SimMemory::new();
    let registers = registers(&memory, features);
    let (control, channels) = open(&memory, &registers).unwrap();
    let channel = channels.into_iter().next().unwrap();
    let queue = Queue::new(channel, control.limits(), Arc::new(Order::new()));
    let device = device(&memory, &registers);
    Rig {
        memory,
        registers,
        control,
        queue,
        device,
        ended: Vec::new(),
        now: Instant::from_millis(1),
    }
}

fn note(ended: &mut Vec<(Result<Done, Failure>, Vec<u8>)>, completion: Completion<Memory>) {
    let bytes = completion.keep.buffer.map_or(Vec::new(), |memory| {
        let memory = memory.take_back();
        let mut bytes = vec![0; memory.bytes()];
        memory.copy_out(0, &mut bytes);
        bytes
    });
    ended.push((completion.result, bytes));
}

impl Rig {
    fn ask(&mut self, operation: Operation, first: u64, count: u64, fill: Option<u8>) {
        let memory = fill.map(|fill| {
            let bytes = count as usize * 512;
            let memory: DmaBuf = self.memory.dma_alloc(&DmaRequest::new(bytes, 512)).unwrap();
            memory.copy_in(0, &vec![fill; bytes]);
            memory.give()
        });
        let spans = memory.iter();
        let spans = spans.map(|memory| memory.dev_addr(0, memory.bytes()).unwrap());
        let request = Request {
            operation,
            sectors: SectorRange { first, count },
            keep: Memory {
                spans: spans.collect(),
                buffer: memory,
            },
        };
        let admitted = self.queue.submit(request, self.now);
        self.queue.publish();
        match admitted {
            Admitted::UnderWay => {}
            Admitted::Ended(completion) => note(&mut self.ended, completion),
            Admitted::Full(_) => panic!("there is room"),
        }
    }

    /// The next chain and the bytes that the device is to read of it.
    fn fetch(&mut self) -> (Fetched, Vec<Vec<u8>>) {
        self.device.fetch();
        let chain = self.device.pending.pop_front().unwrap();
        let mut parts = Vec::new();
        for part in chain.parts.iter().filter(|part| part.flags & 2 == 0) {
            let mut bytes = vec![0; part.len as usize];
            self.memory.read(DeviceAddr(part.addr), &mut bytes).unwrap();
            parts.push(bytes);
        }
        (chain, parts)
    }

    fn answer(&mut self, chain: &Fetched, status: u8, data: &[u8]) {
        let last = chain.parts.last().unwrap();
        assert_eq!(
            (last.len, last.flags & 2),
            (1, 2),
            "the last byte is the device's"
        );
        self.memory.write(DeviceAddr(last.addr), &[status]).unwrap();
        if !data.is_empty() {
            let at = DeviceAddr(chain.parts[1].addr);
            self.memory.write(at, data).unwrap();
        }
        let written = 1 + data.len() as u32;
        self.device.complete(u32::from(chain.head), written);
        self.complete();
    }

    fn complete(&mut self) {
        let Self {
            queue, ended, now, ..
        } = self;
        queue.complete(*now, &mut |completion| note(ended, completion));
    }
}

fn header(kind: u32, sector: u64) -> Vec<u8> {
    let mut bytes = kind.to_le_bytes().to_vec();
    bytes.extend([0; 4]);
    bytes.extend(sector.to_le_bytes());
    bytes
}

#[test]
fn what_the_device_says_of_itself_is_taken_as_limits() {
    let rig = rig(BLK_SIZE | TOPOLOGY | DISCARD | WRITE_ZEROES | INDIRECT);
    let limits = rig.control.limits();
    assert_eq!((limits.sectors, limits.block_bytes), (2048, 512));
    assert_eq!((limits.physical_bytes, limits.optimal_bytes), (4096, 65536));
    assert_eq!(limits.cache, Cache::WriteThrough, "it has no flush");
    let discard = limits.discard.unwrap();
    assert_eq!((discard.sectors_max, discard.granularity), (64, 8));
    assert_eq!(limits.zeroes.unwrap().sectors_max, 128);
    assert!(!limits.is_read_only);
}

#[test]
fn a_device_with_impossible_blocks_is_not_driven() {
    let memory = SimMemory::new();
    let registers = registers(&memory, BLK_SIZE);
    registers.write32(0x114, 100);
    assert_eq!(open(&memory, &registers).err(), Some(Error::CommandRefused));
}

#[test]
fn a_read_is_a_header_memory_and_a_last_byte() {
    for features in [FLUSH, FLUSH | INDIRECT] {
        let mut rig = rig(features);
        rig.ask(Operation::Read, 77, 2, Some(0));
        let (chain, parts) = rig.fetch();
        assert_eq!(parts, [header(0, 77)]);
        let lens: Vec<_> = chain.parts.iter().map(|part| part.len).collect();
        assert_eq!(lens, [16, 1024, 1]);
        rig.answer(&chain, 0, &[0x5a; 1024]);
        assert_eq!(rig.ended, [(Ok(Done::Read), vec![0x5a; 1024])]);
    }
}

#[test]
fn a_forced_write_is_followed_by_a_flush() {
    let mut rig = rig(FLUSH | INDIRECT);
    rig.ask(Operation::Write(Durability::Forced), 8, 1, Some(9));
    let (chain, parts) = rig.fetch();
    assert_eq!(parts, [header(1, 8), vec![9; 512]]);
    rig.answer(&chain, 0, &[]);
    assert!(rig.ended.is_empty());
    let (chain, parts) = rig.fetch();
    assert_eq!(parts, [header(4, 0)]);
    rig.answer(&chain, 0, &[]);
    assert!(matches!(rig.ended[..], [(Ok(Done::Durable(_)), _)]));
}

#[test]
fn discards_and_zeroes_say_their_range_in_memory() {
    let mut rig = rig(FLUSH | DISCARD | WRITE_ZEROES | INDIRECT);
    rig.ask(Operation::Discard, 64, 64, None);
    rig.ask(Operation::WriteZeroes { may_unmap: true }, 128, 8, None);
    for (kind, first, count, flags) in [(11, 64u64, 64u32, 0u32), (13, 128, 8, 1)] {
        let (chain, parts) = rig.fetch();
        let mut range = first.to_le_bytes().to_vec();
        range.extend(count.to_le_bytes());
        range.extend(flags.to_le_bytes());
        assert_eq!(parts, [header(kind, 0), range]);
        rig.answer(&chain, 0, &[]);
    }
    assert!(rig.ended.iter().all(|(result, _)| result.is_ok()));
}

#[test]
fn whatever_the_last_byte_says_the_caller_hears_of_it() {
    let cases = [
        (1, Failure::Medium),
        (2, Failure::Unsupported),
        (3, Failure::Medium),
        (0xff, Failure::Medium),
    ];
    for (status, failure) in cases {
        let mut rig = rig(FLUSH | INDIRECT);
        rig.ask(Operation::Read, 0, 1, Some(0));
        let (chain, _) = rig.fetch();
        rig.answer(&chain, status, &[]);
        assert_eq!(rig.ended[0].0, Err(failure));
    }
}

#[test]
fn a_disk_that_cannot_be_changed_is_sent_no_change() {
    let mut rig = rig(RO);
    rig.ask(Operation::Write(Durability::Volatile), 0, 1, Some(1));
    assert_eq!(rig.ended[0].0, Err(Failure::ReadOnly));
    assert_eq!(rig.device.fetch(), 0);
}

#[test]
fn a_device_that_lies_is_started_anew_and_asked_again() {
    let mut rig = rig(FLUSH | INDIRECT);
    rig.ask(Operation::Read, 5, 1, Some(0));
    rig.fetch();
    rig.device.complete(4242, 1);
    rig.complete();
    assert!(rig.ended.is_empty() && rig.queue.is_stuck(rig.now));
    let before = rig.memory.buffers();
    rig.control.stop();
    rig.queue.stop();
    let channels = rig.control.start().unwrap();
    let channel = channels.into_iter().next().unwrap();
    rig.queue
        .restart(channel, rig.now, &mut |_| panic!("it is sent again"));
    assert_eq!(rig.memory.buffers(), before, "the old rings were freed");
    rig.device = device(&rig.memory, &rig.registers);
    let (chain, parts) = rig.fetch();
    assert_eq!(parts, [header(0, 5)]);
    rig.answer(&chain, 0, &[7; 512]);
    assert_eq!(rig.ended, [(Ok(Done::Read), vec![7; 512])]);
}

#[test]
fn a_disk_that_grows_is_asked_for_its_size() {
    let mut rig = rig(FLUSH);
    rig.registers.write32(0x100, 4096);
    assert_eq!(rig.control.limits().sectors, 2048);
    assert_eq!(rig.control.refresh().sectors, 4096);
}

#[test]
fn as_many_commands_as_slots_are_under_way_and_the_rest_waits() {
    let mut rig = rig(FLUSH | INDIRECT);
    for first in 0..100 {
        rig.ask(Operation::Read, first, 1, Some(0));
    }
    let mut seen = 0;
    while rig.ended.len() < 100 {
        rig.device.fetch();
        assert!(rig.device.pending.len() <= 64);
        let (chain, parts) = rig.fetch();
        assert_eq!(parts, [header(0, seen)]);
        rig.answer(&chain, 0, &[1; 512]);
        seen += 1;
    }
    assert_eq!(rig.device.fetch(), 0);
}
