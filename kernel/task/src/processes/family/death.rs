//! What the end of a process means to its family: orphans find a new parent, stopped
//! groups that nobody controls are told to go on, the parent hears of it.

use alloc::collections::BTreeSet;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, Ordering};

use cred::UserShare;
use mach::sync::SpinGuard;
use sched::resched_point;
use sync::poll::Events;

use super::index::{BATCH, Family, Member};
use super::{
    FAMILY, INIT, SESSION_ENDED, child_info, controls, group_members, is_orphaned_group, session_of,
};
use crate::processes::{Change, ExitStatus, Pid, Process};
use crate::signal::{
    ActionFlags, Handler, Info, Signal, post_to_process, send_to_process, send_to_thread,
};

/// The real user of a process that has ended, and what it takes of that user's number.
type Owner = (u32, Option<UserShare>);

/// Children that find a new parent under one hold of the lock.
const BATCH_ORPHANS: usize = 64;

/// Whether there ever was one, so that most deaths need not look.
static HAS_SUBREAPER: AtomicBool = AtomicBool::new(false);

/// The last thread of `process` has ended: its children get a new parent, its own
/// parent hears of it. Its memory and files are gone already.
pub(in crate::processes) fn bury(process: &Process, status: ExitStatus, owner: Owner) {
    let id = process.id();
    let led_session = session_of(id) == Some(id);
    if led_session && let Some(hear) = SESSION_ENDED.get() {
        hear(id);
    }
    let cut_off = give_children_away(process);
    let told = mark_ended(process, status, owner);
    hang_up(&cut_off);
    let Some((parent, rules)) = told else { return };
    process.note_end();
    match rules.signal {
        Some(Signal::CHLD) => parent.signals.pollee.notify(Events::READABLE),
        // A full queue loses real-time exit signals, as in Linux.
        Some(other) => {
            let info = child_info(process, other, Change::Ended(status));
            let _ = send_to_process(&parent, info);
        }
        None => {}
    }
    parent.children_changed.wake_all();
}

/// From now on the parent can wait for `process`, and SIGCHLD is there already: a shell that
/// has waited reads its next line, and must not be interrupted in it by a child that is gone.
/// One that need not wait never sees a zombie. Says who the parent is, and what holds for it.
fn mark_ended(
    process: &Process,
    status: ExitStatus,
    (uid, share): Owner,
) -> Option<(Arc<Process>, Rules)> {
    let info = child_info(process, Signal::CHLD, Change::Ended(status));
    let mut family = FAMILY.lock();
    let (signal, adopted, parent) = family.update(process.id(), |member| {
        member.ended = Some(status);
        member.uid = uid;
        member.share = share;
        member.news = None;
        (member.exit_signal, member.adopted, member.parent())
    })?;
    let parent = family.get(parent)?.process.clone();
    let rules = death_rules(signal, adopted, &parent);
    if rules.signal == Some(Signal::CHLD) {
        // A standard signal always fits.
        let _ = post_to_process(&parent, info);
    }
    let gone = match rules.leaves_zombie {
        true => None,
        false => family.take_out(process.id()),
    };
    drop(family);
    drop(gone);
    Some((parent, rules))
}

/// What holds for the end of one child.
struct Rules {
    /// It tells the parent.
    signal: Option<Signal>,
    /// The parent has to wait for it.
    leaves_zombie: bool,
}

fn death_rules(signal: Option<Signal>, adopted: bool, parent: &Process) -> Rules {
    if signal != Some(Signal::CHLD) {
        return Rules {
            signal,
            leaves_zombie: true,
        };
    }
    let action = parent
        .signals
        .actions
        .with(|actions| actions.get(Signal::CHLD));
    let ignored = action.handler == Handler::Ignore;
    let unexpected =
        adopted && parent.id() == INIT && !matches!(action.handler, Handler::Function(_));
    let discard = ignored || unexpected || action.flags.contains(ActionFlags::NOCLDWAIT);
    Rules {
        signal: signal.filter(|_| !ignored),
        leaves_zombie: !discard,
    }
}

