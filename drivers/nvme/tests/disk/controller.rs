//! A simulated controller: it acts when the driver's clock is read or the test says so.

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

use base::{DeviceAddr, Duration, Instant};
use hal::Mmio;
use hal::sim::SimMemory;
use nvme::{Access, Clock, Machine};

pub const PAGE: u64 = 4096;

/// A command as the controller reads it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    pub queue: u16,
    pub opcode: u8,
    pub id: u16,
    pub namespace: u32,
    pub pages: [u64; 2],
    pub words: [u32; 3],
}

#[derive(Default)]
struct Queue {
    submissions: u64,
    completions: u64,
    entries: u16,
    head: u16,
    tail: u16,
    phase: bool,
}

/// How it misbehaves.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Faults {
    /// It never gets ready.
    pub never_ready: bool,
    /// It never stops being ready.
    pub never_off: bool,
    /// It takes admin commands of this kind and does not end them.
    pub ignores: Option<u8>,
    /// It refuses admin commands of this kind.
    pub refuses: Option<u8>,
    /// It forgets where its admin queue lies when it gets ready.
    pub forgets_admin: bool,
    /// It ends admin commands with another identifier.
    pub confuses: bool,
}

/// What it is.
#[derive(Clone, Debug)]
pub struct Model {
    pub name: &'static str,
    /// Blocks, shift of a block's size, bytes of metadata.
    pub namespaces: Vec<(u64, u8, u16)>,
    pub queues: u16,
    pub entries: u16,
    pub transfer_max: u8,
    pub optional: u16,
    pub has_cache: bool,
    pub has_shadows: bool,
    /// Controllers of virtual functions: their number is that of the function and 100.
    pub secondaries: Vec<Tenant>,
    /// The list of them says that there are so many.
    pub secondaries_said: Option<u8>,
    /// Flexible queues and interrupts, and how many one may have.
    pub flexible: [(u32, u16); 2],
}

/// A controller of a virtual function.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tenant {
    pub function: u16,
    pub queues: u16,
    pub interrupts: u16,
    pub is_online: bool,
    /// How often it was reset.
    pub resets: u32,
    pub namespaces: Vec<u32>,
}

impl Default for Model {
    fn default() -> Self {
        Self {
            name: "Model",
            namespaces: vec![(4096, 9, 0)],
            queues: 8,
            entries: 64,
            transfer_max: 0,
            optional: 1 << 2 | 1 << 3,
            has_cache: true,
            has_shadows: false,
            secondaries: Vec::new(),
            secondaries_said: None,
            flexible: [(8, 4), (4, 2)],
        }
    }
}

struct State {
    memory: SimMemory,
    registers: Mmio,
    model: Model,
    faults: Faults,
    queues: BTreeMap<u16, Queue>,
    completions: BTreeMap<u16, (u64, u16)>,
    pending: VecDeque<Seen>,
    /// Where doorbells are in memory, and where it says how far it looks by itself.
    shadows: Option<(u64, u64)>,
    now: Instant,
    reaches_memory: bool,
    resets: u32,
}

/// The controller; clones share it.
#[derive(Clone)]
pub struct Controller(Rc<RefCell<State>>);

impl Controller {
    pub fn new(memory: &SimMemory, model: Model) -> Self {
        let registers = memory.registers(0x2000 / 8);
        let cap = u64::from(model.entries - 1) | 1 << 16 | 3 << 24 | 1 << 37;
        registers.write64(0, cap);
        registers.write32(8, 0x0001_0400);
        Self(Rc::new(RefCell::new(State {
            memory: memory.clone(),
            registers,
            model,
            faults: Faults::default(),
            queues: BTreeMap::new(),
            completions: BTreeMap::new(),
            pending: VecDeque::new(),
            shadows: None,
            now: Instant::from_millis(1),
            reaches_memory: true,
            resets: 0,
        })))
    }

    pub fn registers(&self) -> Mmio {
        let state = self.0.borrow();
        state.registers.window(0, state.registers.bytes()).unwrap()
    }

    /// All of it, for its driver.
    pub fn access(&self) -> Access {
        Access::Whole(self.registers())
    }

    pub fn misbehave(&self, faults: Faults) {
        self.0.borrow_mut().faults = faults;
    }

