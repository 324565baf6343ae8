//! What the host asks of the machine, a byte each (`host/qemu` sends them).
//!
//! The one request ends the first program as `SIGTERM` would: `sietch stop` and a Ctrl-C
//! that no terminal carries. Unknown bytes are ignored, so that newer hosts may ask more.

use core::sync::atomic::{AtomicBool, Ordering};

use crate::sched::{Softirq, Work, raise, register_softirq};
use crate::signal::{Info, Signal, send_to_process};
use crate::task::family::{self, INIT};

const TERMINATE: u8 = b'T';

/// Asking twice before the first is heard is asking once.
static IS_ASKED_TO_END: AtomicBool = AtomicBool::new(false);

/// Listens to the host; once at boot.
pub fn init() {
    register_softirq(
        Softirq::Host,
        Work {
            run: serve,
            prepare_idle: || true,
        },
    );
    mach::log::on_request(hear);
}

/// Runs with interrupts closed.
fn hear(request: u8) {
    if request == TERMINATE {
        IS_ASKED_TO_END.store(true, Ordering::Relaxed);
        raise(Softirq::Host);
    }
}

fn serve() {
    if IS_ASKED_TO_END.swap(false, Ordering::Relaxed)
        && let Some(process) = family::find(INIT)
    {
        // Only real-time signals are queued by number and may be refused.
        let _ = send_to_process(&process, Info::kernel(Signal::TERM));
    }
}
