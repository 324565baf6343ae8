//! The queues of all CPUs, and what CPUs know of each other's.

use alloc::sync::Arc;
use core::sync::atomic::{AtomicU8, Ordering};

use base::lock::{Count, Family, Lock};
use base::{CpuId, CpuSet, SharedCpuSet};

use crate::policy::Rank;
use crate::run_queue::Key;
use crate::{Machine, RunQueue, SchedEntity, Thread};

/// One CPU's queue, and what is published beside it.
#[repr(align(64))]
pub struct Cpu<T, F: Family> {
    queue: F::Lock<RunQueue<T>>,
    /// Threads on the queue, for looks without the lock.
    ready: F::Count,
    /// The rank of what runs.
    running: AtomicU8,
}

impl<T, F: Family> Cpu<T, F> {
    /// From an empty queue, and 0.
    pub const fn new(queue: F::Lock<RunQueue<T>>, ready: F::Count) -> Self {
        Self {
            queue,
            ready,
            running: AtomicU8::new(Rank::FAIR.0),
        }
    }
}

/// The queues of up to `CPUS` CPUs.
pub struct Dispatcher<T, F: Family, const CPUS: usize> {
    cpus: [Cpu<T, F>; CPUS],
    /// Only a hint: whoever puts a thread on a queue tells its CPU, idle or not.
    idle: SharedCpuSet,
    /// Threads of real-time ranks that wait anywhere. Written for these only.
    realtime_ready: F::Count,
}

impl<T, F: Family, const CPUS: usize> Dispatcher<T, F, CPUS> {
    /// From empty queues, and 0.
    pub const fn new(cpus: [Cpu<T, F>; CPUS], realtime_ready: F::Count) -> Self {
        Self {
            cpus,
            idle: SharedCpuSet::new(CpuSet::EMPTY),
            realtime_ready,
        }
    }

    fn cpu(&self, cpu: CpuId) -> &Cpu<T, F> {
        // tidy: the machine has no CPU with a higher number.
        &self.cpus[cpu.index()]
    }

    /// Threads that wait for `cpu`.
    #[inline]
    pub fn ready(&self, cpu: CpuId) -> usize {
        self.cpu(cpu).ready.get()
    }

    /// The other CPUs for which threads wait. No lock is taken for that.
    pub(crate) fn waiting_elsewhere(&self, machine: &impl Machine) -> CpuSet {
        let others = machine.all() - CpuSet::one(machine.here());
        others.iter().filter(|cpu| self.ready(*cpu) != 0).collect()
    }

    /// Whether real-time threads wait anywhere.
    #[inline]
    pub fn has_realtime(&self) -> bool {
        self.realtime_ready.get() != 0
    }

    /// `thread` runs on `cpu` from now on, or with another rank.
    #[inline]
    pub fn note_running(&self, cpu: CpuId, thread: &SchedEntity) {
        let rank = thread.rank().0;
        let running = &self.cpu(cpu).running;
        if running.load(Ordering::Relaxed) != rank {
            running.store(rank, Ordering::Relaxed);
        }
    }

    /// The rank of what runs on `cpu`.
    pub(crate) fn running(&self, cpu: CpuId) -> Rank {
        Rank(self.cpu(cpu).running.load(Ordering::Relaxed))
    }

    /// `cpu` is about to halt: it looks for work once more after this.
    pub fn announce_idle(&self, cpu: CpuId) {
        self.idle.insert(cpu, Ordering::SeqCst);
    }

    /// `cpu` looks for work again.
    pub fn announce_busy(&self, cpu: CpuId) {
        self.idle.remove(cpu, Ordering::SeqCst);
    }

    /// The CPUs that idle.
    pub(crate) fn idle(&self) -> CpuSet {
        self.idle.load(Ordering::SeqCst)
    }

    /// Threads that wait, and CPUs that do not idle.
    pub fn runnable(&self, machine: &impl Machine) -> usize {
        let ready: usize = machine.all().iter().map(|cpu| self.ready(cpu)).sum();
        ready + (machine.all() - self.idle()).len()
    }
}

impl<T: Thread, F: Family, const CPUS: usize> Dispatcher<T, F, CPUS> {
    /// Changes the queue of `cpu`, and publishes what became of it.
    pub(crate) fn change<R>(&self, cpu: CpuId, act: impl FnOnce(&mut RunQueue<T>) -> R) -> R {
        let cpu = self.cpu(cpu);
        let mut queue = cpu.queue.lock();
        let realtime = queue.realtime();
        let done = act(&mut queue);
        cpu.ready.set(queue.len());
        if queue.realtime() != realtime {
            // The difference may be negative.
            let difference = queue.realtime().wrapping_sub(realtime);
            self.realtime_ready.add(difference);
        }
        done
    }

    /// Takes a thread of `cpu`'s queue, which is not locked if nobody waits there.
    #[inline]
    pub(crate) fn take(
        &self,
        cpu: CpuId,
        choose: impl FnOnce(&mut RunQueue<T>) -> Option<Arc<T>>,
    ) -> Option<Arc<T>> {
        if self.ready(cpu) == 0 {
            return None;
        }
        self.change(cpu, choose)
    }

    /// Looks at the queue of `cpu`.
    pub(crate) fn look(
        &self,
        cpu: CpuId,
        act: impl FnOnce(&RunQueue<T>) -> Option<Key>,
    ) -> Option<Key> {
        if self.ready(cpu) == 0 {
            return None;
        }
        act(&self.cpu(cpu).queue.lock())
    }
}
