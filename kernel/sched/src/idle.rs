//! What a CPU does when no thread is runnable: deferred work, a moment of polling, then halt.

use base::{CpuId, Instant};

use crate::dispatcher::{DISPATCHER, has_ready};
use crate::entity::Leave;
use crate::{alarm, current, halt_poll, preempt_off, quiescent, run_softirqs, sample, softirq};

/// Waits for something to happen, on the stack of the parked current thread.
///
/// Returns after an interrupt, after deferred work, or because there is something to
/// do; the caller looks again. False if the CPU left the thread's address space meanwhile, which
/// is activated again before the thread goes on.
pub(crate) fn wait_in_place(cpu: CpuId, deadline: Instant) -> bool {
    preempt_off::mark();
    softirq::note_rest();
    if run_softirqs() {
        return true;
    }
    if DISPATCHER.was_refused(cpu) {
        // A thread may wait in a queue that was locked: it is not one to halt beside.
        mach::cpu::relax();
        return true;
    }
    if halt_poll::finds_work(cpu, deadline) {
        return true;
    }
    DISPATCHER.announce_idle(cpu);
    let mut has_space = true;
    if softirq::prepare_idle() && !has_ready(cpu) && !current().state.is_awakened() {
        let now = mach::time::now();
        current().end_slice(now, Leave::ToWait);
        sample::begin_idle(now);
        alarm::arm_for_idle(deadline);
        preempt_off::end();
        has_space = mach::idle::wait_for_interrupt();
        preempt_off::resume();
        quiescent::note_quiescent_state();
        let awake = mach::time::now();
        halt_poll::note_halt(awake.since(now));
        sample::end_idle(awake);
        current().life.run(awake);
    }
    DISPATCHER.announce_busy(cpu);
    run_softirqs();
    has_space
}
