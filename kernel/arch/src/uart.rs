//! A 16550 serial port (PC16550D datasheet), by polling for output.

use crate::instr::{in8, out8};

const DATA: u16 = 0;
const INTERRUPTS: u16 = 1;
const FIFO: u16 = 2;
const LINE: u16 = 3;
const MODEM: u16 = 4;
const STATUS: u16 = 5;
const SCRATCH: u16 = 7;

const DIVISOR_ACCESS: u8 = 0x80;
const EIGHT_BITS: u8 = 3;
const FIFO_ON_AND_CLEAR: u8 = 7;
/// DTR, RTS and OUT2, which lets the interrupt through.
const MODEM_ON: u8 = 0b1011;
const LOOPBACK: u8 = 0b1_0000;
const INPUT_READY: u8 = 1;
const OUTPUT_EMPTY: u8 = 1 << 5;
const FIFO_BYTES: usize = 16;
/// Turns before output to a port that never empties is given up.
const WAIT_MAX: u32 = 1 << 16;

/// A port by its first I/O address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Uart(u16);

impl Uart {
    /// The first of a PC.
    pub const COM1: Self = Self(0x3f8);
    /// The second.
    pub const COM2: Self = Self(0x2f8);

    fn read(self, register: u16) -> u8 {
        // SAFETY: the ports of a serial controller reach no memory.
        unsafe { in8(self.0 + register) }
    }

    fn write(self, register: u16, value: u8) {
        // SAFETY: the ports of a serial controller reach no memory.
        unsafe { out8(self.0 + register, value) }
    }

    /// Takes the byte that waits in a port whose FIFOs are off, and lets no more come
    /// (loopback): switching the FIFOs on would drop them. [`Uart::init`] ends that.
    pub fn hold(self) -> Option<u8> {
        self.write(MODEM, LOOPBACK);
        self.get()
    }

    /// 115200 baud, 8 bits, FIFOs on, no interrupts; false if there is no such port.
    pub fn init(self) -> bool {
        self.write(SCRATCH, 0x5a);
        if self.read(SCRATCH) != 0x5a {
            return false;
        }
        self.write(INTERRUPTS, 0);
        self.write(LINE, DIVISOR_ACCESS);
        self.write(DATA, 1);
        self.write(INTERRUPTS, 0);
        self.write(LINE, EIGHT_BITS);
        self.write(FIFO, FIFO_ON_AND_CLEAR);
        self.write(MODEM, MODEM_ON);
        // A read tells an emulated port that it may ask its host for input again.
        self.read(DATA);
        true
    }

    /// Lets the port interrupt when there is input.
    pub fn enable_input_interrupt(self) {
        self.write(INTERRUPTS, 1);
    }

    /// The next byte of input, if there is one.
    pub fn get(self) -> Option<u8> {
        (self.read(STATUS) & INPUT_READY != 0).then(|| self.read(DATA))
    }

    /// Sends bytes, a FIFO full at a time, waiting for room a bounded time.
    pub fn send(self, bytes: &[u8]) {
        for chunk in bytes.chunks(FIFO_BYTES) {
            self.wait_until_empty();
            chunk.iter().for_each(|&byte| self.write(DATA, byte));
        }
    }

    fn wait_until_empty(self) {
        for _ in 0..WAIT_MAX {
            if self.read(STATUS) & OUTPUT_EMPTY != 0 {
                return;
            }
            core::hint::spin_loop();
        }
    }
}
