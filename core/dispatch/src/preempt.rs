//! When the running thread makes way.

use base::Duration;
use base::lock::Family;

use crate::policy::Rank;
use crate::ready::Key;
use crate::{Dispatcher, Machine, SchedEntity, Thread};

/// How long a thread runs while others wait.
pub const SLICE: Duration = Duration::from_millis(4);

/// A thread that woke runs at once if it has had less than the running one by more than this.
const PREEMPT_LEAD_NS: u64 = 1_000_000;

impl<T: Thread, F: Family, const CPUS: usize> Dispatcher<T, F, CPUS> {
    /// Whether a running thread makes way at once for the one that waits at `first`.
    pub(crate) fn is_behind(
        &self,
        running: &SchedEntity<T::Count>,
        first: Key,
        machine: &impl Machine,
    ) -> bool {
        let rank = running.rank();
        if first.rank == Rank::FAIR && rank == Rank::FAIR {
            return first.vruntime_ns.saturating_add(PREEMPT_LEAD_NS) < running.vruntime_ns();
        }
        first.rank < rank && (rank.is_realtime() || !machine.is_realtime_spent())
    }

    /// Threads may have come to this CPU's queue from elsewhere: whether any waits there, and if
    /// so, whether the running one makes way at once.
    pub fn look_for_arrivals(
        &self,
        running: &SchedEntity<T::Count>,
        machine: &impl Machine,
    ) -> Option<bool> {
        let first = self.first_here(machine)?;
        Some(self.is_behind(running, first, machine))
    }

    /// Whether the running thread has had its turn, as others wait for this CPU. `is_spent`: it is
    /// real-time, has run on until now, and such threads have had their part.
    pub fn is_turn_over(
        &self,
        running: &SchedEntity<T::Count>,
        slice_used: Duration,
        machine: &impl Machine,
    ) -> bool {
        let Some(first) = self.first_here(machine) else {
            return false;
        };
        if self.is_behind(running, first, machine) {
            return true;
        }
        if !running.rank().is_realtime() {
            return slice_used >= SLICE;
        }
        running.class.is_round_over(slice_used) || machine.is_realtime_spent()
    }
}
