//! What happens when memory runs out.
//!
//! The problem: programs are promised more memory than there is, so a page fault may find
//! none. Who faults is seldom to blame: a server must not die because its neighbour
//! allocates without end.
//!
//! The idea: whoever finds no memory asks for relief and tries again. Relief comes in
//! this order: caches give up what they can make again ([`shrink`]); then the process
//! that weighs most ([`victim`]) is killed, and whoever needs memory waits until its
//! memory is free: nobody else is killed before. One thread at a time relieves; the others look again a little later.
//! The kernel's own small allocations never come here: they have a reserve
//! (`mach::mem`), from which the network lives meanwhile, too.
//!
//! Invariants: relief is asked for in ordinary context, without a spin lock. A process that
//! is ending gets none, so it never waits for itself. Every wait has a deadline: the
//! victim may need something that the waiter holds.
//!
//! Not here: how much may be promised (`mm::map`), and which calls fail while the reserve
//! itself is short (`linux::shortage`).

pub mod garbage;
mod shrink;
mod victim;

use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use alloc::sync::{Arc, Weak};

use base::{Duration, VirtAddr};
use mach::sync::Spin;
use sched::Flags;
use sync::{Error, Result, Wait, WaitQueue};

pub use shrink::{Shrink, register as register_cache, shrink};
pub use victim::{ADJUSTMENT_MAX, ADJUSTMENT_MIN, score};

use crate::mm::{Access, AddressSpace, FaultError};
use crate::task::{Process, current};

/// How long the end of a victim is waited for before another one is chosen.
const DEATH_PATIENCE: Duration = Duration::from_secs(2);
/// How long others wait before they look again.
const RELIEF_PATIENCE: Duration = Duration::from_millis(10);

/// How often somebody found no memory.
static STALLS: AtomicU64 = AtomicU64::new(0);
/// How many processes were chosen to be killed for their memory.
static KILLS: AtomicU64 = AtomicU64::new(0);
/// Who was killed last, and how long its end is waited for.
static DYING: Spin<Option<(Weak<Process>, Wait)>> = Spin::new(None);
static IS_RELIEVING: AtomicBool = AtomicBool::new(false);
static RELIEVED: WaitQueue = WaitQueue::new();

/// As [`AddressSpace::fault`], with relief where memory is missing. May block.
#[inline]
pub fn fault(
    space: &AddressSpace,
    address: VirtAddr,
    access: Access,
) -> core::result::Result<(), FaultError> {
    match space.fault(address, access) {
        Err(FaultError::OutOfMemory) => fault_after_relief(space, address, access),
        other => other,
    }
}

#[cold]
fn fault_after_relief(
    space: &AddressSpace,
    address: VirtAddr,
    access: Access,
) -> core::result::Result<(), FaultError> {
    while relieve() {
        match space.fault(address, access) {
            Err(FaultError::OutOfMemory) => {}
            other => return other,
        }
    }
    Err(FaultError::OutOfMemory)
}

/// Does what may fail for want of memory; if so, once more after the caches have shrunk.
pub fn with_shrunken_caches<T>(mut work: impl FnMut() -> Result<T>) -> Result<T> {
    match work() {
        Err(Error::OutOfMemory) if shrink() => work(),
        other => other,
    }
}

/// Lines of `/proc/vmstat` under Linux's names.
pub fn counts() -> [(&'static str, u64); 2] {
    let of = |count: &AtomicU64| count.load(Ordering::Relaxed);
    [("allocstall_normal", of(&STALLS)), ("oom_kill", of(&KILLS))]
}

/// Makes memory free; false if the caller must do without: it is ending itself.
#[cold]
fn relieve() -> bool {
    if is_ending() {
        return false;
    }
    if current().fail_nth.take_failure() {
        return true;
    }
    STALLS.fetch_add(1, Ordering::Relaxed);
    if IS_RELIEVING.swap(true, Ordering::Acquire) {
        let is_over = || (!IS_RELIEVING.load(Ordering::Acquire)).then_some(());
        // After the deadline the caller looks again all the same.
        let _ = RELIEVED.wait(shortly(RELIEF_PATIENCE), is_over);
        return true;
    }
    let may_retry = shrink() || kill_one();
    IS_RELIEVING.store(false, Ordering::Release);
    RELIEVED.wake_all();
    may_retry
}

/// For a call that makes the kernel keep more, while its reserve is short: whether it may
/// go on. A process is killed only if most of the shortage is its own.
#[cold]
pub fn replenish() -> bool {
    shrink();
    let is_hogged = || victim::choose().is_some_and(|(_, weight)| victim::is_hog(weight));
    if mach::mem::is_short() && is_hogged() {
        relieve();
    }
    !mach::mem::is_short()
}

fn is_ending() -> bool {
    current().flags().contains(Flags::EXIT)
}

fn shortly(patience: Duration) -> Wait {
    Wait::UNINTERRUPTIBLE.until(mach::time::now() + patience)
}

/// Waits for the end of the last victim, or kills the heaviest process and waits for that;
/// false if that is the caller's own.
fn kill_one() -> bool {
    if let Some((process, wait)) = dying() {
        await_end(&process, wait);
        return true;
    }
    let me = current();
    let process = match victim::choose() {
        Some((process, _)) => process,
        // All others are ending or protected.
        None => me.process.clone(),
    };
    victim::kill(&process);
    KILLS.fetch_add(1, Ordering::Relaxed);
    let wait = shortly(DEATH_PATIENCE);
    let before = DYING.lock().replace((Arc::downgrade(&process), wait));
    drop(before);
    if is_ending() {
        return false;
    }
    await_end(&process, wait);
    true
}

/// The last victim, while its memory is on its way back. It relieves nobody itself any more, so
/// that another thread comes here before it has ended.
fn dying() -> Option<(Arc<Process>, Wait)> {
    let mut dying = DYING.lock();
    let (process, wait) = dying.as_ref()?;
    match process.upgrade().filter(|process| !process.has_ended()) {
        Some(process) if mach::time::now() < wait.deadline => Some((process, *wait)),
        _ => {
            *dying = None;
            None
        }
    }
}

/// After the deadline the next one is chosen: this one does not count any more.
fn await_end(process: &Process, wait: Wait) {
    let ended = || process.has_ended().then_some(());
    let _ = process.ended.queue.wait(wait, ended);
}
