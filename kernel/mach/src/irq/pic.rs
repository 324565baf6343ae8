//! The two 8259A interrupt controllers of a PC, which are kept quiet.
//!
//! The problem: devices interrupt by MSI-X or the I/O APICs, but firmware leaves these two with
//! pins open, and with vectors from 8 on, which are the processor's exceptions: a tick of the
//! old timer then looks like a double fault. Masked pins alone do not end that, for an 8259A
//! raises its pin 7 when a request is gone before it is asked which one it was.
//!
//! The idea: both get the eight vectors whose last is the APIC's spurious one, which is taken
//! for nothing and not acknowledged, and have all pins masked.
//!
//! Where there are no such controllers the ports take writes and do nothing.

use arch::apic::SPURIOUS_VECTOR;
use arch::instr::out8;

const COMMAND_PORTS: [u16; 2] = [0x20, 0xa0];
/// Initialisation in cascade, with a fourth word (8259A datasheet, ICW1).
const INITIALISE: u8 = 0x11;
/// The first's pin with the second behind it, as a bit; that pin's number (ICW3).
const CASCADE: [u8; 2] = [1 << 2, 2];
/// An 8086's protocol (ICW4).
const MODE_8086: u8 = 1;
const ALL_PINS: u8 = 0xff;
const FIRST_VECTOR: u8 = SPURIOUS_VECTOR & !7;
const _: () = assert!(FIRST_VECTOR + 7 == SPURIOUS_VECTOR, "pin 7 is spurious");

/// Gives both controllers their vectors and masks their pins; once at boot, before interrupts
/// are open.
pub(crate) fn silence() {
    for (command, cascade) in COMMAND_PORTS.into_iter().zip(CASCADE) {
        let data = command + 1;
        let words = [
            (command, INITIALISE),
            (data, FIRST_VECTOR),
            (data, cascade),
            (data, MODE_8086),
            (data, ALL_PINS),
        ];
        for (port, word) in words {
            // SAFETY: the ports of an interrupt controller reach no memory.
            unsafe { out8(port, word) };
        }
    }
}
