//! What the scheduler asks of those it schedules, and which of them runs here.
//!
//! What a thread is besides (a program's, with files and signals) it is not told: it has an
//! [`Entity`] of each, and calls the whole one only where it gets a CPU.
//!
//! Who keeps whom alive: a thread has its entity. The entity of one that waits, for a CPU or for
//! anything else, has the whole thread, so that a queue need only name the entity. One that runs
//! has a CPU instead, and one that is over has nothing any more.

use alloc::sync::Arc;

use mach::cpu::{self, CpuSet, MAX_CPUS};
use mach::sync::Once;
use mach::task::{Current, CurrentSlot};

use crate::Entity;

/// Something that can be given a CPU.
pub trait Runnable: Send + Sync {
    /// It runs on this CPU from now on, with its address space; gives back the one that did. The
    /// CPU is switched right afterwards.
    fn take_cpu(self: Arc<Self>) -> Arc<dyn Runnable>;
}

/// What whoever makes threads does for the running one, in rare cases.
#[derive(Clone, Copy)]
pub struct Calls {
    /// It has used more of a CPU under a real-time policy: whether it may.
    pub check_realtime_limit: fn(),
    /// It is about to wait, and there are samples of this CPU that somebody wants.
    pub give_samples: fn(),
}

/// The running threads' entities.
pub(crate) static CURRENT: CurrentSlot<Entity> = CurrentSlot::new();

/// The threads that booted the CPUs.
static BOOT: [Once<Arc<Entity>>; MAX_CPUS] = [const { Once::new() }; MAX_CPUS];
static CALLS: Once<Calls> = Once::new();

/// The running thread's entity. Cheap: one load.
#[inline(always)]
pub fn current() -> Current<Entity> {
    CURRENT.get()
}

/// The same, counted.
#[inline]
pub fn current_counted() -> Arc<Entity> {
    CURRENT.counted()
}

/// The same, if this CPU has come so far.
pub fn try_current() -> Option<Current<Entity>> {
    CURRENT.try_get()
}

/// `thread` is what booted this CPU, and runs: from now on only to let others go.
pub fn adopt_boot_thread(thread: Arc<Entity>, calls: Calls) {
    let cpu = cpu::id();
    CALLS.call_once(|| calls);
    thread.set_affinity(CpuSet::one(cpu));
    CURRENT.start(thread.clone());
    BOOT[cpu.index()].call_once(|| thread);
}

/// The thread that booted this CPU.
pub(crate) fn boot_thread() -> &'static Arc<Entity> {
    match BOOT[cpu::id().index()].get() {
        Some(thread) => thread,
        None => unreachable!("a CPU has adopted its boot thread before it runs others"),
    }
}

#[cold]
pub(crate) fn check_realtime_limit() {
    if let Some(calls) = CALLS.get() {
        (calls.check_realtime_limit)();
    }
}

#[cold]
pub(crate) fn give_samples() {
    if let Some(calls) = CALLS.get() {
        (calls.give_samples)();
    }
}
