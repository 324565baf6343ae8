//! Chances to reschedule in the midst of long work (Linux's cond_resched).
//!
//! Whoever does something whose length a program can choose does it in bounded batches, and
//! calls [`resched_point`] between them. It costs a look at the clock, so a batch may be
//! small: a page, an entry, a process. Only once the stretch has got long are interrupts
//! let in, softirqs run, and others that wait are let go first.
//!
//! Invariant: the caller holds no spin lock, and nothing that belongs to a CPU. It may hold a
//! sleeping lock. What softirqs call too, such as a signal to a process group, may have such points: there
//! nobody is let go first, for a softirq holds locks that the next one takes.

use crate::current::boot_thread;
use crate::preempt::preempt_if_due;
use crate::wake::note_arrivals;
use crate::{Entity, Flags, preempt_off, run_softirqs, softirq, try_current};

/// Stretches end this often: 50 µs.
const PER_SECOND: u64 = 20_000;

/// Lets interrupts, softirqs and other threads have the CPU, if they have waited for a while.
#[inline]
pub fn resched_point() {
    if preempt_off::ticks() >= mach::time::cycles_per_second() / PER_SECOND {
        let_others();
    }
}

#[cold]
fn let_others() {
    if softirq::is_running() {
        return;
    }
    // Who boots a CPU has nobody to wait for, and later runs only if nobody else does.
    let Some(me) = try_current().filter(|me| !core::ptr::eq::<Entity>(&**me, &**boot_thread()))
    else {
        return;
    };
    mach::cpu::take_interrupts();
    preempt_off::mark();
    run_softirqs();
    note_arrivals();
    if me.flags().contains(Flags::RESCHEDULE) {
        preempt_if_due();
    }
}
