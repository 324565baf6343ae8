//! A unit as the specification describes it: it walks tables in the simulated memory,
//! remembers what it found until it is told to forget it, and records what it refuses.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;
use std::vec::Vec;

use base::DeviceAddr;
use hal::Registers;
use hal::pci::PciAddress;
use hal::sim::SimMemory;

/// Capabilities of a common unit: 16-bit domains, 3 levels, a fault register at 0x220.
const CAPABILITIES: u64 = 6 | 1 << 9 | 0x22 << 24 | 1 << 54 | 1 << 55;
pub const LEVELS_4: u64 = 1 << 10;
pub const LARGE_PAGES: u64 = 1 << 34;
pub const CACHING_MODE: u64 = 1 << 7;
pub const WRITE_BUFFER_FLUSH: u64 = 1 << 4;
pub const FAULTS_AT: usize = 0x220;
const QUEUE: u64 = 1 << 1;
const REMAPS_INTERRUPTS: u64 = 1 << 3;
const BYTES: usize = 4096;

const TRANSLATION: u32 = 1 << 31;
const SET_ROOT_TABLE: u32 = 1 << 30;
const QUEUED_INVALIDATION: u32 = 1 << 26;
const INTERRUPT_REMAPPING: u32 = 1 << 25;
const SET_INTERRUPT_TABLE: u32 = 1 << 24;
/// What the status shows of commands.
const STATES: u32 = TRANSLATION | 1 << 28 | QUEUED_INVALIDATION | 1 << 25 | 1 << 23;
const IS_FULL: u32 = 1 << 31;
const IS_READ: u32 = 1 << 30;

/// Why the model refuses, as it records it.
const NO_ROOT: u8 = 1;
const NO_CONTEXT: u8 = 2;
const BEYOND: u8 = 4;
const NO_WRITE: u8 = 5;
const NO_READ: u8 = 6;
const NO_ENTRY: u8 = 0x22;
const VECTOR_BLOCKED: u8 = 0x25;
const NOT_ITS_OWN: u8 = 0x26;

/// A handle; clones share the unit.
#[derive(Clone)]
pub struct Model {
    state: Rc<RefCell<State>>,
    memory: SimMemory,
}

struct State {
    words: Vec<u32>,
    capabilities: u64,
    extended: u64,
    root: u64,
    head: usize,
    faults: Vec<[u32; 4]>,
    next_fault: usize,
    contexts: HashMap<u16, Option<Context>>,
    translations: HashMap<(u16, u64), Option<u64>>,
    interrupt_table: u64,
    /// Entries of that which are remembered.
    entries: HashMap<u8, [u64; 2]>,
    /// Invalidations that were done.
    forgotten: usize,
    interrupts: Vec<(u32, u32)>,
}

#[derive(Clone, Copy)]
struct Context {
    domain: u16,
    tables: u64,
    levels: u32,
}

/// What makes a model special.
pub struct Making {
    /// Capabilities besides the common ones.
    pub capabilities: u64,
    /// Fault registers.
    pub faults: usize,
}

impl Model {
    pub fn new(making: Making) -> Self {
        let Making {
            capabilities,
            faults,
        } = making;
        let state = State {
            words: std::vec![0; BYTES / 4],
            capabilities: CAPABILITIES | capabilities | (faults as u64 - 1) << 40,
            extended: QUEUE | REMAPS_INTERRUPTS,
            root: 0,
            head: 0,
            faults: std::vec![[0; 4]; faults],
            next_fault: 0,
            contexts: HashMap::new(),
            translations: HashMap::new(),
            interrupt_table: 0,
            entries: HashMap::new(),
            forgotten: 0,
            interrupts: Vec::new(),
        };
        let model = Self {
            state: Rc::new(RefCell::new(state)),
            memory: SimMemory::new(),
        };
        model.set(0x38, 1 << 31);
        model
    }

    pub fn common() -> Self {
        Self::new(Making {
            capabilities: 0,
            faults: 1,
        })
    }

    pub fn memory(&self) -> SimMemory {
        self.memory.clone()
    }

