//! The queues of all CPUs, and what CPUs know of each other's.

use alloc::sync::Arc;
use core::sync::atomic::Ordering;

use base::lock::{Count, Family, Lock};
use base::{CpuId, CpuSet, SharedCpuSet};

use crate::policy::Rank;
use crate::ready::Key;
use crate::waiting::Waiting;
use crate::{Cpu, Machine, RunQueue, SchedEntity, Thread};

/// The queues of up to `CPUS` CPUs.
pub struct Dispatcher<T, F: Family, const CPUS: usize> {
    cpus: [Cpu<T, F>; CPUS],
    /// Only a hint: whoever puts a thread on a queue tells its CPU, idle or not.
    idle: SharedCpuSet,
    /// Those of them to which no thread has been sent. A hint as well.
    free: SharedCpuSet,
    /// Threads of real-time ranks that wait anywhere. Written for these only.
    realtime_ready: F::Count,
}

impl<T, F: Family, const CPUS: usize> Dispatcher<T, F, CPUS> {
    /// From empty queues, and 0.
    pub const fn new(cpus: [Cpu<T, F>; CPUS], realtime_ready: F::Count) -> Self {
        Self {
            cpus,
            idle: SharedCpuSet::new(CpuSet::EMPTY),
            free: SharedCpuSet::new(CpuSet::EMPTY),
            realtime_ready,
        }
    }

    pub(crate) fn cpu(&self, cpu: CpuId) -> &Cpu<T, F> {
        // tidy: the machine has no CPU with a higher number.
        &self.cpus[cpu.index()]
    }

    /// Threads that wait for `cpu`.
    #[inline]
    pub fn ready(&self, cpu: CpuId) -> usize {
        self.cpu(cpu).waiting().ready
    }

    /// Those of them that may run elsewhere.
    pub fn movable(&self, cpu: CpuId) -> usize {
        self.cpu(cpu).waiting().movable
    }

    /// The other CPUs for which threads wait that may run elsewhere. No lock is taken for that.
    pub(crate) fn waiting_elsewhere(&self, machine: &impl Machine) -> CpuSet {
        let others = machine.all() - CpuSet::one(machine.here());
        others
            .iter()
            .filter(|cpu| self.movable(*cpu) != 0)
            .collect()
    }

    /// Whether `cpu` could not look at a queue when it last looked for a thread elsewhere: it
    /// looks again before it halts.
    pub fn was_refused(&self, cpu: CpuId) -> bool {
        self.cpu(cpu).was_refused()
    }

    /// For `cpu` itself.
    pub(crate) fn note_refused(&self, cpu: CpuId, refused: bool) {
        self.cpu(cpu).note_refused(refused);
    }

    /// Whether real-time threads wait anywhere.
    #[inline]
    pub fn has_realtime(&self) -> bool {
        self.realtime_ready.get() != 0
    }

    /// `thread` runs on `cpu` from now on, or with another rank.
    #[inline]
    pub fn note_running(&self, cpu: CpuId, thread: &SchedEntity<impl Count>) {
        self.cpu(cpu).note_running(thread.rank());
    }

    /// The rank of what runs on `cpu`.
    pub(crate) fn running(&self, cpu: CpuId) -> Rank {
        self.cpu(cpu).running()
    }

    /// `cpu` is about to halt: it looks for work once more after this.
    pub fn announce_idle(&self, cpu: CpuId) {
        self.free.insert(cpu, Ordering::Relaxed);
        self.idle.insert(cpu, Ordering::SeqCst);
    }

    /// `cpu` looks for work again.
    pub fn announce_busy(&self, cpu: CpuId) {
        self.idle.remove(cpu, Ordering::SeqCst);
        self.note_taken(cpu);
    }

    /// The CPUs that idle.
    pub(crate) fn idle(&self) -> CpuSet {
        self.idle.load(Ordering::SeqCst)
    }

    /// The CPUs that idle and have not been sent a thread.
    pub(crate) fn free(&self) -> CpuSet {
        self.free.load(Ordering::Relaxed)
    }

    /// A thread is sent to `cpu`, or it found one: the next one need not go there.
    pub(crate) fn note_taken(&self, cpu: CpuId) {
        if self.free().contains(cpu) {
            self.free.remove(cpu, Ordering::Relaxed);
        }
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
        self.change_locked(cpu, &mut self.cpu(cpu).queue.lock(), act)
    }

    /// The same unless somebody else does so at this moment.
    pub(crate) fn try_change<R>(
        &self,
        cpu: CpuId,
        act: impl FnOnce(&mut RunQueue<T>) -> R,
    ) -> Option<R> {
        let mut queue = self.cpu(cpu).queue.try_lock()?;
        Some(self.change_locked(cpu, &mut queue, act))
    }

    #[inline]
    fn change_locked<R>(
        &self,
        id: CpuId,
        queue: &mut RunQueue<T>,
        act: impl FnOnce(&mut RunQueue<T>) -> R,
    ) -> R {
        let cpu = self.cpu(id);
        let realtime = queue.realtime();
        let came = match cpu.woken.waiting() {
            Waiting::NOBODY => Waiting::NOBODY,
            _ => cpu.woken.take_all(|thread| queue.push(thread, id)),
        };
        let done = act(queue);
        cpu.ready.set(queue.waiting().word());
        cpu.woken.uncount(came);
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
        self.change(cpu, |queue| act(queue))
    }
}
