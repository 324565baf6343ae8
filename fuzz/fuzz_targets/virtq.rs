//! Whatever a device writes into a queue's rings, each token comes back at most once and
//! with no more bytes than there was room for.
#![no_main]

use hal::{DmaBuf, DmaRequest, DmaSource, HasDeviceAddr};
use hal::sim::SimMemory;
use libfuzzer_sys::fuzz_target;
use virtq::sim::Device;
use virtq::{Config, Part, Queue};

const SIZE: u16 = 8;
const ROOM: usize = 16;

fuzz_target!(|input: &[u8]| {
    let memory = SimMemory::new();
    let config = Config { size: SIZE, event_index: true, indirect_parts: 2 };
    let mut queue = Queue::new(&memory, config).expect("memory");
    let mut device = Device::new(&memory, queue.addresses().expect("rings"), SIZE);
    let data: DmaBuf = memory.dma_alloc(&DmaRequest::new(64, 64)).expect("memory");
    let mut data = data.share();
    let part = Part::Write(data.dev_addr(0, ROOM).expect("inside"));
    let mut flying = [false; SIZE as usize];
    for step in input.chunks_exact(4) {
        match step[0] % 5 {
            0 => device.scribble(512, u64::from(step[1]) << 1 | u64::from(step[2] & 1), step[3]),
            1 => device.store_used(u32::from(step[1]), u32::from(step[2])),
            2 => device.set_used_index(u16::from(step[1])),
            3 => {
                if let Ok(token) = queue.add([part]) {
                    assert!(!std::mem::replace(&mut flying[token.index()], true));
                }
            }
            _ => {
                if let Ok(token) = queue.add_indirect([part]) {
                    assert!(!std::mem::replace(&mut flying[token.index()], true));
                }
            }
        }
        let _ = queue.publish();
        for _ in 0..=SIZE {
            let Ok(Some(used)) = queue.take() else { break };
            assert!(std::mem::replace(&mut flying[used.token.index()], false));
            assert!(used.written as usize <= ROOM);
        }
        queue.arm();
    }
    // The device is gone: its memory goes back, or the fuzzer reports a leak.
    queue.retire();
    data.retire();
});
