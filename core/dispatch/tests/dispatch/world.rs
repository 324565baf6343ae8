//! Threads with a name, and CPUs of which a test says where it stands.

use std::array::from_fn;
use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use base::lock::{Count, Family, Lock};
use base::{CpuId, CpuSet, Duration};
use dispatch::{
    Arrival, Cpu, Dispatcher, Machine, Policy, RunQueue, SchedEntity, Thread, WakeList,
};
use models::Plain;

pub const CPUS: usize = 8;
/// CPUs of one node.
pub const NODE: u32 = 4;

pub const MS: u64 = 1_000_000;

/// A thread with a name.
pub struct Named<C> {
    pub name: u32,
    sched: SchedEntity<C>,
}

/// One of a test without `loom`.
pub type Task = Named<AtomicUsize>;

impl<C: Count> Named<C> {
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

impl<C> std::ops::Deref for Named<C> {
    type Target = SchedEntity<C>;

    fn deref(&self) -> &SchedEntity<C> {
        &self.sched
    }
}

impl<C: Count> Thread for Named<C> {
    type Count = C;

    fn sched(&self) -> &SchedEntity<C> {
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
}

/// A dispatcher, the CPUs around it, and what runs on each.
pub struct World<F: Family = Plain> {
    pub dispatcher: Dispatcher<Named<F::Count>, F, CPUS>,
    pub cpus: Cpus,
    /// Stands for what runs on a CPU of which a test says nothing.
    pub nobody: Arc<Named<F::Count>>,
}

impl<F: Family> World<F> {
    pub fn new(count: usize) -> Self {
        let cpu = |_| {
            let queue = F::Lock::new(RunQueue::new());
            Cpu::new(queue, F::Count::default(), WakeList::default())
        };
        Self {
            dispatcher: Dispatcher::new(from_fn(cpu), F::Count::default()),
            cpus: Cpus::new(count),
            nobody: Named::on(0, 0),
        }
    }

    /// The CPUs seen from `cpu`.
    pub fn at(&self, cpu: u32) -> &Cpus {
        self.cpus.here.set(cpu);
        &self.cpus
    }

    /// Puts `task` on a queue, from `cpu`, where nobody runs that it would preempt.
    pub fn enqueue(&self, cpu: u32, task: &Arc<Named<F::Count>>) -> Arrival {
        self.dispatcher
            .enqueue(task.clone(), &self.nobody, self.at(cpu))
    }

    /// Puts it on the queue of `cpu`, whatever idles.
    pub fn put(&self, cpu: u32, task: &Arc<Named<F::Count>>) {
        let affinity = task.affinity();
        task.set_affinity(set(&[cpu]));
        let arrival = self.enqueue(cpu, task);
        assert!(!matches!(arrival, Arrival::Elsewhere(_)));
        self.dispatcher.set_affinity(task, affinity);
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
    pub fn run(&self, cpu: u32, task: &Named<F::Count>, millis: u64) {
        task.move_to(CpuId(cpu));
        task.charge(Duration::from_millis(millis).as_nanos());
    }
}