/// Gives the children of `process` to its reaper, some at a time; returns the groups that lose
/// a link to their session by its end. A group that it was no link of is none of its business:
/// orphaned long ago, with a member stopped, it must not be hung up now.
fn give_children_away(process: &Process) -> BTreeSet<Pid> {
    let id = process.id();
    let mut groups = BTreeSet::from_iter(linked_group(&FAMILY.lock(), id));
    while let Some(children) = some_children(id) {
        let heir = give_away(id, &children, &mut groups);
        for (_, process) in &children {
            tell_bereaved(process);
        }
        if let Some(heir) = heir {
            heir.children_changed.wake_all();
        }
        resched_point();
    }
    groups
}

/// Children, by number; `None` if none is left.
fn some_children(id: Pid) -> Option<Vec<(Pid, Arc<Process>)>> {
    let family = FAMILY.lock();
    let batch = family.children(id, 0).take(BATCH_ORPHANS);
    let children: Vec<_> = batch
        .map(|(child, member)| (child, member.process.clone()))
        .collect();
    Some(children).filter(|children| !children.is_empty())
}

/// Gives these children of `id` to its reaper, which is returned.
fn give_away(
    id: Pid,
    children: &[(Pid, Arc<Process>)],
    groups: &mut BTreeSet<Pid>,
) -> Option<Arc<Process>> {
    let (mut family, reaper) = find_reaper(id);
    let heir = family.get(reaper).map(|member| member.process.clone());
    // They are its adopted children now, whose end it hears of as of any other's.
    let rules = |heir: &Arc<Process>| death_rules(Some(Signal::CHLD), true, heir);
    let leaves_zombies = heir.as_ref().is_none_or(|heir| rules(heir).leaves_zombie);
    let mut gone = Vec::new();
    for &(child, _) in children {
        let is_linked = family
            .get(child)
            .is_some_and(|member| controls(&family, member));
        let is_dead = family.update(child, |member| {
            member.adopted = true;
            member.exit_signal = Some(Signal::CHLD);
            if is_linked {
                groups.insert(member.group());
            }
            member.ended.is_some()
        });
        family.set_parent(child, reaper);
        if is_dead == Some(true) && !leaves_zombies {
            gone.extend(family.take_out(child));
        }
    }
    drop(family);
    drop(gone);
    heir
}

/// The group of `id`, if its parent controls it from another group of the session.
fn linked_group(family: &Family, id: Pid) -> Option<Pid> {
    let member = family.get(id)?;
    controls(family, member).then_some(member.group())
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

/// Some process has asked to be a subreaper: from now on they are looked for.
pub fn note_subreaper() {
    HAS_SUBREAPER.store(true, Ordering::Relaxed);
}

/// The nearest living ancestor of `id` that is a subreaper, else process 1, with the lock held.
/// The climb may be as long as there are processes, so it lets the lock go now and then; who
/// was given away meanwhile is followed to its new parent.
fn find_reaper(id: Pid) -> (SpinGuard<'static, Family>, Pid) {
    let mut at = id;
    loop {
        let family = FAMILY.lock();
        if !HAS_SUBREAPER.load(Ordering::Relaxed) {
            return (family, INIT);
        }
        for _ in 0..BATCH {
            at = family.get(at).map_or(INIT, Member::parent);
            let member = family.get(at).filter(|_| at != INIT);
            if member.is_none_or(is_reaper) {
                let reaper = member.map_or(INIT, |_| at);
                return (family, reaper);
            }
        }
        drop(family);
        resched_point();
    }
}

fn is_reaper(member: &Member) -> bool {
    member.process.is_subreaper.load(Ordering::Relaxed) && member.ended.is_none()
}

/// Stopped processes of groups that nobody controls any more are told to go on.
fn hang_up(groups: &BTreeSet<Pid>) {
    for &group in groups {
        let stopped = group_members(group).any(|process| process.signals.is_stopped());
        if stopped && is_orphaned_group(group) {
            for process in group_members(group) {
                for signal in [Signal::HUP, Signal::CONT] {
                    // Standard signals always fit.
                    let _ = send_to_process(&process, Info::kernel(signal));
                }
            }
        }
    }
}
