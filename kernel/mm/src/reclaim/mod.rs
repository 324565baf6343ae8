//! What happens when memory runs out.
//!
//! The problem: programs are promised more memory than there is, so a page fault may find
//! none. Who faults is seldom to blame: a server must not die because its neighbour
//! allocates without end.
//!
//! The idea: whoever finds no memory asks for relief and tries again. Relief comes in
//! this order: caches give up what they can make again ([`shrink`]); then the host gives frames back that it has
//! ([`balloon`](crate::balloon)); then whoever knows programs ends one of them, and whoever needs memory waits until it is free ([`Programs`]). One thread
//! at a time relieves; the others look again a little later.
//! The kernel's own small allocations never come here: they have a reserve
//! (`mach::mem`), from which the network lives meanwhile, too.
//!
//! Invariants: relief is asked for in ordinary context, without a spin lock. A process that
//! is ending gets none, so it never waits for itself. Every wait has a deadline: who is
//! waited for may need something that the waiter holds.
//!
//! Not here: which program is ended (`task::out_of_memory`), how much may be promised
//! (`space::commit`), and which calls fail while the reserve
//! itself is short (`linux::shortage`).

mod shrink;

use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::balloon;
use crate::space::{Access, AddressSpace, FaultError};

use base::{Duration, VirtAddr};
use mach::sync::Once;
use sched::Flags;
use sync::{Error, Result, Wait, WaitQueue};

pub use shrink::{Shrink, register as register_cache, shrink};

/// How long others wait before they look again.
const RELIEF_PATIENCE: Duration = Duration::from_millis(10);

/// What relief asks of whoever knows programs.
#[derive(Clone, Copy)]
pub struct Programs {
    /// Whether the running thread was refused memory because a test wanted that: none is missing.
    pub wanted_failure: fn() -> bool,
    /// Ends a program that holds much, or waits for the end of the one before; false if that is
    /// the running thread's.
    pub end_one: fn() -> bool,
    /// Whether one program alone takes most of the memory.
    pub is_one_hogging: fn() -> bool,
}

/// Said once at boot by who knows processes.
static PROGRAMS: Once<Programs> = Once::new();

/// Says who knows programs; once at boot.
pub fn ask_of(programs: Programs) {
    PROGRAMS.call_once(|| programs);
}

/// How often somebody found no memory. Memory is the machine's.
static STALLS: AtomicU64 = AtomicU64::new(0);
/// One at a time makes room, for memory is the machine's.
static IS_RELIEVING: AtomicBool = AtomicBool::new(false);
/// The others wait for it.
static RELIEVED: WaitQueue = WaitQueue::new();

/// What becomes of a fault that [`AddressSpace::fault`] refused with `why`: where memory is
/// missing, tries again after relief. May block.
#[cold]
pub fn retry_fault(
    space: &AddressSpace,
    address: VirtAddr,
    access: Access,
    mut why: FaultError,
) -> core::result::Result<(), FaultError> {
    while why == FaultError::OutOfMemory && relieve() {
        match space.fault(address, access) {
            Ok(()) => return Ok(()),
            Err(error) => why = error,
        }
    }
    Err(why)
}

/// Does what may fail for want of memory; if so, once more after the caches have shrunk, or the host has given frames
/// back. May block.
pub fn with_shrunken_caches<T>(mut work: impl FnMut() -> Result<T>) -> Result<T> {
    match work() {
        Err(Error::OutOfMemory) if shrink() || balloon::take_back() => work(),
        other => other,
    }
}

/// How often somebody found no memory since the start.
pub fn stall_count() -> u64 {
    STALLS.load(Ordering::Relaxed)
}

/// Makes memory free; false if the caller must do without: it is ending itself.
#[cold]
fn relieve() -> bool {
    if is_ending() {
        return false;
    }
    if asks(|programs| programs.wanted_failure) {
        return true;
    }
    STALLS.fetch_add(1, Ordering::Relaxed);
    if IS_RELIEVING.swap(true, Ordering::Acquire) {
        let is_over = || (!IS_RELIEVING.load(Ordering::Acquire)).then_some(());
        // After the deadline the caller looks again all the same.
        let _ = RELIEVED.wait(shortly(RELIEF_PATIENCE), is_over);
        return true;
    }
    let may_retry = shrink() || balloon::take_back() || asks(|programs| programs.end_one);
    IS_RELIEVING.store(false, Ordering::Release);
    RELIEVED.wake_all();
    may_retry
}

/// For a call that makes the kernel keep more, while its reserve is short: whether it may
/// go on. A program is ended only if most of the shortage is its own.
#[cold]
pub fn replenish() -> bool {
    shrink();
    if mach::mem::is_short() {
        balloon::take_back();
    }
    if mach::mem::is_short() && asks(|programs| programs.is_one_hogging) {
        relieve();
    }
    !mach::mem::is_short()
}

/// What one of these says; no as long as there are no programs.
fn asks(which: impl FnOnce(&Programs) -> fn() -> bool) -> bool {
    PROGRAMS.get().is_some_and(|programs| which(programs)())
}

fn is_ending() -> bool {
    sched::current().flags().contains(Flags::EXIT)
}

fn shortly(patience: Duration) -> Wait {
    Wait::UNINTERRUPTIBLE.until(mach::time::now() + patience)
}
