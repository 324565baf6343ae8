//! Sending: who gets the signal, and whether it wakes up for it.

use alloc::sync::Arc;

use cred::{Account, Capability, Resource};
use sched::Flags;
use sync::poll::Events;
use sync::{Error, Result};

use super::init::is_ignored_by_init;
use super::number::Default as DefaultAction;
use super::pending::{Payer, costs};
use super::{Info, Origin, Signal, SignalSet, during_fork, stop};
use crate::processes::{ExitStatus, Pid, Process, Thread, current, family};

/// Whom a signal is for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reach {
    /// One process.
    One,
    /// It, among others (`family::sweep`).
    Many,
}

/// Sends to the process: one of its threads takes it.
///
/// Errors: `WouldBlock` if too many real-time signals wait already.
pub fn send_to_process(process: &Process, info: Info) -> Result<()> {
    send(process, info, Reach::One)
}

/// The same in a sweep: a child that the process forks now is sent it too.
///
/// Errors: `WouldBlock` if too many real-time signals wait already.
pub fn send_in_sweep(process: &Process, info: Info) -> Result<()> {
    send(process, info, Reach::Many)
}

fn send(process: &Process, info: Info, reach: Reach) -> Result<()> {
    if is_lost(process, &info) {
        return Ok(());
    }
    prepare(process, info.signal);
    if info.signal == Signal::KILL {
        process.begin_exit(ExitStatus::Killed(Signal::KILL));
        if reach == Reach::Many {
            process.with_threads(|threads| during_fork::note(threads, info.signal));
        }
        return Ok(());
    }
    if post(process, info, reach)? {
        process.signals.pollee.notify(Events::READABLE);
    }
    Ok(())
}

/// Puts a signal that neither stops, continues nor kills where the process finds it; false if
/// the process ignores it. Files that watch signals are left for the caller to tell, so that no
/// lock is taken here but those of signals, threads and run queues.
///
/// Errors: `WouldBlock` if too many real-time signals wait already.
pub fn post_to_process(process: &Process, info: Info) -> Result<bool> {
    post(process, info, Reach::One)
}

fn post(process: &Process, info: Info, reach: Reach) -> Result<bool> {
    if process
        .first_thread()
        .is_none_or(|first| is_ignored(&first, info.signal))
    {
        return Ok(false);
    }
    let payer = payer(process, &info);
    process.with_threads(|threads| {
        {
            let mut pending = process.signals.pending.lock();
            pending.push(info, payer.as_ref())?;
            if reach == Reach::Many {
                during_fork::note(threads, info.signal);
            }
        }
        if let Some(taker) = threads
            .iter()
            .find(|thread| thread.signals.takes(info.signal))
        {
            alert(taker);
        }
        Ok(true)
    })
}

/// Sends to this thread alone.
///
/// Errors: `WouldBlock` if too many real-time signals wait already.
pub fn send_to_thread(thread: &Arc<Thread>, info: Info) -> Result<()> {
    if is_lost(&thread.process, &info) {
        return Ok(());
    }
    prepare(&thread.process, info.signal);
    if info.signal == Signal::KILL {
        thread.process.begin_exit(ExitStatus::Killed(Signal::KILL));
        return Ok(());
    }
    if is_ignored(thread, info.signal) {
        return Ok(());
    }
    let payer = payer(&thread.process, &info);
    thread.signals.pending.lock().push(info, payer.as_ref())?;
    if thread.signals.takes(info.signal) {
        alert(thread);
    }
    thread.process.signals.pollee.notify(Events::READABLE);
    Ok(())
}

/// Sends to all processes of a group; false if it has none.
pub fn send_to_group(group: Pid, info: Info) -> bool {
    let mut has_members = false;
    for process in family::sweep(|| family::group_members(group)) {
        has_members = true;
        // A full queue loses real-time signals to groups, as in Linux.
        let _ = send_in_sweep(&process, info);
    }
    has_members
}

