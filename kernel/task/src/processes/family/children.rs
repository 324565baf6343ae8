//! Hearing of children: which of them changed, as wait4(2) asks.

use mach::sync::SpinGuard;
use sched::resched_point;
use sync::{Error, Result};

use super::FAMILY;
use super::index::{BATCH, Family, Member};
use crate::processes::{Change, Pid, Process, Report, Usage};
use crate::ptrace;
use crate::signal::Signal;

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

/// Looks once for a change of a child of `parent`, or of a thread that it traces.
///
/// Errors: `NoChild` if there is none that could change.
pub fn poll_children(parent: &Process, whom: Whom, wanted: Wanted) -> Result<Option<Report>> {
    if let Some(report) = first_report(parent, whom, wanted) {
        return Ok(Some(report));
    }
    match ptrace::poll(parent, whom, wanted) {
        Some(report) => Ok(report),
        None if has_child(parent.id(), whom, wanted) => Ok(None),
        None => Err(Error::NoChild),
    }
}

/// The first change that is wanted; unless it shall stay, it is hereby heard.
fn first_report(parent: &Process, whom: Whom, wanted: Wanted) -> Option<Report> {
    let found = search(parent.id(), Among::Changed, |pid, member| {
        if !matches(pid, member, whom, wanted) {
            return None;
        }
        Some(Report {
            pid,
            uid: member.uid,
            change: change_of(member, wanted)?,
            usage: total_usage(&member.process),
        })
    });
    let (mut family, report) = found?;
    if wanted.keep {
        return Some(report);
    }
    if let Change::Ended(_) = report.change {
        let gone = family.take_out(report.pid);
        drop(family);
        drop(gone);
        *parent.dead_children.lock() += report.usage;
    } else {
        family.update(report.pid, |member| member.news = None);
    }
    Some(report)
}

/// Whether there is a child that could change.
fn has_child(parent: Pid, whom: Whom, wanted: Wanted) -> bool {
    if let Whom::Process(id) = whom {
        let family = FAMILY.lock();
        let member = family.get(id).filter(|member| member.parent() == parent);
        return member.is_some_and(|member| matches(id, member, whom, wanted));
    }
    let is_one = |pid, member: &Member| matches(pid, member, whom, wanted).then_some(());
    search(parent, Among::All, is_one).is_some()
}

/// Which children are searched.
#[derive(Clone, Copy)]
enum Among {
    All,
    Changed,
}

/// What `look` finds first among children, with the lock still held. They are looked at in
/// batches.
fn search<R>(
    parent: Pid,
    among: Among,
    look: impl Fn(Pid, &Member) -> Option<R>,
) -> Option<(SpinGuard<'static, Family>, R)> {
    let mut from = 0;
    loop {
        let family = FAMILY.lock();
        let mut last = None;
        let look = |(pid, member): (Pid, &Member)| {
            last = Some(pid);
            look(pid, member)
        };
        let found = match among {
            Among::All => family.children(parent, from).take(BATCH).find_map(look),
            Among::Changed => family.changed(parent, from).take(BATCH).find_map(look),
        };
        if let Some(found) = found {
            return Some((family, found));
        }
        drop(family);
        from = last? + 1;
        resched_point();
    }
}

fn matches(pid: Pid, member: &Member, whom: Whom, wanted: Wanted) -> bool {
    let silent = member.exit_signal != Some(Signal::CHLD);
    let chosen = match whom {
        Whom::Any => true,
        Whom::Process(id) => id == pid,
        Whom::Group(group) => group == member.group(),
    };
    chosen && wanted.silent.is_none_or(|wanted| wanted == silent)
}

fn change_of(member: &Member, wanted: Wanted) -> Option<Change> {
    if let Some(status) = member.ended {
        return wanted.ended.then_some(Change::Ended(status));
    }
    member.news.filter(|news| match news {
        Change::Stopped(_) => wanted.stopped,
        Change::Continued => wanted.continued,
        Change::Ended(_) | Change::Trapped(_) => false,
    })
}

/// The usage of all that a process and its waited-for children have used.
pub fn total_usage(process: &Process) -> Usage {
    let mut usage = process.usage();
    usage += process.children_usage();
    usage
}
