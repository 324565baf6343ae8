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

use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::Ordering;

use mach::sync::{Once, Spin};

use super::{Change, ExitStatus, Pid, Process, Report, Usage, release_id};
use crate::error::{Error, Result};
use crate::signal::{
    ActionFlags, Handler, Info, Origin, Signal, code, send_to_process, send_to_thread,
};

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

/// A living process stopped or went on.
pub fn report(process: &Process, change: Change) {
    let parent = {
        let mut family = FAMILY.lock();
        let Some(member) = family.get_mut(&process.id()) else {
            return;
        };
        member.news = Some(change);
        let parent = member.parent;
        family.get(&parent).map(|member| member.process.clone())
    };
    if let Some(parent) = parent {
        let actions = parent
            .signals
            .actions
            .with(|actions| actions.get(Signal::CHLD));
        if !actions.flags.contains(ActionFlags::NOCLDSTOP) {
            // SIGCHLD is a standard signal: it always fits.
            let _ = send_to_process(&parent, child_info(process, Signal::CHLD, change));
        }
        parent.children_changed.wake_all();
    }
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
        used_ns: child.cpu_ns(),
    };
    Info {
        signal,
        code,
        origin,
    }
}

/// The last thread of `process` has ended: its children get a new parent, its own
/// parent hears of it. Its memory and files are gone already.
pub(super) fn bury(process: &Process, status: ExitStatus, uid: u32) {
    let id = process.id();
    let led_session = session_of(id) == Some(id);
    if led_session && let Some(hear) = SESSION_ENDED.get() {
        hear(id);
    }
    let orphaned = give_children_away(process);
    hang_up(&orphaned);
    let Some(parent) = mark_ended(id, status, uid) else {
        return;
    };
    process.note_end();
    let (signal, discard) = death_rules(id, &parent);
    if let Some(signal) = signal {
        // A full queue loses real-time exit signals, as in Linux.
        let _ = send_to_process(&parent, child_info(process, signal, Change::Ended(status)));
    }
    if discard {
        remove(id);
    }
    parent.children_changed.wake_all();
}

fn mark_ended(id: Pid, status: ExitStatus, uid: u32) -> Option<Arc<Process>> {
    let mut family = FAMILY.lock();
    let member = family.get_mut(&id)?;
    member.ended = Some(status);
    member.uid = uid;
    member.news = None;
    let parent = member.parent;
    family.get(&parent).map(|member| member.process.clone())
}

/// The signal that tells the parent, and whether the child leaves no zombie.
fn death_rules(id: Pid, parent: &Process) -> (Option<Signal>, bool) {
    let (signal, adopted) = {
        let family = FAMILY.lock();
        family
            .get(&id)
            .map_or((None, false), |member| (member.exit_signal, member.adopted))
    };
    if signal != Some(Signal::CHLD) {
        return (signal, false);
    }
    let action = parent
        .signals
        .actions
        .with(|actions| actions.get(Signal::CHLD));
    let ignored = action.handler == Handler::Ignore;
    let unexpected =
        adopted && parent.id() == INIT && !matches!(action.handler, Handler::Function(_));
    let discard = ignored || unexpected || action.flags.contains(ActionFlags::NOCLDWAIT);
    (signal.filter(|_| !ignored), discard)
}

/// Gives the children of `process` to its reaper; returns the groups that lost a link to
/// their session thereby.
fn give_children_away(process: &Process) -> Vec<Pid> {
    let id = process.id();
    let mut family = FAMILY.lock();
    let reaper = reaper_of(&family, id);
    let own_group = family.get(&id).map_or(0, |member| member.group);
    let mut groups = Vec::new();
    let mut dead = Vec::new();
    let mut bereaved = Vec::new();
    for (&child, member) in family.iter_mut().filter(|(_, member)| member.parent == id) {
        member.parent = reaper;
        member.adopted = true;
        member.exit_signal = Some(Signal::CHLD);
        groups.push(member.group);
        if member.ended.is_some() {
            dead.push(child);
        } else {
            bereaved.push(member.process.clone());
        }
    }
    groups.push(own_group);
    groups.sort_unstable();
    groups.dedup();
    let heir = family.get(&reaper).map(|member| member.process.clone());
    drop(family);
    bereaved.iter().for_each(|process| tell_bereaved(process));
    if let Some(heir) = heir {
        for child in dead {
            if death_rules(child, &heir).1 {
                remove(child);
            }
        }
        heir.children_changed.wake_all();
    }
    groups
}

