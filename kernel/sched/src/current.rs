//! Which thread runs here.

use alloc::sync::Arc;

use mach::cpu::{self, CpuSet, MAX_CPUS};
use mach::sync::Once;
use mach::task::{Current, CurrentSlot};

use crate::runnable::{self, Calls};
use crate::{Entity, Mstate};

/// The running threads' entities. Each CPU has one.
pub(crate) static CURRENT: CurrentSlot<Entity> = CurrentSlot::new();

/// The threads that booted the CPUs. Nobody holds them: they are there as long as their CPUs.
static BOOT: [Once<Arc<Entity>>; MAX_CPUS] = [const { Once::new() }; MAX_CPUS];

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

/// The same, if this CPU has one yet.
pub fn try_current() -> Option<Current<Entity>> {
    CURRENT.try_get()
}

/// `thread` is what booted this CPU, and runs: from now on only to let others go.
pub fn adopt_boot_thread(thread: Arc<Entity>, calls: Calls) {
    let cpu = cpu::id();
    runnable::set_calls(calls);
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

/// Does something special for the current thread: what it takes and waits for meanwhile is
/// told apart.
pub fn in_mstate<T>(mstate: Mstate, act: impl FnOnce() -> T) -> T {
    let me = current();
    let before = me.life.mstate();
    me.life.set_mstate(mstate);
    let done = act();
    me.life.set_mstate(before);
    done
}