    pub fn registers(&self) -> SimRegisters {
        SimRegisters {
            model: self.clone(),
            bytes: BYTES,
            is_deaf: Rc::new(Cell::new(false)),
        }
    }

    pub fn without_queue(&self) {
        self.state.borrow_mut().extended = 0;
    }

    pub fn without_interrupts(&self) {
        self.state.borrow_mut().extended &= !REMAPS_INTERRUPTS;
    }

    /// 16 domains, the fewest that there can be.
    pub fn with_few_domains(&self) {
        self.state.borrow_mut().capabilities &= !7;
    }

    /// As a firmware left it: everything is on.
    pub fn left_on(&self) {
        self.set(0x1c, STATES);
    }

    pub fn forgotten(&self) -> usize {
        self.state.borrow().forgotten
    }

    pub fn interrupts(&self) -> Vec<(u32, u32)> {
        self.state.borrow().interrupts.clone()
    }

    pub fn status(&self) -> u32 {
        self.word(0x1c)
    }

    fn word(&self, at: usize) -> u32 {
        self.state.borrow().words[at / 4]
    }

    fn set(&self, at: usize, value: u32) {
        self.state.borrow_mut().words[at / 4] = value;
    }

    fn long(&self, at: usize) -> u64 {
        u64::from(self.word(at)) | u64::from(self.word(at + 4)) << 32
    }

    fn fetch(&self, at: u64) -> u64 {
        let mut bytes = [0; 8];
        let read = self.memory.read(DeviceAddr(at), &mut bytes);
        read.expect("the unit follows an address of a table");
        u64::from_le_bytes(bytes)
    }

    fn caches_absence(&self) -> bool {
        self.state.borrow().capabilities & CACHING_MODE != 0
    }

    /// A device's request: where it goes, or nowhere.
    pub fn request(&self, from: PciAddress, address: u64, is_write: bool) -> Option<u64> {
        if self.word(0x1c) & TRANSLATION == 0 {
            return Some(address);
        }
        let source = from.requester_id();
        match self.translate(source, address, is_write) {
            Ok(physical) => Some(physical),
            Err(reason) => {
                self.record(source, address, is_write, reason);
                None
            }
        }
    }

    /// The vector and the APIC of the interrupt that a write to the interrupt range raises.
    pub fn interrupt(&self, from: PciAddress, address: u64, data: u32) -> Option<(u8, u8)> {
        assert_ne!(self.word(0x1c) & INTERRUPT_REMAPPING, 0, "it remaps");
        let source = from.requester_id();
        let raised = self.entry_for(source, address, data);
        if let Err(reason) = raised {
            self.record(source, address, true, reason);
        }
        raised.ok()
    }

    fn entry_for(&self, source: u16, address: u64, data: u32) -> Result<(u8, u8), u8> {
        if address & 1 << 4 == 0 {
            return Err(VECTOR_BLOCKED);
        }
        assert_eq!((address >> 20, data, address & 0xf), (0xfee, 0, 0));
        let index = (address >> 5) as u8;
        let table = self.state.borrow().interrupt_table;
        assert_eq!(table & 0xfff, 7, "256 entries, and APICs of eight bits");
        let at = (table & !0xfff) + u64::from(index) * 16;
        let fetched = [self.fetch(at), self.fetch(at + 8)];
        let known = self.state.borrow().entries.get(&index).copied();
        let [low, high] = known.unwrap_or(fetched);
        if low & 1 == 0 {
            return Err(NO_ENTRY);
        }
        self.state.borrow_mut().entries.insert(index, [low, high]);
        assert_eq!(high >> 16 & 0xf, 0b0100, "the whole source is compared");
        match high as u16 == source {
            true => Ok(((low >> 16) as u8, (low >> 40) as u8)),
            false => Err(NOT_ITS_OWN),
        }
    }

    fn translate(&self, source: u16, address: u64, is_write: bool) -> Result<u64, u8> {
        let context = self.context(source)?;
        if address >> (12 + 9 * context.levels) != 0 {
            return Err(BEYOND);
        }
        let page = self.page(context, address >> 12);
        let (right, refused) = match is_write {
            true => (2, NO_WRITE),
            false => (1, NO_READ),
        };
        let page = page.filter(|page| page & right != 0).ok_or(refused)?;
        Ok(page & !0xfff | address & 0xfff)
    }

