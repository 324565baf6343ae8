//! The running thread makes way: for one that is due, or because it may not run here any more.

use crate::current::boot_thread;
use crate::switch::{make_way, yield_now};
use crate::wake::note_arrivals;
use crate::{Flags, current, quiescent, sample, wake};

/// Called after an interrupt that came in user mode: it may have been a kick.
/// `behind_call`: the program stands right behind a system call.
pub fn note_interrupt(behind_call: bool) {
    sample::note_interrupt(behind_call);
    quiescent::note_quiescent_state();
    note_arrivals();
}

/// Called on the way back to user mode when [`Flags::RESCHEDULE`] was set.
pub fn preempt_if_due() {
    let me = current();
    me.clear_flags(Flags::RESCHEDULE);
    migrate();
    me.class.make_way(me.life.slice_used(mach::time::now()));
    yield_now();
    // It may have found nobody to make way for.
    me.class.forget_place();
}

/// Moves the current thread to a CPU that its affinity allows, if it is on another: it
/// makes way for the thread that always has a reason to run here.
pub fn migrate() {
    if !current().allows(mach::cpu::id()) {
        wake(boot_thread());
        make_way();
    }
}
