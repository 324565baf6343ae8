//! A driver whose admin queue somebody else keeps.

use std::cell::RefCell;
use std::sync::Arc;

use base::DeviceAddr;
use block::{Channel, Command, Operation, SectorRange, Verdict};
use hal::caching::MemoryType;
use hal::sim::SimMemory;
use hal::{DmaBuf, DmaError, DmaRequest, DmaSource};
use nvme::{Access, AdminKeeper, Error, Mediator, Wanted};

use crate::controller::{Controller, Faults, Model};

type Keeper = AdminKeeper<Controller>;

const IDENTIFY: u64 = 6;
/// Of any page.
const PAGE: u64 = 0x7000_0000;

thread_local! {
    /// The tests have one thread each, and what mediates could be on any.
    static KEEPER: RefCell<Option<(Keeper, Controller)>> = const { RefCell::new(None) };
}

/// The way to the keeper of this thread.
struct Kernel;

impl Mediator for Kernel {
    fn register(&self, offset: usize) -> u32 {
        KEEPER.with_borrow(|kept| kept.as_ref().unwrap().1.registers().read32(offset))
    }

    fn enable(&self, is_on: bool) {
        KEEPER.with_borrow_mut(|kept| {
            let keeper = &mut kept.as_mut().unwrap().0;
            _ = match is_on {
                true => keeper.enable(),
                false => keeper.disable(),
            };
        });
    }

    fn run(&self, command: [u64; 8]) -> Result<(u16, u32), Error> {
        KEEPER.with_borrow_mut(|kept| kept.as_mut().unwrap().0.run(command))
    }
}

/// Notes whether the device is to write to what it gives out.
struct Noting<'a>(&'a SimMemory, RefCell<Vec<(usize, bool)>>);

impl DmaSource for Noting<'_> {
    fn dma_alloc<M: MemoryType>(&self, request: &DmaRequest) -> Result<DmaBuf<M>, DmaError> {
        let noted = (request.bytes(), request.is_read_only());
        self.1.borrow_mut().push(noted);
        self.0.dma_alloc(request)
    }
}

fn kept(model: Model) -> (SimMemory, Controller, Keeper) {
    let memory = SimMemory::new();
    let device = Controller::new(&memory, model);
    let keeper = AdminKeeper::new(device.registers(), &memory, device.clone()).unwrap();
    (memory, device, keeper)
}

fn up(model: Model) -> (SimMemory, Controller, Keeper) {
    let (memory, device, mut keeper) = kept(model);
    keeper.enable().unwrap();
    (memory, device, keeper)
}

fn command(opcode: u64, namespace: u64, words: [u64; 6]) -> [u64; 8] {
    let [a, b, c, d, e, f] = words;
    let first = opcode | namespace << 32;
    [first, 0, 0, PAGE, 0, a | b << 32, c | d << 32, e | f << 32]
}

#[test]
fn a_driver_moves_blocks_by_way_of_a_keeper() {
    let (memory, device, keeper) = kept(Model {
        has_shadows: true,
        ..Model::default()
    });
    let registers = device.registers();
    let access = Access::Mediated {
        doorbells: registers.window(0x1000, 0x1000).unwrap(),
        mediator: Arc::new(Kernel),
    };
    KEEPER.set(Some((keeper, device.clone())));
    let wanted = Wanted {
        queues: 1,
        vectors: 1,
        may_be_empty: false,
    };
    let driver = nvme::Controller::open(access, memory, device.clone(), wanted);
    let mut driver = driver.unwrap();
    let mut queue = driver.start(0).unwrap().pop().unwrap();
    assert_eq!(device.queues(), [1]);
    let flush = Command {
        operation: Operation::Flush,
        sectors: SectorRange { first: 0, count: 0 },
        spans: &[],
    };
    let tag = queue.submit(&flush).unwrap();
    queue.publish();
    device.end(&device.fetch().unwrap(), 0);
    assert_eq!(queue.complete(), Ok(Some((tag, Verdict::Done))));
    KEEPER.take();
}

#[test]
fn the_device_is_to_read_submissions_and_not_to_write_them() {
    let memory = SimMemory::new();
    let device = Controller::new(&memory, Model::default());
    let noting = Noting(&memory, RefCell::default());
    AdminKeeper::new(device.registers(), &noting, device.clone()).unwrap();
    assert_eq!(noting.1.into_inner(), [(32 * 64, true), (32 * 16, false)]);
}

