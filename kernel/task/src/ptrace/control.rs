//! The tracer's side: orders to a tracee, and questions.

use alloc::sync::Arc;

use sched::Flags;
use sync::{Error, Result, Wait};

use super::attach;
use super::tracee::{Ask, Stop, Tracee, Vectors};
use crate::processes::{Process, Tid};
use crate::signal::{Info, Signal};

/// How far a tracee goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mode {
    /// Until something stops it.
    Continue,
    /// To the next end of a system call.
    Calls,
    /// One instruction.
    Step,
    /// Nowhere: its process stays stopped, and it tells when that is over.
    Listen,
}

/// How a stopped tracee goes on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Order {
    /// How far.
    pub mode: Mode,
    /// With which signal, where it stopped for one.
    pub signal: Option<Signal>,
    /// What comes with that signal, unless the tracer has taken another.
    pub info: Option<Info>,
}

/// The thread of that number, if `me` traces it.
///
/// Errors: `NoSuchProcess`.
pub fn find(me: &Process, tid: Tid) -> Result<Arc<Tracee>> {
    me.tracees
        .find_map(|tracee| (tracee.tid() == tid).then(|| tracee.clone()))
        .ok_or(Error::NoSuchProcess)
}

/// Lets a stopped tracee go on.
///
/// Errors: `NoSuchProcess` if it runs; `Io` if it is told to listen and its process is not
/// stopped.
pub fn resume(tracee: &Tracee, mode: Mode, signal: Option<Signal>) -> Result<()> {
    let mut state = tracee.state.lock();
    if state.order.is_some() {
        return Err(Error::NoSuchProcess);
    }
    let stopped = state.stopped.ok_or(Error::NoSuchProcess)?;
    let may_listen = tracee.is_seized && matches!(stopped.stop, Stop::Group(_) | Stop::Trap);
    if mode == Mode::Listen && !may_listen {
        return Err(Error::Io);
    }
    let info = match stopped.stop {
        Stop::Signal(info) => Some(info),
        _ => None,
    };
    state.order = Some(Order { mode, signal, info });
    drop(state);
    tracee.orders.wake_all();
    Ok(())
}

/// Lets go of a stopped tracee.
///
/// Errors: `NoSuchProcess` if it runs.
pub fn detach(tracee: &Arc<Tracee>, me: &Process, signal: Option<Signal>) -> Result<()> {
    tracee.with_stopped(|_| ())?;
    me.tracees.remove(tracee);
    attach::release(tracee, signal);
    Ok(())
}

/// Stops a seized tracee, wherever it is, without a signal.
///
/// Errors: `Io` if it was attached otherwise, `NoSuchProcess` if it has ended.
pub fn interrupt(tracee: &Tracee) -> Result<()> {
    if !tracee.is_seized {
        return Err(Error::Io);
    }
    let thread = tracee.thread.upgrade().ok_or(Error::NoSuchProcess)?;
    if tracee.with_stopped(|_| ()).is_err() {
        thread.set_flags(Flags::PTRACE_TRAP);
        sched::interrupt(&thread.sched);
    }
    Ok(())
}

/// Has a stopped tracee read or write its vector registers; gives back their image.
///
/// Errors: `NoSuchProcess` if it runs or is killed meanwhile; `Invalid` if the processor does
/// not take the image.
pub fn ask_vectors(tracee: &Tracee, ask: Ask) -> Result<Vectors> {
    tracee.with_stopped(|_| ())?;
    tracee.state.lock().ask = Some(ask);
    tracee.orders.wake_all();
    let answer = tracee.answers.wait(Wait::UNINTERRUPTIBLE, || {
        let mut state = tracee.state.lock();
        match state.ask {
            Some(Ask::Done(_)) => state.ask.take(),
            // It was killed.
            _ if state.stopped.is_none() => Some(Ask::Done(Ok(Vectors::new()))),
            _ => None,
        }
    })?;
    match answer {
        Ask::Done(Ok(image)) if !image.is_empty() => Ok(image),
        Ask::Done(Err(())) => Err(Error::Invalid),
        _ => Err(Error::NoSuchProcess),
    }
}
