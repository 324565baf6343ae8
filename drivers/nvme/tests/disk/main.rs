//! Disks against a simulated controller.

mod controller;
mod keeper;
mod virtual_functions;

use std::cell::{RefCell, RefMut};
use std::sync::Arc;

use base::lock::Lock;
use base::{DeviceAddr, Instant};
use block::{
    Admitted, Cache, Channel, ChannelBox, Command, Completion, Control, Done, Durability, Failure,
    Keep,
};
use block::{Operation, Order, Question, Queue, Request, SectorRange};
use controller::{Controller, Faults, Model, PAGE, Seen};
use hal::caching::WriteBack;
use hal::owner::Device as Owned;
use hal::sim::SimMemory;
use hal::{DmaBuf, DmaRequest, DmaSource, HasDeviceAddr, Span};
use nvme::{Error, Namespace, Wanted};

type Driver = nvme::Controller<SimMemory, Controller>;

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

/// The tests have one thread.
struct Cell<T>(RefCell<T>);

impl<T> Lock<T> for Cell<T> {
    type Guard<'a>
        = RefMut<'a, T>
    where
        T: 'a;

    fn new(value: T) -> Self {
        Self(RefCell::new(value))
    }

    fn lock(&self) -> RefMut<'_, T> {
        self.0.borrow_mut()
    }

    fn try_lock(&self) -> Option<RefMut<'_, T>> {
        self.0.try_borrow_mut().ok()
    }
}

struct Disk {
    memory: SimMemory,
    control: Namespace<Cell<Driver>, SimMemory, Controller>,
    queues: Vec<Queue<Memory, ChannelBox>>,
    ended: Vec<(Result<Done, Failure>, Vec<u8>)>,
    now: Instant,
}

struct Rig {
    memory: SimMemory,
    device: Controller,
    disks: Vec<Disk>,
}

fn open(memory: &SimMemory, device: &Controller) -> Result<Driver, Error> {
    let wanted = Wanted {
        queues: 2,
        vectors: 2,
        may_be_empty: false,
    };
    nvme::Controller::open(device.access(), memory.clone(), device.clone(), wanted)
}