    fn context(&self, source: u16) -> Result<Context, u8> {
        let known = self.state.borrow().contexts.get(&source).copied();
        if let Some(known) = known {
            return known.ok_or(NO_CONTEXT);
        }
        let found = self.find_context(source);
        if found.is_ok() || self.caches_absence() {
            let mut state = self.state.borrow_mut();
            state.contexts.insert(source, found.ok());
        }
        found
    }

    fn find_context(&self, source: u16) -> Result<Context, u8> {
        let root = self.fetch(self.state.borrow().root + u64::from(source >> 8) * 16);
        if root & 1 == 0 {
            return Err(NO_ROOT);
        }
        let entry = (root & !0xfff) + u64::from(source & 0xff) * 16;
        let (low, high) = (self.fetch(entry), self.fetch(entry + 8));
        if low & 1 == 0 {
            return Err(NO_CONTEXT);
        }
        assert_eq!(low & 0xffe, 0, "tables of the second level only");
        Ok(Context {
            domain: (high >> 8) as u16,
            tables: low & !0xfff,
            levels: (high & 7) as u32 + 2,
        })
    }

    fn page(&self, context: Context, number: u64) -> Option<u64> {
        let key = (context.domain, number);
        let known = self.state.borrow().translations.get(&key).copied();
        if let Some(known) = known {
            return known;
        }
        let found = self.walk(context, number);
        if found.is_some() || self.caches_absence() {
            self.state.borrow_mut().translations.insert(key, found);
        }
        found
    }

    /// The page, and in the lowest two bits what may be done there.
    fn walk(&self, context: Context, number: u64) -> Option<u64> {
        let mut table = context.tables;
        for level in (0..context.levels).rev() {
            let shift = 9 * level;
            let word = self.fetch(table + (number >> shift & 511) * 8);
            if word & 3 == 0 {
                assert_eq!(word, 0, "an entry is whole or absent");
                return None;
            }
            let (at, rights) = (word & 0xf_ffff_ffff_f000, word & 3);
            if level == 0 {
                return Some(at | rights);
            }
            if word & 1 << 7 != 0 {
                assert!(level == 1 && self.state.borrow().capabilities & LARGE_PAGES != 0);
                assert_eq!(at & 0x1f_ffff, 0, "large pages lie on boundaries");
                return Some((at + ((number & 511) << 12)) | rights);
            }
            assert_eq!(rights, 3, "tables are for everything below");
            table = at;
        }
        None
    }

    fn record(&self, source: u16, address: u64, is_write: bool, reason: u8) {
        let mut state = self.state.borrow_mut();
        let next = state.next_fault;
        let was_pending = state.words[0x34 / 4] & 3 != 0;
        if state.faults[next][3] & IS_FULL != 0 {
            state.words[0x34 / 4] |= 1;
        } else {
            let kind = if is_write { 0 } else { IS_READ };
            let page = address & !0xfff;
            let last = IS_FULL | kind | u32::from(reason);
            state.faults[next] = [page as u32, (page >> 32) as u32, source.into(), last];
            state.next_fault = (next + 1) % state.faults.len();
            if state.words[0x34 / 4] & 2 == 0 {
                state.words[0x34 / 4] = state.words[0x34 / 4] & 0xff | 2 | (next as u32) << 8;
            }
        }
        if !was_pending && state.words[0x38 / 4] & 1 << 31 == 0 {
            let message = (state.words[0x40 / 4], state.words[0x3c / 4]);
            state.interrupts.push(message);
        }
    }

    fn write(&self, at: usize, value: u32) {
        match at {
            0x18 => self.obey(value),
            0x34 => self.set(0x34, self.word(0x34) & !(value & 1)),
            0x88 => {
                self.set(at, value);
                self.run_queue();
            }
            FAULTS_AT.. => self.empty(at, value),
            _ => self.set(at, value),
        }
    }