/// Sends the signals that threads asked for at their parent's end (PR_SET_PDEATHSIG).
fn tell_bereaved(process: &Process) {
    for thread in process.threads() {
        let number = thread.parent_death_signal.load(Ordering::Relaxed);
        if let Some(signal) = Signal::new(number) {
            // A full queue loses real-time signals, as in Linux.
            let _ = send_to_thread(&thread, Info::kernel(signal));
        }
    }
}

fn reaper_of(family: &BTreeMap<Pid, Member>, id: Pid) -> Pid {
    let mut ancestor = family.get(&id).map_or(INIT, |member| member.parent);
    for _ in 0..family.len() {
        match family.get(&ancestor) {
            Some(member)
                if member.process.is_subreaper.load(Ordering::Relaxed)
                    && member.ended.is_none() =>
            {
                return ancestor;
            }
            Some(member) if ancestor != INIT => ancestor = member.parent,
            _ => break,
        }
    }
    INIT
}

/// Stopped processes of groups that nobody controls any more are told to go on.
fn hang_up(groups: &[Pid]) {
    for &group in groups {
        let members = group_members(group);
        let stopped = members.iter().any(|process| process.signals.is_stopped());
        if stopped && is_orphaned_group(group) {
            for process in &members {
                for signal in [Signal::HUP, Signal::CONT] {
                    // Standard signals always fit.
                    let _ = send_to_process(process, Info::kernel(signal));
                }
            }
        }
    }
}

/// Takes a process out; its number and those of its group and session are free once
/// nothing bears them.
fn remove(id: Pid) {
    let gone = take_out(&mut FAMILY.lock(), id);
    drop(gone);
}

/// The caller drops the member without the lock.
fn take_out(family: &mut BTreeMap<Pid, Member>, id: Pid) -> Option<Member> {
    let gone = family.remove(&id)?;
    for number in [id, gone.group, gone.session] {
        let in_use = family
            .iter()
            .any(|(&pid, member)| [pid, member.group, member.session].contains(&number));
        if !in_use {
            release_id(number);
        }
    }
    Some(gone)
}

/// Which children a wait is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Whom {
    /// Any.
    Any,
    /// This one.
    Process(Pid),
    /// Those of this group.
    Group(Pid),
}

/// Which changes a wait is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Wanted {
    /// The end.
    pub ended: bool,
    /// Stops.
    pub stopped: bool,
    /// Continuations.
    pub continued: bool,
    /// Children that end without SIGCHLD (`__WCLONE`): `None` for both kinds.
    pub silent: Option<bool>,
    /// The change stays to be waited for (`WNOWAIT`).
    pub keep: bool,
}

/// Looks once for a change of a child of `parent`.
///
/// Errors: `NoChild` if there is none that could change.
pub fn poll_children(parent: &Process, whom: Whom, wanted: Wanted) -> Result<Option<Report>> {
    let mut family = FAMILY.lock();
    let mut any = false;
    let report = family
        .iter_mut()
        .filter(|(_, member)| member.parent == parent.id())
        .find_map(|(&pid, member)| {
            if !matches(pid, member, whom, wanted) {
                return None;
            }
            any = true;
            let change = change_of(member, wanted)?;
            Some(Report {
                pid,
                uid: member.uid,
                change,
                usage: total_usage(&member.process),
            })
        });
    let Some(report) = report else {
        return if any { Ok(None) } else { Err(Error::NoChild) };
    };
    if let (Change::Ended(_), false) = (report.change, wanted.keep) {
        let gone = take_out(&mut family, report.pid);
        drop(family);
        drop(gone);
        *parent.dead_children.lock() += report.usage;
    }
    Ok(Some(report))
}

fn matches(pid: Pid, member: &Member, whom: Whom, wanted: Wanted) -> bool {
    let silent = member.exit_signal != Some(Signal::CHLD);
    let chosen = match whom {
        Whom::Any => true,
        Whom::Process(id) => id == pid,
        Whom::Group(group) => group == member.group,
    };
    chosen && wanted.silent.is_none_or(|wanted| wanted == silent)
}

fn change_of(member: &mut Member, wanted: Wanted) -> Option<Change> {
    if let Some(status) = member.ended {
        return wanted.ended.then_some(Change::Ended(status));
    }
    let news = member.news.filter(|news| match news {
        Change::Stopped(_) => wanted.stopped,
        Change::Continued => wanted.continued,
        Change::Ended(_) => false,
    })?;
    if !wanted.keep {
        member.news = None;
    }
    Some(news)
}

/// Processes in the map, for the leak check.
pub fn count() -> usize {
    FAMILY.lock().len()
}

/// The usage of all that a process and its waited-for children have used.
pub fn total_usage(process: &Process) -> Usage {
    let mut usage = process.usage();
    usage += process.children_usage();
    usage
}