#[expect(
    clippy::arc_with_non_send_sync,
    reason = "the bus is of one thread, as the tests are"
)]
fn rig(model: Model) -> Rig {
    let memory = SimMemory::new();
    let device = Controller::new(&memory, model);
    let driver = open(&memory, &device).unwrap();
    let count = driver.namespaces();
    let driver = Arc::new(Cell::new(driver));
    let disk = |index| {
        let (control, channels) = Namespace::start(&driver, index).unwrap();
        let order = Arc::new(Order::new());
        let queue = |channel| Queue::new(channel, control.limits(), order.clone());
        Disk {
            memory: memory.clone(),
            queues: channels.into_iter().map(queue).collect(),
            control,
            ended: Vec::new(),
            now: Instant::from_millis(1),
        }
    };
    let disks = (0..count).map(disk).collect();
    Rig {
        memory,
        device,
        disks,
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

impl Disk {
    fn ask(&mut self, operation: Operation, first: u64, count: u64) {
        self.ask_at(operation, first, count, 0);
    }

    /// With memory that begins so many bytes into a page.
    fn ask_at(&mut self, operation: Operation, first: u64, count: u64, skip: usize) {
        let memory = operation.has_data().then(|| {
            let bytes = count as usize * 512;
            let request = DmaRequest::new(skip + bytes, PAGE as usize);
            let memory: DmaBuf = self.memory.dma_alloc(&request).unwrap();
            memory.give()
        });
        let bytes = count as usize * 512;
        let spans = memory
            .iter()
            .map(|memory| memory.dev_addr(skip, bytes).unwrap());
        let request = Request {
            operation,
            sectors: SectorRange { first, count },
            keep: Memory {
                spans: spans.collect(),
                buffer: memory,
            },
        };
        let admitted = self.queues[0].submit(request, self.now);
        self.queues[0].publish();
        match admitted {
            Admitted::UnderWay => {}
            Admitted::Ended(completion) => note(&mut self.ended, completion),
            Admitted::Full(_) => panic!("there is room"),
        }
    }

    fn complete(&mut self) {
        let Self {
            queues, ended, now, ..
        } = self;
        for queue in queues {
            queue.complete(*now, &mut |completion| note(ended, completion));
        }
    }

    /// As the kernel does it with a disk that is stuck; whether it came up.
    fn recover(&mut self) -> bool {
        self.control.stop();
        self.queues.iter_mut().for_each(Queue::stop);
        let Ok(channels) = self.control.start() else {
            return false;
        };
        let Self {
            queues, ended, now, ..
        } = self;
        for (queue, channel) in queues.iter_mut().zip(channels) {
            queue.restart(channel, *now, &mut |completion| note(ended, completion));
        }
        true
    }
}

impl Rig {
    fn fetch(&self) -> Seen {
        self.device.fetch().expect("there is a command")
    }

    /// Ends a command of the first disk.
    fn end(&mut self, seen: &Seen, status: u16) {
        self.device.end(seen, status);
        self.disks[0].complete();
    }
}

const WRITE: Operation = Operation::Write(Durability::Volatile);

#[test]
fn what_a_controller_says_of_itself_is_taken_as_limits() {
    let rig = rig(Model {
        namespaces: vec![(1000, 12, 0)],
        transfer_max: 4,
        ..Model::default()
    });
    let limits = rig.disks[0].control.limits();
    assert_eq!((limits.sectors, limits.block_bytes), (8000, 4096));
    assert_eq!(limits.command_bytes_max, 65536);
    assert_eq!(limits.cache, Cache::WriteBack { forces: true });
    assert!(limits.discard.is_some() && limits.zeroes.is_some());
    assert_eq!(rig.device.queues(), [1, 2]);
}

#[test]
fn a_controller_without_cache_or_optional_commands_has_limits_without_them() {
    let rig = rig(Model {
        optional: 0,
        has_cache: false,
        ..Model::default()
    });
    let limits = rig.disks[0].control.limits();
    assert_eq!(limits.cache, Cache::WriteThrough);
    assert_eq!((limits.discard, limits.zeroes), (None, None));
}

#[test]
fn namespaces_that_cannot_be_disks_are_passed_over() {
    let rig = rig(Model {
        namespaces: vec![(100, 9, 8), (0, 9, 0), (100, 20, 0), (100, 9, 0)],
        ..Model::default()
    });
    assert_eq!(rig.disks.len(), 1);
    assert_eq!(rig.disks[0].control.limits().sectors, 100);
    let memory = SimMemory::new();
    let device = Controller::new(&memory, Model::default());
    device.change(|model| model.namespaces = vec![(0, 9, 0)]);
    assert_eq!(open(&memory, &device).err(), Some(Error::NoNamespace));
    assert_eq!(memory.buffers(), 0, "nothing is kept of it");
}

#[test]
fn few_queues_are_divided_among_the_namespaces() {
    let namespaces = vec![(100, 9, 0); 3];
    for (queues, disks, each) in [(8, 3, 2), (5, 3, 1), (2, 2, 1)] {
        let model = Model {
            namespaces: namespaces.clone(),
            queues,
            ..Model::default()
        };
        let rig = rig(model);
        assert_eq!(rig.disks.len(), disks);
        assert!(rig.disks.iter().all(|disk| disk.queues.len() == each));
        assert_eq!(rig.device.queues().len(), disks * each);
    }
}

#[test]
fn a_command_says_its_blocks_and_its_pages() {
    let mut rig = rig(Model {
        namespaces: vec![(1000, 12, 0)],
        ..Model::default()
    });
    rig.disks[0].ask(Operation::Read, 80, 8);
    let seen = rig.fetch();
    assert_eq!(
        (seen.opcode, seen.namespace, seen.words),
        (2, 1, [10, 0, 0])
    );
    rig.memory
        .write(DeviceAddr(seen.pages[0]), &[7; 4096])
        .unwrap();
    rig.end(&seen, 0);
    assert_eq!(rig.disks[0].ended, [(Ok(Done::Read), vec![7; 4096])]);
}

#[test]
fn memory_of_one_two_or_more_pages_is_told_as_the_standard_wants_it() {
    let mut rig = rig(Model::default());
    // Sectors, bytes into the first page, pages.
    for (count, skip, pages) in [
        (1, 512, 1),
        (8, 0, 1),
        (8, 512, 2),
        (16, 0, 2),
        (1000, 512, 126),
    ] {
        rig.disks[0].ask_at(WRITE, 0, count, skip);
        let seen = rig.fetch();
        assert_eq!(seen.words[2], count as u32 - 1);
        let first = seen.pages[0];
        assert_eq!(first % PAGE, skip as u64);
        let start = first - first % PAGE;
        match pages {
            1 => assert_eq!(seen.pages[1], 0),
            2 => assert_eq!(seen.pages[1], start + PAGE),
            pages => {
                let mut list = vec![0; (pages - 1) * 8];
                assert!(seen.pages[1] % PAGE + list.len() as u64 <= PAGE);
                rig.memory
                    .read(DeviceAddr(seen.pages[1]), &mut list)
                    .unwrap();
                for (index, at) in list.chunks(8).enumerate() {
                    let at = u64::from_le_bytes(at.try_into().unwrap());
                    assert_eq!(at, start + (index as u64 + 1) * PAGE);
                }
            }
        }
        rig.end(&seen, 0);
    }
}

#[test]
fn a_forced_write_says_so_and_needs_no_flush() {
    let mut rig = rig(Model::default());
    rig.disks[0].ask(Operation::Write(Durability::Forced), 8, 1);
    let seen = rig.fetch();
    assert_eq!((seen.opcode, seen.words), (1, [8, 0, 1 << 30]));
    rig.end(&seen, 0);
    assert!(matches!(
        rig.disks[0].ended[..],
        [(Ok(Done::Durable(_)), _)]
    ));
    assert_eq!(rig.device.fetch(), None);
}

#[test]
fn a_controller_that_does_not_act_on_forced_writes_gets_a_flush_after_each() {
    let rig = rig(Model {
        name: "QEMU NVMe Ctrl",
        ..Model::default()
    });
    let limits = rig.disks[0].control.limits();
    assert_eq!(limits.cache, Cache::WriteBack { forces: false });
}

#[test]
fn flushes_discards_and_zeroes_move_no_memory_of_the_callers() {
    let mut rig = rig(Model::default());
    rig.disks[0].ask(Operation::Flush, 0, 0);
    let seen = rig.fetch();
    assert_eq!((seen.opcode, seen.words, seen.pages), (0, [0; 3], [0; 2]));
    rig.end(&seen, 0);
    rig.disks[0].ask(Operation::WriteZeroes { may_unmap: true }, 16, 8);
    let seen = rig.fetch();
    assert_eq!((seen.opcode, seen.words), (8, [16, 0, 1 << 25 | 7]));
    rig.end(&seen, 0);
    rig.disks[0].ask(Operation::Discard, 64, 128);
    let seen = rig.fetch();
    assert_eq!((seen.opcode, seen.words), (9, [0, 4, 0]));
    let mut range = [0; 16];
    rig.memory
        .read(DeviceAddr(seen.pages[0]), &mut range)
        .unwrap();
    let expected = [0, 128u32, 64, 0].map(u32::to_le_bytes).concat();
    assert_eq!(range[..], expected[..]);
    rig.end(&seen, 0);
    assert!(rig.disks[0].ended.iter().all(|(result, _)| result.is_ok()));
}

#[test]
fn whatever_the_status_says_the_caller_hears_of_it() {
    // An unknown command, an unknown field; out of range, unrecovered read, of a kind nobody knows.
    let cases = [
        (0x001, Failure::Unsupported),
        (0x4002, Failure::Unsupported),
        (0x080, Failure::Medium),
        (0x281, Failure::Medium),
        (0x7ff, Failure::Medium),
    ];
    for (status, failure) in cases {
        let mut rig = rig(Model::default());
        rig.disks[0].ask(Operation::Read, 0, 1);
        let seen = rig.fetch();
        rig.end(&seen, status);
        assert_eq!(rig.disks[0].ended[0].0, Err(failure));
    }
}

#[test]
fn commands_end_in_any_order_around_the_ring() {
    let mut rig = rig(Model {
        entries: 8,
        ..Model::default()
    });
    for first in 0..100 {
        rig.disks[0].ask(Operation::Read, first, 1);
    }
    while rig.disks[0].ended.len() < 100 {
        let mut seen: Vec<_> = std::iter::from_fn(|| rig.device.fetch()).collect();
        assert!((1..8).contains(&seen.len()));
        seen.reverse();
        seen.iter().for_each(|seen| rig.device.end(seen, 0));
        rig.disks[0].complete();
    }
    assert!(rig.disks[0].ended.iter().all(|(result, _)| result.is_ok()));
}

#[test]
fn a_completion_that_makes_no_sense_breaks_its_queue_only() {
    // Identifier, head of the submissions, queue.
    for (id, head, queue) in [(9, 1, 1), (4000, 1, 1), (0, 64, 1), (0, 1, 2)] {
        let mut rig = rig(Model {
            namespaces: vec![(4096, 9, 0); 2],
            ..Model::default()
        });
        rig.disks[0].ask(Operation::Read, 5, 1);
        rig.fetch();
        rig.device.end_raw(1, id, head, queue);
        rig.disks[0].complete();
        assert!(rig.disks[0].queues[0].is_broken(), "{id} {head} {queue}");
        assert!(rig.disks[0].recover());
        assert_eq!(rig.device.resets(), 0, "its queues were made anew");
        let again = rig.fetch();
        assert_eq!((again.opcode, again.words[0]), (2, 5));
        rig.end(&again, 0);
        assert_eq!(rig.disks[0].ended[0].0, Ok(Done::Read));
        rig.disks[1].ask(Operation::Read, 6, 1);
        let other = rig.fetch();
        rig.device.end(&other, 0);
        rig.disks[1].complete();
        assert_eq!(rig.disks[1].ended[0].0, Ok(Done::Read));
    }
}

#[test]
fn a_controller_that_does_not_forget_a_queue_is_reset_and_all_disks_start_anew() {
    for opcode in [0x00, 0x04] {
        let mut rig = rig(Model {
            namespaces: vec![(4096, 9, 0); 2],
            ..Model::default()
        });
        for disk in &mut rig.disks {
            disk.ask(Operation::Read, 5, 1);
        }
        rig.fetch();
        rig.device.misbehave(Faults {
            ignores: Some(opcode),
            ..Faults::default()
        });
        rig.disks[0].control.stop();
        assert_eq!(rig.device.resets(), 1);
        rig.device.misbehave(Faults::default());
        assert!(rig.disks[0].recover());
        // The other hears of it when it looks.
        rig.disks[1].complete();
        assert!(rig.disks[1].queues[0].is_broken());
        assert!(rig.disks[1].recover());
        assert_eq!(rig.device.resets(), 1);
        for number in 0..2 {
            let seen = rig.fetch();
            rig.device.end(&seen, 0);
            rig.disks[number].complete();
            assert_eq!(rig.disks[number].ended[0].0, Ok(Done::Read));
        }
    }
}

#[test]
fn a_controller_that_does_not_stop_is_kept_from_memory() {
    let mut rig = rig(Model::default());
    rig.disks[0].ask(Operation::Read, 5, 1);
    rig.device.misbehave(Faults {
        ignores: Some(0),
        never_off: true,
        ..Faults::default()
    });
    assert!(!rig.disks[0].recover());
    assert!(!rig.device.reaches_memory());
}

#[test]
fn a_controller_that_does_not_come_up_is_refused_and_keeps_no_memory() {
    let faults = [
        (
            Error::NotReady,
            Faults {
                never_ready: true,
                ..Faults::default()
            },
        ),
        (
            Error::TimedOut,
            Faults {
                ignores: Some(6),
                ..Faults::default()
            },
        ),
        (
            Error::Refused(0x4002),
            Faults {
                refuses: Some(6),
                ..Faults::default()
            },
        ),
        (
            Error::Refused(0x4002),
            Faults {
                refuses: Some(9),
                ..Faults::default()
            },
        ),
        (
            Error::Broken,
            Faults {
                confuses: true,
                ..Faults::default()
            },
        ),
    ];
    for (error, faults) in faults {
        let memory = SimMemory::new();
        let device = Controller::new(&memory, Model::default());
        device.misbehave(faults);
        assert_eq!(open(&memory, &device).err(), Some(error));
        assert_eq!(memory.buffers(), 0, "{faults:?}");
    }
}

#[test]
fn queues_that_cannot_be_made_leave_nothing_behind() {
    let memory = SimMemory::new();
    let device = Controller::new(&memory, Model::default());
    let mut driver = open(&memory, &device).unwrap();
    for opcode in [0x05, 0x01] {
        device.misbehave(Faults {
            refuses: Some(opcode),
            ..Faults::default()
        });
        assert!(driver.start(0).is_err());
        device.misbehave(Faults::default());
    }
    assert_eq!(memory.buffers(), 0);
    assert_eq!(
        driver.start(0).unwrap().len(),
        2,
        "and nothing stands in the way"
    );
}

#[test]
fn a_disk_that_is_started_anew_gives_its_old_rings_back() {
    let mut rig = rig(Model::default());
    let before = rig.memory.buffers();
    for _ in 0..10 {
        assert!(rig.disks[0].recover());
        assert_eq!(rig.memory.buffers(), before);
    }
}

#[test]
fn a_namespace_that_grows_is_asked_for_its_size() {
    let mut rig = rig(Model::default());
    rig.device.change(|model| model.namespaces[0].0 = 8192);
    assert_eq!(rig.disks[0].control.limits().sectors, 4096);
    assert_eq!(rig.disks[0].control.refresh().sectors, 8192);
}

#[test]
fn doorbells_in_memory_are_rung_only_while_the_controller_does_not_look() {
    let mut rig = rig(Model {
        has_shadows: true,
        ..Model::default()
    });
    rig.disks[0].ask(Operation::Read, 0, 1);
    assert_eq!(rig.device.rung(1), 1, "it slept");
    // It has not looked since.
    rig.disks[0].ask(Operation::Read, 1, 1);
    rig.disks[0].ask(Operation::Read, 2, 1);
    assert_eq!(rig.device.rung(1), 1);
    for first in 0..3 {
        let seen = rig.fetch();
        assert_eq!(seen.words[0], first);
        rig.end(&seen, 0);
    }
    rig.disks[0].ask(Operation::Read, 3, 1);
    assert_eq!(rig.device.rung(1), 4, "it slept again");
    let seen = rig.fetch();
    rig.end(&seen, 0);
    assert!(rig.disks[0].recover());
    rig.disks[0].ask(Operation::Read, 4, 1);
    assert_eq!((rig.device.rung(1), rig.fetch().words[0]), (1, 4));
}

#[test]
fn a_controller_that_refuses_doorbells_in_memory_has_registers() {
    let memory = SimMemory::new();
    let model = Model {
        has_shadows: true,
        ..Model::default()
    };
    let device = Controller::new(&memory, model);
    device.misbehave(Faults {
        refuses: Some(0x7c),
        ..Faults::default()
    });
    let mut driver = open(&memory, &device).unwrap();
    assert_eq!(driver.start(0).unwrap().len(), 2);
}

#[test]
fn what_only_asks_is_passed_on_and_nothing_else() {
    let mut rig = rig(Model::default());
    let control = &mut rig.disks[0].control;
    let mut question = Question {
        opcode: 0x06,
        namespace: 0,
        words: [1, 0, 0, 0, 0, 0],
    };
    let mut answer = [0; 4096];
    let reply = control.ask(&question, &mut answer).unwrap();
    assert_eq!((reply.status, &answer[4..12]), (0, &b"SERIAL 1"[..]));
    let too_long = control.ask(&question, &mut [0; 4097]);
    assert_eq!(too_long, Err(Failure::Unsupported));
    // Delete and create queues, set features, format, firmware, security, and what vendors have.
    for opcode in [
        0x00, 0x01, 0x04, 0x05, 0x09, 0x10, 0x7c, 0x80, 0x81, 0xc0, 0xff,
    ] {
        question.opcode = opcode;
        let refused = control.ask(&question, &mut answer);
        assert_eq!(refused, Err(Failure::Unsupported), "{opcode:#x}");
    }
    rig.device.misbehave(Faults {
        refuses: Some(0x06),
        ..Faults::default()
    });
    question.opcode = 0x06;
    let control = &mut rig.disks[0].control;
    let reply = control.ask(&question, &mut answer).unwrap();
    assert_eq!((reply.status, answer), (0x4002, [0; 4096]));
}

#[test]
fn a_namespace_that_was_formatted_meanwhile_is_not_started_anew() {
    let mut rig = rig(Model {
        namespaces: vec![(4096, 9, 0); 2],
        ..Model::default()
    });
    rig.device
        .change(|model| model.namespaces[0] = (512, 12, 0));
    assert_eq!(
        rig.disks[0].control.refresh().sectors,
        4096,
        "nothing is believed"
    );
    assert!(!rig.disks[0].recover());
    assert!(rig.disks[1].recover(), "its neighbour is as it was");
    assert_eq!(rig.device.resets(), 0);
}

#[test]
fn a_controller_whose_queues_hold_nothing_is_refused() {
    let memory = SimMemory::new();
    let model = Model {
        entries: 1,
        ..Model::default()
    };
    let device = Controller::new(&memory, model);
    assert_eq!(open(&memory, &device).err(), Some(Error::NotSupported));
}

#[test]
fn who_takes_one_at_a_time_and_waits_has_told_how_far_it_is() {
    let memory = SimMemory::new();
    let device = Controller::new(&memory, Model::default());
    let mut driver = open(&memory, &device).unwrap();
    let mut channels = driver.start(0).unwrap();
    for round in 1..=5 {
        let flush = Command {
            operation: Operation::Flush,
            sectors: SectorRange { first: 0, count: 0 },
            spans: &[],
        };
        channels[0].submit(&flush).unwrap();
        channels[0].publish();
        let seen = device.fetch().expect("there is a command");
        assert!(!channels[0].arm(), "nothing has ended");
        device.end(&seen, 0);
        assert!(channels[0].arm(), "it has ended");
        assert!(channels[0].complete().unwrap().is_some());
        assert!(!channels[0].arm());
        assert_eq!(device.head_told(1), round);
    }
}

#[test]
fn who_looks_for_ends_tells_how_far_it_is_only_when_there_would_be_no_room() {
    for has_shadows in [false, true] {
        let memory = SimMemory::new();
        let model = Model {
            entries: 8,
            has_shadows,
            ..Model::default()
        };
        let device = Controller::new(&memory, model);
        let mut driver = open(&memory, &device).unwrap();
        let mut channels = driver.start(0).unwrap();
        let (mut told, mut last) = (0, 0);
        // One at a time, several, and as many as there can be.
        let depths = [1; 70].into_iter().chain([3, 7, 1, 2, 7, 7]);
        for depth in depths {
            let flush = Command {
                operation: Operation::Flush,
                sectors: SectorRange { first: 0, count: 0 },
                spans: &[],
            };
            for _ in 0..depth {
                channels[0].submit(&flush).unwrap();
            }
            channels[0].publish();
            // The controller looks whether there is room for each of them.
            for _ in 0..depth {
                let seen = device.fetch().expect("there is a command");
                device.end(&seen, 0);
                assert!(channels[0].complete().unwrap().is_some());
                assert!(channels[0].complete().unwrap().is_none());
            }
            told += u32::from(device.head_told(1) != last);
            last = device.head_told(1);
        }
        assert!((1..=70 / 7 + 6).contains(&told), "{told}");
    }
}