    pub fn change(&self, change: impl FnOnce(&mut Model)) {
        change(&mut self.0.borrow_mut().model);
    }

    pub fn resets(&self) -> u32 {
        self.0.borrow().resets
    }

    pub fn reaches_memory(&self) -> bool {
        self.0.borrow().reaches_memory
    }

    /// Numbers of the I/O queues that it knows.
    pub fn queues(&self) -> Vec<u16> {
        self.0
            .borrow()
            .queues
            .keys()
            .copied()
            .filter(|queue| *queue != 0)
            .collect()
    }

    /// What the doorbell of a queue's submissions was last rung with.
    pub fn rung(&self, queue: u16) -> u32 {
        self.0
            .borrow()
            .registers
            .read32(0x1000 + usize::from(queue) * 8)
    }

    /// Up to where a queue's completions were taken, as it was last told.
    pub fn head_told(&self, queue: u16) -> u32 {
        self.0.borrow().head_told(queue).into()
    }

    /// The next command of an I/O queue.
    pub fn fetch(&self) -> Option<Seen> {
        let mut state = self.0.borrow_mut();
        state.run();
        state.pending.pop_front()
    }

    /// Ends a command.
    pub fn end(&self, seen: &Seen, status: u16) {
        self.0.borrow_mut().end(seen.queue, seen.id, status, 0);
    }

    /// Ends a command as no controller should: the words as they are, with the right phase.
    pub fn end_raw(&self, queue: u16, id: u16, submissions_head: u16, number: u16) {
        self.0
            .borrow_mut()
            .end_raw(queue, id, submissions_head, number);
    }
}

impl Clock for Controller {
    fn now(&self) -> Instant {
        let mut state = self.0.borrow_mut();
        state.run();
        state.now += Duration::from_millis(100);
        state.now
    }

    fn pause(&self) {}
}

impl Machine for Controller {
    fn let_reach_memory(&self, may: bool) {
        self.0.borrow_mut().reaches_memory = may;
    }
}

impl State {
    fn run(&mut self) {
        let enabled = self.registers.read32(0x14) & 1 != 0;
        let ready = self.registers.read32(0x1c) & 1 != 0;
        if enabled && !ready && !self.faults.never_ready {
            assert_eq!(self.registers.read32(0x14) >> 16, 0x46, "sizes of entries");
            self.registers.write32(0x1c, 1);
            if self.faults.forgets_admin {
                self.registers.write64(0x28, 0);
            }
            let sizes = self.registers.read32(0x24);
            assert_eq!(sizes >> 16, sizes & 0xffff);
            let admin = Queue {
                submissions: self.registers.read64(0x28),
                completions: self.registers.read64(0x30),
                entries: (sizes & 0xfff) as u16 + 1,
                phase: true,
                ..Queue::default()
            };
            self.queues.insert(0, admin);
            for doorbell in (0x1000..0x2000).step_by(4) {
                self.registers.write32(doorbell, 0);
            }
        }
        if !enabled && ready && !self.faults.never_off {
            self.registers.write32(0x1c, 0);
            self.queues.clear();
            self.shadows = None;
            self.pending.clear();
            self.resets += 1;
            self.model.secondaries.iter_mut().for_each(Tenant::stop);
        }
        if enabled && ready {
            self.fetch_all();
        }
    }

    fn fetch_all(&mut self) {
        let numbers: Vec<_> = self.queues.keys().copied().collect();
        for number in numbers {
            while let Some(seen) = self.fetch_one(number) {
                match number {
                    0 => self.admin(&seen),
                    _ => self.pending.push_back(seen),
                }
            }
        }
    }

