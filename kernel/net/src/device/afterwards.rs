//! What runs at the end of a batch: stations whose frames came with it.
//!
//! Frames for an interface over a link arrive while a lane is locked. Its shard is entered later,
//! by the same CPU, once that CPU has no lock: at the end of a batch of the card's, so that the
//! frames of an interface cost no softirq of their own, or by a softirq where a program's send
//! brought them. The card does not know what links are, only that a [`Station`] waits; while none
//! does, that is one load for a batch.
//!
//! Lock order: [`WAITING`] is innermost.

use alloc::collections::VecDeque;
use alloc::sync::Arc;
use core::cell::Cell;
use core::sync::atomic::{AtomicUsize, Ordering};

use mach::cpu::PerCpu;
use mach::sync::Spin;
use sched::{Softirq, raise};
use sync::{Error, Result};

/// Somebody with frames that its shard has not seen.
pub(crate) trait Station: Send + Sync {
    /// Those frames go through its stack. It waits again if there are more.
    fn run(self: Arc<Self>);
}

/// Those who wait. It has room for all, and is the machine's, so that any CPU that polls helps.
static WAITING: Spin<VecDeque<Arc<dyn Station>>> = Spin::new(VecDeque::new());
/// How many are in [`WAITING`], for who only looks. It is the queue's.
static WAITING_COUNT: AtomicUsize = AtomicUsize::new(0);
/// Whether this CPU is in a batch, at whose end it runs who waits.
static IS_POLLING: PerCpu<Cell<bool>> = PerCpu::new(|| Cell::new(false));

/// Makes room for `count` stations that wait, each of which does so once at most.
///
/// Errors: `OutOfMemory`.
pub(crate) fn make_room(count: usize) -> Result<()> {
    let mut waiting = WAITING.lock();
    let more = count.saturating_sub(waiting.len());
    waiting.try_reserve(more).map_err(|_| Error::OutOfMemory)
}

/// Has `station` run soon; there is room for it.
pub(crate) fn wait(station: Arc<dyn Station>) {
    let mut waiting = WAITING.lock();
    waiting.push_back(station);
    WAITING_COUNT.store(waiting.len(), Ordering::Release);
    if !IS_POLLING.get().get() {
        raise(Softirq::Net);
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
    if WAITING_COUNT.load(Ordering::Acquire) != 0 {
        run_waiting();
    }
    IS_POLLING.get().set(false);
}

/// Runs all that wait now; those that wait again have their turn in the next batch.
#[cold]
fn run_waiting() {
    let count = WAITING_COUNT.load(Ordering::Acquire);
    for _ in 0..count {
        let next = {
            let mut waiting = WAITING.lock();
            let next = waiting.pop_front();
            WAITING_COUNT.store(waiting.len(), Ordering::Release);
            next
        };
        match next {
            Some(station) => station.run(),
            None => return,
        }
    }
    if WAITING_COUNT.load(Ordering::Acquire) != 0 {
        raise(Softirq::Net);
    }
}
