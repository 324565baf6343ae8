//! What the end of a process means to its family: orphans find a new parent, stopped
//! groups that nobody controls are told to go on, the parent hears of it.

use alloc::collections::BTreeSet;
use alloc::sync::Arc;
use core::sync::atomic::{AtomicBool, Ordering};

use cred::UserShare;
use relations::Fate;
use sched::resched_point;
use sync::poll::Events;

use super::{
    FAMILY, INIT, Member, SESSION_ENDED, child_info, group_members, is_controlled,
    is_orphaned_group, session_of,
};
use crate::processes::{Change, ExitStatus, Pid, Process};
use crate::signal::{
    ActionFlags, Handler, Info, Signal, post_to_process, send_to_process, send_to_thread,
};

/// The real user of a process that has ended, and what it takes of that user's number.
type Owner = (u32, Option<UserShare>);

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
    let Some((parent, rules)) = told else {
        if let Some(member) = FAMILY.get_if(id, |other| core::ptr::eq(&**other, process)) {
            FAMILY.forget(&member);
        }
        return process.note_end();
    };
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
    let member = FAMILY.get(process.id())?;
    FAMILY.update(&member, |child, parent| {
        member.note_end();
        child.ended = Some(status);
        child.uid = uid;
        child.share = share;
        child.news = None;
        let parent = parent.process();
        let rules = death_rules(child.exit_signal, child.adopted, parent);
        if rules.signal == Some(Signal::CHLD) {
            // A standard signal always fits.
            let _ = post_to_process(parent, info);
        }
        let fate = match rules.leaves_zombie {
            true => Fate::Stays,
            false => Fate::Goes,
        };
        ((parent.clone(), rules), fate)
    })
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
    let mut groups = BTreeSet::new();
    let Some(dying) = FAMILY.get(process.id()) else {
        return groups;
    };
    if is_controlled(&dying) {
        groups.insert(dying.group());
    }
    loop {
        let orphans = FAMILY.give_away(&dying, |member, child, heir| {
            if member.is_controlled_by(&dying) {
                groups.insert(member.group());
            }
            // It is the heir's adopted child now, of whose end it hears as of any other's.
            child.adopted = true;
            child.exit_signal = Some(Signal::CHLD);
            match child.ended.is_some() && !leaves_zombies(heir) {
                true => Fate::Goes,
                false => Fate::Stays,
            }
        });
        let Some(orphans) = orphans else {
            return groups;
        };
        for child in &orphans.children {
            tell_bereaved(child.process());
        }
        orphans.heir.process().children_changed.wake_all();
        resched_point();
    }
}

/// Whether `heir` has to wait for children that it adopted.
fn leaves_zombies(heir: &Member) -> bool {
    death_rules(Some(Signal::CHLD), true, heir.process()).leaves_zombie
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

/// Whether some has.
pub(super) fn has_subreaper() -> bool {
    HAS_SUBREAPER.load(Ordering::Relaxed)
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
