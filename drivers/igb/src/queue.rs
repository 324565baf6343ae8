//! A queue's switch.
//!
//! A queue is told of its ring while it is disabled, then enabled; it takes a new tail only
//! when it says that it is enabled (4.5). It may still write until it says that
//! it is disabled again.

use hal::{DmaSource, Registers};
use intel::Ring;

use crate::Error;

/// Reads of a register until a queue is given up; each takes a microsecond on the bus.
const READS_MAX: u32 = 10_000;

/// Offsets from the queue's first register, beside the ring's own.
pub(crate) const SPLIT: usize = 0x0c;
const CONTROL: usize = 0x28;
pub(crate) const DROPPED: usize = 0x30;
const REGISTERS_BYTES: usize = 0x40;
const CONTROL_ENABLE: u32 = 1 << 25;

/// A ring of so many descriptors for the queue whose registers begin at `offset`; disabled. A card fresh from its
/// reset has its first queues enabled, with no ring.
pub(crate) fn new<R: Registers>(
    memory: &impl DmaSource,
    registers: &R,
    offset: usize,
    slots: u16,
) -> Result<Ring<R>, Error> {
    let registers = registers.window(offset, REGISTERS_BYTES);
    let registers = registers.ok_or(Error::RegistersOutside)?;
    let mut ring = Ring::new(memory, registers, slots).map_err(Error::Memory)?;
    if !disable(ring.registers()) {
        return Err(Error::QueueStuck);
    }
    ring.tell().map_err(Error::Memory)?;
    Ok(ring)
}

/// Enables a queue with these thresholds.
pub(crate) fn enable(registers: &impl Registers, thresholds: u32) -> Result<(), Error> {
    registers.write32(CONTROL, thresholds | CONTROL_ENABLE);
    match becomes(registers, CONTROL_ENABLE) {
        true => Ok(()),
        false => Err(Error::QueueStuck),
    }
}

/// Stops a queue: true if it says that it has.
pub(crate) fn disable(registers: &impl Registers) -> bool {
    let control = registers.read32(CONTROL);
    registers.write32(CONTROL, control & !CONTROL_ENABLE);
    becomes(registers, 0)
}

fn becomes(registers: &impl Registers, enabled: u32) -> bool {
    let is_so = || registers.read32(CONTROL) & CONTROL_ENABLE == enabled;
    (0..READS_MAX).any(|_| is_so())
}

/// Waits a while for the card to take all descriptors.
pub(crate) fn drain<R: Registers>(ring: &Ring<R>) {
    let _ = (0..READS_MAX).any(|_| ring.is_drained());
}
