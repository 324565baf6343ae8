//! Processors with counters, as far as their manuals describe them: counting, overflowing,
//! raising NMIs. A register that a processor does not have, or a value that it does not
//! take, panics as the processor would fault.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;

use super::{Counter, Register, Registers, Sampler};

/// A processor, with the counter that it is expected to be used for.
#[derive(Clone, Copy, Debug)]
pub struct Processor {
    pub name: &'static str,
    /// EAX to EDX of leaf 0AH, and ECX of leaf 8000_0001H.
    pub monitoring: [u32; 4],
    pub extended_ecx: u32,
    pub control: u32,
    /// What `control` must hold for cycles of both rings to be counted, with an interrupt.
    pub counts_by: u64,
    pub value: u32,
    pub width_bits: u32,
    /// Its bit in 38EH to 390H; `None` for AMD.
    pub global_bit: Option<u32>,
}

pub const REFERENCE: Processor = Processor {
    name: "Intel with three fixed counters",
    monitoring: [0x0730_0402, 0, 0, 0x0603],
    extended_ecx: 0,
    control: 0x38d,
    counts_by: 0xb00,
    value: 0x30b,
    width_bits: 48,
    global_bit: Some(34),
};

pub const CORE: Processor = Processor {
    name: "Intel with two fixed counters",
    monitoring: [0x0730_0402, 0, 0, 0x0602],
    counts_by: 0xb0,
    value: 0x30a,
    global_bit: Some(33),
    ..REFERENCE
};

pub const GENERAL: Processor = Processor {
    name: "Intel with general counters only",
    monitoring: [0x0728_0402, 0, 0, 0],
    control: 0x186,
    counts_by: 0x53_003c,
    value: 0xc1,
    width_bits: 40,
    global_bit: Some(0),
    ..REFERENCE
};

pub const AMD: Processor = Processor {
    name: "AMD with core counters",
    monitoring: [0; 4],
    extended_ecx: 1 << 23,
    control: 0xc001_0200,
    counts_by: 0x53_0076,
    value: 0xc001_0201,
    width_bits: 48,
    global_bit: None,
};

pub const ALL: [Processor; 4] = [REFERENCE, CORE, GENERAL, AMD];

const STATUS: u32 = 0x38e;
const ENABLE: u32 = 0x38f;
const CLEAR: u32 = 0x390;

impl Processor {
    pub fn cpuid(&self, leaf: u32) -> [u32; 4] {
        match leaf {
            0x0a => self.monitoring,
            0x8000_0001 => [0, 0, self.extended_ecx, 0],
            leaf => panic!("nobody asked for leaf {leaf:#x}"),
        }
    }
}

/// One CPU with its sampler.
pub struct Cpu {
    silicon: Processor,
    counter: Counter,
    sampler: Sampler,
    registers: RefCell<BTreeMap<u32, u64>>,
    is_connected: Cell<bool>,
    pub is_wanted: bool,
    pub samples: u64,
}

impl Cpu {
    /// As firmware may leave it: with everything running.
    pub fn new(silicon: Processor, period: u64) -> Self {
        let counter = Counter::offered(|leaf| silicon.cpuid(leaf), period);
        let mut registers = BTreeMap::from([(silicon.control, u64::MAX), (silicon.value, 0)]);
        if let Some(bit) = silicon.global_bit {
            registers.extend([(STATUS, 1 << bit), (ENABLE, u64::MAX), (CLEAR, 0)]);
        }
        Self {
            silicon,
            counter: counter.expect("a counter is offered"),
            sampler: Sampler::new(),
            registers: RefCell::new(registers),
            is_connected: Cell::new(true),
            is_wanted: false,
            samples: 0,
        }
    }

    /// An NMI arrives, whoever raised it.
    pub fn nmi(&mut self) {
        let is_due = self.sampler.on_nmi(self.is_wanted, &self.counter, &*self);
        self.samples += u64::from(is_due);
    }

    /// Works for `cycles`.
    pub fn run(&mut self, mut cycles: u64) {
        while self.is_counting() {
            let left = (1 << self.silicon.width_bits) - self.get(self.silicon.value);
            let step = cycles.min(left);
            self.set(self.silicon.value, self.get(self.silicon.value) + step);
            cycles -= step;
            if step < left {
                return;
            }
            self.overflow();
        }
    }

    fn is_counting(&self) -> bool {
        let control = self.get(self.silicon.control);
        let is_on = |bit: u32| self.get(ENABLE) >> bit & 1 != 0;
        control & self.silicon.counts_by == self.silicon.counts_by
            && self.silicon.global_bit.is_none_or(is_on)
    }

    /// Whether its counter counts, and no other.
    pub fn counts_alone(&self) -> bool {
        let is_alone = |bit: u32| self.get(ENABLE) == 1 << bit;
        self.get(self.silicon.control) == self.silicon.counts_by
            && self.silicon.global_bit.is_none_or(is_alone)
    }

    fn overflow(&mut self) {
        self.set(self.silicon.value, 0);
        if let Some(bit) = self.silicon.global_bit {
            self.set(STATUS, self.get(STATUS) | 1 << bit);
        }
        let connected = self.is_connected.get();
        self.is_connected
            .set(connected && self.silicon.global_bit.is_none());
        if connected {
            self.nmi();
        }
    }

    fn get(&self, register: u32) -> u64 {
        let registers = self.registers.borrow();
        *registers
            .get(&register)
            .unwrap_or_else(|| self.fault(register))
    }

    fn set(&self, register: u32, value: u64) {
        let mut registers = self.registers.borrow_mut();
        *registers
            .get_mut(&register)
            .unwrap_or_else(|| self.fault(register)) = value;
    }

    fn fault(&self, register: u32) -> ! {
        panic!("{}: general protection at {register:#x}", self.silicon.name)
    }
}

impl Registers for Cpu {
    fn read(&self, register: Register) -> u64 {
        self.get(register.number())
    }

    fn write(&self, register: Register, value: u64) {
        let register = register.number();
        let width = u64::MAX >> (64 - self.silicon.width_bits);
        match register {
            STATUS => self.fault(register),
            CLEAR => self.set(STATUS, self.get(STATUS) & !value),
            // A write of the first general counter takes 32 bits and extends their sign.
            0xc1 => self.set(register, value as i32 as u64 & width),
            _ if register == self.silicon.value && value > width => self.fault(register),
            _ => self.set(register, value),
        }
    }

    fn connect(&self) {
        self.is_connected.set(true);
    }

    fn disconnect(&self) {
        self.is_connected.set(false);
    }
}
