//! The way back to user mode: what must be done before the program runs on.
//!
//! In the common case nothing, and a call does not come here. Otherwise, in this order, until
//! none is left: the process' end, stops, signals, the restored mask, other threads. A
//! call that a signal ended is restarted here (`restart`).

use mach::task as machine;
use mach::trap::UserRegs;
use perf::profile;
use sched::Flags;
use sync::Restart;
use task::ptrace::{self, Event};
use task::signal::{self, ActionFlags, Delivery, Info, Signal};
use task::{self, Change, ExitStatus, Thread};

use crate::{fatal, rseq, sigframe, wait};
use linux_abi::errno::Errno;
use linux_abi::restart::{interrupted_call, restart};

/// Flags that do not keep a thread from user mode.
const HARMLESS: Flags = Flags::TRACE
    .union(Flags::RESTARTED)
    .union(Flags::CALL_STOPS)
    .union(Flags::STEP)
    .union(Flags::SECCOMP);

/// Does whatever is due before the thread runs its program again.
pub fn before_user(thread: &Thread, regs: &mut UserRegs) {
    let mut interrupted = interrupted_call(regs);
    loop {
        machine::begin_look();
        sched::run_softirqs();
        let due = thread.flags().difference(HARMLESS);
        if due.is_empty() {
            break;
        }
        if due.contains(Flags::PROFILE) {
            profile::tell_mappings(thread);
        }
        if due.contains(Flags::SAMPLES) {
            perf::deliver(thread);
        }
        if due.contains(Flags::EXIT) {
            let decided = thread.process.exit_status();
            exit_thread(thread, regs, decided.unwrap_or(ExitStatus::Exited(0)));
        }
        if due.contains(Flags::PTRACE_TRAP) {
            ptrace::trap(thread, regs);
            interrupted = interrupted_call(regs);
        } else if due.contains(Flags::STOP) {
            stop(thread, regs);
        } else if due.contains(Flags::SIGNAL) {
            deliver(thread, regs, &mut interrupted);
        } else if due.contains(Flags::MASK) {
            signal::restore_mask(thread);
        }
        if due.contains(Flags::RING_WORK) {
            task::run_ring_work(thread);
        }
        if due.contains(Flags::RESCHEDULE) {
            sched::preempt_if_due();
        }
        if due.contains(Flags::RSEQ) {
            rseq::tell_cpu(thread, regs);
        }
    }
    if interrupted.is_some() {
        restart(regs);
        thread.set_flags(Flags::RESTARTED);
    }
}

/// Ends the thread; its tracer may look at it once more.
pub fn exit_thread(thread: &Thread, regs: &mut UserRegs, status: ExitStatus) -> ! {
    let told = u64::from(wait::encode_status(Change::Ended(status)));
    ptrace::event(thread, regs, Event::Exit, told);
    task::exit_thread(status)
}

/// The process is stopped.
fn stop(thread: &Thread, regs: &mut UserRegs) {
    match thread.process.signals.stopped_by() {
        Some(signal) if thread.tracee().is_some() => {
            thread.clear_flags(Flags::STOP);
            ptrace::stopped(thread, regs, signal);
        }
        _ => signal::wait_while_stopped(thread),
    }
}

/// Delivers one signal.
fn deliver(thread: &Thread, regs: &mut UserRegs, interrupted: &mut Option<Restart>) {
    let delivery = signal::next_delivery(thread, regs);
    if thread.tracee().is_some() {
        *interrupted = interrupted_call(regs);
    }
    match delivery {
        None => {}
        Some(Delivery::Kill(info)) => {
            fatal::note(thread, &info, regs.rip);
            thread.process.begin_exit_by(info, regs.rip);
        }
        Some(Delivery::Call {
            info,
            action,
            address,
            mask_after,
        }) => {
            if let Some(rule) = interrupted.take() {
                let asked = action.flags.contains(ActionFlags::RESTART);
                if rule == Restart::IfAsked && asked {
                    restart(regs);
                } else {
                    regs.rax = Errno::EINTR.encode();
                }
            }
            rseq::abort(thread, regs);
            let steps = ptrace::pause_stepping(thread, regs);
            if sigframe::push(thread, regs, &info, &action, address, mask_after).is_err() {
                signal::force_segv(thread, info.signal);
            } else if steps {
                signal::force(thread, Info::kernel(Signal::TRAP));
            }
        }
    }
}
