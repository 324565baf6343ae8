//! The machine's dispatcher: the queues of its CPUs (`dispatch`), and which of them are near.

use alloc::sync::Arc;
use core::sync::atomic::{AtomicU8, AtomicUsize, Ordering};

use base::{CpuId, CpuSet, Duration};
use dispatch::{Cpu, Dispatcher, Machine, RunQueue, SLOTS, SchedEntity, Thread, WakeList};
use mach::cpu::MAX_CPUS;
use mach::sync::{Native, Spin};

use crate::{Entity, budget};

/// Global, for every CPU may run every thread.
pub(crate) static DISPATCHER: Dispatcher<Entity, Native, MAX_CPUS> =
    Dispatcher::new([const { cpu() }; MAX_CPUS], AtomicUsize::new(0));

/// A CPU for which nothing waits.
const fn cpu() -> Cpu<Entity, Native> {
    let slots = [const { Spin::new(None) }; SLOTS];
    let woken = WakeList::new(slots, AtomicUsize::new(0));
    Cpu::new(Spin::new(RunQueue::new()), AtomicUsize::new(0), woken)
}

/// The node of each CPU that runs. Read by whoever places a thread.
static NODES: [AtomicU8; MAX_CPUS] = [const { AtomicU8::new(0) }; MAX_CPUS];

/// The CPUs, as the running one sees them.
pub(crate) struct Here;

impl Machine for Here {
    #[inline]
    fn here(&self) -> CpuId {
        mach::cpu::id()
    }

    #[inline]
    fn all(&self) -> CpuSet {
        mach::cpu::all()
    }

    fn are_near(&self, one: CpuId, other: CpuId) -> bool {
        node(one) == node(other)
    }

    fn is_realtime_spent(&self) -> bool {
        budget::is_spent(mach::time::now())
    }
}

impl Thread for Entity {
    type Count = AtomicUsize;

    #[inline]
    fn sched(&self) -> &SchedEntity {
        self
    }
}

fn node(cpu: CpuId) -> Option<u8> {
    NODES
        .get(cpu.index())
        .map(|node| node.load(Ordering::Relaxed))
}

/// This CPU runs threads from now on.
pub(crate) fn note_start() {
    let cpu = mach::cpu::id();
    if let Some(node) = NODES.get(cpu.index()) {
        node.store(mach::numa::node_of(cpu).0, Ordering::Relaxed);
    }
}

/// Whether a thread waits for this CPU.
#[inline]
pub(crate) fn has_ready(cpu: CpuId) -> bool {
    DISPATCHER.ready(cpu) != 0
}

/// Whether a thread waits for this CPU, or a real-time thread anywhere.
#[inline]
pub(crate) fn is_wanted(cpu: CpuId) -> bool {
    has_ready(cpu) || DISPATCHER.has_realtime()
}

/// The next thread for this CPU.
#[inline]
pub(crate) fn next() -> Option<Arc<Entity>> {
    DISPATCHER.next(&Here)
}

/// Whether the running thread has had its turn, as others wait for this CPU.
pub(crate) fn is_turn_over(running: &Entity, slice_used: Duration) -> bool {
    if running.rank().is_realtime() {
        budget::count(mach::time::now());
    }
    DISPATCHER.is_turn_over(running, slice_used, &Here)
}

/// Threads that are runnable on all CPUs, the running ones included.
pub fn runnable_count() -> usize {
    DISPATCHER.runnable(&Here)
}
