//! What the machine's deadline is armed for: the first timer, the next sample, and the end of the
//! slice where others wait.
//!
//! One deadline, because each that is earlier than the armed one is an exit to a hypervisor. Where samples are
//! rarer than slices end, because alarms cost much, slices end with samples: a thread that is woken for a
//! moment, again and again, would cost an alarm each time.

use base::Instant;

use crate::{SLICE, current, dispatcher, sample, timer};

/// Arms the hardware for a thread that works. While a thread waits in place there is nothing to
/// arm for: its CPU does so before it halts ([`arm_for_idle`]), and the thread when it goes on.
pub(crate) fn arm_slice() {
    if current().state.works() {
        arm_to_work();
    }
}

/// The same for a thread that is about to work, be it after a wait in place.
pub(crate) fn arm_to_work() {
    let cpu = mach::cpu::id();
    let mut deadline = timer::first_deadline(cpu).min(sample::next());
    if dispatcher::has_ready(cpu) {
        deadline = deadline.min(slice_end(mach::time::now()));
    }
    mach::time::set_deadline(deadline);
}

/// When a slice that begins now is over at the latest.
fn slice_end(now: Instant) -> Instant {
    let end = now + SLICE;
    match sample::period() > SLICE {
        true => sample::moment_after(end),
        false => end,
    }
}

/// Arms the hardware for a halt that ends at `deadline` at the latest.
pub(crate) fn arm_for_idle(deadline: Instant) {
    mach::time::set_deadline(timer::first_deadline(mach::cpu::id()).min(deadline));
}
