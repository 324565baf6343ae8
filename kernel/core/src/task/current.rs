//! The thread that this CPU runs.

use alloc::sync::Arc;

use mach::cpu::MAX_CPUS;
use mach::sync::Once;
use mach::task::{Context, Current, CurrentSlot};

use super::process::Image;
use super::{Credentials, Limits, Name, Process, Seed, Thread, UserShare};
use crate::mm::AddressSpace;
use crate::names;
use crate::net;
use crate::signal::{ActionTable, SignalSet};

static BOOT: [Once<Arc<Thread>>; MAX_CPUS] = [const { Once::new() }; MAX_CPUS];
static CURRENT: CurrentSlot<Thread> = CurrentSlot::new();

/// The running thread. Cheap: one load.
pub fn current() -> Current<Thread> {
    CURRENT.get()
}

/// The running thread, if this CPU has got that far.
pub fn try_current() -> Option<Current<Thread>> {
    CURRENT.try_get()
}

/// Says who runs from now on; gives back who ran. Only the scheduler calls it.
pub fn set_current(next: Arc<Thread>) -> Arc<Thread> {
    CURRENT.replace(next)
}

/// Makes the boot code that runs on this CPU a thread: number 0, of no program.
pub fn adopt_boot_thread() {
    let process = Process::new(
        0,
        AddressSpace::kernel(),
        Limits::default(),
        Arc::<ActionTable>::default(),
        Image::default(),
    );
    let cpu = mach::cpu::id();
    let thread = Thread::new(Seed {
        id: 0,
        process,
        context: Context::boot(),
        files: Arc::default(),
        fs: Arc::default(),
        names: names::first(),
        net: net::first().clone(),
        credentials: Arc::<Credentials>::default(),
        share: UserShare::of(0),
        mask: SignalSet::EMPTY,
        name: Name::default(),
    });
    thread.sched.set_affinity(1 << cpu.0);
    BOOT[cpu.index()].call_once(|| thread.clone());
    CURRENT.start(thread);
}

/// The thread that booted this CPU; it runs only to let others go.
pub fn boot_thread() -> Arc<Thread> {
    match BOOT[mach::cpu::id().index()].get() {
        Some(thread) => thread.clone(),
        None => unreachable!("a CPU has adopted its boot thread before it runs others"),
    }
}
