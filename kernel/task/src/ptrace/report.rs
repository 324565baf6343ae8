//! Hearing of tracees: as of children, by SIGCHLD and wait4(2).

use alloc::sync::Arc;

use sync::poll::Events;

use super::tracee::{Stop, Tracee};
use crate::processes::family::{self, WaitOptions, WaitTarget};
use crate::processes::{Change, CpuTime, ExitStatus, Process, Report, Usage};
use crate::signal::{ActionFlags, Handler, Info, Origin, Signal, code, post_to_process};

/// The tracer is told that there is something to wait for.
pub(super) fn tell(tracee: &Tracee) {
    let Some(tracer) = family::find(tracee.tracer) else {
        return;
    };
    let action = tracer
        .signals
        .actions
        .with(|actions| actions.get(Signal::CHLD));
    let is_wanted =
        action.handler != Handler::Ignore && !action.flags.contains(ActionFlags::NOCLDSTOP);
    if is_wanted && let Some(info) = describe(tracee) {
        // A standard signal always fits.
        let _ = post_to_process(&tracer, info);
        tracer.signals.pollee.notify(Events::READABLE);
    }
    tracer.children_changed.wake_all();
}

fn describe(tracee: &Tracee) -> Option<Info> {
    let uid = |thread: Arc<crate::processes::Thread>| thread.credentials.with(|who| who.user.real);
    let uid = tracee.thread.upgrade().map_or(0, uid);
    let state = tracee.state.lock();
    let (code, status) = match (state.ended, state.stopped) {
        (Some(ExitStatus::Exited(status)), _) => (code::CHILD_EXITED, u32::from(status)),
        (Some(ExitStatus::Killed(signal)), _) => (code::CHILD_KILLED, signal.number()),
        (None, Some(stopped)) => match stopped.stop {
            Stop::Group(signal) => (code::CHILD_STOPPED, signal.number()),
            _ => (code::CHILD_TRAPPED, stopped.code),
        },
        (None, None) => return None,
    };
    let origin = Origin::Child {
        pid: tracee.tid(),
        uid,
        status,
        used: CpuTime::default(),
    };
    Some(Info {
        signal: Signal::CHLD,
        code,
        origin,
    })
}

/// Looks once for news of a tracee of `tracer`; `None` if it has none that is meant.
pub fn poll(tracer: &Process, target: WaitTarget, options: WaitOptions) -> Option<Option<Report>> {
    let mut any = false;
    let news = tracer.tracees.find_map(|tracee| {
        if !is_meant(tracee, target) {
            return None;
        }
        any = true;
        Some((tracee.clone(), take(tracee, options)?))
    });
    let Some((tracee, change)) = news else {
        return any.then_some(None);
    };
    if let (Change::Ended(_), false) = (change, options.keep) {
        tracer.tracees.remove(&tracee);
    }
    let thread = tracee.thread.upgrade();
    Some(Some(Report {
        pid: tracee.tid(),
        uid: thread
            .as_ref()
            .map_or(0, |thread| thread.credentials.with(|who| who.user.real)),
        change,
        usage: thread.map_or_else(Usage::default, |thread| Usage::of_thread(&thread)),
    }))
}

fn is_meant(tracee: &Tracee, target: WaitTarget) -> bool {
    match target {
        WaitTarget::Any => true,
        WaitTarget::Process(id) => id == tracee.tid(),
        WaitTarget::Group(group) => family::group_of(tracee.process) == Some(group),
    }
}

fn take(tracee: &Tracee, options: WaitOptions) -> Option<Change> {
    let mut state = tracee.state.lock();
    if let Some(status) = state.ended {
        return options.ended.then_some(Change::Ended(status));
    }
    let has_order = state.order.is_some();
    let stopped = state.stopped.as_mut()?;
    if stopped.is_told || has_order {
        return None;
    }
    stopped.is_told = !options.keep;
    Some(match stopped.stop {
        Stop::Group(signal) if stopped.code == signal.number() => Change::Stopped(signal),
        _ => Change::Trapped(stopped.code),
    })
}
