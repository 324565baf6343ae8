//! What a parent knows of a child.

use alloc::sync::Arc;
use core::sync::atomic::Ordering;

use cred::UserShare;
use relations::{Host, State};

use super::death;
use crate::processes::{Change, ExitStatus, Process, release_id};
use crate::signal::Signal;

/// A child, as its parent may hear of it.
pub(super) struct Child {
    pub exit_signal: Option<Signal>,
    pub adopted: bool,
    pub ended: Option<ExitStatus>,
    pub uid: u32,
    /// What it still takes of its user's number of threads.
    pub share: Option<UserShare>,
    /// A stop or continuation that the parent has not waited for.
    pub news: Option<Change>,
}

impl Child {
    pub fn new(exit_signal: Option<Signal>) -> Self {
        Self {
            exit_signal,
            adopted: false,
            ended: None,
            uid: 0,
            share: None,
            news: None,
        }
    }
}

impl State for Child {
    fn has_changed(&self) -> bool {
        self.ended.is_some() || self.news.is_some()
    }
}

/// What the relations ask of the kernel.
pub(super) struct Kernel;

impl Host for Kernel {
    type Family = mach::sync::Native;
    type Process = Arc<Process>;
    type State = Child;

    fn release(number: u32) {
        release_id(number);
    }

    fn has_reapers() -> bool {
        death::has_subreaper()
    }

    fn is_reaper(process: &Arc<Process>) -> bool {
        process.is_subreaper.load(Ordering::Relaxed)
    }

    fn breathe() {
        sched::resched_point();
    }
}
