//! The traced thread's side: it stops, and goes on as it is told.
//!
//! Each function here returns at once if the thread is not traced, or if its tracer did not
//! ask for this stop. SIGKILL ends any stop; the end of the process ends any but the one
//! before that end.

use mach::trap::UserRegs;
use sched::{Flags, Mstate};
use sync::Wait;

use super::control::{Mode, Order};
use super::report;
use super::tracee::{Ask, Event, Options, State, Stop, Stopped, Tracee};
use crate::processes::{ExitStatus, Thread};
use crate::signal::{self, Info, Origin, Signal, code};

/// Which end of a system call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CallStop {
    /// It is about to run.
    Entry,
    /// It has run.
    Exit,
}

/// The flag that makes the processor trap after one instruction (TF).
const TRAP_FLAG: u64 = 1 << 8;

/// A signal is about to be delivered: what the tracer makes of it, or `None` if it takes it
/// away.
pub fn signal(thread: &Thread, regs: &mut UserRegs, info: Info) -> Option<Info> {
    let Some(order) = halt(thread, regs, Stop::Signal(info), None) else {
        return Some(info);
    };
    let Order { signal, info, .. } = order;
    let signal = signal?;
    let info = info
        .filter(|info| info.signal == signal)
        .unwrap_or_else(|| from_tracer(thread, signal));
    if thread.signals.mask().contains(signal) {
        // A full queue loses real-time signals, as in Linux.
        let _ = signal::send_to_thread(&thread.arc(), info);
        return None;
    }
    Some(info)
}

fn from_tracer(thread: &Thread, signal: Signal) -> Info {
    let tracer = thread.tracee().map_or(0, |tracee| tracee.tracer);
    let origin = Origin::Process {
        pid: tracer,
        uid: thread.credentials.with(|who| who.user.real),
    };
    Info {
        signal,
        code: code::USER,
        origin,
    }
}

/// A system call is about to run, and its tracer wants to see it.
pub fn call_entry(thread: &Thread, regs: &mut UserRegs) {
    halt(thread, regs, Stop::Call(CallStop::Entry), None);
}

/// It has run; the answer is in the registers.
pub fn call_exit(thread: &Thread, regs: &mut UserRegs) {
    halt(thread, regs, Stop::Call(CallStop::Exit), None);
}

/// Something happened that the tracer may have asked for; `message` is what PTRACE_GETEVENTMSG
/// tells. False if it did not ask.
pub fn event(thread: &Thread, regs: &mut UserRegs, event: Event, message: u64) -> bool {
    let wanted = Options::from_bits_retain(1 << event as u32);
    let is_wanted = thread
        .tracee()
        .is_some_and(|tracee| tracee.options().contains(wanted));
    if is_wanted {
        halt(thread, regs, Stop::Event(event), Some(message));
    }
    is_wanted
}

/// The tracer wants the thread to stop, wherever it is ([`Flags::PTRACE_TRAP`]).
pub fn trap(thread: &Thread, regs: &mut UserRegs) {
    thread.clear_flags(Flags::PTRACE_TRAP);
    match thread.process.signals.stopped_by() {
        Some(signal) => stopped(thread, regs, signal),
        None => stop_listening(thread, regs, Stop::Trap),
    }
}

/// The process was stopped by `signal`: a traced thread tells its tracer first, which may let
/// it go on, or stay stopped and only listen to what comes (PTRACE_LISTEN).
pub fn stopped(thread: &Thread, regs: &mut UserRegs, signal: Signal) {
    stop_listening(thread, regs, Stop::Group(signal));
}

fn stop_listening(thread: &Thread, regs: &mut UserRegs, stop: Stop) {
    let order = halt(thread, regs, stop, None);
    if order.is_some_and(|order| order.mode == Mode::Listen) {
        signal::wait_while_stopped(thread);
        thread.set_flags(Flags::PTRACE_TRAP);
    }
}

/// A handler is called instead of the next instruction: it starts without the trap, which is
/// raised for its first instruction instead. True if the thread steps.
pub fn pause_stepping(thread: &Thread, regs: &mut UserRegs) -> bool {
    let steps = thread.flags().contains(Flags::STEP);
    if steps {
        thread.clear_flags(Flags::STEP);
        regs.rflags &= !TRAP_FLAG;
    }
    steps
}

