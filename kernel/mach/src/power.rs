//! Turning the machine off, and telling the host why.
//!
//! The status goes out as a log line `exit status=N`; then the machine is turned off by
//! the first means that works: QEMU's `isa-debug-exit`, the keyboard controller's reset, a
//! triple fault. A VMM started without reboot takes a reset as an end.

use arch::instr;

/// Where the host puts QEMU's exit device, and the value that means "look at the log".
const DEBUG_EXIT_PORT: u16 = 0x501;
const DEBUG_EXIT_VALUE: u8 = 0x10;
const KEYBOARD_COMMAND: u16 = 0x64;
const KEYBOARD_RESET: u8 = 0xfe;

/// Ends the machine with the program's exit status.
pub fn off(status: i32) -> ! {
    crate::log::line(format_args!("exit status={status}"));
    cut()
}

/// Ends the machine without a word.
pub(crate) fn cut() -> ! {
    // SAFETY: each of these ends the machine or does nothing.
    unsafe {
        instr::out8(DEBUG_EXIT_PORT, DEBUG_EXIT_VALUE);
        instr::out8(KEYBOARD_COMMAND, KEYBOARD_RESET);
        arch::tables::triple_fault()
    }
}
