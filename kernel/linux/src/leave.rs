//! The way back to user mode: what must be done before the program runs on.
//!
//! In the common case nothing: one word of flags is zero. Otherwise, in this order, until
//! none is left: the process' end, stops, signals, the restored mask, other threads. A
//! call that a signal ended is restarted here, by the rules of signal(7): the program
//! counter goes back to the instruction, which is two bytes long.

use kernel::error::Restart;
use kernel::sched;
use kernel::signal::{self, ActionFlags, Delivery};
use kernel::task::{self, ExitStatus, Flags, Thread};
use mach::trap::UserRegs;

use crate::errno::Errno;
use crate::{death, rseq, sigframe};

/// Length of `syscall` in bytes.
const SYSCALL_BYTES: u64 = 2;

/// Flags that do not keep a thread from user mode.
const HARMLESS: Flags = Flags::TRACE.union(Flags::RESTARTED);

/// Does whatever is due before the thread runs its program again. `interrupted` is the
/// rule of the call that just ended, if a signal ended it.
pub fn before_user(thread: &Thread, regs: &mut UserRegs, mut interrupted: Option<Restart>) {
    loop {
        sched::run_softirqs();
        let due = thread.flags().difference(HARMLESS);
        if due.is_empty() {
            break;
        }
        if due.contains(Flags::EXIT) {
            task::exit_thread(
                thread
                    .process
                    .exit_status()
                    .unwrap_or(ExitStatus::Exited(0)),
            );
        }
        if due.contains(Flags::STOP) {
            signal::wait_while_stopped(thread);
        } else if due.contains(Flags::SIGNAL) {
            deliver(thread, regs, &mut interrupted);
        } else if due.contains(Flags::MASK) {
            signal::restore_mask(thread);
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

/// Delivers one signal.
fn deliver(thread: &Thread, regs: &mut UserRegs, interrupted: &mut Option<Restart>) {
    match signal::next_delivery(thread) {
        None => {}
        Some(Delivery::Kill(info)) => {
            death::note(thread, &info, regs.rip);
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
            if sigframe::push(thread, regs, &info, &action, address, mask_after).is_err() {
                signal::force_segv(thread, info.signal);
            }
        }
    }
}

fn restart(regs: &mut UserRegs) {
    regs.rax = regs.orig_rax;
    regs.rip = regs.rip.wrapping_sub(SYSCALL_BYTES);
}
