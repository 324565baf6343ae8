//! Requests of the host's: bytes that come on the port on which the log goes out.

use base::CpuId;

use crate::sync::{Once, Spin};
use crate::{irq, log};
use arch::uart::Uart;

/// The second serial port's interrupt on every PC.
const COM2_INTERRUPT: u8 = 3;

/// Said once at boot: an interrupt's handler has no argument.
static ON_REQUEST: Once<fn(u8)> = Once::new();

/// The request that came before the port was set up.
pub(crate) static EARLY: Spin<Option<u8>> = Spin::new(None);

/// Says what to call, with interrupts closed but for what came early, for each request of the host's. Once.
pub fn on_request(handler: fn(u8)) {
    ON_REQUEST.call_once(|| handler);
    let early = EARLY.lock().take();
    early.into_iter().for_each(handler);
    if !log::has_own_port() {
        return;
    }
    if let Some(vector) = irq::allocate(interrupt, 0) {
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
