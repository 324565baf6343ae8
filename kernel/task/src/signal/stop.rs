//! Job control: stopping and continuing whole processes.
//!
//! A stopped process has `Flags::STOP` on each of its threads, which park on their way
//! to user mode until SIGCONT or the process' end takes it away.

use sched::{Flags, Mstate};
use sync::Wait;

use super::{Signal, SignalSet};
use crate::processes::{Change, Process, Thread, family};

/// The process stops because of `signal`; its parent hears of it, unless it traces one of the
/// threads: then it hears of each of those. A traced thread may have gone on although the
/// process was stopped, and stops again.
pub(super) fn stop_process(process: &Process, signal: Signal) {
    let was_stopped = process.signals.stopped_by.lock().replace(signal).is_some();
    let parent = family::parent_of(process.id());
    let is_tracer = process.with_threads(|threads| {
        for thread in threads {
            thread.set_flags(Flags::STOP);
            sched::interrupt(&thread.sched);
        }
        let mut tracees = threads.iter().filter_map(|thread| thread.tracee());
        tracees.any(|tracee| tracee.tracer == parent)
    });
    if !was_stopped && !is_tracer {
        family::report(process, Change::Stopped(signal));
    }
}

/// The process goes on, if it was stopped; its parent hears of it.
pub(super) fn continue_process(process: &Process) {
    if release(process) {
        family::report(process, Change::Continued);
    }
}

/// Lets the threads of a stopped process run; false if it was not stopped.
pub(super) fn release(process: &Process) -> bool {
    if process.signals.stopped_by.lock().take().is_none() {
        return false;
    }
    process.with_threads(|threads| {
        for thread in threads {
            thread.clear_flags(Flags::STOP);
        }
    });
    process.signals.continued.wake_all();
    true
}

/// Parks the current thread while its process is stopped and no tracer wants it.
pub fn wait_while_stopped(thread: &Thread) {
    let signals = &thread.process.signals;
    let goes_on = || {
        // Before the look: a stop that comes after it sets the flag again.
        thread.clear_flags(Flags::STOP);
        let runs = signals.stopped_by.lock().is_none();
        let due = Flags::EXIT | Flags::PTRACE_TRAP;
        (runs || thread.flags().intersects(due)).then_some(())
    };
    // Whatever fault it came from is over.
    let wait = || signals.continued.wait(Wait::UNINTERRUPTIBLE, goes_on);
    let waited = sched::in_mstate(Mstate::Call, wait);
    debug_assert!(waited.is_ok(), "an uninterruptible wait has no deadline");
}

/// Whether a stop has no effect: nobody could continue process 1, nor, after a stop from
/// the terminal, a group that no shell controls.
pub(super) fn is_pointless(process: &Process, signal: Signal) -> bool {
    let from_terminal = SignalSet::STOPS.without(SignalSet::of(&[Signal::STOP]));
    process.id() == family::INIT
        || (from_terminal.contains(signal)
            && family::is_orphaned_group(family::group_of(process.id()).unwrap_or(0)))
}