    /// A record is emptied; the status says where the next full one is, if there is any.
    fn empty(&self, at: usize, value: u32) {
        let (record, word) = ((at - FAULTS_AT) / 16, at % 16);
        assert_eq!(word, 12, "the rest is only read");
        let mut state = self.state.borrow_mut();
        if value & IS_FULL != 0 {
            state.faults[record][3] = 0;
        }
        let count = state.faults.len();
        let mut next = (1..=count).map(|step| (record + step) % count);
        let full = next.find(|&record| state.faults[record][3] & IS_FULL != 0);
        let status = state.words[0x34 / 4] & 1;
        state.words[0x34 / 4] = status | full.map_or(0, |full| 2 | (full as u32) << 8);
    }

    fn obey(&self, command: u32) {
        let before = self.word(0x1c);
        self.set(0x1c, command & STATES | before & !STATES);
        if command & SET_ROOT_TABLE != 0 {
            self.state.borrow_mut().root = self.long(0x20);
            self.set(0x1c, self.word(0x1c) | SET_ROOT_TABLE);
        }
        if command & SET_INTERRUPT_TABLE != 0 {
            self.state.borrow_mut().interrupt_table = self.long(0xb8);
            self.set(0x1c, self.word(0x1c) | SET_INTERRUPT_TABLE);
        }
        if (before ^ command) & QUEUED_INVALIDATION != 0 {
            self.state.borrow_mut().head = 0;
        }
    }

    fn run_queue(&self) {
        if self.word(0x1c) & QUEUED_INVALIDATION == 0 {
            return;
        }
        let tail = self.word(0x88) as usize;
        assert!(tail < 4096 && tail.is_multiple_of(16), "inside of the ring");
        while self.state.borrow().head != tail {
            let at = (self.long(0x90) & !0xfff) + self.state.borrow().head as u64;
            self.invalidate(self.fetch(at), self.fetch(at + 8));
            let mut state = self.state.borrow_mut();
            state.head = (state.head + 16) % 4096;
        }
    }

    fn invalidate(&self, low: u64, high: u64) {
        let mut state = self.state.borrow_mut();
        state.forgotten += 1;
        let domain = (low >> 16) as u16;
        match (low & 0xf, low >> 4 & 3) {
            (1, 1) => state.contexts.clear(),
            (2, 1) => state.translations.clear(),
            (2, 2) => state.translations.retain(|(of, _), _| *of != domain),
            (4, 0) => state.entries.clear(),
            (4, 1) => _ = state.entries.remove(&((low >> 32) as u8)),
            (5, _) => {
                assert_eq!(low >> 4 & 7, 2, "it writes the status");
                let number = (low >> 32) as u32;
                let written = self.memory.write(DeviceAddr(high), &number.to_le_bytes());
                written.expect("the status lies in memory");
            }
            other => panic!("no such descriptor: {other:?}"),
        }
    }
}

/// The model's registers.
pub struct SimRegisters {
    model: Model,
    bytes: usize,
    is_deaf: Rc<Cell<bool>>,
}

impl SimRegisters {
    /// A switch that makes the unit hear nothing any more.
    pub fn deaf_switch(&self) -> Rc<Cell<bool>> {
        self.is_deaf.clone()
    }
}

impl Registers for SimRegisters {
    fn bytes(&self) -> usize {
        self.bytes
    }

    fn window(&self, offset: usize, bytes: usize) -> Option<Self> {
        (offset == 0 && bytes <= self.bytes).then(|| Self {
            model: self.model.clone(),
            bytes,
            is_deaf: self.is_deaf.clone(),
        })
    }

    fn read32(&self, offset: usize) -> u32 {
        let state = self.model.state.borrow();
        match offset {
            0x00 => 0x10,
            0x08 => state.capabilities as u32,
            0x0c => (state.capabilities >> 32) as u32,
            0x10 => state.extended as u32,
            FAULTS_AT.. => state.faults[(offset - FAULTS_AT) / 16][offset % 16 / 4],
            _ => state.words[offset / 4],
        }
    }

    fn write32(&self, offset: usize, value: u32) {
        if !self.is_deaf.get() {
            self.model.write(offset, value);
        }
    }
}
