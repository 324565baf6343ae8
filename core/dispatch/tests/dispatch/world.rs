//! Threads with a name, and CPUs of which a test says where it stands.

use std::array::from_fn;
use std::cell::Cell;
use std::sync::Arc;

use base::lock::{Family, Lock};
use base::{CpuId, CpuSet, Duration};
use dispatch::{Arrival, Cpu, Dispatcher, Machine, Policy, RunQueue, SchedEntity, Thread};
use models::Plain;

pub const CPUS: usize = 8;
/// CPUs of one node.
pub const NODE: u32 = 4;

pub const MS: u64 = 1_000_000;

pub struct Task {
    pub name: u32,
    sched: SchedEntity,
}

impl Task {
    /// One that ran on `cpu` last.
    pub fn on(cpu: u32, name: u32) -> Arc<Self> {
        Arc::new(Self {
            name,
            sched: SchedEntity::new(CpuId(cpu)),
        })
    }

    pub fn with_policy(cpu: u32, name: u32, policy: Policy) -> Arc<Self> {
        let task = Self::on(cpu, name);
        task.sched.set_policy(policy, false);
        task
    }
}

impl std::ops::Deref for Task {
    type Target = SchedEntity;

    fn deref(&self) -> &SchedEntity {
        &self.sched
    }
}

impl Thread for Task {
    fn sched(&self) -> &SchedEntity {
        &self.sched
    }
}

pub fn set(cpus: &[u32]) -> CpuSet {
    cpus.iter().copied().map(CpuId).collect()
}

/// The CPUs, the first `count` of which run, seen from `here`.
pub struct Cpus {
    pub here: Cell<u32>,
    pub count: usize,
    pub is_spent: Cell<bool>,
}

impl Cpus {
    pub fn new(count: usize) -> Self {
        Self {
            here: Cell::new(0),
            count,
            is_spent: Cell::new(false),
        }
    }
}

impl Machine for Cpus {
    fn here(&self) -> CpuId {
        CpuId(self.here.get())
    }

    fn all(&self) -> CpuSet {
        CpuSet::first_of(self.count)
    }

    fn are_near(&self, one: CpuId, other: CpuId) -> bool {
        one.0 / NODE == other.0 / NODE
    }

    fn is_realtime_spent(&self) -> bool {
        self.is_spent.get()
    }

    fn relax(&self) {}
}

/// A dispatcher, the CPUs around it, and what runs on each.
pub struct World<F: Family = Plain> {
    pub dispatcher: Dispatcher<Task, F, CPUS>,
    pub cpus: Cpus,
    /// Stands for what runs on a CPU of which a test says nothing.
    pub nobody: Arc<Task>,
}

impl<F: Family> World<F> {
    pub fn new(count: usize) -> Self {
        let cpu = |_| Cpu::new(F::Lock::new(RunQueue::new()), F::Count::default());
        Self {
            dispatcher: Dispatcher::new(from_fn(cpu), F::Count::default()),
            cpus: Cpus::new(count),
            nobody: Task::on(0, 0),
        }
    }

    /// The CPUs seen from `cpu`.
    pub fn at(&self, cpu: u32) -> &Cpus {
        self.cpus.here.set(cpu);
        &self.cpus
    }

    /// Puts `task` on a queue, from `cpu`, where nobody runs that it would preempt.
    pub fn enqueue(&self, cpu: u32, task: &Arc<Task>) -> Arrival {
        self.dispatcher
            .enqueue(task.clone(), &self.nobody, self.at(cpu))
    }

    /// Puts it on the queue of `cpu`, whatever idles.
    pub fn put(&self, cpu: u32, task: &Arc<Task>) {
        let affinity = task.affinity();
        task.set_affinity(set(&[cpu]));
        let arrival = self.enqueue(cpu, task);
        assert!(!matches!(arrival, Arrival::Elsewhere(_)));
        self.dispatcher.set_affinity(task, affinity, &self.cpus);
    }

    /// The name of the thread that `cpu` runs next; 0 for none.
    pub fn next(&self, cpu: u32) -> u32 {
        let next = self.dispatcher.next(self.at(cpu));
        next.map_or(0, |task| task.name)
    }

    pub fn idle(&self, cpus: &[u32]) {
        for cpu in cpus {
            self.dispatcher.announce_idle(CpuId(*cpu));
        }
    }

    /// Runs `task` on `cpu` for a while.
    pub fn run(&self, cpu: u32, task: &Task, millis: u64) {
        task.move_to(CpuId(cpu));
        task.charge(Duration::from_millis(millis).as_nanos());
    }
}
