//! The family of all processes: parents, groups, sessions, and who has died.
//!
//! One map under one lock holds every relation, so that each question has one answer.
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

use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;

use mach::sync::{Once, Spin};

use super::{Change, ExitStatus, Pid, Process};
use crate::error::{Error, Result};
use crate::poll::Events;
use crate::signal::{ActionFlags, Info, Origin, Signal, code, post_to_process};

pub use children::{Wanted, Whom, poll_children, total_usage};
pub(super) use death::bury;

/// The number of the first process.
pub const INIT: Pid = 1;

struct Member {
    process: Arc<Process>,
    parent: Pid,
    group: Pid,
    session: Pid,
    exit_signal: Option<Signal>,
    adopted: bool,
    has_run_program: bool,
    ended: Option<ExitStatus>,
    uid: u32,
    /// A stop or continuation that the parent has not waited for.
    news: Option<Change>,
}

static FAMILY: Spin<BTreeMap<Pid, Member>> = Spin::new(BTreeMap::new());
static SESSION_ENDED: Once<fn(Pid)> = Once::new();

/// Says who hears of the end of a session's leader (the terminal); once at boot.
pub fn on_session_end(hear: fn(Pid)) {
    SESSION_ENDED.call_once(|| hear);
}

/// Puts a new process in, as a child of `parent`, in the group and session of `model`;
/// process 1 has parent 0 and leads its own.
pub fn enrol(process: Arc<Process>, parent: Pid, model: Pid, exit_signal: Option<Signal>) {
    let mut family = FAMILY.lock();
    let id = process.id();
    let (group, session) = family
        .get(&model)
        .map_or((id, id), |member| (member.group, member.session));
    let member = Member {
        process,
        parent,
        group,
        session,
        exit_signal,
        adopted: false,
        has_run_program: false,
        ended: None,
        uid: 0,
        news: None,
    };
    family.insert(id, member);
}

/// The process of that number, dead ones that nobody waited for included.
pub fn find(id: Pid) -> Option<Arc<Process>> {
    FAMILY.lock().get(&id).map(|member| member.process.clone())
}

/// All processes, by number.
pub fn processes() -> Vec<Arc<Process>> {
    FAMILY
        .lock()
        .values()
        .map(|member| member.process.clone())
        .collect()
}

/// The process for which `weigh` finds most, and what it finds; it must not lock much.
pub fn heaviest(weigh: impl Fn(&Process) -> Option<u64>) -> Option<(Arc<Process>, u64)> {
    let family = FAMILY.lock();
    let weighed = family
        .values()
        .filter_map(|member| Some((&member.process, weigh(&member.process)?)));
    let (process, weight) = weighed.max_by_key(|(_, weight)| *weight)?;
    Some((process.clone(), weight))
}

/// The number of its parent; 0 for process 1.
pub fn parent_of(id: Pid) -> Pid {
    FAMILY.lock().get(&id).map_or(0, |member| member.parent)
}

/// The number of its group.
pub fn group_of(id: Pid) -> Option<Pid> {
    FAMILY.lock().get(&id).map(|member| member.group)
}

/// The number of its session.
pub fn session_of(id: Pid) -> Option<Pid> {
    FAMILY.lock().get(&id).map(|member| member.session)
}

/// Whether it has ended and waits to be waited for.
pub fn is_zombie(id: Pid) -> bool {
    FAMILY
        .lock()
        .get(&id)
        .is_some_and(|member| member.ended.is_some())
}

/// The processes of a group.
pub fn group_members(group: Pid) -> Vec<Arc<Process>> {
    let family = FAMILY.lock();
    let members = family.values().filter(|member| member.group == group);
    members.map(|member| member.process.clone()).collect()
}

/// The session that a group belongs to.
pub fn session_of_group(group: Pid) -> Option<Pid> {
    FAMILY
        .lock()
        .values()
        .find(|member| member.group == group)
        .map(|member| member.session)
}

/// Whether no member of the group has a parent in the same session but another group:
/// then nobody controls its jobs.
pub fn is_orphaned_group(group: Pid) -> bool {
    is_orphaned(&FAMILY.lock(), group)
}

fn is_orphaned(family: &BTreeMap<Pid, Member>, group: Pid) -> bool {
    !family
        .values()
        .filter(|member| member.group == group && member.ended.is_none())
        .any(|member| {
            family
                .get(&member.parent)
                .is_some_and(|parent| parent.session == member.session && parent.group != group)
        })
}

/// The process runs a program of its own (setpgid by its parent comes too late).
pub fn note_exec(id: Pid) {
    if let Some(member) = FAMILY.lock().get_mut(&id) {
        member.has_run_program = true;
        member.exit_signal = Some(Signal::CHLD);
    }
}

/// setpgid(2): `caller` moves itself or a child into `group`.
pub fn set_group(caller: Pid, id: Pid, group: Pid) -> Result<()> {
    let mut family = FAMILY.lock();
    let session = family.get(&caller).ok_or(Error::NoSuchProcess)?.session;
    let member = family.get(&id).ok_or(Error::NoSuchProcess)?;
    if id != caller {
        if member.parent != caller {
            return Err(Error::NoSuchProcess);
        }
        if member.has_run_program {
            return Err(Error::AccessDenied);
        }
    }
    let leads_session = member.session == id;
    let group_exists = family
        .values()
        .any(|other| other.group == group && other.session == session);
    if member.session != session || leads_session || (group != id && !group_exists) {
        return Err(Error::NotPermitted);
    }
    if let Some(member) = family.get_mut(&id) {
        member.group = group;
    }
    Ok(())
}

/// setsid(2): the process leads a new session and group, without a terminal.
pub fn new_session(id: Pid) -> Result<Pid> {
    let mut family = FAMILY.lock();
    if family.values().any(|member| member.group == id) {
        return Err(Error::NotPermitted);
    }
    let member = family.get_mut(&id).ok_or(Error::NoSuchProcess)?;
    member.group = id;
    member.session = id;
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
    let member = family.get_mut(&process.id())?;
    member.news = Some(change);
    let parent = member.parent;
    let parent = family.get(&parent)?.process.clone();
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