/// Stands still until the tracer says how to go on; `None` if nobody traces the thread, or it
/// is killed.
fn halt(thread: &Thread, regs: &mut UserRegs, stop: Stop, message: Option<u64>) -> Option<Order> {
    let tracee = thread.tracee()?;
    pause_stepping(thread, regs);
    thread.clear_flags(Flags::CALL_STOPS);
    enter(&tracee, thread, regs, stop, message)?;
    report::tell(&tracee);
    let order = sched::in_mstate(Mstate::Call, || await_order(&tracee, thread, stop));
    let stopped = tracee.state.lock().stopped.take();
    tracee.answers.wake_all();
    let (order, stopped) = (order?, stopped?);
    go_on(thread, regs, &order, &stopped);
    Some(order)
}

/// Shows the thread as stopped; `None` if the tracer has let go of it.
fn enter(
    tracee: &Tracee,
    thread: &Thread,
    regs: &UserRegs,
    stop: Stop,
    message: Option<u64>,
) -> Option<()> {
    let mut state = tracee.state.lock();
    if state.is_free {
        return None;
    }
    state.order = None;
    state.message = message.unwrap_or(state.message);
    state.stopped = Some(Stopped {
        stop,
        regs: *regs,
        fs_base: thread.sched.context.fs_base(),
        gs_base: thread.sched.context.gs_base(),
        code: stop.code(tracee.is_seized, state.options),
        is_told: false,
    });
    Some(())
}

/// What ends a wait.
enum News {
    Order(Order),
    Ask(Ask),
    Killed,
}

fn await_order(tracee: &Tracee, thread: &Thread, stop: Stop) -> Option<Order> {
    loop {
        let news = || {
            let mut state = tracee.state.lock();
            if is_killed(thread, stop) {
                return Some(News::Killed);
            }
            match take_question(&mut state) {
                Some(ask) => Some(News::Ask(ask)),
                None => state.order.map(News::Order),
            }
        };
        match tracee.orders.wait(Wait::UNINTERRUPTIBLE, news).ok()? {
            News::Order(order) => return Some(order),
            News::Killed => return None,
            News::Ask(ask) => {
                let answer = answer(ask);
                tracee.state.lock().ask = Some(answer);
                tracee.answers.wake_all();
            }
        }
    }
}

fn take_question(state: &mut State) -> Option<Ask> {
    match state.ask {
        Some(Ask::Read(_) | Ask::Write(_)) => state.ask.take(),
        Some(Ask::Done(_)) | None => None,
    }
}

fn is_killed(thread: &Thread, stop: Stop) -> bool {
    let is_ending = thread.flags().contains(Flags::EXIT);
    let by_force = || thread.process.exit_status() == Some(ExitStatus::Killed(Signal::KILL));
    is_ending && (stop != Stop::Event(Event::Exit) || by_force())
}

fn answer(ask: Ask) -> Ask {
    match ask {
        Ask::Read(mut image) => {
            mach::task::fpu_read(&mut image);
            Ask::Done(Ok(image))
        }
        Ask::Write(image) => match mach::task::fpu_write(&image) {
            true => Ask::Done(Ok(image)),
            false => Ask::Done(Err(())),
        },
        done => done,
    }
}

/// Takes over what the tracer has changed.
fn go_on(thread: &Thread, regs: &mut UserRegs, order: &Order, stopped: &Stopped) {
    *regs = stopped.regs;
    regs.restore_all();
    // Addresses that are no program's were refused when they were set.
    thread.sched.context.set_fs_base(stopped.fs_base);
    thread.sched.context.set_gs_base(stopped.gs_base);
    match order.mode {
        Mode::Continue | Mode::Listen => {}
        Mode::Calls => thread.set_flags(Flags::CALL_STOPS),
        Mode::Step => {
            thread.set_flags(Flags::STEP);
            regs.rflags |= TRAP_FLAG;
        }
    }
}
