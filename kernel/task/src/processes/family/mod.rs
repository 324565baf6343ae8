//! The family of all processes: parents, groups, sessions, and who has died.
//!
//! One index under one lock holds every relation, so that each question has one answer.
//! A process is in the map from its fork until its parent has waited for it. Its number
//! stays taken while it also names a group or session that has members.
//!
//! Orphans go to the nearest ancestor that is a subreaper, else to process 1. Dead
//! orphans of process 1 are released at once unless it catches SIGCHLD: a server that
//! was not written to be the first process does not wait for children it never had.
//!
//! Lock order: this lock, then the locks of signals and run queues.

mod children;
mod death;
mod index;

use alloc::sync::Arc;

use mach::sync::{Once, Spin};
use sched::resched_point;
use sync::poll::Events;
use sync::{Error, Result};

use super::{Change, ExitStatus, Pid, Process};
use crate::signal::{ActionFlags, Info, Origin, Signal, code, post_to_process};

pub use children::{Wanted, Whom, poll_children, total_usage};
pub(super) use death::bury;
pub use death::note_subreaper;
use index::{BATCH, Family, Member};

/// The number of the first process.
pub const INIT: Pid = 1;

/// One tree: each process but the first has a parent, and any may lose it.
static FAMILY: Spin<Family> = Spin::new(Family::new());
/// Said once at boot by who keeps terminals.
static SESSION_ENDED: Once<fn(Pid)> = Once::new();

/// Says who hears of the end of a session's leader (the terminal); once at boot.
pub fn on_session_end(hear: fn(Pid)) {
    SESSION_ENDED.call_once(|| hear);
}

/// Puts a new process in, as a child of `parent`, in the group and session of `model`;
/// process 1 has parent 0 and leads its own.
pub fn enrol(process: Arc<Process>, parent: Pid, model: Pid, exit_signal: Option<Signal>) {
    FAMILY.lock().add(process, parent, model, exit_signal);
}

/// The process of that number, dead ones that nobody waited for included.
pub fn find(id: Pid) -> Option<Arc<Process>> {
    FAMILY.lock().get(id).map(|member| member.process.clone())
}

/// All processes, by number, up to the one that is the last now. Nothing is locked between
/// two, where others get the CPU: one that comes or goes meanwhile is seen or not.
pub fn processes() -> impl Iterator<Item = Arc<Process>> {
    each(|family, from| first_of(family.from(from)))
}

/// What `next` finds from a number on, up to the last one now.
fn each(
    next: impl Fn(&Family, Pid) -> Option<(Pid, Arc<Process>)>,
) -> impl Iterator<Item = Arc<Process>> {
    let mut from = 0;
    let last = last_id();
    core::iter::from_fn(move || {
        resched_point();
        let (id, process) = next(&FAMILY.lock(), from)?;
        from = id + 1;
        (id <= last).then_some(process)
    })
}

fn first_of<'a>(
    mut members: impl Iterator<Item = (Pid, &'a Member)>,
) -> Option<(Pid, Arc<Process>)> {
    let (id, member) = members.next()?;
    Some((id, member.process.clone()))
}

/// The highest number of a process.
pub fn last_id() -> Pid {
    FAMILY.lock().last_id()
}

/// The process for which `weigh` finds most, and what it finds.
pub fn heaviest(weigh: impl Fn(&Process) -> Option<u64>) -> Option<(Arc<Process>, u64)> {
    let weighed = processes().filter_map(|process| {
        let weight = weigh(&process)?;
        Some((process, weight))
    });
    weighed.max_by_key(|(_, weight)| *weight)
}

/// The number of its parent; 0 for process 1.
pub fn parent_of(id: Pid) -> Pid {
    FAMILY.lock().get(id).map_or(0, Member::parent)
}

/// The number of its group.
pub fn group_of(id: Pid) -> Option<Pid> {
    FAMILY.lock().get(id).map(Member::group)
}

/// The number of its session.
pub fn session_of(id: Pid) -> Option<Pid> {
    FAMILY.lock().get(id).map(Member::session)
}

/// Whether it has ended and waits to be waited for.
pub fn is_zombie(id: Pid) -> bool {
    FAMILY
        .lock()
        .get(id)
        .is_some_and(|member| member.ended.is_some())
}

/// The processes of a group.
pub fn group_members(group: Pid) -> impl Iterator<Item = Arc<Process>> {
    each(move |family, from| first_of(family.group(group, from)))
}

