//! What a thread's filters make of the call that it is about to run.

use linux_raw_sys::general::{__NR_exit, __NR_read, __NR_rt_sigreturn, __NR_write};
use mach::trap::UserRegs;
use sched::Flags;
use task::ptrace::{self, Event};
use task::seccomp::{self, Action, CallData, Mode, Verdict};
use task::signal::{self, Info, Origin, Signal, code};
use task::{ExitStatus, Thread};

use super::log;
use crate::{fatal, leave};
use linux_abi::errno;
use linux_abi::restart::NO_CALL;

/// `AUDIT_ARCH_X86_64`.
const ARCHITECTURE: u32 = 0xc000_003e;

/// Whether the call runs; if not, RAX holds its answer. It may not come back.
pub fn lets_pass(thread: &Thread, regs: &mut UserRegs) -> bool {
    if !thread.flags().contains(Flags::SECCOMP) {
        return true;
    }
    let data = describe(regs);
    let (verdict, is_logged) = match thread.seccomp.get() {
        Mode::Free => return true,
        Mode::Strict => return is_left(data.number) || end_thread(thread, regs, Signal::KILL),
        Mode::Filtered(filter) => seccomp::judge(&filter, &data),
    };
    if is_logged && verdict.action != Action::Allow || verdict.action == Action::Log {
        log::write(thread, &data, verdict);
    }
    act(thread, regs, &data, verdict)
}

fn describe(regs: &UserRegs) -> CallData {
    CallData {
        number: regs.orig_rax as u32,
        architecture: ARCHITECTURE,
        instruction: regs.rip,
        arguments: [regs.rdi, regs.rsi, regs.rdx, regs.r10, regs.r8, regs.r9],
    }
}

/// Whether a strict thread has the call.
fn is_left(number: u32) -> bool {
    [__NR_read, __NR_write, __NR_exit, __NR_rt_sigreturn].contains(&number)
}

fn act(thread: &Thread, regs: &mut UserRegs, data: &CallData, verdict: Verdict) -> bool {
    match verdict.action {
        Action::Allow | Action::Log => return true,
        Action::Trace => return ask_tracer(thread, regs, verdict.data),
        // RAX says so already.
        Action::Notify => {}
        Action::Errno => regs.rax = errno::answer(verdict.data),
        Action::Trap => {
            regs.rax = regs.orig_rax;
            signal::force(thread, trap(data, verdict));
        }
        Action::KillThread if thread.process.with_threads(<[_]>::len) > 1 => {
            return end_thread(thread, regs, Signal::SYS);
        }
        Action::KillThread | Action::KillProcess => {
            let info = trap(data, verdict);
            fatal::note(thread, &info, regs.rip);
            thread.process.begin_exit_by(info, regs.rip);
        }
    }
    false
}

/// SIGSYS with what the handler wants to know.
fn trap(data: &CallData, verdict: Verdict) -> Info {
    Info {
        signal: Signal::SYS,
        code: code::SYS_SECCOMP,
        origin: Origin::Call {
            address: data.instruction,
            number: data.number,
            architecture: data.architecture,
            reason: verdict.data,
        },
    }
}

fn end_thread(thread: &Thread, regs: &mut UserRegs, signal: Signal) -> bool {
    leave::exit_thread(thread, regs, ExitStatus::Killed(signal))
}

/// The tracer may change the call, which is judged once more then, or take it away; RAX says
/// that there is none if nobody traces.
fn ask_tracer(thread: &Thread, regs: &mut UserRegs, message: u16) -> bool {
    let is_seen = ptrace::event(thread, regs, Event::Seccomp, message.into());
    if !is_seen || thread.flags().contains(Flags::EXIT) || regs.orig_rax == NO_CALL {
        return false;
    }
    let data = describe(regs);
    let verdict = match thread.seccomp.get() {
        Mode::Filtered(filter) => seccomp::judge(&filter, &data).0,
        Mode::Free | Mode::Strict => return true,
    };
    verdict.action == Action::Trace || act(thread, regs, &data, verdict)
}
