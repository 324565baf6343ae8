//! The unit's registers (11.4), and the way to change its state.

use hal::Registers;

use crate::Error;

/// Bytes of registers that are always there.
pub const REGISTERS_BYTES: usize = 4096;
/// Bytes within which all registers lie: those of faults may lie behind the first page.
pub const REGISTERS_BYTES_MAX: usize = 0x5000;

pub(crate) const VERSION: usize = 0x00;
pub(crate) const CAPABILITIES: usize = 0x08;
pub(crate) const EXTENDED_CAPABILITIES: usize = 0x10;
const GLOBAL_COMMAND: usize = 0x18;
const GLOBAL_STATUS: usize = 0x1c;
pub(crate) const ROOT_TABLE: usize = 0x20;
pub(crate) const FAULT_STATUS: usize = 0x34;
pub(crate) const FAULT_CONTROL: usize = 0x38;
pub(crate) const FAULT_DATA: usize = 0x3c;
pub(crate) const FAULT_ADDRESS: usize = 0x40;
pub(crate) const QUEUE_TAIL: usize = 0x88;
pub(crate) const QUEUE_ADDRESS: usize = 0x90;
pub(crate) const INTERRUPT_TABLE: usize = 0xb8;

/// Commands; the same bits say in the status that they are done (11.4.4).
pub(crate) const TRANSLATION: u32 = 1 << 31;
pub(crate) const SET_ROOT_TABLE: u32 = 1 << 30;
pub(crate) const QUEUED_INVALIDATION: u32 = 1 << 26;
pub(crate) const INTERRUPT_REMAPPING: u32 = 1 << 25;
pub(crate) const SET_INTERRUPT_TABLE: u32 = 1 << 24;
/// Messages that name vectors pass all the same.
pub(crate) const VECTORS_PASS: u32 = 1 << 23;
/// The status also has bits of commands that are done once; writing them would do them again.
const STATES: u32 = !(SET_ROOT_TABLE | 1 << 29 | 1 << 27 | SET_INTERRUPT_TABLE);

/// Reads of the status until a command is given up; each takes a microsecond on a bus.
const STATUS_READS_MAX: u32 = 1_000_000;

pub(crate) fn read64(registers: &impl Registers, offset: usize) -> u64 {
    let low = u64::from(registers.read32(offset));
    low | u64::from(registers.read32(offset + 4)) << 32
}

pub(crate) fn write64(registers: &impl Registers, offset: usize, value: u64) {
    registers.write32(offset, value as u32);
    registers.write32(offset + 4, (value >> 32) as u32);
}

/// Does a command, or enters a state.
pub(crate) fn command(registers: &impl Registers, bit: u32) -> Result<(), Error> {
    let states = registers.read32(GLOBAL_STATUS) & STATES;
    registers.write32(GLOBAL_COMMAND, states | bit);
    wait(registers, bit, true)
}

/// Leaves a state, if it is entered.
pub(crate) fn leave(registers: &impl Registers, bit: u32) -> Result<(), Error> {
    let states = registers.read32(GLOBAL_STATUS) & STATES;
    if states & bit == 0 {
        return Ok(());
    }
    registers.write32(GLOBAL_COMMAND, states & !bit);
    wait(registers, bit, false)
}

fn wait(registers: &impl Registers, bit: u32, is_set: bool) -> Result<(), Error> {
    let is_done = |_| (registers.read32(GLOBAL_STATUS) & bit != 0) == is_set;
    match (0..STATUS_READS_MAX).any(is_done) {
        true => Ok(()),
        false => Err(Error::CommandStuck { bit }),
    }
}
