//! The machine's log: lines to the host on the second serial port, requests from it.
//!
//! The host's tool reads it line by line (`sietch: KEY=VALUE ...`). Without a second port
//! the lines go to the console. In the other direction each byte is a request.

use core::fmt::{self, Write};

use base::CpuId;

use crate::irq;
use crate::sync::{Once, Spin};
use crate::uart::Uart;

/// The second serial port's interrupt on every PC.
const COM2_INTERRUPT: u8 = 3;

static LINES: Spin<()> = Spin::new(());
static PORT: Once<Uart> = Once::new();

pub(crate) fn init() {
    PORT.call_once(|| {
        if Uart::COM2.init() {
            Uart::COM2
        } else {
            Uart::COM1
        }
    });
}

static ON_REQUEST: Once<fn(u8)> = Once::new();

/// Says what to call, with interrupts closed, for each request of the host's. Once.
pub fn on_request(handler: fn(u8)) {
    ON_REQUEST.call_once(|| handler);
    let vector = irq::allocate(interrupt, 0);
    if let (Some(&Uart::COM2), Some(vector)) = (PORT.get(), vector) {
        irq::route_isa(COM2_INTERRUPT, vector, CpuId(0));
        Uart::COM2.enable_input_interrupt();
    }
}

fn interrupt(_: usize) {
    while let Some(request) = Uart::COM2.get() {
        if let Some(handler) = ON_REQUEST.get() {
            handler(request);
        }
    }
}

/// Writes one line to the machine's log: `klog!("exit status={status}")`.
#[macro_export]
macro_rules! klog {
    ($($arg:tt)*) => {
        $crate::log::line(::core::format_args!($($arg)*))
    };
}

/// Writes `sietch: `, the text and a line feed. Use [`klog!`](crate::klog).
pub fn line(text: fmt::Arguments<'_>) {
    let _whole = LINES.lock();
    write_line(text);
}

/// The same for a machine that is going down: it waits for no lock.
pub(crate) fn last_line(text: fmt::Arguments<'_>) {
    write_line(text);
}

fn write_line(text: fmt::Arguments<'_>) {
    let mut port = Port(PORT.get().copied().unwrap_or(Uart::COM2));
    // The port reports no errors.
    let _ = port.write_fmt(format_args!("sietch: {text}\n"));
}

struct Port(Uart);

impl Write for Port {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0.send(text.as_bytes());
        Ok(())
    }
}
