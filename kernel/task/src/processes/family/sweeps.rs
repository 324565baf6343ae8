//! Signals for many processes, and forks meanwhile (`relations`' sweeps).

use alloc::sync::Arc;
use core::sync::atomic::AtomicUsize;

use mach::sync::Spin;
use relations::{Generations, Sweep, Sweeps};
use sync::{Wait, WaitQueue};

use super::child::Kernel;
use crate::processes::Process;

/// Those under way, through any group: a child must be missed by none.
static SWEEPS: Sweeps<Kernel> = Sweeps::new(
    AtomicUsize::new(0),
    AtomicUsize::new(0),
    Spin::new(Generations::new()),
);
/// Those who fork and wait until sweeps are over. They wait for any of them, so one queue is enough.
static WAITERS: WaitQueue = WaitQueue::new();

/// The processes of a sweep, which is under way until this is dropped.
pub struct During<I> {
    members: I,
    sweep: Option<Sweep<'static, Kernel>>,
}

/// Begins a sweep through `members`, none of which a signal must miss: a child of one that is
/// forked meanwhile either is among them, or is sent what its parent is sent
/// (`signal::send_in_sweep`).
pub fn sweep<I>(members: impl FnOnce() -> I) -> During<I> {
    let sweep = Some(SWEEPS.begin());
    During {
        members: members(),
        sweep,
    }
}

impl<I: Iterator<Item = Arc<Process>>> Iterator for During<I> {
    type Item = Arc<Process>;

    fn next(&mut self) -> Option<Arc<Process>> {
        let sweep = self.sweep.as_ref()?;
        self.members
            .find(|process| sweep.reaches(process.sweeps_before))
    }
}

impl<I> Drop for During<I> {
    fn drop(&mut self) {
        // It is over before somebody is woken to look.
        self.sweep = None;
        WAITERS.wake_all();
    }
}

/// How many have begun, for a process whose fork has begun.
pub(in crate::processes) fn sweeps_begun() -> usize {
    SWEEPS.count()
}

/// Waits until all are over that had begun before the caller put a child into the table.
pub(in crate::processes) fn wait_for_sweeps() {
    if let Some(begun) = SWEEPS.begun() {
        let are_over = || SWEEPS.are_over(begun).then_some(());
        let waited = WAITERS.wait(Wait::UNINTERRUPTIBLE, are_over);
        debug_assert!(waited.is_ok(), "an uninterruptible wait has no deadline");
    }
}
