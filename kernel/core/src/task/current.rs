//! The thread that this CPU runs.

use alloc::sync::Arc;

use mach::task::{Context, Current, CurrentSlot};

use super::{Process, Thread};
use crate::mm::AddressSpace;

static CURRENT: CurrentSlot<Thread> = CurrentSlot::new();

/// The running thread. Cheap: one load.
pub fn current() -> Current<Thread> {
    CURRENT.get()
}

/// Says who runs from now on; gives back who ran. Only the scheduler calls it.
pub fn set_current(next: Arc<Thread>) -> Arc<Thread> {
    CURRENT.replace(next)
}

/// Makes the boot code that runs on this CPU a thread: number 0, of no program.
pub fn adopt_boot_thread() {
    let process = Process::new(0, AddressSpace::kernel());
    let thread = Thread::new(0, process, Context::boot(), Arc::default());
    CURRENT.start(thread);
}
