//! How a thread comes to be traced, and how that ends.

use alloc::sync::Arc;

use cred::Capability;
use sched::Flags;
use sync::{Error, Result};

use super::control::{Mode, Order};
use super::report;
use super::tracee::{Event, Options, Tracee, Tracing};
use crate::processes::{
    Caller, CloneFlags, ExitStatus, Process, Thread, Tid, check_access, current, family,
    find_thread,
};
use crate::signal::{self, Info, Signal};

/// The current thread is traced by its parent from now on.
///
/// Errors: `NotPermitted` if somebody traces it already.
pub fn trace_me() -> Result<()> {
    let me = current();
    let parent = family::find(family::parent_of(me.process.id()));
    let parent = parent.ok_or(Error::NotPermitted)?;
    match bind(&me.arc(), &parent, false, Options::empty()) {
        // The parent is ending: nobody will hear of it.
        Err(Error::NoSuchProcess) => Ok(()),
        bound => bound.map(drop),
    }
}

/// The current process traces the thread `tid`: it is sent SIGSTOP, or, seized with options,
/// goes on until something stops it.
///
/// Errors: `NoSuchProcess`; `NotPermitted` if it is not the caller's to look into, its own,
/// or traced already.
pub fn attach(tid: Tid, seize: Option<Options>) -> Result<()> {
    let me = current();
    let thread = find_thread(tid).ok_or(Error::NoSuchProcess)?;
    if core::ptr::eq(&*thread.process, &*me.process) {
        return Err(Error::NotPermitted);
    }
    check_access(&thread, Caller::Real)?;
    let options = seize.unwrap_or_default();
    let tracee = bind(&thread, &me.process, seize.is_some(), options)?;
    // An exec between the two may have given the thread more rights: from here on it sees us.
    if let Err(error) = check_access(&thread, Caller::Real) {
        me.process.tracees.remove(&tracee);
        release(&tracee, None);
        return Err(error);
    }
    if seize.is_none() {
        signal::send_to_thread(&thread, Info::kernel(Signal::STOP))?;
    }
    if thread.process.signals.is_stopped() {
        thread.set_flags(Flags::PTRACE_TRAP);
        sched::interrupt(&thread.sched);
    }
    Ok(())
}

/// Whether a program that the thread starts gets no more rights than it has, because its tracer
/// would get them too: one without CAP_SYS_PTRACE.
pub fn forbids_rights(thread: &Thread) -> bool {
    let Some(tracee) = thread.tracee() else {
        return false;
    };
    let tracer = family::find(tracee.tracer).and_then(|process| process.first_thread());
    tracer.is_none_or(|tracer| {
        tracer
            .credentials
            .with(|who| !who.has(Capability::SysPtrace))
    })
}

fn bind(
    thread: &Arc<Thread>,
    tracer: &Process,
    seized: bool,
    options: Options,
) -> Result<Arc<Tracee>> {
    let tracee = Arc::new(Tracee::new(thread, tracer.id(), seized, options));
    let mut tracing = thread.tracing.lock();
    match *tracing {
        Tracing::Free => {}
        Tracing::By(_) => return Err(Error::NotPermitted),
        Tracing::Over => return Err(Error::NoSuchProcess),
    }
    tracer.tracees.add(tracee.clone())?;
    *tracing = Tracing::By(tracee.clone());
    Ok(tracee)
}

/// `child` was made by `thread`: it is traced by the same tracer if that has asked for it.
/// The child has not run yet. Without memory it stays untraced.
pub fn adopt(thread: &Thread, child: &Arc<Thread>, event: Event, flags: CloneFlags) {
    let Some(tracee) = thread.tracee() else {
        return;
    };
    let options = tracee.options();
    let wanted = options.contains(Options::from_bits_retain(1 << event as u32));
    if !flags.contains(CloneFlags::PTRACE) && (!wanted || flags.contains(CloneFlags::UNTRACED)) {
        return;
    }
    let Some(tracer) = family::find(tracee.tracer) else {
        return;
    };
    if bind(child, &tracer, tracee.is_seized, options).is_err() {
        return;
    }
    if tracee.is_seized {
        child.set_flags(Flags::PTRACE_TRAP);
    } else {
        // A standard signal always fits.
        let _ = signal::send_to_thread(child, Info::kernel(Signal::STOP));
    }
}

/// The thread goes on without its tracer, with `signal` if it has stopped for one.
pub(super) fn release(tracee: &Tracee, signal: Option<Signal>) {
    let thread = tracee.thread.upgrade();
    if let Some(thread) = &thread {
        let mut tracing = thread.tracing.lock();
        if matches!(*tracing, Tracing::By(_)) {
            *tracing = Tracing::Free;
        }
        drop(tracing);
        thread.clear_flags(Flags::PTRACE_TRAP | Flags::CALL_STOPS);
    }
    let mut state = tracee.state.lock();
    state.is_free = true;
    let info = match state.stopped.map(|stopped| stopped.stop) {
        Some(super::Stop::Signal(info)) => Some(info),
        _ => None,
    };
    state.order.get_or_insert(Order {
        mode: Mode::Continue,
        signal,
        info,
    });
    drop(state);
    tracee.orders.wake_all();
    if let Some(thread) = thread.filter(|thread| thread.process.signals.is_stopped()) {
        thread.set_flags(Flags::STOP);
        sched::interrupt(&thread.sched);
    }
}

/// The process has ended: its tracees go on without it, or are killed.
pub fn detach_all(process: &Process) {
    for tracee in process.tracees.close() {
        let options = tracee.options();
        if options.contains(Options::KILL_WITH_TRACER)
            && let Some(thread) = tracee.thread.upgrade()
        {
            // SIGKILL is not queued.
            let _ = signal::send_to_process(&thread.process, Info::kernel(Signal::KILL));
        }
        release(&tracee, None);
    }
}

/// The thread ends, with this status for its tracer. The end of a process is told by its last
/// thread, to its parent; if that is the tracer, it need not hear of the first thread twice.
pub fn note_end(thread: &Thread, status: ExitStatus) {
    let tracing = core::mem::replace(&mut *thread.tracing.lock(), Tracing::Over);
    let Tracing::By(tracee) = tracing else {
        return;
    };
    let Some(tracer) = family::find(tracee.tracer) else {
        return;
    };
    let is_first = thread.id() == thread.process.id();
    if is_first && family::parent_of(thread.process.id()) == tracer.id() {
        tracer.tracees.remove(&tracee);
        return;
    }
    tracee.state.lock().ended = Some(status);
    report::tell(&tracee);
}