/// What kill(2) sends on behalf of the current thread.
pub fn from_current(signal: Signal, code: i32) -> Info {
    let me = current();
    let uid = me.credentials.with(|credentials| credentials.user.real);
    Info {
        signal,
        code,
        origin: Origin::Process {
            pid: me.process.id(),
            uid,
        },
    }
}

/// Whether the current thread may send `signal` to `target` (kill(2)).
pub fn check_permission(target: &Process, signal: Option<Signal>) -> Result<()> {
    let me = current();
    let sender = me.credentials.get();
    let same_session = || family::session_of(me.process.id()) == family::session_of(target.id());
    let allowed = sender.has(Capability::Kill)
        || core::ptr::eq(&*me.process, target)
        || (signal == Some(Signal::CONT) && same_session())
        || target.first_thread().is_some_and(|thread| {
            thread.credentials.with(|receiver| {
                let ids = [receiver.user.real, receiver.user.saved];
                ids.contains(&sender.user.real) || ids.contains(&sender.user.effective)
            })
        });
    if allowed {
        Ok(())
    } else {
        Err(Error::NotPermitted)
    }
}

/// Whether process 1 ignores the signal already now: one that it blocks may find a handler
/// later.
fn is_lost(process: &Process, info: &Info) -> bool {
    let blocks = |thread: Arc<Thread>| thread.signals.mask().contains(info.signal);
    is_ignored_by_init(process, info) && !process.first_thread().is_some_and(blocks)
}

/// What a stop or continue signal does at once, whatever becomes of it later.
fn prepare(process: &Process, signal: Signal) {
    if SignalSet::STOPS.contains(signal) {
        discard(process, SignalSet::of(&[Signal::CONT]));
    } else if signal == Signal::CONT {
        discard(process, SignalSet::STOPS);
        stop::continue_process(process);
    } else if signal == Signal::KILL {
        stop::release(process);
    }
}

/// Forgets waiting signals of the process and of all its threads.
pub(super) fn discard(process: &Process, unwanted: SignalSet) {
    process.signals.pending.lock().discard(unwanted);
    process.with_threads(|threads| {
        for thread in threads {
            thread.signals.pending.lock().discard(unwanted);
        }
    });
}

/// An ignored signal is dropped at once, unless it is blocked: then sigwait may want it; or
/// a tracer wants to see it.
fn is_ignored(thread: &Thread, signal: Signal) -> bool {
    let action = thread
        .process
        .signals
        .actions
        .with(|actions| actions.get(signal));
    let no_effect = action.ignores(signal)
        || (action.handler == super::Handler::Default
            && signal.default_action() == DefaultAction::Continue);
    no_effect && !thread.signals.mask().contains(signal) && thread.tracee().is_none()
}

/// Who pays for a signal that costs: the receiver's real user.
fn payer(process: &Process, info: &Info) -> Option<Payer> {
    let first = process.first_thread().filter(|_| costs(info))?;
    let uid = first.credentials.with(|who| who.user.real);
    Some(Payer {
        account: Account::of(uid).ok()?,
        limit: process.limits.soft(Resource::PendingSignals),
    })
}

/// A thread has left its process: what it was to take of the process' signals is for others
/// that take them. Each signal goes to one, so that the ends of a thousand threads do not each
/// look at all the others.
pub fn pass_on(leaver: &Thread) {
    let process = &leaver.process;
    let waiting = process.signals.pending.lock().set();
    let mut left = waiting & leaver.signals.taken();
    process.with_threads(|threads| {
        for thread in threads {
            if left.is_empty() {
                return;
            }
            let taken = left & thread.signals.taken();
            if !taken.is_empty() {
                alert(thread);
                left = left.without(taken);
            }
        }
    });
}

/// Makes the thread look at its signals soon.
fn alert(thread: &Arc<Thread>) {
    thread.set_flags(Flags::SIGNAL);
    sched::interrupt(&thread.sched);
}
