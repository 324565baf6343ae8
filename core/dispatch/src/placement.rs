//! Which CPU a runnable thread goes to.
//!
//! The last CPU of the thread if that idles, else an idle one it may use, near to the last one if
//! there is such a one, else its last one.
//!
//! A thread with a real-time rank goes to an idle CPU, else to the one that runs the worst rank.

use alloc::sync::Arc;
use core::cmp::Reverse;

use base::lock::Family;
use base::{CpuId, CpuSet};

use crate::ready::Key;
use crate::{Dispatcher, Machine, SchedEntity, Thread};

/// What is to be done as a thread has come to a queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use = "a CPU may have to be told"]
pub enum Arrival {
    /// It waits for another CPU, which is to look.
    Elsewhere(CpuId),
    /// It waits for this one; whether the running thread makes way at once.
    Here {
        /// It does.
        preempts: bool,
    },
    /// It waits for this one, which looks for a thread in any case.
    HereIdle,
}

impl<T: Thread, F: Family, const CPUS: usize> Dispatcher<T, F, CPUS> {
    /// Puts a thread that is `Ready` on a queue. `running` runs here, or waits in place.
    pub fn enqueue(
        &self,
        thread: Arc<T>,
        running: &SchedEntity<T::Count>,
        machine: &impl Machine,
    ) -> Arrival {
        let cpu = self.choose(thread.sched(), machine);
        self.note_taken(cpu);
        if cpu != machine.here() {
            self.send(thread, cpu, machine);
            return Arrival::Elsewhere(cpu);
        }
        let first = self.change(cpu, |queue| {
            queue.push(thread, cpu);
            queue.first(false)
        });
        if self.idle().contains(cpu) {
            Arrival::HereIdle
        } else {
            let preempts = first.is_some_and(|first| self.is_behind(running, first, machine));
            Arrival::Here { preempts }
        }
    }

    /// Puts a thread where `cpu` finds it once it is told. A real-time one goes to the queue itself, as others
    /// may look for it there.
    fn send(&self, thread: Arc<T>, cpu: CpuId, machine: &impl Machine) {
        let left = match thread.sched().rank().is_realtime() {
            true => Err(thread),
            false => self.cpu(cpu).woken.put(thread, machine.here(), cpu),
        };
        if let Err(thread) = left {
            self.change(cpu, |queue| queue.push(thread, cpu));
        }
    }

    /// Which CPU the thread would go to.
    pub fn choose(&self, thread: &SchedEntity<T::Count>, machine: &impl Machine) -> CpuId {
        let last = thread.last_cpu();
        let allowed = thread.affinity() & machine.all();
        let free = self.free() & allowed;
        if !free.is_empty() {
            return nearest(free, last, machine);
        }
        if thread.rank().is_realtime() {
            return self.worst_running(allowed, last, machine);
        }
        nearest(allowed, last, machine)
    }

    /// The CPU of `allowed` that runs the worst rank: `last`, or a near one among equals.
    fn worst_running(&self, allowed: CpuSet, last: CpuId, machine: &impl Machine) -> CpuId {
        let by_rank = |cpu: &CpuId| {
            let is_near = machine.are_near(*cpu, last);
            (self.running(*cpu), *cpu == last, is_near, Reverse(*cpu))
        };
        allowed.iter().max_by_key(by_rank).unwrap_or(last)
    }

    /// Takes a thread that has got another rank off its queue, if it stands on one: it is to be
    /// put on one anew. Whoever puts it there meanwhile sees the rank.
    pub fn take_out(&self, thread: &SchedEntity<T::Count>) -> Option<Arc<T>> {
        let place = thread.place_after_change()?;
        self.change(place.cpu, |queue| queue.remove(thread))
    }

    /// Allows other CPUs to a thread, wherever it is: from its next switch on it runs there.
    pub fn set_affinity(&self, thread: &SchedEntity<T::Count>, cpus: CpuSet) {
        thread.set_affinity(cpus);
        if let Some(place) = thread.place_after_change() {
            self.change(place.cpu, |queue| queue.note_affinity(thread));
        }
    }

    /// Where the best of those stands that wait for this CPU.
    pub(crate) fn first_here(&self, machine: &impl Machine) -> Option<Key> {
        self.look(machine.here(), |queue| queue.first(false))
    }

    /// A CPU that idles although threads wait for this one: it is told, so that it steals.
    pub fn idle_helper(&self, machine: &impl Machine) -> Option<CpuId> {
        let here = machine.here();
        let idle = (self.idle() & machine.all()) - CpuSet::one(here);
        (!idle.is_empty()).then(|| nearest(idle, here, machine))
    }
}

/// The one of `cpus` that is nearest to `to`; `to` itself if there is none.
fn nearest(cpus: CpuSet, to: CpuId, machine: &impl Machine) -> CpuId {
    if cpus.contains(to) {
        return to;
    }
    let near = cpus.iter().find(|cpu| machine.are_near(*cpu, to));
    near.or(cpus.first()).unwrap_or(to)
}