#[test]
fn commands_that_reach_what_is_not_the_controllers_are_not_sent() {
    let (_memory, device, mut keeper) = up(Model::default());
    let refused = |keeper: &mut Keeper, command| {
        assert_eq!(
            keeper.run(command),
            Err(Error::NotPermitted),
            "{command:x?}"
        );
    };
    for opcode in 0..256 {
        let is_known = [0, 1, 4, 5, 6, 9, 0x7c].contains(&opcode);
        for word in 0..0x120 {
            let may_be = match opcode {
                0x7c => word == 0,
                6 => word < 3,
                9 => word == 7,
                _ => is_known && word != 0,
            };
            if !may_be {
                refused(&mut keeper, command(opcode, 1, [word, 0, 0, 0, 0, 0]));
            }
        }
    }
    // Of commands that would be permitted, each field that has no meaning for us.
    for (place, word) in [
        (0, 1 << 8),
        (0, 1 << 14),
        (1, 1),
        (2, 1),
        (4, 1),
        (5, 1 << 63),
    ] {
        for place_7 in [0, 1] {
            let mut identify = command(IDENTIFY, 1, [0; 6]);
            identify[place] |= word;
            identify[7] |= place_7;
            refused(&mut keeper, identify);
        }
    }
    for words in [
        [0x8000_0007, 0, 0, 0, 0, 0],
        [7, 0, 1, 0, 0, 0],
        [7, 0, 0, 0, 1, 0],
    ] {
        let mut set = command(9, 0, words);
        set[3] = 0;
        refused(&mut keeper, set);
    }
    // To the admin queue's completions.
    refused(&mut keeper, command(1, 0, [15 << 16 | 1, 1, 0, 0, 0, 0]));
    assert_eq!(device.rung(0), 0, "nothing was sent");
}

#[test]
fn what_has_ended_is_not_carried_out_again() {
    let (memory, device, mut keeper) = up(Model::default());
    device.misbehave(Faults {
        refuses: Some(0x06),
        ..Faults::default()
    });
    for round in 0..100 {
        let ended = keeper.run(command(IDENTIFY, 1, [0; 6]));
        assert_eq!(ended, Ok((0x4002, 0)), "{round}");
        let mut entries = [1; 32 * 64];
        let at = device.registers().read64(0x28);
        memory.read(DeviceAddr(at), &mut entries).unwrap();
        assert_eq!(entries, [0; 32 * 64]);
    }
}

#[test]
fn after_a_wrong_completion_or_none_the_controller_is_down() {
    for (faults, error) in [
        (
            Faults {
                confuses: true,
                refuses: Some(6),
                ..Faults::default()
            },
            Error::Broken,
        ),
        (
            Faults {
                ignores: Some(6),
                ..Faults::default()
            },
            Error::TimedOut,
        ),
    ] {
        let (_memory, device, mut keeper) = up(Model::default());
        let ask = command(IDENTIFY, 1, [0; 6]);
        device.misbehave(faults);
        assert_eq!(keeper.run(ask), Err(error));
        assert_eq!(keeper.run(ask), Err(Error::NotReady));
        assert_eq!(device.registers().read32(0x1c), 0);
        device.misbehave(Faults {
            refuses: Some(6),
            ..Faults::default()
        });
        keeper.enable().unwrap();
        assert_eq!(keeper.run(ask), Ok((0x4002, 0)));
        keeper.was_reset();
        assert_eq!(keeper.run(ask), Err(Error::NotReady));
    }
}

#[test]
fn a_controller_that_forgets_where_its_queue_lies_is_down() {
    let (_memory, device, mut keeper) = kept(Model::default());
    device.misbehave(Faults {
        forgets_admin: true,
        ..Faults::default()
    });
    assert_eq!(keeper.enable(), Err(Error::Absent));
    assert_eq!(device.registers().read32(0x14) & 1, 0);
    assert_eq!(
        keeper.run(command(IDENTIFY, 1, [0; 6])),
        Err(Error::NotReady)
    );
    device.misbehave(Faults::default());
    keeper.enable().unwrap();
}

#[test]
fn its_memory_is_freed_when_the_device_reaches_it_no_more() {
    let (memory, device, keeper) = up(Model::default());
    drop(keeper);
    assert_eq!(memory.buffers(), 2, "the device may still write to it");
    let mut keeper = AdminKeeper::new(device.registers(), &memory, device.clone()).unwrap();
    keeper.retire();
    drop(keeper);
    assert_eq!(memory.buffers(), 2);
}
