//! A volume against a simulated device.

use base::DeviceAddr;
use hal::Mmio;
use hal::sim::SimMemory;
use ninep::{Channel, Fid, Reply, ReplyError, Request, SubmitError};
use virtio::{MmioTransport, NO_VECTOR, Transport};
use virtio_9p::Virtio9p;
use virtq::Addresses;
use virtq::sim::{Device, Fetched};

struct Rig {
    memory: SimMemory,
    volume: Virtio9p<SimMemory>,
    device: Device,
}

fn registers(memory: &SimMemory) -> Mmio {
    let registers = memory.registers(64);
    registers.write32(0x00, u32::from_le_bytes(*b"virt"));
    registers.write32(0x04, 2);
    registers.write32(0x08, 9);
    // Both halves of the features: the mount tag, and version 1.
    registers.write32(0x10, 1);
    registers.write32(0x34, 128);
    registers.write16(0x100, 4);
    for (at, byte) in b"data".iter().enumerate() {
        registers.write8(0x102 + at, *byte);
    }
    registers
}

fn rig() -> Rig {
    let memory = SimMemory::new();
    let registers = registers(&memory);
    let driver = registers.window(0, registers.bytes()).unwrap();
    let transport = Transport::Mmio(MmioTransport::new(driver).unwrap());
    let volume = Virtio9p::new(transport, memory.clone(), NO_VECTOR).unwrap();
    let rings = Addresses {
        descriptors: DeviceAddr(registers.read64(0x80)),
        available: DeviceAddr(registers.read64(0x90)),
        used: DeviceAddr(registers.read64(0xa0)),
    };
    let device = Device::new(&memory, rings, registers.read32(0x38) as u16);
    Rig {
        memory,
        volume,
        device,
    }
}

impl Rig {
    fn fetch(&mut self) -> (Fetched, Vec<u8>) {
        self.device.fetch();
        let chain = self.device.pending.pop_front().unwrap();
        let mut request = vec![0; chain.parts[0].len as usize];
        self.memory
            .read(DeviceAddr(chain.parts[0].addr), &mut request)
            .unwrap();
        (chain, request)
    }

    fn answer(&mut self, chain: &Fetched, kind: u8, tag: u8, body: &[u8]) {
        let mut reply = (7 + body.len() as u32).to_le_bytes().to_vec();
        reply.extend([kind, tag, 0]);
        reply.extend(body);
        self.memory
            .write(DeviceAddr(chain.parts[1].addr), &reply)
            .unwrap();
        self.device
            .complete(u32::from(chain.head), reply.len() as u32);
    }
}

#[test]
fn replies_come_back_in_the_servers_order() {
    let mut rig = rig();
    assert_eq!(rig.volume.name(), b"data");
    let clunk = rig.volume.submit(&Request::Clunk { fid: Fid(1) }).unwrap();
    let read = Request::Read {
        fid: Fid(2),
        offset: 0,
        count: 64,
    };
    let read = rig.volume.submit(&read).unwrap();
    let (first, request) = rig.fetch();
    assert_eq!(request, b"\x0b\0\0\0\x78\0\0\x01\0\0\0");
    let second = rig.device.pending.pop_front().unwrap();
    rig.answer(&second, 117, 1, b"\x03\0\0\0abc");
    rig.answer(&first, 121, 0, b"");
    let mut seen = Vec::new();
    let count = rig.volume.complete(&mut |tag, reply| match reply {
        Ok(Reply::Data(data)) => seen.push((tag, data.to_vec())),
        Ok(Reply::Done) => seen.push((tag, Vec::new())),
        other => panic!("{other:?}"),
    });
    assert_eq!(count, 2);
    assert_eq!(seen, [(read, b"abc".to_vec()), (clunk, Vec::new())]);
}

#[test]
fn as_many_requests_as_slots_are_under_way() {
    let mut rig = rig();
    for _ in 0..16 {
        rig.volume.submit(&Request::Clunk { fid: Fid(1) }).unwrap();
    }
    let one_more = rig.volume.submit(&Request::Clunk { fid: Fid(1) });
    assert_eq!(one_more, Err(SubmitError::Busy));
    let (chain, _) = rig.fetch();
    rig.answer(&chain, 121, 0, b"");
    assert_eq!(rig.volume.complete(&mut |_, _| ()), 1);
    rig.volume.submit(&Request::Clunk { fid: Fid(1) }).unwrap();
}

#[test]
fn a_device_that_lies_fails_every_request_once() {
    let mut rig = rig();
    rig.volume.submit(&Request::Clunk { fid: Fid(1) }).unwrap();
    rig.volume.submit(&Request::Clunk { fid: Fid(2) }).unwrap();
    rig.device.fetch();
    rig.device.complete(77, 7);
    let mut errors = 0;
    rig.volume.complete(&mut |_, reply| {
        assert!(matches!(reply, Err(ReplyError::Broken)));
        errors += 1;
    });
    assert_eq!(errors, 2);
    assert_eq!(rig.volume.complete(&mut |_, _| ()), 0);
    let after = rig.volume.submit(&Request::Clunk { fid: Fid(1) });
    assert_eq!(after, Err(SubmitError::Broken));
}
