//! A queue against a device that lies.

use hal::{HasDeviceAddr, sim::SimMemory};
use models::for_each_seed;
use virtq::sim::Device;
use virtq::{AddError, Config, Part, Queue, QueueError};

const SIZE: u16 = 8;

struct Rig {
    queue: Queue,
    device: Device,
    data: crate::SharedBuf,
}

/// A queue with one chain of two parts in flight, 16 bytes writable.
fn rig() -> Rig {
    let memory = SimMemory::new();
    let config = Config {
        size: SIZE,
        event_index: true,
        indirect_parts: 0,
    };
    let mut queue = Queue::new(&memory, config).unwrap();
    let mut device = Device::new(&memory, queue.addresses().unwrap(), SIZE);
    let data = crate::shared(&memory, 64);
    queue.add([read(&data), write(&data)]).unwrap();
    let _ = queue.publish();
    device.fetch();
    Rig {
        queue,
        device,
        data,
    }
}

fn read(data: &crate::SharedBuf) -> Part {
    Part::Read(data.dev_addr(0, 16).unwrap())
}

fn write(data: &crate::SharedBuf) -> Part {
    Part::Write(data.dev_addr(16, 16).unwrap())
}

#[test]
fn a_chain_that_does_not_exist_breaks_the_queue() {
    let mut rig = rig();
    rig.device.complete(u32::from(SIZE), 0);
    assert_eq!(rig.queue.take(), Err(QueueError::NoSuchChain(8)));
    assert_eq!(rig.queue.take(), Err(QueueError::Broken));
    assert_eq!(rig.queue.add([read(&rig.data)]), Err(AddError::Broken));
    assert!(rig.queue.is_broken());
}

#[test]
fn the_middle_of_a_chain_is_not_a_chain() {
    let mut rig = rig();
    rig.device.complete(1, 0);
    assert_eq!(rig.queue.take(), Err(QueueError::NotInFlight(1)));
}

#[test]
fn a_second_completion_is_caught() {
    let mut rig = rig();
    rig.queue.add([read(&rig.data)]).unwrap();
    rig.device.complete(0, 0);
    rig.device.complete(0, 0);
    assert!(rig.queue.take().unwrap().is_some());
    assert_eq!(rig.queue.take(), Err(QueueError::NotInFlight(0)));
}

#[test]
fn more_bytes_than_there_was_room_for_are_caught() {
    let mut rig = rig();
    rig.device.complete(0, 17);
    let error = QueueError::WroteTooMuch {
        claimed: 17,
        room: 16,
    };
    assert_eq!(rig.queue.take(), Err(error));
}

#[test]
fn a_used_index_from_the_future_is_caught() {
    let mut rig = rig();
    rig.device.set_used_index(2);
    let error = QueueError::UsedIndexJumped {
        claimed: 2,
        in_flight: 1,
    };
    assert_eq!(rig.queue.take(), Err(error));
    rig.device.set_used_index(1);
    assert_eq!(rig.queue.take(), Err(QueueError::Broken), "broken for good");
}

/// Whatever the device writes, each token comes back at most once, calls end, and the
/// driver never makes a chain that the honest reader cannot walk.
#[test]
fn random_scribbling_never_confuses_the_shadow() {
    for_each_seed(400, |_, mut random| {
        let random = &mut random;
        let Rig {
            mut queue,
            mut device,
            data,
        } = rig();
        let mut flying = [false; SIZE as usize];
        flying[0] = true;
        for _ in 0..200 {
            device.scribble(512, random.bits(), random.bits() as u8);
            if random.below(2) == 0 {
                device.store_used(random.below(12) as u32, random.below(40) as u32);
                device.set_used_index(random.bits() as u16 % 4);
            }
            if let Ok(token) = queue.add([read(&data), write(&data)]) {
                assert!(!flying[token.index()], "token twice");
                flying[token.index()] = true;
            }
            let _ = queue.publish();
            queue.arm();
            for _ in 0..=SIZE {
                let Ok(Some(used)) = queue.take() else { break };
                assert!(flying[used.token.index()], "a token nobody had");
                assert!(used.written <= 16);
                flying[used.token.index()] = false;
            }
            assert!(queue.in_flight() <= SIZE / 2);
        }
    });
}
