//! What the scheduler asks of those it schedules, and which of them runs here.
//!
//! What a thread is besides (a program's, with files and signals) it is not told: it knows an
//! [`Entity`] of each, and calls the whole one only where it gets a CPU and in rare cases.

use alloc::sync::Arc;

use mach::cpu::{self, MAX_CPUS};
use mach::sync::Once;
use mach::task::{Current, View};

use crate::Entity;

/// Something that can be given a CPU.
pub trait Runnable: Send + Sync {
    /// What the scheduler knows of it.
    fn entity(&self) -> &Entity;

    /// It runs on this CPU from now on, with its address space, and is the one that [`current`]
    /// finds; gives back the one that was. The CPU is switched right afterwards.
    fn take_cpu(self: Arc<Self>) -> Arc<dyn Runnable>;

    /// It has used more of a CPU under a real-time policy: whether it may.
    fn check_realtime_limit(&self);

    /// It is about to wait, and there are samples of this CPU that somebody wants.
    fn give_samples(&self);
}

/// Where the running thread's entity is found; who makes threads keeps it up to date.
pub static CURRENT: View<Entity> = View::new();

/// The threads that booted the CPUs.
static BOOT: [Once<Arc<dyn Runnable>>; MAX_CPUS] = [const { Once::new() }; MAX_CPUS];

/// The running thread's entity. Cheap: one load.
#[inline(always)]
pub fn current() -> Current<Entity> {
    CURRENT.get()
}

/// The same, if this CPU has come so far.
pub fn try_current() -> Option<Current<Entity>> {
    CURRENT.try_get()
}

/// `thread` is what booted this CPU, and runs: from now on only to let others go.
pub fn adopt_boot_thread(thread: Arc<dyn Runnable>) {
    let cpu = cpu::id();
    thread.entity().set_affinity(1 << cpu.0);
    BOOT[cpu.index()].call_once(|| thread);
}

/// The thread that booted this CPU.
pub(crate) fn boot_thread() -> &'static Entity {
    match BOOT[cpu::id().index()].get() {
        Some(thread) => thread.entity(),
        None => unreachable!("a CPU has adopted its boot thread before it runs others"),
    }
}
