//! The machine's log: lines to the host on the second serial port.
//!
//! The host's tool reads it line by line (`sietch: KEY=VALUE ...`). Without a second port
//! the lines go to the console. What comes in the other direction: `host`.

use core::fmt::{self, Write};

use crate::host;
use crate::sync::{Once, Spin};
use arch::uart::Uart;

/// The log is the machine's; its lines are not mixed.
static LINES: Spin<()> = Spin::new(());
/// Its port, if it has one of its own.
static PORT: Once<Uart> = Once::new();

pub(crate) fn init() {
    let early = Uart::COM2.hold();
    let has_own = Uart::COM2.init();
    *host::EARLY.lock() = early.filter(|_| has_own);
    PORT.call_once(|| if has_own { Uart::COM2 } else { Uart::COM1 });
}

/// Whether the host has a port of its own, and may so send requests.
pub(crate) fn has_own_port() -> bool {
    PORT.get() == Some(&Uart::COM2)
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
