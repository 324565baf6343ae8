//! Which thread a CPU runs next.
//!
//! A CPU that looks for its next thread looks at the others' queues for a better one first, as
//! long as any real-time thread waits anywhere.
//!
//! A thief does not wait for a queue that somebody else changes at this moment: it looks at the next
//! one. But then it may have missed a thread, so it notes that it was *refused*, and does not halt
//! before it has looked once more ([`Dispatcher::was_refused`]). Who holds the queue is the CPU
//! itself, one that brings a thread, or a thief, and each publishes what is left before it lets the
//! queue go. So thieves come to rest once nothing is left that any of them could take, and none
//! halts beside a thread that was there when it looked.

use alloc::sync::Arc;

use base::lock::Family;

use crate::machine::by_distance;
use crate::policy::Rank;
use crate::{Dispatcher, Machine, SchedEntity, Thread};

impl<T: Thread, F: Family, const CPUS: usize> Dispatcher<T, F, CPUS> {
    /// The next thread for this CPU: its own, else one of a neighbour's. A better one of a
    /// neighbour's goes first.
    #[inline]
    pub fn next(&self, machine: &impl Machine) -> Option<Arc<T>> {
        if self.has_realtime() {
            return self.next_by_rank(machine);
        }
        let own = self.take(machine.here(), |queue| queue.pop(false));
        own.or_else(|| self.steal(machine))
    }

    #[cold]
    fn next_by_rank(&self, machine: &impl Machine) -> Option<Arc<T>> {
        let here = machine.here();
        let is_spent = machine.is_realtime_spent();
        let own = self.look(here, |queue| queue.first(is_spent));
        let than = own.map_or(Rank::FAIR, |key| key.rank);
        let better = match is_spent {
            true => None,
            false => self.steal_best(than, machine),
        };
        let own = || self.take(here, |queue| queue.pop(is_spent));
        better.or_else(own).or_else(|| self.steal(machine))
    }

    /// The best thread of all neighbours', if it is better than `than`.
    fn steal_best(&self, than: Rank, machine: &impl Machine) -> Option<Arc<T>> {
        let here = machine.here();
        let best_of = |cpu| {
            let best = self.look(cpu, |queue| queue.best_for(here, than));
            best.map(|key| (key.rank, cpu))
        };
        let others = by_distance(self.waiting_elsewhere(machine), here, machine);
        let (_, cpu) = others.filter_map(best_of).min_by_key(|(rank, _)| *rank)?;
        self.take(cpu, |queue| queue.steal_better(here, than))
    }

    /// The thread to which `running` makes way on this CPU, if there is one: for a real-time
    /// thread only another of a rank as good, unless such threads have had their part.
    pub fn next_instead_of(
        &self,
        running: &SchedEntity<T::Count>,
        machine: &impl Machine,
    ) -> Option<Arc<T>> {
        let rank = running.rank();
        if !rank.is_realtime() || machine.is_realtime_spent() {
            return self.next(machine);
        }
        self.take(machine.here(), |queue| {
            let first = queue.first(false).filter(|first| first.rank <= rank);
            first.and_then(|_| queue.pop(false))
        })
    }

    /// Takes a thread over from the nearest CPU where one waits that may run here.
    fn steal(&self, machine: &impl Machine) -> Option<Arc<T>> {
        let here = machine.here();
        let victims = self.waiting_elsewhere(machine);
        if victims.is_empty() {
            self.note_refused(here, false);
            return None;
        }
        let mut refused = false;
        let mut victims = by_distance(victims, here, machine);
        let stolen = victims.find_map(|victim| {
            if let Some(sent) = self.cpu(victim).woken.steal(here) {
                return Some(sent);
            }
            // Others may have been here meanwhile.
            if self.movable(victim) == 0 {
                return None;
            }
            let stolen = self.try_change(victim, |queue| queue.steal(here));
            refused |= stolen.is_none();
            stolen.flatten()
        });
        self.note_refused(here, refused);
        stolen
    }
}
