//! The console: bytes to and from the first serial port.

use core::fmt;

use base::CpuId;

use crate::irq;
use crate::sync::{Once, Spin};
use arch::uart::Uart;

/// The first serial port's interrupt on every PC.
const COM1_INTERRUPT: u8 = 4;

/// The machine has one console, whose lines are not mixed.
static OUTPUT: Spin<()> = Spin::new(());
/// Whether its port is there, tried once.
static PRESENT: Once<bool> = Once::new();
/// Who takes its input, said once at boot.
static ON_INPUT: Once<fn()> = Once::new();
/// The byte that came before the port was set up.
static EARLY: Spin<Option<u8>> = Spin::new(None);

pub(crate) fn init() {
    let early = Uart::COM1.hold();
    let is_present = *PRESENT.call_once(|| Uart::COM1.init());
    *EARLY.lock() = early.filter(|_| is_present);
}

/// Whether there is a console.
pub fn is_present() -> bool {
    PRESENT.get().is_some_and(|&present| present)
}

/// Writes all bytes; they are lost without a console.
pub fn write(bytes: &[u8]) {
    if is_present() {
        let _whole = OUTPUT.lock();
        Uart::COM1.send(bytes);
    }
}

/// The next byte of input, if there is one.
pub fn read() -> Option<u8> {
    if !is_present() {
        return None;
    }
    EARLY.lock().take().or_else(|| Uart::COM1.get())
}

/// Says what to call, with interrupts closed, when input has come; it should drain
/// [`read`]. Once.
pub fn on_input(handler: fn()) {
    ON_INPUT.call_once(|| handler);
    if let Some(vector) = irq::allocate(interrupt, 0) {
        irq::route_isa(COM1_INTERRUPT, vector, CpuId(0));
        Uart::COM1.enable_input_interrupt();
    }
}

fn interrupt(_: usize) {
    if let Some(handler) = ON_INPUT.get() {
        handler();
    }
}

/// Writes text to the console with `write!`.
#[derive(Clone, Copy, Debug)]
pub struct Console;

impl fmt::Write for Console {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        write(text.as_bytes());
        Ok(())
    }
}
