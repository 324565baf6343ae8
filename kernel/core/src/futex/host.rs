//! The kernel as the table sees it.

use alloc::sync::Arc;

use mach::mem::fallible::Heap;
use mach::sync::Native;
use sched::Rank;

use crate::task::{Thread, find_thread};

/// The kernel.
pub struct Host;

/// A thread's part of the table.
pub type Waiter = ::futex::Waiter<Host>;

impl ::futex::Host for Host {
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

impl ::futex::Thread for Thread {
    type Host = Host;
    type Rank = Rank;

    const FAIR: Rank = Rank::FAIR;

    fn waiter(&self) -> &Waiter {
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
