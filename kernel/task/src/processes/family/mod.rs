//! The family of all processes: parents, groups, sessions, and who has died.
//!
//! `core/relations` has the relations, each behind locks of those whom it is about; this binds it:
//! what a parent may hear of a child ([`Child`]), what signals that makes, who is woken. A process
//! is in the table from its fork until its parent has waited for it. Its number stays taken while
//! it also names a group or session that has members.
//!
//! Orphans go to the nearest ancestor that is a subreaper, else to process 1. Dead
//! orphans of process 1 are released at once unless it catches SIGCHLD: a server that
//! was not written to be the first process does not wait for children it never had.
//!
//! Lock order: a parent's children, then the locks of signals and run queues.

mod child;
mod children;
mod death;
mod sweeps;

use alloc::sync::Arc;

use mach::mem::fallible;
use mach::sync::{Once, RwSpin};
use relations::{Cursor, Fate, Index, Part, Table};
use sched::resched_point;
use sync::poll::Events;
use sync::{Error, Result};

use super::id::{last_taken, next_taken};
use super::{Change, ExitStatus, Pid, Process};
use crate::signal::{ActionFlags, Info, Origin, Signal, code, post_to_process};

use child::{Child, Kernel};
pub use children::{WaitOptions, WaitTarget, poll_children, total_usage};
pub(super) use death::bury;
pub use death::note_subreaper;
pub use relations::INIT;
pub use sweeps::sweep;
pub(super) use sweeps::{sweeps_begun, wait_for_sweeps};

/// Parts of the table. Processes that start together are in different ones.
const PARTS: usize = 64;

type Member = relations::Member<Kernel>;

/// One tree: each process but the first has a parent, and any may lose it.
static FAMILY: Table<Kernel, PARTS> =
    Table::new([const { Part::new(RwSpin::new(Index::new())) }; PARTS]);
/// Said once at boot by who keeps terminals.
static SESSION_ENDED: Once<fn(Pid)> = Once::new();

/// Says who hears of the end of a session's leader (the terminal); once at boot.
pub fn on_session_end(hear: fn(Pid)) {
    SESSION_ENDED.call_once(|| hear);
}

/// Whether the heap has room for one process more here.
///
/// Errors: `OutOfMemory`.
pub fn room_for_one() -> Result<()> {
    Ok(fallible::room_for_arc::<Member>()?)
}

/// Puts a process in that no process made: process 1, or one of the kernel's agent. It has no parent
/// and leads a group and a session.
pub fn begin(process: Arc<Process>) {
    FAMILY.add((process.id(), process), None, None, Child::new(None));
}

/// Puts a new process in that `maker` made, in that one's group and session: as its child, or as
/// its sibling.
pub fn enrol(process: Arc<Process>, maker: Pid, is_sibling: bool, exit_signal: Option<Signal>) {
    let maker = FAMILY.get(maker);
    // The first process has no siblings.
    let sibling = maker.as_ref().filter(|_| is_sibling);
    let parent = sibling.and_then(|maker| maker.parent());
    let new = (process.id(), process);
    let parent = parent.or_else(|| maker.clone());
    FAMILY.add(new, parent, maker.as_deref(), Child::new(exit_signal));
}

/// The process of that number, dead ones that nobody waited for included.
pub fn find(id: Pid) -> Option<Arc<Process>> {
    FAMILY.with(id, |member| member.process().clone())
}

/// All processes, by number, up to the one that is the last now. Nothing is locked between
/// two, where others get the CPU: one that comes or goes meanwhile is seen or not.
pub fn processes() -> impl Iterator<Item = Arc<Process>> {
    let last = last_id();
    let mut from = 0;
    core::iter::from_fn(move || {
        loop {
            resched_point();
            let id = next_taken(from).filter(|id| *id <= last)?;
            from = id + 1;
            // Threads and groups have numbers too.
            if let Some(process) = find(id) {
                return Some(process);
            }
        }
    })
}

/// The highest number that is taken.
pub fn last_id() -> Pid {
    last_taken()
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
    FAMILY.with(id, Member::parent_id).unwrap_or(0)
}