    fn fetch_one(&mut self, number: u16) -> Option<Seen> {
        let at_bell = usize::from(number) * 8;
        let mut tail = self.registers.read32(0x1000 + at_bell) as u16;
        let shadows = self.shadows.filter(|_| number != 0);
        if let Some((doorbells, _)) = shadows {
            let mut word = [0; 4];
            let at = DeviceAddr(doorbells + at_bell as u64);
            self.memory.read(at, &mut word).unwrap();
            tail = u32::from_le_bytes(word) as u16;
        }
        let queue = self.queues.get_mut(&number)?;
        assert!(
            tail < queue.entries,
            "the doorbell of queue {number} says {tail}"
        );
        if queue.head == tail {
            return None;
        }
        let mut bytes = [0; 64];
        let at = queue.submissions + u64::from(queue.head) * 64;
        self.memory.read(DeviceAddr(at), &mut bytes).unwrap();
        queue.head = (queue.head + 1) % queue.entries;
        if let Some((_, events)) = shadows {
            let event = u32::from(queue.head).to_le_bytes();
            let at = DeviceAddr(events + at_bell as u64);
            self.memory.write(at, &event).unwrap();
        }
        let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
        let quad = |at: usize| u64::from(word(at + 4)) << 32 | u64::from(word(at));
        Some(Seen {
            queue: number,
            opcode: bytes[0],
            id: (word(0) >> 16) as u16,
            namespace: word(4),
            pages: [quad(24), quad(32)],
            words: [word(40), word(44), word(48)],
        })
    }

    /// Up to where a queue's completions were taken, as far as it can know.
    fn head_told(&self, number: u16) -> u16 {
        let at = usize::from(number) * 8 + 4;
        let Some((doorbells, _)) = self.shadows.filter(|_| number != 0) else {
            return self.registers.read32(0x1000 + at) as u16;
        };
        let mut word = [0; 4];
        let at = DeviceAddr(doorbells + at as u64);
        self.memory.read(at, &mut word).unwrap();
        u32::from_le_bytes(word) as u16
    }

    fn end(&mut self, number: u16, id: u16, status: u16, result: u32) {
        let head = self.head_told(number);
        let Some(queue) = self.queues.get_mut(&number) else {
            return;
        };
        let next = (queue.tail + 1) % queue.entries;
        assert_ne!(next, head, "there is no room in queue {number}");
        let at = queue.completions + u64::from(queue.tail) * 16;
        let words = [
            result,
            0,
            u32::from(number) << 16 | u32::from(queue.head),
            u32::from(status) << 17 | u32::from(queue.phase) << 16 | u32::from(id),
        ];
        let bytes: Vec<_> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        self.memory.write(DeviceAddr(at), &bytes).unwrap();
        queue.tail = next;
        queue.phase ^= queue.tail == 0;
    }

    fn end_raw(&mut self, number: u16, id: u16, submissions_head: u16, said: u16) {
        let queue = &self.queues[&number];
        let at = queue.completions + u64::from(queue.tail) * 16;
        let words = [
            0,
            0,
            u32::from(said) << 16 | u32::from(submissions_head),
            u32::from(queue.phase) << 16 | u32::from(id),
        ];
        let bytes: Vec<_> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        self.memory.write(DeviceAddr(at), &bytes).unwrap();
    }

    fn admin(&mut self, seen: &Seen) {
        if self.faults.ignores == Some(seen.opcode) {
            return;
        }
        let id = seen.id ^ u16::from(self.faults.confuses);
        if self.faults.refuses == Some(seen.opcode) {
            return self.end(0, id, 0x4002, 0);
        }
        let number = seen.words[0] as u16;
        let entries = (seen.words[0] >> 16) as u16 + 1;
        let mut result = 0;
        match seen.opcode {
            0x00 => {
                self.queues.remove(&number).expect("it was made");
                self.pending.retain(|pending| pending.queue != number);
                self.registers.write32(0x1000 + usize::from(number) * 8, 0);
            }
            0x01 => {
                let (completions, size) = self.completions[&number];
                assert_eq!(
                    (seen.words[1], size),
                    (u32::from(number) << 16 | 1, entries)
                );
                let queue = Queue {
                    submissions: seen.pages[0],
                    completions,
                    entries,
                    phase: true,
                    ..Queue::default()
                };
                assert!(self.queues.insert(number, queue).is_none());
            }
            0x04 => _ = self.completions.remove(&number).expect("it was made"),
            0x05 => {
                assert_eq!(seen.words[1] & 0xffff, 3, "contiguous, with interrupts");
                self.completions.insert(number, (seen.pages[0], entries));
            }
            0x06 => {
                let page = self.identify(seen.words[0], seen.namespace);
                self.memory.write(DeviceAddr(seen.pages[0]), &page).unwrap();
            }
            0x09 => {
                assert_eq!(seen.words[0], 7);
                let last = u32::from(self.model.queues - 1);
                result = last << 16 | last;
            }
            0x15 | 0x1c => {
                let status = self.rule(seen);
                return self.end(0, id, status, 0);
            }
            0x7c => self.shadows = Some((seen.pages[0], seen.pages[1])),
            opcode => panic!("command {opcode:#x}"),
        }
        self.end(0, id, 0, result);
    }

