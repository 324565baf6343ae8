//! What the unit refused (7.2): registers that each hold one refused request until it is read.
//!
//! The unit fills them in a circle and stops where the next one is still full; from there on it
//! only notes that it lost some.

use core::fmt;

use hal::Registers;
use hal::pci::PciAddress;

use crate::capabilities::FAULT_BYTES;
use crate::registers::FAULT_STATUS;

/// In the fault status: some were lost; the first that is full.
const OVERFLOW: u32 = 1 << 0;
const FIRST_SHIFT: u32 = 8;
/// In the last word of a record.
const IS_FULL: u32 = 1 << 31;
const IS_READ: u32 = 1 << 30;

/// A request that the unit refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Fault {
    /// The function that made it.
    pub source: PciAddress,
    /// The page that it wanted.
    pub address: u64,
    /// Whether it wanted to write.
    pub is_write: bool,
    /// Why it was refused.
    pub reason: Reason,
}

/// Why a request was refused (7.1.3).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reason {
    /// The function is led to no domain.
    NoDomain,
    /// The address is longer than the domain's table.
    BeyondTable,
    /// Its domain maps nothing there.
    NotMapped,
    /// It would raise an interrupt that is not its own.
    Interrupt,
    /// Another one, by its number: a table is wrong.
    Other(u8),
}

impl Reason {
    fn of(code: u8) -> Self {
        match code {
            1 | 2 => Self::NoDomain,
            4 => Self::BeyondTable,
            5 | 6 => Self::NotMapped,
            0x20..=0x26 => Self::Interrupt,
            other => Self::Other(other),
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoDomain => f.write_str("it has no domain"),
            Self::BeyondTable => f.write_str("beyond its domain"),
            Self::NotMapped => f.write_str("not mapped"),
            Self::Interrupt => f.write_str("an interrupt that is not its own"),
            Self::Other(code) => write!(f, "fault reason {code:#x}"),
        }
    }
}

/// How many were read.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Taken {
    /// Refused requests.
    pub faults: usize,
    /// Others were refused, and not recorded.
    pub lost: bool,
}

/// Reads the records that are full, each once, and empties them.
pub(crate) fn take(
    registers: &impl Registers,
    (at, count): (usize, usize),
    report: &mut dyn FnMut(Fault),
) -> Taken {
    let status = registers.read32(FAULT_STATUS);
    let first = (status >> FIRST_SHIFT & 0xff) as usize;
    let mut taken = Taken {
        faults: 0,
        lost: status & OVERFLOW != 0,
    };
    for step in 0..count {
        let record = at + (first + step) % count * FAULT_BYTES;
        let last = registers.read32(record + 12);
        if last & IS_FULL == 0 {
            break;
        }
        let fault = parse(registers, record, last);
        // Emptied before anybody hears of it: while a record is full, a unit may take the next request of the same function
        // for the same one (7.2.1), and who has heard goes on.
        registers.write32(record + 12, IS_FULL);
        report(fault);
        taken.faults += 1;
    }
    if taken.lost {
        registers.write32(FAULT_STATUS, OVERFLOW);
    }
    taken
}

fn parse(registers: &impl Registers, record: usize, last: u32) -> Fault {
    let [low, high, source] = [0, 4, 8].map(|at| registers.read32(record + at));
    Fault {
        source: PciAddress::of_requester(source as u16),
        address: u64::from(high) << 32 | u64::from(low & !0xfff),
        is_write: last & IS_READ == 0,
        reason: Reason::of(last as u8),
    }
}
