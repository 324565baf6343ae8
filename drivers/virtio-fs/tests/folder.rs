//! A folder against a simulated device.

use base::DeviceAddr;
use fuse::{Call, Caller, Channel, Forget, ROOT, Reply, ReplyError, Request, SubmitError, What};
use hal::Mmio;
use hal::sim::SimMemory;
use virtio::{MmioTransport, NO_VECTOR, Transport};
use virtio_fs::VirtioFs;
use virtq::Addresses;
use virtq::sim::{Device, Fetched};

/// Registers of a queue that was just told, which the next one overwrites.
fn queue(memory: &SimMemory, registers: &Mmio) -> Device {
    let rings = Addresses {
        descriptors: DeviceAddr(registers.read64(0x80)),
        available: DeviceAddr(registers.read64(0x90)),
        used: DeviceAddr(registers.read64(0xa0)),
    };
    Device::new(memory, rings, registers.read32(0x38) as u16)
}

struct Rig {
    memory: SimMemory,
    folder: VirtioFs<SimMemory>,
    requests: Device,
}

fn rig() -> Rig {
    let memory = SimMemory::new();
    let registers = memory.registers(64);
    registers.write32(0x00, u32::from_le_bytes(*b"virt"));
    registers.write32(0x04, 2);
    registers.write32(0x08, 26);
    // Of both halves of the features: version 1.
    registers.write32(0x10, 1);
    registers.write32(0x34, 128);
    for (at, byte) in b"data".iter().enumerate() {
        registers.write8(0x100 + at, *byte);
    }
    let driver = registers.window(0, registers.bytes()).unwrap();
    let transport = Transport::Mmio(MmioTransport::new(driver).unwrap());
    let folder = VirtioFs::new(transport, memory.clone(), NO_VECTOR).unwrap();
    // The queue of requests was the last one to be told.
    let requests = queue(&memory, &registers);
    Rig {
        memory,
        folder,
        requests,
    }
}

fn call(request: Request<'_>) -> Call<'_> {
    Call {
        node: ROOT,
        caller: Caller::default(),
        request,
    }
}

impl Rig {
    /// The next chain, and its request's number.
    fn fetch(&mut self) -> (Fetched, u64) {
        self.requests.fetch();
        let chain = self.requests.pending.pop_front().unwrap();
        let mut unique = [0; 8];
        self.memory
            .read(DeviceAddr(chain.parts[0].addr + 8), &mut unique)
            .unwrap();
        (chain, u64::from_le_bytes(unique))
    }

    /// As virtiofsd does: how much it wrote is said in the reply only.
    fn answer(&mut self, chain: &Fetched, unique: u64, body: &[u8]) {
        let mut reply = (16 + body.len() as u32).to_le_bytes().to_vec();
        reply.extend([0; 4]);
        reply.extend(unique.to_le_bytes());
        reply.extend(body);
        self.memory
            .write(DeviceAddr(chain.parts[1].addr), &reply)
            .unwrap();
        self.requests.complete(u32::from(chain.head), 0);
    }
}

fn read(count: u32) -> Request<'static> {
    Request::Read {
        what: What::File,
        handle: 1,
        offset: 0,
        count,
    }
}

#[test]
fn replies_come_back_in_the_daemons_order() {
    let mut rig = rig();
    assert_eq!(rig.folder.name(), b"data");
    let unlink = Request::Unlink { name: b"a" };
    let unlink = rig.folder.submit(&call(unlink)).unwrap();
    let data = rig.folder.submit(&call(read(64))).unwrap();
    let (first, first_unique) = rig.fetch();
    assert_eq!((first.parts[0].len, first.parts[1].len), (42, 16));
    let (second, second_unique) = rig.fetch();
    assert_eq!((second.parts[0].len, second.parts[1].len), (80, 80));
    rig.answer(&second, second_unique, b"abc");
    rig.answer(&first, first_unique, b"");
    let mut seen = Vec::new();
    let count = rig.folder.complete(&mut |tag, reply| match reply {
        Ok(Reply::Data(data)) => seen.push((tag, data.to_vec())),
        Ok(Reply::Done) => seen.push((tag, Vec::new())),
        other => panic!("{other:?}"),
    });
    assert_eq!(count, 2);
    assert_eq!(seen, [(data, b"abc".to_vec()), (unlink, Vec::new())]);
}

#[test]
fn what_gives_nodes_up_goes_by_the_other_queue() {
    let mut rig = rig();
    let nodes = [Forget {
        node: 2,
        lookups: 1,
    }];
    let forget = Request::BatchForget { nodes: &nodes };
    rig.folder.submit(&call(forget)).unwrap();
    rig.folder.submit(&call(Request::Getattr)).unwrap();
    rig.requests.fetch();
    assert_eq!(rig.requests.pending.len(), 1);
}

#[test]
fn as_many_requests_as_slots_are_under_way() {
    let mut rig = rig();
    let unlink = call(Request::Unlink { name: b"a" });
    for _ in 0..16 {
        rig.folder.submit(&unlink).unwrap();
    }
    assert_eq!(rig.folder.submit(&unlink), Err(SubmitError::Busy));
    let (chain, unique) = rig.fetch();
    rig.answer(&chain, unique, b"");
    assert_eq!(rig.folder.complete(&mut |_, _| ()), 1);
    rig.folder.submit(&unlink).unwrap();
}

#[test]
fn what_no_message_holds_is_refused_and_keeps_no_slot() {
    let mut rig = rig();
    for _ in 0..20 {
        let refused = rig.folder.submit(&call(read(1 << 20)));
        assert_eq!(refused, Err(SubmitError::TooLarge));
    }
    let whole = rig.folder.data_bytes_max();
    rig.folder.submit(&call(read(whole as u32))).unwrap();
    let data = vec![0; whole];
    let write = Request::Write {
        handle: 1,
        offset: 0,
        data: &data,
    };
    rig.folder.submit(&call(write)).unwrap();
}

#[test]
fn a_device_that_lies_fails_every_request_once() {
    let mut rig = rig();
    rig.folder.submit(&call(Request::Getattr)).unwrap();
    rig.folder.submit(&call(Request::Statfs)).unwrap();
    rig.requests.fetch();
    rig.requests.complete(77, 7);
    let mut errors = 0;
    rig.folder.complete(&mut |_, reply| {
        assert!(matches!(reply, Err(ReplyError::Broken)));
        errors += 1;
    });
    assert_eq!(errors, 2);
    assert_eq!(rig.folder.complete(&mut |_, _| ()), 0);
    let after = rig.folder.submit(&call(Request::Getattr));
    assert_eq!(after, Err(SubmitError::Broken));
}
