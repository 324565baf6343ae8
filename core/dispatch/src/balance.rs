//! Evening out the queues of CPUs that are all busy.
//!
//! While all CPUs are busy nobody steals and no thread that keeps running is placed anew. So
//! each CPU compares the queues once a slice: who waits for a CPU with two more in its queue is
//! better off in a queue with two fewer. By one would only move the wait.
//!
//! A thread comes from a far CPU only if no near one has too many.

use base::CpuId;
use base::lock::Family;

use crate::{Dispatcher, Machine, Thread};

/// How much longer a queue is from which a busy CPU takes a thread.
const IMBALANCE: usize = 2;

impl<T: Thread, F: Family, const CPUS: usize> Dispatcher<T, F, CPUS> {
    /// Takes a thread over from the CPU with the longest queue, if it is by [`IMBALANCE`] longer
    /// than this one's; whether it did.
    pub fn balance(&self, machine: &impl Machine) -> bool {
        let here = machine.here();
        let Some(longest) = self.longest(machine) else {
            return false;
        };
        // Who is refused compares again after a slice.
        let taken = self
            .try_change(longest, |queue| queue.steal(here))
            .flatten();
        let is_taken = taken.is_some();
        if let Some(thread) = taken {
            self.change(here, |queue| queue.push(thread, here));
        }
        is_taken
    }

    /// The CPU from which a thread would come.
    fn longest(&self, machine: &impl Machine) -> Option<CpuId> {
        let here = machine.here();
        let enough = self.ready(here) + IMBALANCE;
        let long = machine.all().iter_after(here);
        let long = long.filter(|cpu| self.ready(*cpu) >= enough && self.movable(*cpu) != 0);
        long.max_by_key(|cpu| (machine.are_near(here, *cpu), self.ready(*cpu)))
    }
}