/// The session that a group belongs to.
pub fn session_of_group(group: Pid) -> Option<Pid> {
    let family = FAMILY.lock();
    let first = family.group(group, 0).next();
    first.map(|(_, member)| member.session())
}

/// Whether no member of the group has a parent in the same session but another group:
/// then nobody controls its jobs.
pub fn is_orphaned_group(group: Pid) -> bool {
    let mut from = 0;
    loop {
        let family = FAMILY.lock();
        let mut last = None;
        for (id, member) in family.group(group, from).take(BATCH) {
            if member.ended.is_none() && controls(&family, member) {
                return false;
            }
            last = Some(id);
        }
        drop(family);
        let Some(last) = last else { return true };
        from = last + 1;
        resched_point();
    }
}

/// Whether the parent of `member` controls its group from another one of the session.
fn controls(family: &Family, member: &Member) -> bool {
    let parent = family.get(member.parent());
    parent.is_some_and(|parent| {
        parent.session() == member.session() && parent.group() != member.group()
    })
}

/// The process runs a program of its own (setpgid by its parent comes too late).
pub fn note_exec(id: Pid) {
    FAMILY.lock().update(id, |member| {
        member.has_run_program = true;
        member.exit_signal = Some(Signal::CHLD);
    });
}

/// setpgid(2): `caller` moves itself or a child into `group`.
pub fn set_group(caller: Pid, id: Pid, group: Pid) -> Result<()> {
    let mut family = FAMILY.lock();
    let session = family.get(caller).ok_or(Error::NoSuchProcess)?.session();
    let member = family.get(id).ok_or(Error::NoSuchProcess)?;
    if id != caller {
        if member.parent() != caller {
            return Err(Error::NoSuchProcess);
        }
        if member.has_run_program {
            return Err(Error::AccessDenied);
        }
    }
    let leads_session = member.session() == id;
    // All members of a group are in one session.
    let first = family.group(group, 0).next();
    let group_exists = first.is_some_and(|(_, other)| other.session() == session);
    if member.session() != session || leads_session || (group != id && !group_exists) {
        return Err(Error::NotPermitted);
    }
    family.set_group(id, group);
    Ok(())
}

/// setsid(2): the process leads a new session and group, without a terminal.
pub fn new_session(id: Pid) -> Result<Pid> {
    let mut family = FAMILY.lock();
    if family.group(id, 0).next().is_some() {
        return Err(Error::NotPermitted);
    }
    family.get(id).ok_or(Error::NoSuchProcess)?;
    family.set_group(id, id);
    family.set_session(id, id);
    Ok(id)
}

/// A living process stopped or went on: its parent hears of it.
pub fn report(process: &Process, change: Change) {
    if let Some(parent) = note_news(process, change) {
        parent.signals.pollee.notify(Events::READABLE);
        parent.children_changed.wake_all();
    }
}

/// From now on the parent can wait for the news, and SIGCHLD is there already, as at an end.
fn note_news(process: &Process, change: Change) -> Option<Arc<Process>> {
    let info = child_info(process, Signal::CHLD, change);
    let mut family = FAMILY.lock();
    let parent = family.update(process.id(), |member| {
        member.news = Some(change);
        member.parent()
    })?;
    let parent = family.get(parent)?.process.clone();
    let actions = &parent.signals.actions;
    let flags = actions.with(|actions| actions.get(Signal::CHLD).flags);
    if !flags.contains(ActionFlags::NOCLDSTOP) {
        // A standard signal always fits.
        let _ = post_to_process(&parent, info);
    }
    Some(parent)
}

fn child_info(child: &Process, signal: Signal, change: Change) -> Info {
    let (code, status) = match change {
        Change::Ended(ExitStatus::Exited(status)) => (code::CHILD_EXITED, u32::from(status)),
        Change::Ended(ExitStatus::Killed(signal)) => {
            let core = signal.default_action() == crate::signal::DefaultAction::Core;
            (
                if core {
                    code::CHILD_DUMPED
                } else {
                    code::CHILD_KILLED
                },
                signal.number(),
            )
        }
        Change::Stopped(signal) => (code::CHILD_STOPPED, signal.number()),
        Change::Trapped(status) => (code::CHILD_TRAPPED, status),
        Change::Continued => (code::CHILD_CONTINUED, Signal::CONT.number()),
    };
    let origin = Origin::Child {
        pid: child.id(),
        uid: 0,
        status,
        used: child.cpu_time(),
    };
    Info {
        signal,
        code,
        origin,
    }
}

/// Processes in the map, for the leak check.
pub fn count() -> usize {
    FAMILY.lock().len()
}
