//! What the end of a process means to its family: orphans find a new parent, stopped
//! groups that nobody controls are told to go on, the parent hears of it.

use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::Ordering;

use super::{
    FAMILY, INIT, Member, SESSION_ENDED, child_info, group_members, is_orphaned_group, session_of,
};
use crate::poll::Events;
use crate::signal::{
    ActionFlags, Handler, Info, Signal, post_to_process, send_to_process, send_to_thread,
};
use crate::task::{Change, ExitStatus, Pid, Process, release_id};

/// The last thread of `process` has ended: its children get a new parent, its own
/// parent hears of it. Its memory and files are gone already.
pub(in crate::task) fn bury(process: &Process, status: ExitStatus, uid: u32) {
    let id = process.id();
    let led_session = session_of(id) == Some(id);
    if led_session && let Some(hear) = SESSION_ENDED.get() {
        hear(id);
    }
    let cut_off = give_children_away(process);
    let told = mark_ended(process, status, uid);
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
fn mark_ended(process: &Process, status: ExitStatus, uid: u32) -> Option<(Arc<Process>, Rules)> {
    let info = child_info(process, Signal::CHLD, Change::Ended(status));
    let mut family = FAMILY.lock();
    let member = family.get_mut(&process.id())?;
    member.ended = Some(status);
    member.uid = uid;
    member.news = None;
    let (signal, adopted, parent) = (member.exit_signal, member.adopted, member.parent);
    let parent = family.get(&parent)?.process.clone();
    let rules = death_rules(signal, adopted, &parent);
    if rules.signal == Some(Signal::CHLD) {
        // A standard signal always fits.
        let _ = post_to_process(&parent, info);
    }
    let gone = match rules.leaves_zombie {
        true => None,
        false => take_out(&mut family, process.id()),
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

/// Gives the children of `process` to its reaper; returns the groups that lose a link to
/// their session by its end. A group that it was no link of is none of its business:
/// orphaned long ago, with a member stopped, it must not be hung up now.
fn give_children_away(process: &Process) -> Vec<Pid> {
    let id = process.id();
    let mut family = FAMILY.lock();
    let reaper = reaper_of(&family, id);
    let own = family.get(&id).map(|member| (member.session, member.group));
    let mut groups = Vec::from_iter(linked_group(&family, id));
    let mut dead = Vec::new();
    let mut bereaved = Vec::new();
    for (&child, member) in family.iter_mut().filter(|(_, member)| member.parent == id) {
        member.parent = reaper;
        member.adopted = true;
        member.exit_signal = Some(Signal::CHLD);
        if own.is_some_and(|(session, group)| member.session == session && member.group != group) {
            groups.push(member.group);
        }
        if member.ended.is_some() {
            dead.push(child);
        } else {
            bereaved.push(member.process.clone());
        }
    }
    groups.sort_unstable();
    groups.dedup();
    let heir = family.get(&reaper).map(|member| member.process.clone());
    // They are its adopted children now, whose end it hears of as of any other's.
    let rules = |heir: &Arc<Process>| death_rules(Some(Signal::CHLD), true, heir);
    if heir.as_ref().is_none_or(|heir| rules(heir).leaves_zombie) {
        dead.clear();
    }
    let take = |id| take_out(&mut family, id);
    let gone: Vec<Member> = dead.into_iter().filter_map(take).collect();
    drop(family);
    drop(gone);
    bereaved.iter().for_each(|process| tell_bereaved(process));
    if let Some(heir) = heir {
        heir.children_changed.wake_all();
    }
    groups
}

/// The group of `id`, if its parent controls it from another group of the session.
fn linked_group(family: &BTreeMap<Pid, Member>, id: Pid) -> Option<Pid> {
    let member = family.get(&id)?;
    let parent = family.get(&member.parent)?;
    (parent.session == member.session && parent.group != member.group).then_some(member.group)
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
/// nothing bears them. The caller drops the member without the lock.
pub(super) fn take_out(family: &mut BTreeMap<Pid, Member>, id: Pid) -> Option<Member> {
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
