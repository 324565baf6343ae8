//! Hearing of children: which of them changed, as wait4(2) asks.

use core::ops::RangeInclusive;

use relations::Fate;
use sync::{Error, Result};

use super::child::Child;
use super::{FAMILY, Member};
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
    let own = FAMILY.get(parent.id())?;
    let report = FAMILY.hear(&own, range_of(whom), |member, child| {
        if !matches(member, child, whom, wanted) {
            return None;
        }
        let report = Report {
            pid: member.id(),
            uid: child.uid,
            change: change_of(child, wanted)?,
            usage: total_usage(member.process()),
        };
        let fate = match report.change {
            _ if wanted.keep => Fate::Stays,
            Change::Ended(_) => Fate::Goes,
            _ => {
                child.news = None;
                Fate::Stays
            }
        };
        Some((report, fate))
    })?;
    if let Change::Ended(_) = report.change
        && !wanted.keep
    {
        *parent.dead_children.lock() += report.usage;
    }
    Some(report)
}

/// Whether there is a child that could change.
fn has_child(parent: Pid, whom: Whom, wanted: Wanted) -> bool {
    let is_one = |member: &Member, child: &Child| matches(member, child, whom, wanted);
    let parent = FAMILY.get(parent);
    parent.is_some_and(|parent| FAMILY.any_child(&parent, range_of(whom), is_one))
}

/// The numbers among which the children are.
fn range_of(whom: Whom) -> RangeInclusive<Pid> {
    match whom {
        Whom::Process(id) => id..=id,
        Whom::Any | Whom::Group(_) => 0..=Pid::MAX,
    }
}

fn matches(member: &Member, child: &Child, whom: Whom, wanted: Wanted) -> bool {
    let silent = child.exit_signal != Some(Signal::CHLD);
    let chosen = match whom {
        Whom::Any | Whom::Process(_) => true,
        Whom::Group(group) => group == member.group(),
    };
    chosen && wanted.silent.is_none_or(|wanted| wanted == silent)
}

fn change_of(child: &Child, wanted: Wanted) -> Option<Change> {
    if let Some(status) = child.ended {
        return wanted.ended.then_some(Change::Ended(status));
    }
    child.news.filter(|news| match news {
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