    /// Virtualization Management and Namespace Attachment; returns the status.
    fn rule(&mut self, seen: &Seen) -> u16 {
        const INVALID_STATE: u16 = 0x120;
        const INVALID_CONTROLLER: u16 = 0x11f;
        let mut list = [0; 4];
        let place = seen.words[0];
        let controller = match seen.opcode {
            0x1c => (place >> 16) as u16,
            _ => {
                self.memory
                    .read(DeviceAddr(seen.pages[0]), &mut list)
                    .unwrap();
                assert_eq!(list[..2], [1, 0], "one controller");
                u16::from_le_bytes([list[2], list[3]])
            }
        };
        let mut all = self.model.secondaries.iter_mut();
        let Some(tenant) = all.find(|one| one.function + 100 == controller) else {
            return INVALID_CONTROLLER;
        };
        let count = seen.words[1] as u16;
        match (seen.opcode, place & 0xffff) {
            (0x15, 0) => tenant.namespaces.push(seen.namespace),
            (0x15, 1) => tenant.namespaces.retain(|one| *one != seen.namespace),
            (0x1c, 7) => tenant.stop(),
            (0x1c, 8 | 0x108) if tenant.is_online => return INVALID_STATE,
            (0x1c, 8) => tenant.queues = count,
            (0x1c, 0x108) => tenant.interrupts = count,
            (0x1c, 9) if tenant.queues < 2 || tenant.interrupts == 0 => return INVALID_STATE,
            (0x1c, 9) => tenant.is_online = true,
            what => panic!("{what:x?}"),
        }
        0
    }

    fn identify(&self, what: u32, namespace: u32) -> Vec<u8> {
        let mut page = vec![0; PAGE as usize];
        let model = &self.model;
        match what {
            1 => {
                page[4..24].copy_from_slice(b"SERIAL 1            ");
                page[24..64].fill(b' ');
                page[24..24 + model.name.len()].copy_from_slice(model.name.as_bytes());
                page[257] = u8::from(model.has_shadows);
                page[77] = model.transfer_max;
                page[516] = model.namespaces.len() as u8;
                page[520..522].copy_from_slice(&model.optional.to_le_bytes());
                page[525] = u8::from(model.has_cache);
            }
            2 => {
                for (index, _) in model.namespaces.iter().enumerate() {
                    page[index * 4] = index as u8 + 1;
                }
            }
            0 => {
                let (blocks, shift, metadata) = model.namespaces[namespace as usize - 1];
                page[0..8].copy_from_slice(&blocks.to_le_bytes());
                page[33] = 1 << 3;
                page[128..130].copy_from_slice(&metadata.to_le_bytes());
                page[130] = shift;
            }
            0x14 => {
                for (at, (total, each)) in [32, 64].into_iter().zip(model.flexible) {
                    page[at..at + 4].copy_from_slice(&total.to_le_bytes());
                    page[at + 12..at + 14].copy_from_slice(&each.to_le_bytes());
                }
            }
            0x15 => {
                let count = model.secondaries.len() as u8;
                page[0] = model.secondaries_said.unwrap_or(count);
                for (tenant, at) in model.secondaries.iter().zip((32..).step_by(32)) {
                    let words = [
                        (0, tenant.function + 100),
                        (4, tenant.is_online.into()),
                        (8, tenant.function),
                        (10, tenant.queues),
                        (12, tenant.interrupts),
                    ];
                    for (offset, word) in words {
                        page[at + offset..at + offset + 2].copy_from_slice(&word.to_le_bytes());
                    }
                }
            }
            what => panic!("structure {what}"),
        }
        page
    }
}

impl Tenant {
    /// What being taken offline does.
    fn stop(&mut self) {
        self.resets += u32::from(self.is_online);
        (self.queues, self.interrupts, self.is_online) = (0, 0, false);
    }
}
