//! What a unit can do (11.4.2, 11.4.3).

use hal::Registers;

use crate::error::MissingFeature;
use crate::registers::{CAPABILITIES, EXTENDED_CAPABILITIES, REGISTERS_BYTES_MAX, VERSION, read64};
use crate::{Error, REGISTERS_BYTES};

const WRITE_BUFFER_FLUSH: u64 = 1 << 4;
const CACHING_MODE: u64 = 1 << 7;
const LEVELS_3: u64 = 1 << 9;
const LEVELS_4: u64 = 1 << 10;
const LARGE_PAGES: u64 = 1 << 34;
const DRAINS_WRITES: u64 = 1 << 54;
const DRAINS_READS: u64 = 1 << 55;
/// Of the extended ones.
const QUEUE: u64 = 1 << 1;
const REMAPS_INTERRUPTS: u64 = 1 << 3;
/// Bytes of a fault recording register.
pub(crate) const FAULT_BYTES: usize = 16;

/// What a unit can do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Capabilities {
    /// The version of its registers.
    pub version: (u8, u8),
    /// Levels of its page tables: four, or three where it has no more.
    pub levels: u8,
    /// Domains that it tells apart.
    pub domains: u32,
    /// A page of a table may have 2 MiB.
    pub has_large_pages: bool,
    /// It remembers what was *not* in a table as well, so it must also be told of what is
    /// new. Units that a hypervisor makes do that, to hear of it.
    pub caches_absence: bool,
    /// It can let reads and writes that are under way end first.
    pub drains: (bool, bool),
    /// It has a table of interrupts.
    pub remaps_interrupts: bool,
    /// Where the first fault recording register lies, and how many there are.
    pub faults: (usize, usize),
}

impl Capabilities {
    /// Reads them; an error if this driver cannot use such a unit.
    pub fn read(registers: &impl Registers) -> Result<Self, Error> {
        if registers.bytes() < REGISTERS_BYTES {
            return Err(Error::NotVtd);
        }
        let version = registers.read32(VERSION) as u8;
        let (bits, extended) = (
            read64(registers, CAPABILITIES),
            read64(registers, EXTENDED_CAPABILITIES),
        );
        if version == 0 || version == 0xff {
            return Err(Error::NotVtd);
        }
        check(bits, extended).map_err(Error::Lacks)?;
        let has = |bit| bits & bit != 0;
        let found = Self {
            version: (version >> 4, version & 0xf),
            levels: if has(LEVELS_4) { 4 } else { 3 },
            domains: 1 << (4 + 2 * (bits & 7).min(6)),
            has_large_pages: has(LARGE_PAGES),
            caches_absence: has(CACHING_MODE),
            drains: (has(DRAINS_READS), has(DRAINS_WRITES)),
            remaps_interrupts: extended & REMAPS_INTERRUPTS != 0,
            faults: fault_registers(bits),
        };
        match found.registers_end() <= registers.bytes().min(REGISTERS_BYTES_MAX) {
            true => Ok(found),
            false => Err(Error::Lacks(MissingFeature::FaultRegisters)),
        }
    }

    /// Bytes that the registers take, those of faults included.
    fn registers_end(&self) -> usize {
        let (at, count) = self.faults;
        at + count * FAULT_BYTES
    }
}

fn fault_registers(bits: u64) -> (usize, usize) {
    let at = (bits >> 24 & 0x3ff) as usize * FAULT_BYTES;
    let count = (bits >> 40 & 0xff) as usize + 1;
    (at, count)
}

fn check(bits: u64, extended: u64) -> Result<(), MissingFeature> {
    if bits & (LEVELS_3 | LEVELS_4) == 0 {
        return Err(MissingFeature::Levels);
    }
    if extended & QUEUE == 0 {
        return Err(MissingFeature::Queue);
    }
    match bits & WRITE_BUFFER_FLUSH {
        0 => Ok(()),
        _ => Err(MissingFeature::CoherentWrites),
    }
}
