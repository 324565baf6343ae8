//! The interval timer (8254 datasheet): channel 0 as rate generator.

use arch::instr;

const HERTZ: u32 = 1_193_182;
const CHANNEL_0: u16 = 0x40;
const COMMAND: u16 = 0x43;
/// Channel 0, low then high byte, mode 2: a pulse at each end of the count.
const RATE_GENERATOR: u8 = 0b0011_0100;
/// Channel 0, low then high byte, mode 0: waits for a count that does not come.
const QUIET: u8 = 0b0011_0000;
/// Latches the status of channel 0.
const READ_STATUS: u8 = 0b1110_0010;
const MODE: u8 = 0b0011_1111;

/// The pin of the I/O APIC to which the machine connects it.
pub(super) fn pin() -> Option<u32> {
    let timer = crate::topology::get().isa(crate::topology::TIMER)?;
    Some(timer.gsi)
}

/// Raises the pin `hertz` times a second; false if there is no such timer.
pub(super) fn start(hertz: u32) -> bool {
    let [low, high, ..] = (HERTZ / hertz).to_le_bytes();
    // SAFETY: the interval timer's ports; after boot nobody else uses it.
    unsafe {
        instr::out8(COMMAND, RATE_GENERATOR);
        instr::out8(CHANNEL_0, low);
        instr::out8(CHANNEL_0, high);
        instr::out8(COMMAND, READ_STATUS);
        instr::in8(CHANNEL_0) & MODE == RATE_GENERATOR
    }
}

/// Raises it no more.
pub(super) fn stop() {
    // SAFETY: as in `start`.
    unsafe { instr::out8(COMMAND, QUIET) }
}
