//! Threads as `core/futex` sees them: each has a part of its table, a rank, and can be woken.
//!
//! The table itself, and the calls, stand above (`ipc::futex`).

use alloc::sync::Arc;

use mach::mem::fallible::Heap;
use mach::sync::Native;
use sched::Rank;

use super::{Thread, find_thread};

/// The kernel.
pub struct FutexHost;

/// A thread's part of the table.
pub type FutexWaiter = futex::Waiter<FutexHost>;

impl futex::Host for FutexHost {
    type Family = Native;
    type Memory = Heap;
    type Thread = Thread;

    fn find(id: u32) -> Option<Arc<Thread>> {
        find_thread(id)
    }

    fn relax() {
        mach::cpu::relax();
    }

    fn resched_point() {
        sched::resched_point();
    }
}

impl futex::Thread for Thread {
    type Host = FutexHost;
    type Rank = Rank;

    const FAIR: Rank = Rank::FAIR;

    fn waiter(&self) -> &FutexWaiter {
        &self.futex
    }

    fn id(&self) -> u32 {
        self.id()
    }

    fn rank(&self) -> Rank {
        self.sched.class.rank()
    }

    fn lend(&self, rank: Rank) {
        sched::lend(&self.sched, rank);
    }

    fn unpark(self: &Arc<Self>) {
        sched::wake(&self.sched);
    }
}
