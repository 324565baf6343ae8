//! The counters that processors offer (Intel SDM volume 3, 20.2, "architectural performance
//! monitoring"; AMD APM volume 2, 13.2, "performance monitoring counters").

use super::{Register, Registers};

/// CPUID leaves that describe them.
const MONITORING_LEAF: u32 = 0x0a;
const EXTENDED_LEAF: u32 = 0x8000_0001;
/// Of the extended leaf in ECX: AMD's core counters.
const CORE_COUNTERS: u32 = 1 << 23;
/// From this version on there are fixed counters, and registers for all at once.
const VERSION_MIN: u32 = 2;
/// Of the monitoring leaf in EBX: no event of unhalted core cycles.
const NO_CORE_CYCLES: u32 = 1 << 0;

/// Intel: one event for each. Counter 1 counts cycles of the core, which change their length;
/// counter 2 those of the time-stamp counter.
const FIXED_CORE_CYCLES: u32 = 1;
const FIXED_REFERENCE_CYCLES: u32 = 2;
const FIXED_CONTROL: Register = Register(0x38d);
const FIXED_VALUE: u32 = 0x309;
/// In both rings, with an interrupt; four bits for each counter.
const FIXED_ENABLE: u64 = 0b1011;
const FIXED_FIRST_BIT: u32 = 32;

/// Intel: the first counter of any event.
const GENERAL_SELECT: Register = Register(0x186);
const GENERAL_VALUE: Register = Register(0xc1);
const GENERAL_CORE_CYCLES: u64 = 0x3c;

/// Intel: all counters.
const GLOBAL_STATUS: Register = Register(0x38e);
const GLOBAL_ENABLE: Register = Register(0x38f);
const GLOBAL_CLEAR: Register = Register(0x390);

/// AMD: the first core counter.
const CORE_SELECT: Register = Register(0xc001_0200);
const CORE_VALUE: Register = Register(0xc001_0201);
const CORE_WIDTH_BITS: u32 = 48;
const CORE_UNHALTED_CYCLES: u64 = 0x76;

/// Of the select registers of both makers: in user mode, in kernel mode, with an interrupt, on.
const SELECT_ENABLE: u64 = 1 << 16 | 1 << 17 | 1 << 20 | 1 << 22;

/// Intel's general counters are written with 32 bits, of which the last is their sign.
const PERIOD_MAX: u64 = i32::MAX as u64;

/// The counter that all CPUs of a machine use, and how many cycles lie between two samples.
#[derive(Clone, Copy, Debug)]
pub struct Counter {
    control: Register,
    /// What `control` holds while it counts.
    enable: u64,
    value: Register,
    width_bits: u32,
    /// Its bit in the registers for all counters, where there are such.
    global: Option<u64>,
    period: u64,
}

impl Counter {
    /// The best counter that the processor has: the nearest to a clock. `cpuid` gives EAX to EDX
    /// of a leaf, zeros for one that does not exist; `period` is in cycles.
    pub fn offered(cpuid: impl Fn(u32) -> [u32; 4], period: u64) -> Option<Self> {
        let period = period.clamp(1, PERIOD_MAX);
        architectural(cpuid(MONITORING_LEAF), period).or_else(|| core(cpuid(EXTENDED_LEAF), period))
    }

    /// Begins a period, and counts whatever went on before.
    pub(super) fn arm(&self, registers: &impl Registers) {
        let start = self.period.wrapping_neg() & (u64::MAX >> (u64::BITS - self.width_bits));
        registers.write(self.control, 0);
        registers.write(self.value, start);
        if let Some(bit) = self.global {
            registers.write(GLOBAL_CLEAR, bit);
        }
        registers.connect();
        registers.write(self.control, self.enable);
        if let Some(bit) = self.global {
            registers.write(GLOBAL_ENABLE, bit);
        }
    }

    /// Counts no more.
    pub(super) fn disarm(&self, registers: &impl Registers) {
        registers.disconnect();
        registers.write(self.control, 0);
        if let Some(bit) = self.global {
            registers.write(GLOBAL_ENABLE, 0);
            registers.write(GLOBAL_CLEAR, bit);
        }
    }

    /// Whether it has come to its end since it was armed. Without a register that says so: it
    /// begins with its highest bit set, and has lost it.
    pub(super) fn has_overflowed(&self, registers: &impl Registers) -> bool {
        match self.global {
            Some(bit) => registers.read(GLOBAL_STATUS) & bit != 0,
            None => registers.read(self.value) >> (self.width_bits - 1) & 1 == 0,
        }
    }
}

/// What leaf 0AH offers.
fn architectural([eax, ebx, ecx, edx]: [u32; 4], period: u64) -> Option<Counter> {
    if eax & 0xff < VERSION_MIN {
        return None;
    }
    let has_fixed = |index: &u32| ecx >> index & 1 != 0 || edx & 0x1f > *index;
    [FIXED_REFERENCE_CYCLES, FIXED_CORE_CYCLES]
        .into_iter()
        .find(has_fixed)
        .and_then(|index| fixed(index, edx >> 5 & 0xff, period))
        .or_else(|| general(eax, ebx, period))
}

fn fixed(index: u32, width_bits: u32, period: u64) -> Option<Counter> {
    is_wide(width_bits).then_some(Counter {
        control: FIXED_CONTROL,
        enable: FIXED_ENABLE << (4 * index),
        value: Register(FIXED_VALUE + index),
        width_bits,
        global: Some(1 << (FIXED_FIRST_BIT + index)),
        period,
    })
}

fn general(eax: u32, ebx: u32, period: u64) -> Option<Counter> {
    let (count, width_bits) = (eax >> 8 & 0xff, eax >> 16 & 0xff);
    let is_there = count != 0 && ebx & NO_CORE_CYCLES == 0;
    (is_there && is_wide(width_bits)).then_some(Counter {
        control: GENERAL_SELECT,
        enable: SELECT_ENABLE | GENERAL_CORE_CYCLES,
        value: GENERAL_VALUE,
        width_bits,
        global: Some(1),
        period,
    })
}

/// What AMD's leaf 8000_0001H offers.
fn core([_, _, ecx, _]: [u32; 4], period: u64) -> Option<Counter> {
    (ecx & CORE_COUNTERS != 0).then_some(Counter {
        control: CORE_SELECT,
        enable: SELECT_ENABLE | CORE_UNHALTED_CYCLES,
        value: CORE_VALUE,
        width_bits: CORE_WIDTH_BITS,
        global: None,
        period,
    })
}

/// Whether the longest period fits, and no more is claimed than a register holds.
fn is_wide(width_bits: u32) -> bool {
    (u32::BITS..=u64::BITS).contains(&width_bits)
}