/// The number of its group.
pub fn group_of(id: Pid) -> Option<Pid> {
    FAMILY.with(id, Member::group)
}

/// The number of its session.
pub fn session_of(id: Pid) -> Option<Pid> {
    FAMILY.with(id, Member::session)
}

/// Whether it has ended and waits to be waited for.
pub fn is_zombie(id: Pid) -> bool {
    FAMILY.with(id, Member::has_ended) == Some(true)
}

/// The processes of a group.
pub fn group_members(group: Pid) -> impl Iterator<Item = Arc<Process>> {
    in_group(group).map(|member| member.process().clone())
}

/// The same, as members. Nothing is locked between two, where others get the CPU.
fn in_group(group: Pid) -> impl Iterator<Item = Arc<Member>> {
    let mut cursor = Cursor::default();
    core::iter::from_fn(move || {
        resched_point();
        FAMILY.next_of_group(group, &mut cursor)
    })
}

/// The session that a group belongs to.
pub fn session_of_group(group: Pid) -> Option<Pid> {
    in_group(group).next().map(|member| member.session())
}

/// Whether no member of the group has a parent in the same session but another group:
/// then nobody controls its jobs.
pub fn is_orphaned_group(group: Pid) -> bool {
    !in_group(group).any(|member| is_controlled(&member) && !member.has_ended())
}

/// Whether the parent of `member` controls its group from another one of the session.
fn is_controlled(member: &Member) -> bool {
    let parent = member.parent();
    parent.is_some_and(|parent| member.is_controlled_by(&parent))
}

/// The process runs a program of its own (setpgid by its parent comes too late).
pub fn note_exec(id: Pid) {
    let Some(member) = FAMILY.get(id) else { return };
    member.note_program();
    FAMILY.update(&member, |child, _| {
        child.exit_signal = Some(Signal::CHLD);
        ((), Fate::Stays)
    });
}

/// setpgid(2): `caller` moves itself or a child into `group`.
pub fn set_group(caller: Pid, id: Pid, group: Pid) -> Result<()> {
    let own = FAMILY.get(caller).ok_or(Error::NoSuchProcess)?;
    let member = FAMILY.get(id).ok_or(Error::NoSuchProcess)?;
    if id != caller {
        if member.parent_id() != caller {
            return Err(Error::NoSuchProcess);
        }
        if member.has_run_program() {
            return Err(Error::AccessDenied);
        }
    }
    let session = own.session();
    let is_outside = member.session() != session;
    let leads_session = member.session() == id;
    if is_outside || leads_session {
        return Err(Error::NotPermitted);
    }
    let group = FAMILY.group_in(session, group, &member);
    let group = group.ok_or(Error::NotPermitted)?;
    // It may have begun a session of its own meanwhile, or the last one have left the group.
    match FAMILY.set_group(&member, group, session) {
        true => Ok(()),
        false => Err(Error::NotPermitted),
    }
}

/// setsid(2): the process leads a new session and group, without a terminal.
///
/// Errors: `NotPermitted` if somebody is in the group of its number.
pub fn new_session(id: Pid) -> Result<Pid> {
    let member = FAMILY.get(id).ok_or(Error::NoSuchProcess)?;
    match FAMILY.lead_session(&member) {
        true => Ok(id),
        false => Err(Error::NotPermitted),
    }
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
    // Who continues it may have found it long ago: its parent may have waited for it meanwhile, and
    // its number be another one's.
    let member = FAMILY.get_if(process.id(), |other| core::ptr::eq(&**other, process))?;
    FAMILY.update(&member, |child, parent| {
        child.news = Some(change);
        let parent = parent.process();
        let actions = &parent.signals.actions;
        let flags = actions.with(|actions| actions.get(Signal::CHLD).flags);
        if !flags.contains(ActionFlags::NOCLDSTOP) {
            // A standard signal always fits.
            let _ = post_to_process(parent, info);
        }
        (parent.clone(), Fate::Stays)
    })
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

/// Processes in the table, for the leak check.
pub fn count() -> usize {
    FAMILY.len()
}
