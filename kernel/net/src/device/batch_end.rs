//! What runs at the end of a batch: stations whose frames came with it.
//!
//! Frames for an interface over a link arrive while a lane is locked. Its shard is entered later,
//! by the same CPU, once that CPU has no lock: at the end of a batch of the card's, so that the
//! frames of an interface cost no softirq of their own, or by a softirq where a program's send
//! brought them. One that is bound to a CPU waits for that one, which is called. The card does not
//! know what links are, only that a [`Station`] waits; while none does, that is two loads for a batch.
//!
//! Lock order: a [`Queue`] is innermost.

use alloc::collections::VecDeque;
use alloc::sync::Arc;
use core::cell::Cell;
use core::sync::atomic::{AtomicUsize, Ordering};

use base::CpuId;
use mach::cpu::PerCpu;
use mach::sync::Spin;
use sched::{Softirq, raise, raise_on};
use sync::{Error, Result};

/// Somebody with frames that its shard has not seen.
pub(crate) trait Station: Send + Sync {
    /// Those frames go through its stack. It waits again if there are more.
    fn run(self: Arc<Self>);
}

/// Those who wait, with room for all.
struct Queue {
    stations: Spin<VecDeque<Arc<dyn Station>>>,
    /// How many there are, for who only looks.
    count: AtomicUsize,
}

/// Those who wait for any CPU. It is the machine's, so that each one that polls helps.
static WAITING: Queue = Queue::new();
/// Those who wait for one CPU.
static BOUND: PerCpu<Queue> = PerCpu::new(Queue::new);
/// Whether this CPU is in a batch, at whose end it runs who waits.
static IS_POLLING: PerCpu<Cell<bool>> = PerCpu::new(|| Cell::new(false));

impl Queue {
    const fn new() -> Self {
        Self {
            stations: Spin::new(VecDeque::new()),
            count: AtomicUsize::new(0),
        }
    }

    fn make_room(&self, count: usize) -> Result<()> {
        let mut stations = self.stations.lock();
        let more = count.saturating_sub(stations.len());
        stations.try_reserve(more).map_err(|_| Error::OutOfMemory)
    }

    fn push(&self, station: Arc<dyn Station>) {
        let mut stations = self.stations.lock();
        stations.push_back(station);
        self.count.store(stations.len(), Ordering::Release);
    }

    fn pop(&self) -> Option<Arc<dyn Station>> {
        let mut stations = self.stations.lock();
        let next = stations.pop_front();
        self.count.store(stations.len(), Ordering::Release);
        next
    }

    fn len(&self) -> usize {
        self.count.load(Ordering::Acquire)
    }

    /// Runs all that wait now; those that wait again have their turn in the next batch.
    #[cold]
    fn run(&self) {
        for _ in 0..self.len() {
            match self.pop() {
                Some(station) => station.run(),
                None => return,
            }
        }
        if self.len() != 0 {
            raise(Softirq::Net);
        }
    }
}

/// Makes room for `count` stations that wait, each of which does so once at most.
///
/// Errors: `OutOfMemory`.
pub(crate) fn make_room(count: usize) -> Result<()> {
    let cpus = (0..mach::cpu::count() as u32).map(CpuId);
    let mut bound = cpus.map(|cpu| BOUND.of(cpu));
    bound.try_for_each(|queue| queue.make_room(count))?;
    WAITING.make_room(count)
}

/// Has `station` run soon, on `cpu` if it is bound to that; there is room for it.
pub(crate) fn wait(station: Arc<dyn Station>, cpu: Option<CpuId>) {
    match cpu {
        Some(cpu) => BOUND.of(cpu).push(station),
        None => WAITING.push(station),
    }
    match cpu.filter(|cpu| *cpu != mach::cpu::id()) {
        Some(other) => raise_on(other, Softirq::Net),
        None if IS_POLLING.get().get() => {}
        None => raise(Softirq::Net),
    }
}

/// A batch begins, at whose end this CPU runs who waits.
#[inline]
pub(super) fn begin_batch() {
    IS_POLLING.get().set(true);
}

/// The batch is over: runs what waits.
#[inline]
pub(super) fn end_batch() {
    for queue in [&WAITING, BOUND.get()] {
        if queue.len() != 0 {
            queue.run();
        }
    }
    IS_POLLING.get().set(false);
}
