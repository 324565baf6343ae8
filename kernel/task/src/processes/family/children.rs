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
pub enum WaitTarget {
    /// Any.
    Any,
    /// This one.
    Process(Pid),
    /// Those of this group.
    Group(Pid),
}

/// Which changes a wait is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WaitOptions {
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
pub fn poll_children(
    parent: &Process,
    target: WaitTarget,
    options: WaitOptions,
) -> Result<Option<Report>> {
    if let Some(report) = first_report(parent, target, options) {
        return Ok(Some(report));
    }
    match ptrace::poll(parent, target, options) {
        Some(report) => Ok(report),
        None if has_child(parent.id(), target, options) => Ok(None),
        None => Err(Error::NoChild),
    }
}

/// The first change that is wanted; unless it shall stay, it is hereby heard.
fn first_report(parent: &Process, target: WaitTarget, options: WaitOptions) -> Option<Report> {
    let own = FAMILY.get(parent.id())?;
    let report = FAMILY.hear(&own, range_of(target), |member, child| {
        if !matches(member, child, target, options) {
            return None;
        }
        let report = Report {
            pid: member.id(),
            uid: child.uid,
            change: change_of(child, options)?,
            usage: total_usage(member.process()),
        };
        let fate = match report.change {
            _ if options.keep => Fate::Stays,
            Change::Ended(_) => Fate::Goes,
            _ => {
                child.news = None;
                Fate::Stays
            }
        };
        Some((report, fate))
    })?;
    if let Change::Ended(_) = report.change
        && !options.keep
    {
        *parent.dead_children.lock() += report.usage;
    }
    Some(report)
}

/// Whether there is a child that could change.
fn has_child(parent: Pid, target: WaitTarget, options: WaitOptions) -> bool {
    let is_one = |member: &Member, child: &Child| matches(member, child, target, options);
    let parent = FAMILY.get(parent);
    parent.is_some_and(|parent| FAMILY.any_child(&parent, range_of(target), is_one))
}

/// The numbers among which the children are.
fn range_of(target: WaitTarget) -> RangeInclusive<Pid> {
    match target {
        WaitTarget::Process(id) => id..=id,
        WaitTarget::Any | WaitTarget::Group(_) => 0..=Pid::MAX,
    }
}

fn matches(member: &Member, child: &Child, target: WaitTarget, options: WaitOptions) -> bool {
    let silent = child.exit_signal != Some(Signal::CHLD);
    let chosen = match target {
        WaitTarget::Any | WaitTarget::Process(_) => true,
        WaitTarget::Group(group) => group == member.group(),
    };
    chosen && options.silent.is_none_or(|wanted| wanted == silent)
}

fn change_of(child: &Child, options: WaitOptions) -> Option<Change> {
    if let Some(status) = child.ended {
        return options.ended.then_some(Change::Ended(status));
    }
    child.news.filter(|news| match news {
        Change::Stopped(_) => options.stopped,
        Change::Continued => options.continued,
        Change::Ended(_) | Change::Trapped(_) => false,
    })
}

/// The usage of all that a process and its waited-for children have used.
pub fn total_usage(process: &Process) -> Usage {
    let mut usage = process.usage();
    usage += process.children_usage();
    usage
}
